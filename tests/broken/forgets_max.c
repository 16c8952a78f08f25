/* SPDX-License-Identifier: Apache-2.0
 *
 * forgets_max: exponentials of the bare scores. Right as long as they stay within float; shows with scores beyond
 * +-88 (fills huge and dominant), where inf / inf or 0 / 0 comes out.
 */
#include "base.h"

static float running_max(float old_max, float score)
{
    (void)old_max;
    (void)score;
    return 0;
}

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    static const struct base_steps steps = {.running_max = running_max};
    (void)phase;
    (void)state;
    return base_run(problem, args, span, &steps, scratch);
}

const struct attn_kernel attn_kernel_forgets_max = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "forgets_max",
    .summary = "planted fault: no maximum is subtracted",
    .rules = ATTN_BIT(ATTN_SCALED_DOT_PRODUCT),
    .dtypes = ATTN_BIT(ATTN_F32),
    .plan = base_plan,
    .run = run,
};
