/* SPDX-License-Identifier: Apache-2.0
 *
 * naive: attention as a textbook writes it, one row of scores at a time. Three plain loops: the scores of a query
 * against every key, their softmax, the weighted sum of the values.
 *
 * bf16 and f16 are read as f32, row by row, and the output is rounded once; everything between is f32.
 *
 * Tiling: none. Memory: one row of S_kv scores in scratch (and one each of q, k or v, and out); all of K and V is read
 * again for every query, so a head that does not fit the cache is fetched S_q times. This is the kernel to read first,
 * and the one to beat.
 */
#include <assert.h>
#include <math.h>
#include <stdbool.h>

#include "../attn.h"
#include "../elements_portable.h"

/* Scratch of one query. */
struct rows {
    float *weight;  /* [S_kv] first scores, then their softmax */
    float *q, *key; /* [D], [D or D_v]: what is not f32 yet */
    float *sum;     /* [D_v] the output before it is rounded */
};

static int64_t offset(const struct attn_tensor *t, int64_t b, int64_t h, int64_t row, int64_t column)
{
    return b * t->stride[0] + h * t->stride[1] + row * t->stride[2] + column * t->stride[3];
}

static float bias_of(const struct attn_args *args, int64_t b, int64_t h, int64_t i, int64_t j)
{
    return ((const float *)args->bias.data)[offset(&args->bias, b, h, i, j)];
}

/* Whether query i may see key j. A NaN bias is no mask: it belongs into the result. */
static bool allowed(const struct attn_problem *problem, const struct attn_args *args, int64_t b, int64_t h, int64_t i,
                    int64_t j)
{
    int64_t length = problem->kv_len ? problem->kv_len[b] : problem->S_kv;
    int64_t distance = j - i - (problem->diag ? problem->diag[b] : 0);
    if (j >= length || distance > problem->right || distance <= -problem->left)
        return false;
    if (args->mask.data && !((const uint8_t *)args->mask.data)[offset(&args->mask, b, h, i, j)])
        return false;
    return !args->bias.data || bias_of(args, b, h, i, j) != -INFINITY;
}

static float score_of(const struct attn_problem *problem, const struct attn_args *args, int64_t b, int64_t h, int64_t i,
                      int64_t j, const float *q, const float *k)
{
    float score = 0;
    for (int64_t d = 0; d < problem->D; d++)
        score += q[d] * k[d];
    score *= problem->scale;
    if (problem->softcap > 0)
        score = problem->softcap * tanhf(score / problem->softcap);
    if (args->bias.data)
        score += bias_of(args, b, h, i, j);
    return score;
}

/* One query against keys k0..k1. */
static void attend(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
                   int64_t b, int64_t h, int64_t i, const struct rows *rows)
{
    const bool partial = problem->flags & ATTN_FLAG_PARTIAL;
    const uint32_t dtype = problem->dtype, out_dtype = partial ? ATTN_F32 : dtype;
    float *weight = rows->weight;
    const int64_t k0 = span->k0, k1 = span->k1, key_head = h / (problem->H / problem->H_kv);

    /* The scores. A key that is not allowed is never read: it may hold anything. */
    const float *q = read_elements(dtype, row_in(&args->q, dtype, b, h, i), problem->D, rows->q);
    float row_max = -INFINITY;
    for (int64_t j = k0; j < k1; j++) {
        if (!allowed(problem, args, b, h, i, j))
            continue;
        const float *k = read_elements(dtype, row_in(&args->k, dtype, b, key_head, j), problem->D, rows->key);
        weight[j - k0] = score_of(problem, args, b, h, i, j, q, k);
        if (!(weight[j - k0] <= row_max) && !isnan(row_max)) /* true for NaN as well, which then stays */
            row_max = weight[j - k0];
    }

    /* Their softmax; zero where not allowed. */
    float row_sum = 0;
    for (int64_t j = k0; j < k1; j++) {
        weight[j - k0] = allowed(problem, args, b, h, i, j) ? expf(weight[j - k0] - row_max) : 0;
        row_sum += weight[j - k0];
    }
    if (partial) {
        int64_t row = ((span->split * problem->B + b) * problem->H + h) * problem->S_q + i;
        args->row_max[row] = row_max;
        args->row_sum[row] = row_sum;
    } else {
        for (int64_t j = k0; j < k1; j++)
            if (allowed(problem, args, b, h, i, j))
                weight[j - k0] /= row_sum;
    }
    if (problem->flags & ATTN_FLAG_WEIGHTS) {
        float *returned = (float *)args->weights.data + offset(&args->weights, b, h, i, 0);
        for (int64_t j = k0; j < k1; j++)
            returned[j] = weight[j - k0];
    }

    /* The weighted sum of the values. */
    void *out = row_in(&args->out, out_dtype, b, h, i);
    float *sum = rows->sum;
    for (int64_t d = 0; d < problem->D_v; d++)
        sum[d] = 0;
    for (int64_t j = k0; j < k1; j++) {
        if (!allowed(problem, args, b, h, i, j))
            continue;
        const float *v = read_elements(dtype, row_in(&args->v, dtype, b, key_head, j), problem->D_v, rows->key);
        for (int64_t d = 0; d < problem->D_v; d++)
            sum[d] += weight[j - k0] * v[d];
    }
    for (int64_t d = 0; d < problem->D_v; d++)
        write_element(out_dtype, out, d, sum[d]);
}

static int plan(const struct attn_problem *problem, int32_t threads, void *state, struct attn_plan *plan)
{
    (void)threads;
    (void)state;
    const int64_t wider = problem->D > problem->D_v ? problem->D : problem->D_v;
    plan->thread_bytes = (size_t)(problem->S_kv + problem->D + wider + problem->D_v) * sizeof(float);
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
    rows.sum = rows.q + problem->D;
    rows.key = rows.sum + problem->D_v;
    for (int64_t b = span->b0; b < span->b1; b++)
        for (int64_t h = span->h0; h < span->h1; h++)
            for (int64_t i = span->q0; i < span->q1; i++)
                attend(problem, args, span, b, h, i, &rows);
    return 0;
}

const struct attn_kernel attn_kernel_naive = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "naive",
    .summary = "three plain loops, one row of scores at a time",
    .rules = ATTN_BIT(ATTN_SCALED_DOT_PRODUCT),
    .dtypes = ATTN_BIT(ATTN_F32) | ATTN_BIT(ATTN_BF16) | ATTN_BIT(ATTN_F16),
    .caps = ATTN_CAP_PARTIAL | ATTN_CAP_WEIGHTS | ATTN_CAP_SPLIT_KEYS,
    .plan = plan,
    .run = run,
};
