/* SPDX-License-Identifier: Apache-2.0
 *
 * ignores_kv_lengths: reads the keys beyond kv_len. Shows only in problems with kv-lengths shorter than S_kv.
 */
#include "base.h"

static bool allowed(const struct attn_problem *problem, const struct attn_args *args, int64_t b, int64_t h, int64_t i,
                    int64_t j)
{
    return base_allowed_by_position(problem, b, i, j, 0) && base_allowed_by_element(args, b, h, i, j);
}

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    static const struct base_steps steps = {.allowed = allowed};
    (void)phase;
    (void)state;
    return base_run(problem, args, span, &steps, scratch);
}

const struct attn_kernel attn_kernel_ignores_kv_lengths = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "ignores_kv_lengths",
    .summary = "planted fault: padding keys are attended to",
    .rules = ATTN_BIT(ATTN_SCALED_DOT_PRODUCT),
    .dtypes = ATTN_BIT(ATTN_F32),
    .plan = base_plan,
    .run = run,
};
