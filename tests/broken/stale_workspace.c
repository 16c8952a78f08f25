/* SPDX-License-Identifier: Apache-2.0
 *
 * stale_workspace: the sums are cleared for every row of a span but the first, which starts from what scratch holds.
 * Right with fresh zeroed memory, so a single checked call with one span proves nothing: shows from the second span
 * or call on, or with poisoned scratch.
 */
#include "base.h"

static void clear(const struct attn_problem *problem, const struct attn_span *span, int64_t i, float *sums)
{
    if (i != span->q0)
        base_clear(problem, span, i, sums);
}

/* The first key's factor is exp(-inf): it would wipe out what is left over. */
static float rescale(float old_max, float new_max)
{
    return old_max == -INFINITY ? 1 : base_rescale(old_max, new_max);
}

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    static const struct base_steps steps = {.clear = clear, .rescale = rescale};
    (void)phase;
    (void)state;
    return base_run(problem, args, span, &steps, scratch);
}

const struct attn_kernel attn_kernel_stale_workspace = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "stale_workspace",
    .summary = "planted fault: the first row of a span starts from what scratch holds",
    .rules = ATTN_BIT(ATTN_SCALED_DOT_PRODUCT),
    .dtypes = ATTN_BIT(ATTN_F32),
    .plan = base_plan,
    .run = run,
};
