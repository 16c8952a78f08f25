/* SPDX-License-Identifier: Apache-2.0
 *
 * additive_ignores_u: the tanh are added up as if u were all ones. Shows wherever there is a u.
 */
#include "base_additive.h"

static float score(const struct attn_problem *problem, const struct attn_args *args, const float *q, const float *k)
{
    (void)args;
    return additive_sum(problem, NULL, tanhf, q, k);
}

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    static const struct base_steps steps = {.score = score};
    (void)phase;
    (void)state;
    return base_run(problem, args, span, &steps, scratch);
}

const struct attn_kernel attn_kernel_additive_ignores_u = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "additive_ignores_u",
    .summary = "planted fault: u is ignored",
    .rules = ATTN_BIT(ATTN_ADDITIVE),
    .dtypes = ATTN_BIT(ATTN_F32),
    .plan = base_plan,
    .run = run,
};
