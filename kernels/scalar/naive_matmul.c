/* SPDX-License-Identifier: Apache-2.0
 *
 * naive: the product of matrices as a textbook writes it. Three plain loops, the sum of products innermost.
 *
 * bf16 and f16 are read as f32 and every element of the output is rounded once; the sum is f32.
 *
 * Tiling: none. Memory: one row of a and one column of b in scratch, O(K). All of b is read again for every row, by
 * columns where it lies as [K][N]: a cache line for each element. The one to read first, and to beat.
 */
#include <stdbool.h>

#include "../attn.h"
#include "../elements_portable.h"

static float element_of(uint32_t dtype, const void *row, int64_t index)
{
    float x;
    return *read_elements(dtype, (const char *)row + index * (int64_t)element_size(dtype), 1, &x);
}

/* Row m of matrix (b, h), columns k0..k1 of the span. a, column: [K] each, for what is not floats side by side. */
static void multiply_row(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
                         int64_t b, int64_t h, int64_t m, float *a, float *column)
{
    const uint32_t dtype = problem->dtype;
    const bool transposed = problem->flags & ATTN_FLAG_TRANSPOSED;
    const int64_t depth = problem->D;
    const float *row = read_elements(dtype, row_in(&args->q, dtype, b, h, m), depth, a);
    const float *bias = args->bias.data ? row_in(&args->bias, ATTN_F32, b, h, m) : NULL;
    void *out = row_in(&args->out, dtype, b, h, m);
    for (int64_t n = span->k0; n < span->k1; n++) {
        const float *right = column;
        if (transposed)
            right = read_elements(dtype, row_in(&args->k, dtype, b, h, n), depth, column);
        else
            for (int64_t k = 0; k < depth; k++)
                column[k] = element_of(dtype, row_in(&args->k, dtype, b, h, k), n);
        float sum = 0;
        for (int64_t k = 0; k < depth; k++)
            sum += row[k] * right[k];
        if (bias)
            sum += bias[n];
        if (problem->flags & ATTN_FLAG_ACCUMULATE)
            sum += element_of(dtype, out, n);
        write_element(dtype, out, n, sum);
    }
}

static int plan(const struct attn_problem *problem, int32_t threads, void *state, struct attn_plan *plan)
{
    (void)threads;
    (void)state;
    plan->k_grain = 32; /* a cache line of the output belongs to one thread where rows begin with one */
    plan->thread_bytes = 2 * (size_t)problem->D * sizeof(float);
    return 0;
}

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    (void)phase;
    (void)state;
    for (int64_t b = span->b0; b < span->b1; b++)
        for (int64_t h = span->h0; h < span->h1; h++)
            for (int64_t m = span->q0; m < span->q1; m++)
                multiply_row(problem, args, span, b, h, m, scratch, (float *)scratch + problem->D);
    return 0;
}

extern const struct attn_kernel attn_kernel_naive_matmul;

const struct attn_kernel attn_kernel_naive_matmul = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "naive",
    .summary = "three plain loops, one sum of products at a time",
    .rules = ATTN_BIT(ATTN_MATMUL),
    .dtypes = ATTN_BIT(ATTN_F32) | ATTN_BIT(ATTN_BF16) | ATTN_BIT(ATTN_F16),
    .plan = plan,
    .run = run,
};
