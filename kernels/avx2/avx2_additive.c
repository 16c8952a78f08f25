/* SPDX-License-Identifier: Apache-2.0
 *
 * avx2, additive rule: as avx512_additive.c (see there), 8 features a vector.
 *
 * Tiling. 2 queries x 4 keys or 1 x 8; a step is 2 keys' tanh. Values: 4 rows x 2 vectors.
 *
 * Registers. A step holds 2 x 4 vectors of tanh under way, q and u; most of its 10 constants come from L1.
 *
 * Memory. As avx512.
 *
 * Measured on a Zen 4 core, share of the rate of tanh alone (3.7e9/s): 0.65 (S 256, hidden = D_v = 64 and 128), 0.69
 * (hidden 512, D_v 64).
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
