/* SPDX-License-Identifier: Apache-2.0
 *
 * writes_inputs: multiplies q by the scale where it lies. The first result on fresh inputs is right: shows when the
 * inputs are compared after the call, or lie in memory that must not be written, and in every later call on the same
 * inputs.
 */
#include "base.h"

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    static const struct base_steps sound;
    (void)phase;
    (void)state;
    for (int64_t b = span->b0; b < span->b1; b++)
        for (int64_t h = span->h0; h < span->h1; h++)
            for (int64_t i = span->q0; i < span->q1; i++) {
                float *q = (float *)args->q.data + base_offset(&args->q, b, h, i);
                for (int64_t d = 0; d < problem->D; d++)
                    q[d] *= problem->scale;
            }
    struct attn_problem scaled = *problem;
    scaled.scale = 1;
    return base_run(&scaled, args, span, &sound, scratch);
}

const struct attn_kernel attn_kernel_writes_inputs = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "writes_inputs",
    .summary = "planted fault: the scale is folded into q in place",
    .rules = ATTN_BIT(ATTN_SCALED_DOT_PRODUCT),
    .dtypes = ATTN_BIT(ATTN_F32),
    .plan = base_plan,
    .run = run,
};
