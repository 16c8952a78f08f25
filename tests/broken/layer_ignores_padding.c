/* SPDX-License-Identifier: Apache-2.0
 *
 * layer_ignores_padding: keys beyond an entry's kv-length take part in the attention of a layer.
 */
#include "base_layer.h"

static bool spoil(const struct attn_problem *problem, const struct attn_args *args, struct attn_step *step)
{
    (void)problem;
    (void)args;
    if (step->phase == ATTN_PHASE_ATTENTION)
        step->problem.kv_len = NULL;
    return false;
}

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    (void)span;
    (void)state;
    (void)scratch;
    return base_layer_run(problem, args, phase, spoil);
}

const struct attn_kernel attn_kernel_layer_ignores_padding = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "layer_ignores_padding",
    .summary = "planted fault: kv-lengths are ignored",
    .rules = ATTN_BIT(ATTN_MULTI_HEAD) | ATTN_BIT(ATTN_SELF_ATTENTION) | ATTN_BIT(ATTN_CONCAT),
    .dtypes = ATTN_BIT(ATTN_F32),
    .plan = base_layer_plan,
    .run = run,
};
