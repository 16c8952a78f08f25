/* SPDX-License-Identifier: Apache-2.0
 *
 * avx512, additive rule: online softmax over blocks of keys, features as lanes.
 */
#include "../additive/additive.h"

const struct attn_kernel attn_kernel_avx512_additive = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "avx512",
    .summary = "additive scores fused with online softmax, features as lanes of 16 floats",
    .isa = ATTN_ISA_AVX2 | ATTN_ISA_FMA | ATTN_ISA_F16C | ATTN_ISA_AVX512F | ATTN_ISA_AVX512BW | ATTN_ISA_AVX512DQ |
           ATTN_ISA_AVX512VL,
    .rules = ATTN_BIT(ATTN_ADDITIVE),
    .dtypes = ATTN_BIT(ATTN_F32) | ATTN_BIT(ATTN_BF16) | ATTN_BIT(ATTN_F16),
    .caps = ATTN_CAP_PARTIAL | ATTN_CAP_WEIGHTS | ATTN_CAP_SPLIT_KEYS,
    .plan = additive_plan,
    .run = additive_run,
};
