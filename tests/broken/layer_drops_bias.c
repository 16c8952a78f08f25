/* SPDX-License-Identifier: Apache-2.0
 *
 * layer_drops_bias: the projection of the values forgets its bias, which reaches every row of the output.
 */
#include "base_layer.h"

static bool spoil(const struct attn_problem *problem, const struct attn_args *args, struct attn_step *step)
{
    const int index = problem->rule == ATTN_SELF_ATTENTION ? ATTN_SELF_MATRICES + ATTN_LAYER_W_V : ATTN_LAYER_W_V;
    if (step->phase == ATTN_PHASE_PROJECTIONS && step->args.k.data == args->param[index].data)
        step->args.bias.data = NULL;
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

const struct attn_kernel attn_kernel_layer_drops_bias = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "layer_drops_bias",
    .summary = "planted fault: the bias of the value projection is dropped",
    .rules = ATTN_BIT(ATTN_MULTI_HEAD) | ATTN_BIT(ATTN_SELF_ATTENTION),
    .dtypes = ATTN_BIT(ATTN_F32),
    .plan = base_layer_plan,
    .run = run,
};
