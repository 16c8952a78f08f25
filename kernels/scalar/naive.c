/* SPDX-License-Identifier: Apache-2.0
 *
 * naive: attention as a textbook writes it, one row of scores at a time. Three plain loops: the scores of a query
 * against every key, their softmax, the weighted sum of the values.
 *
 * Tiling: none. Memory: one row of S_kv scores in scratch; all of K and V is read again for every query, so a head
 * that does not fit the cache is fetched S_q times. This is the kernel to read first, and the one to beat.
 */
#include <assert.h>
#include <math.h>
#include <stdbool.h>

#include "../attn.h"

static int64_t offset(const struct attn_tensor *t, int64_t b, int64_t h, int64_t row, int64_t column)
{
    return b * t->stride[0] + h * t->stride[1] + row * t->stride[2] + column * t->stride[3];
}

static float element(const struct attn_tensor *t, int64_t b, int64_t h, int64_t row, int64_t column)
{
    return ((const float *)t->data)[offset(t, b, h, row, column)];
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
    return !args->bias.data || element(&args->bias, b, h, i, j) != -INFINITY;
}

static float score_of(const struct attn_problem *problem, const struct attn_args *args, int64_t b, int64_t h,
                      int64_t key_head, int64_t i, int64_t j)
{
    const float *q = (const float *)args->q.data + offset(&args->q, b, h, i, 0);
    const float *k = (const float *)args->k.data + offset(&args->k, b, key_head, j, 0);
    float score = 0;
    for (int64_t d = 0; d < problem->D; d++)
        score += q[d] * k[d];
    score *= problem->scale;
    if (problem->softcap > 0)
        score = problem->softcap * tanhf(score / problem->softcap);
    if (args->bias.data)
        score += element(&args->bias, b, h, i, j);
    return score;
}

/* One query against keys k0..k1. weight: k1 - k0 floats, first scores, then their softmax. */
static void attend(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
                   int64_t b, int64_t h, int64_t i, float *weight)
{
    const bool partial = problem->flags & ATTN_FLAG_PARTIAL;
    const int64_t k0 = span->k0, k1 = span->k1, key_head = h / (problem->H / problem->H_kv);

    /* The scores. A key that is not allowed is never read: it may hold anything. */
    float row_max = -INFINITY;
    for (int64_t j = k0; j < k1; j++) {
        if (!allowed(problem, args, b, h, i, j))
            continue;
        weight[j - k0] = score_of(problem, args, b, h, key_head, i, j);
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
    float *out = (float *)args->out.data + offset(&args->out, b, h, i, 0);
    for (int64_t d = 0; d < problem->D_v; d++)
        out[d] = 0;
    for (int64_t j = k0; j < k1; j++) {
        if (!allowed(problem, args, b, h, i, j))
            continue;
        const float *v = (const float *)args->v.data + offset(&args->v, b, key_head, j, 0);
        for (int64_t d = 0; d < problem->D_v; d++)
            out[d] += weight[j - k0] * v[d];
    }
}

static int plan(const struct attn_problem *problem, int32_t threads, void *state, struct attn_plan *plan)
{
    (void)threads;
    (void)state;
    plan->thread_bytes = (size_t)problem->S_kv * sizeof(float);
    return 0;
}

/* With PARTIAL and WEIGHTS both, the weights are as the output is: not yet divided by row_sum. */
static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    (void)phase;
    (void)state;
    assert(problem->dtype == ATTN_F32 && problem->H % problem->H_kv == 0);
    for (int64_t b = span->b0; b < span->b1; b++)
        for (int64_t h = span->h0; h < span->h1; h++)
            for (int64_t i = span->q0; i < span->q1; i++)
                attend(problem, args, span, b, h, i, scratch);
    return 0;
}

const struct attn_kernel attn_kernel_naive = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "naive",
    .summary = "three plain loops, one row of scores at a time",
    .rules = ATTN_BIT(ATTN_SCALED_DOT_PRODUCT),
    .dtypes = ATTN_BIT(ATTN_F32),
    .caps = ATTN_CAP_PARTIAL | ATTN_CAP_WEIGHTS | ATTN_CAP_SPLIT_KEYS,
    .plan = plan,
    .run = run,
};
