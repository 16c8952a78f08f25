/* SPDX-License-Identifier: Apache-2.0
 *
 * additive_coarse_tanh: tanh by its [7/6] continued fraction, cut at 1. Right to eight digits near 0, off by 4e-5 where
 * it meets 1, at 4.97; the sum over the hidden units hides some of that, the bound must not.
 */
#include "base_additive.h"

static float coarse_tanh(float x)
{
    const float z = x * x;
    const float y = x * (135135 + z * (17325 + z * (378 + z))) / (135135 + z * (62370 + z * (3150 + z * 28)));
    return y > 1 ? 1 : y < -1 ? -1 : y;
}

static float score(const struct attn_problem *problem, const struct attn_args *args, const float *q, const float *k)
{
    return additive_sum(problem, additive_u(args), coarse_tanh, q, k);
}

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    static const struct base_steps steps = {.score = score};
    (void)phase;
    (void)state;
    return base_run(problem, args, span, &steps, scratch);
}

const struct attn_kernel attn_kernel_additive_coarse_tanh = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "additive_coarse_tanh",
    .summary = "planted fault: tanh is too coarse",
    .rules = ATTN_BIT(ATTN_ADDITIVE),
    .dtypes = ATTN_BIT(ATTN_F32),
    .plan = base_plan,
    .run = run,
};
