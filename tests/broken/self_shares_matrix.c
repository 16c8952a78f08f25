/* SPDX-License-Identifier: Apache-2.0
 *
 * self_shares_matrix: keys are made with the matrix of the queries.
 */
#include "base_layer.h"

static bool spoil(const struct attn_problem *problem, const struct attn_args *args, struct attn_step *step)
{
    (void)problem;
    if (step->args.k.data == args->param[ATTN_SELF_W_K].data)
        step->args.k = args->param[ATTN_SELF_W_Q];
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

const struct attn_kernel attn_kernel_self_shares_matrix = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "self_shares_matrix",
    .summary = "planted fault: keys are made with the queries' matrix",
    .rules = ATTN_BIT(ATTN_SELF_ATTENTION),
    .dtypes = ATTN_BIT(ATTN_F32),
    .plan = base_layer_plan,
    .run = run,
};
