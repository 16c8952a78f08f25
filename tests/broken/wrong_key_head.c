/* SPDX-License-Identifier: Apache-2.0
 *
 * wrong_key_head: query head h reads key head h mod H_kv instead of h / (H / H_kv). Shows only where 1 < H_kv < H.
 */
#include "base.h"

static int64_t key_head(const struct attn_problem *problem, int64_t h)
{
    return h % problem->H_kv;
}

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    static const struct base_steps steps = {.key_head = key_head};
    (void)phase;
    (void)state;
    return base_run(problem, args, span, &steps, scratch);
}

const struct attn_kernel attn_kernel_wrong_key_head = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "wrong_key_head",
    .summary = "planted fault: query heads are dealt out to key heads in turn",
    .rules = ATTN_BIT(ATTN_SCALED_DOT_PRODUCT),
    .dtypes = ATTN_BIT(ATTN_F32),
    .plan = base_plan,
    .run = run,
};
