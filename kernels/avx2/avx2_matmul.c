/* SPDX-License-Identifier: Apache-2.0
 *
 * avx2: product of matrices in f32 arithmetic, 8 floats a vector; bf16 and f16 are converted as they are packed.
 *
 * Algorithm. Columns of b are lanes, packed into panels of 16 ([N][K] by transposes of 8 x 8 in registers); strips of 6
 * rows of a, read in place and broadcast element by element, pass by all panels of a block (gemm/nest.h, gemm/tile.h).
 * Up to 8 rows of a read b once, in place, unpacked (gemm/few.h).
 *
 * Tiling. 6 rows x 2 vectors; 1..5 rows and a single vector have tiles of their own. Blocks as in avx512_matmul.c.
 *
 * Registers. 12 accumulators, 2 vectors of b, 1 broadcast: 15 of 16. A step of k: 12 FMAs, 8 loads.
 *
 * Memory. As in avx512_matmul.c: a once for every 256 columns, b once for every span of rows; a block of workspace, 512
 * KiB of packed b.
 *
 * Measured as in avx512_matmul.c: 1024^3 f32 0.88 of the FMA peak, both ways b can lie; one row times [16384][4096]
 * draws 0.73 of the read bandwidth, 8 rows 0.23.
 */
#include "../gemm/gemm.h"

extern const struct attn_kernel attn_kernel_avx2_matmul;

const struct attn_kernel attn_kernel_avx2_matmul = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "avx2",
    .summary = "packed panels of b, columns as lanes",
    .isa = ATTN_ISA_AVX2 | ATTN_ISA_FMA | ATTN_ISA_F16C,
    .rules = ATTN_BIT(ATTN_MATMUL),
    .dtypes = ATTN_BIT(ATTN_F32) | ATTN_BIT(ATTN_BF16) | ATTN_BIT(ATTN_F16),
    .plan = gemm_plan,
    .run = gemm_run,
};
