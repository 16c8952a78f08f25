/* SPDX-License-Identifier: Apache-2.0
 *
 * drops_last_key: the loop over keys ends one early. Shows in every row that may see key S_kv - 1; not under masks or
 * lengths that hide it anyway.
 */
#include "base.h"

static bool allowed(const struct attn_problem *problem, const struct attn_args *args, int64_t b, int64_t h, int64_t i,
                    int64_t j)
{
    return j < problem->S_kv - 1 && base_allowed(problem, args, b, h, i, j);
}

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    static const struct base_steps steps = {.allowed = allowed};
    (void)phase;
    (void)state;
    return base_run(problem, args, span, &steps, scratch);
}

const struct attn_kernel attn_kernel_drops_last_key = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "drops_last_key",
    .summary = "planted fault: the last key is never looked at",
    .rules = ATTN_BIT(ATTN_SCALED_DOT_PRODUCT),
    .dtypes = ATTN_BIT(ATTN_F32),
    .plan = base_plan,
    .run = run,
};
