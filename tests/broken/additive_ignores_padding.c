/* SPDX-License-Identifier: Apache-2.0
 *
 * additive_ignores_padding: keys beyond an entry's kv-length take part. Shows where lengths differ from kv-len.
 */
#include "base_additive.h"

static bool allowed(const struct attn_problem *problem, const struct attn_args *args, int64_t b, int64_t h, int64_t i,
                    int64_t j)
{
    return base_allowed_by_position(problem, b, i, j, 0) && base_allowed_by_element(args, b, h, i, j);
}

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    static const struct base_steps steps = {.allowed = allowed, .score = additive_score};
    (void)phase;
    (void)state;
    return base_run(problem, args, span, &steps, scratch);
}

const struct attn_kernel attn_kernel_additive_ignores_padding = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "additive_ignores_padding",
    .summary = "planted fault: kv-lengths are ignored",
    .rules = ATTN_BIT(ATTN_ADDITIVE),
    .dtypes = ATTN_BIT(ATTN_F32),
    .plan = base_plan,
    .run = run,
};
