/* SPDX-License-Identifier: Apache-2.0
 *
 * layer_permutes_heads: heads are joined in reverse order before the output projection. Shows with two heads or more.
 */
#include "base_layer.h"

static bool spoil(const struct attn_problem *problem, const struct attn_args *args, struct attn_step *step)
{
    struct attn_tensor *out = &step->args.out;
    (void)args;
    if (step->phase == ATTN_PHASE_ATTENTION && !(problem->flags & ATTN_FLAG_SINGLE)) {
        out->data = (float *)out->data + (problem->H - 1) * out->stride[1];
        out->stride[1] = -out->stride[1];
    }
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

const struct attn_kernel attn_kernel_layer_permutes_heads = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "layer_permutes_heads",
    .summary = "planted fault: heads are joined in the wrong order",
    .rules = ATTN_BIT(ATTN_MULTI_HEAD) | ATTN_BIT(ATTN_SELF_ATTENTION),
    .dtypes = ATTN_BIT(ATTN_F32),
    .plan = base_layer_plan,
    .run = run,
};
