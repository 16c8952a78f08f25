/* SPDX-License-Identifier: Apache-2.0
 *
 * naive, additive rule: as a textbook writes it, one row of scores at a time. score(i,j) = sum_h u_h tanh(q_ih + k_jh)
 * by the C library's tanhf, one feature after the other; softmax of the row; the weighted sum of the values.
 *
 * bf16 and f16 are read as f32, row by row, and the output is rounded once; everything between is f32.
 *
 * Tiling: none. Memory: one row of S_kv scores in scratch (and one each of q, k or v, u, and out); K and V are read
 * again for every query, which does not matter beside S_q x S_kv x hidden calls of tanhf: some
 * 60 times slower than avx512.
 */
#include <assert.h>
#include <math.h>
#include <stdbool.h>

#include "../attn.h"
#include "../elements_portable.h"

/* Scratch of one query. */
struct rows {
    float *weight;           /* [S_kv] first scores, then their softmax; -INFINITY, then 0, where not allowed */
    float *q, *u, *row;      /* [hidden], [hidden], [hidden or D_v]: what is not f32 yet */
    float *sum;              /* [D_v] the output before it is rounded */
    const float *u_elements; /* [hidden]; NULL: ones */
};

static bool allowed(const struct attn_problem *problem, const struct attn_args *args, int64_t b, int64_t h, int64_t i,
                    int64_t j)
{
    const int64_t distance = j - i - (problem->diag ? problem->diag[b] : 0);
    if (j >= (problem->kv_len ? problem->kv_len[b] : problem->S_kv))
        return false;
    if (distance > problem->right || distance <= -problem->left)
        return false;
    if (args->mask.data && !((const uint8_t *)args->mask.data)[b * args->mask.stride[0] + h * args->mask.stride[1] +
                                                               i * args->mask.stride[2] + j * args->mask.stride[3]])
        return false;
    return !args->bias.data ||
           ((const float *)row_in(&args->bias, ATTN_F32, b, h, i))[j * args->bias.stride[3]] != -INFINITY;
}

/* One query against keys k0..k1. */
static void attend(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
                   int64_t b, int64_t h, int64_t i, const struct rows *rows)
{
    const bool partial = problem->flags & ATTN_FLAG_PARTIAL;
    const uint32_t dtype = problem->dtype, out_dtype = partial ? ATTN_F32 : dtype;
    const int64_t k0 = span->k0, k1 = span->k1, key_head = h / (problem->H / problem->H_kv), hidden = problem->D;
    float *weight = rows->weight;

    /* A key that is not allowed is never read: it may hold anything. */
    const float *q = read_elements(dtype, row_in(&args->q, dtype, b, h, i), hidden, rows->q);
    float row_max = -INFINITY;
    for (int64_t j = k0; j < k1; j++) {
        if (!allowed(problem, args, b, h, i, j))
            continue;
        const float *k = read_elements(dtype, row_in(&args->k, dtype, b, key_head, j), hidden, rows->row);
        float score = 0;
        for (int64_t d = 0; d < hidden; d++)
            score += (rows->u_elements ? rows->u_elements[d] : 1) * tanhf(q[d] + k[d]);
        if (args->bias.data)
            score += ((const float *)row_in(&args->bias, ATTN_F32, b, h, i))[j * args->bias.stride[3]];
        weight[j] = score;
        if (!(score <= row_max) && !isnan(row_max)) /* true for NaN as well, which then stays */
            row_max = score;
    }

    float row_sum = 0;
    for (int64_t j = k0; j < k1; j++) {
        weight[j] = allowed(problem, args, b, h, i, j) ? expf(weight[j] - row_max) : 0;
        row_sum += weight[j];
    }
    if (partial) {
        const int64_t row = ((span->split * problem->B + b) * problem->H + h) * problem->S_q + i;
        args->row_max[row] = row_max;
        args->row_sum[row] = row_sum;
    }

    float *sum = rows->sum;
    for (int64_t d = 0; d < problem->D_v; d++)
        sum[d] = 0;
    for (int64_t j = k0; j < k1; j++) {
        if (!allowed(problem, args, b, h, i, j))
            continue;
        if (!partial)
            weight[j] /= row_sum;
        const float *v = read_elements(dtype, row_in(&args->v, dtype, b, key_head, j), problem->D_v, rows->row);
        for (int64_t d = 0; d < problem->D_v; d++)
            sum[d] += weight[j] * v[d];
    }
    void *out = row_in(&args->out, out_dtype, b, h, i);
    for (int64_t d = 0; d < problem->D_v; d++)
        write_element(out_dtype, out, d, sum[d]);
    if (problem->flags & ATTN_FLAG_WEIGHTS) {
        float *returned = row_in(&args->weights, ATTN_F32, b, h, i);
        for (int64_t j = k0; j < k1; j++)
            returned[j] = weight[j];
    }
}

static int plan(const struct attn_problem *problem, int32_t threads, void *state, struct attn_plan *plan)
{
    (void)threads;
    (void)state;
    const int64_t wider = problem->D > problem->D_v ? problem->D : problem->D_v;
    plan->thread_bytes = (size_t)(problem->S_kv + 2 * problem->D + wider + problem->D_v) * sizeof(float);
    return 0;
}

/* With PARTIAL and WEIGHTS both, the weights are as the output is: not yet divided by row_sum. */
static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    (void)phase;
    (void)state;
    assert(problem->H % problem->H_kv == 0);
    struct rows rows = {.weight = scratch};
    rows.q = rows.weight + problem->S_kv;
    rows.u = rows.q + problem->D;
    rows.sum = rows.u + problem->D;
    rows.row = rows.sum + problem->D_v;
    if (args->param && args->param[0].data)
        rows.u_elements = read_elements(problem->dtype, args->param[0].data, problem->D, rows.u);
    for (int64_t b = span->b0; b < span->b1; b++)
        for (int64_t h = span->h0; h < span->h1; h++)
            for (int64_t i = span->q0; i < span->q1; i++)
                attend(problem, args, span, b, h, i, &rows);
    return 0;
}

const struct attn_kernel attn_kernel_naive_additive = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "naive",
    .summary = "additive scores by tanhf, one row of scores at a time",
    .rules = ATTN_BIT(ATTN_ADDITIVE),
    .dtypes = ATTN_BIT(ATTN_F32) | ATTN_BIT(ATTN_BF16) | ATTN_BIT(ATTN_F16),
    .caps = ATTN_CAP_PARTIAL | ATTN_CAP_WEIGHTS | ATTN_CAP_SPLIT_KEYS,
    .plan = plan,
    .run = run,
};
