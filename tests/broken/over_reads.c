/* SPDX-License-Identifier: Apache-2.0
 *
 * over_reads: loads the element behind the end of the last key row of each span's heads, as a vector loop without a
 * tail does, and makes no use of it. The result is right: shows only where the tensor ends at a page that must not be
 * read (or under AddressSanitizer).
 */
#include "base.h"

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    static const struct base_steps sound;
    (void)phase;
    (void)state;
    const int error = base_run(problem, args, span, &sound, scratch);
    for (int64_t b = span->b0; problem->S_kv > 0 && b < span->b1; b++)
        for (int64_t h = span->h0; h < span->h1; h++) {
            const float *last =
                (const float *)args->k.data + base_offset(&args->k, b, base_key_head(problem, h), problem->S_kv - 1);
            (void)*(const volatile float *)(last + problem->D);
        }
    return error;
}

const struct attn_kernel attn_kernel_over_reads = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "over_reads",
    .summary = "planted fault: reads one element behind the last key",
    .rules = ATTN_BIT(ATTN_SCALED_DOT_PRODUCT),
    .dtypes = ATTN_BIT(ATTN_F32),
    .plan = base_plan,
    .run = run,
};
