/* SPDX-License-Identifier: Apache-2.0
 *
 * avx2, additive rule: online softmax over blocks of keys, features as lanes.
 */
#include "../additive/additive.h"

const struct attn_kernel attn_kernel_avx2_additive = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "avx2",
    .summary = "additive scores fused with online softmax, features as lanes of 8 floats",
    .isa = ATTN_ISA_AVX2 | ATTN_ISA_FMA | ATTN_ISA_F16C,
    .rules = ATTN_BIT(ATTN_ADDITIVE),
    .dtypes = ATTN_BIT(ATTN_F32) | ATTN_BIT(ATTN_BF16) | ATTN_BIT(ATTN_F16),
    .caps = ATTN_CAP_PARTIAL | ATTN_CAP_WEIGHTS | ATTN_CAP_SPLIT_KEYS,
    .plan = additive_plan,
    .run = additive_run,
};
