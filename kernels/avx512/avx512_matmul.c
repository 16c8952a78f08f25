/* SPDX-License-Identifier: Apache-2.0
 *
 * avx512: product of matrices, b packed into panels (gemm/).
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
