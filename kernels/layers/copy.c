/* SPDX-License-Identifier: Apache-2.0
 *
 * copy: q to out, row by row, whatever the strides of both: the permute phase of a layer. Rows without gaps between
 * them are copied at once.
 */
#include <assert.h>
#include <string.h>

#include "../elements_portable.h"
#include "layer.h"

static void copy_rows(const struct attn_problem *problem, const struct attn_args *args, int64_t b, int64_t h,
                      int64_t q0, int64_t q1)
{
    const int64_t D = problem->D;
    const size_t row_bytes = (size_t)D * element_size(problem->dtype);
    if (args->q.stride[2] == D && args->out.stride[2] == D) {
        memcpy(row_in(&args->out, problem->dtype, b, h, q0), row_in(&args->q, problem->dtype, b, h, q0),
               (size_t)(q1 - q0) * row_bytes);
        return;
    }
    for (int64_t i = q0; i < q1; i++)
        memcpy(row_in(&args->out, problem->dtype, b, h, i), row_in(&args->q, problem->dtype, b, h, i), row_bytes);
}

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    (void)phase;
    (void)state;
    (void)scratch;
    assert(problem->D == problem->D_v);
    if (span->q0 < span->q1)
        for (int64_t b = span->b0; b < span->b1; b++)
            for (int64_t h = span->h0; h < span->h1; h++)
                copy_rows(problem, args, b, h, span->q0, span->q1);
    return 0;
}

const struct attn_kernel attn_kernel_copy = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "copy",
    .summary = "rows of one layout as rows of another",
    .rules = ATTN_BIT(ATTN_SCALED_DOT_PRODUCT),
    .dtypes = ATTN_BIT(ATTN_F32) | ATTN_BIT(ATTN_BF16) | ATTN_BIT(ATTN_F16),
    .run = run,
};
