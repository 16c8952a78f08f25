/* SPDX-License-Identifier: Apache-2.0
 *
 * avx512, additive rule: score(i,j) = sum_h u_h tanh(q_ih + k_jh), 16 features a vector. Every mask, weights, parts of
 * the keys, any hidden and D_v.
 *
 * Algorithm. Up to 8 query rows of one key head go through blocks of 512 keys: scores (additive/scores.h), online
 * softmax row by row, weights times values (additive/values.h). Lanes are features: no lane is lost to short sequences
 * and keys are read as they lie; the sums over lanes are taken for 16 pairs at once by a transposing add tree. Returned
 * weights are those of each block, brought to the row's own maximum at its end.
 *
 * Tiling. 4 queries x 4 keys, 2 x 8 or 1 x 16: a step is 4 keys' tanh of one vector of features, all steps of a feature
 * vector before the next. Values: 4 rows x 4 vectors.
 *
 * Registers. A step holds 4 x 4 vectors of tanh under way, 10 constants, q and u: 28 of 32; the 16 sums stay in L1.
 *
 * Memory. K and V are read once per 8 queries; per thread 32 (hidden + D_v + 512) bytes and u. A vector of K costs the
 * time of 16 tanh (13 cycles), so DRAM matters only where one query meets keys that no other uses.
 *
 * Measured on a Zen 4 core, share of the rate of tanh alone (4.9e9/s): 0.76 (S 256, hidden = D_v = 64), 0.78 (128),
 * 0.86 (hidden 512, D_v 64), 0.69 (hidden 32), 0.75 with one query and 8 heads to 2; 0.77 with weights at 128. The rest
 * is the product with V, at hidden = D_v one FMA more a tanh, and the one with u.
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
