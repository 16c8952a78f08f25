/* SPDX-License-Identifier: Apache-2.0
 *
 * avx512: product of matrices in f32 arithmetic, 16 floats a vector; bf16 and f16 are converted as they are packed.
 *
 * Algorithm. Columns of b are lanes. b is packed into panels of 64 columns ([N][K] by transposes of 16 x 16 in
 * registers), and strips of 6 rows of a, read in place and broadcast element by element, pass by all panels of a block
 * (gemm/nest.h, gemm/tile.h). Up to 8 rows of a read b once, in place, unpacked (gemm/few.h).
 *
 * Tiling. 6 rows x 4 vectors; 1..5 rows and 1..3 vectors have tiles of their own. Blocks of 256 columns x 512 of depth;
 * bf16 and f16 of a deeper product also in blocks of 384 rows, whose sums wait in scratch.
 *
 * Registers. 24 accumulators, 4 vectors of b, 1 broadcast: 29 of 32. A step of k: 24 FMAs, 10 loads.
 *
 * Memory. a is read once for every 256 columns, b once for every span of rows, f32 outputs once for every 512 of depth.
 * A thread's workspace is a block: 512 KiB of packed b, half of a 1 MiB L2 (bf16 and f16: 12 KiB for a strip of a and
 * up to 384 KiB of sums besides). For up to 8 rows of bf16 or f16 it is O(K): a as floats.
 *
 * Measured beside the FMA probe on a busy virtual Zen 4 core, by CPU time, medians: 1024^3 f32 0.90 ([K][N]) and 0.92
 * ([N][K]) of the FMA peak. One row times [16384][4096] draws 0.90 of the read bandwidth, 2 rows 0.57, 4 rows 0.47, 8
 * rows 0.32: there the loads of a beside each vector of b set the pace.
 */
#include "../gemm/gemm.h"

extern const struct attn_kernel attn_kernel_avx512_matmul;

const struct attn_kernel attn_kernel_avx512_matmul = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "avx512",
    .summary = "packed panels of b, columns as lanes",
    .isa = ATTN_ISA_AVX2 | ATTN_ISA_FMA | ATTN_ISA_F16C | ATTN_ISA_AVX512F | ATTN_ISA_AVX512BW | ATTN_ISA_AVX512DQ |
           ATTN_ISA_AVX512VL,
    .rules = ATTN_BIT(ATTN_MATMUL),
    .dtypes = ATTN_BIT(ATTN_F32) | ATTN_BIT(ATTN_BF16) | ATTN_BIT(ATTN_F16),
    .plan = gemm_plan,
    .run = gemm_run,
};
