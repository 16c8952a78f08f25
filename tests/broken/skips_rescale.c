/* SPDX-License-Identifier: Apache-2.0
 *
 * skips_rescale: the online softmax takes a new maximum but leaves what was summed under the old one as it is. Shows
 * wherever a later key has a larger score than the first; not with equal scores.
 */
#include "base.h"

static float rescale(float old_max, float new_max)
{
    (void)old_max;
    (void)new_max;
    return 1;
}

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    static const struct base_steps steps = {.rescale = rescale};
    (void)phase;
    (void)state;
    return base_run(problem, args, span, &steps, scratch);
}

const struct attn_kernel attn_kernel_skips_rescale = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "skips_rescale",
    .summary = "planted fault: sums are not rescaled when the maximum moves",
    .rules = ATTN_BIT(ATTN_SCALED_DOT_PRODUCT),
    .dtypes = ATTN_BIT(ATTN_F32),
    .plan = base_plan,
    .run = run,
};
