/* SPDX-License-Identifier: Apache-2.0
 *
 * concat_swaps_halves: the output layer meets [applied; q] where it should meet [q; applied].
 */
#include "base_layer.h"

static void reverse(float *first, float *end)
{
    for (; first < end; first++) {
        const float kept = *first;
        *first = *--end;
        *end = kept;
    }
}

static bool spoil(const struct attn_problem *problem, const struct attn_args *args, struct attn_step *step)
{
    const struct attn_tensor *joined = &step->args.q;
    (void)args;
    if (step->phase != ATTN_PHASE_OUTPUT)
        return false;
    for (int64_t row = 0; row < joined->size[0] * joined->size[1] * joined->size[2]; row++) {
        const int64_t b = row / (joined->size[1] * joined->size[2]), h = row / joined->size[2] % joined->size[1];
        float *q = (float *)joined->data + b * joined->stride[0] + h * joined->stride[1] +
                   row % joined->size[2] * joined->stride[2];
        reverse(q, q + problem->D);
        reverse(q + problem->D, q + joined->size[3]);
        reverse(q, q + joined->size[3]);
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

const struct attn_kernel attn_kernel_concat_swaps_halves = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "concat_swaps_halves",
    .summary = "planted fault: the output layer gets its halves in the wrong order",
    .rules = ATTN_BIT(ATTN_CONCAT),
    .dtypes = ATTN_BIT(ATTN_F32),
    .plan = base_layer_plan,
    .run = run,
};
