/* SPDX-License-Identifier: Apache-2.0
 *
 * over_writes: stores a zero behind the end of the last output row of each span's heads, as a vector loop without a
 * tail does. Within the tensor a later row may cover it up: shows in the memory behind the tensor (guard page,
 * canary), and in rows that other threads had finished.
 */
#include "base.h"

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    static const struct base_steps sound;
    (void)phase;
    (void)state;
    const int error = base_run(problem, args, span, &sound, scratch);
    for (int64_t b = span->b0; span->q0 < span->q1 && b < span->b1; b++)
        for (int64_t h = span->h0; h < span->h1; h++)
            ((float *)args->out.data)[base_offset(&args->out, b, h, span->q1 - 1) + problem->D_v] = 0;
    return error;
}

const struct attn_kernel attn_kernel_over_writes = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "over_writes",
    .summary = "planted fault: writes one element behind the last row of each head",
    .rules = ATTN_BIT(ATTN_SCALED_DOT_PRODUCT),
    .dtypes = ATTN_BIT(ATTN_F32),
    .plan = base_plan,
    .run = run,
};
