/* SPDX-License-Identifier: Apache-2.0
 *
 * The sound kernel under the broken ones: online softmax, one key after the other. Each file of this folder swaps one
 * step of it for a faulty one, so that what the file shows is the fault and nothing else. With no step swapped it is
 * right. It returns neither weights nor partial results.
 */
#ifndef TESTS_BROKEN_BASE_H
#define TESTS_BROKEN_BASE_H

#include <math.h>
#include <stdbool.h>

#include "../../kernels/attn.h"

/* The steps that a fault can replace; NULL: the sound one. */
struct base_steps {
    bool (*allowed)(const struct attn_problem *problem, const struct attn_args *args, int64_t b, int64_t h, int64_t i,
                    int64_t j);
    int64_t (*key_head)(const struct attn_problem *problem, int64_t h);
    float (*score)(const struct attn_problem *problem, const struct attn_args *args, const float *q, const float *k);
    int64_t (*offset)(const struct attn_tensor *t, int64_t b, int64_t h, int64_t row);
    void (*clear)(const struct attn_problem *problem, const struct attn_span *span, int64_t i, float *sums);
    float (*running_max)(float old_max, float score);
    float (*rescale)(float old_max, float new_max); /* factor for what was summed under the old maximum */
    float (*exponential)(float x);
    float (*add)(float sum, float term);
    void (*before_store)(const struct attn_span *span, int64_t i);
};

static inline int64_t base_offset(const struct attn_tensor *t, int64_t b, int64_t h, int64_t row)
{
    return b * t->stride[0] + h * t->stride[1] + row * t->stride[2];
}

static inline bool base_allowed_by_length(const struct attn_problem *problem, int64_t b, int64_t j)
{
    return j < (problem->kv_len ? problem->kv_len[b] : problem->S_kv);
}

/* shift: where the causal line and the window stand, relative to the right place. */
static inline bool base_allowed_by_position(const struct attn_problem *problem, int64_t b, int64_t i, int64_t j,
                                            int64_t shift)
{
    int64_t distance = j - (i + (problem->diag ? problem->diag[b] : 0)) - shift;
    return distance <= problem->right && distance > -problem->left;
}

static inline bool base_allowed_by_element(const struct attn_args *args, int64_t b, int64_t h, int64_t i, int64_t j)
{
    const struct attn_tensor *mask = &args->mask, *bias = &args->bias;
    if (mask->data && !((const uint8_t *)mask->data)[base_offset(mask, b, h, i) + j * mask->stride[3]])
        return false;
    return !bias->data || ((const float *)bias->data)[base_offset(bias, b, h, i) + j * bias->stride[3]] != -INFINITY;
}

static inline bool base_allowed(const struct attn_problem *problem, const struct attn_args *args, int64_t b, int64_t h,
                                int64_t i, int64_t j)
{
    return base_allowed_by_length(problem, b, j) && base_allowed_by_position(problem, b, i, j, 0) &&
           base_allowed_by_element(args, b, h, i, j);
}

static inline int64_t base_key_head(const struct attn_problem *problem, int64_t h)
{
    return h / (problem->H / problem->H_kv);
}

static inline void base_clear(const struct attn_problem *problem, const struct attn_span *span, int64_t i, float *sums)
{
    (void)span;
    (void)i;
    for (int64_t d = 0; d < problem->D_v; d++)
        sums[d] = 0;
}

static inline float base_running_max(float old_max, float score)
{
    return score > old_max ? score : old_max; /* a NaN score reaches the sums through exponential */
}

static inline float base_rescale(float old_max, float new_max)
{
    return old_max == new_max ? 1 : expf(old_max - new_max);
}

static inline float base_add(float sum, float term)
{
    return sum + term;
}

static inline void base_before_store(const struct attn_span *span, int64_t i)
{
    (void)span;
    (void)i;
}

/* Before the bias. */
static inline float base_score(const struct attn_problem *problem, const struct attn_args *args, const float *q,
                               const float *k)
{
    float score = 0;
    (void)args;
    for (int64_t d = 0; d < problem->D; d++)
        score += q[d] * k[d];
    score *= problem->scale;
    return problem->softcap > 0 ? problem->softcap * tanhf(score / problem->softcap) : score;
}

static inline float base_bias(const struct attn_args *args, int64_t b, int64_t h, int64_t i, int64_t j)
{
    const struct attn_tensor *bias = &args->bias;
    return bias->data ? ((const float *)bias->data)[base_offset(bias, b, h, i) + j * bias->stride[3]] : 0;
}

static inline struct base_steps base_complete(const struct base_steps *swapped)
{
    struct base_steps steps = *swapped;
    steps.allowed = steps.allowed ? steps.allowed : base_allowed;
    steps.score = steps.score ? steps.score : base_score;
    steps.key_head = steps.key_head ? steps.key_head : base_key_head;
    steps.offset = steps.offset ? steps.offset : base_offset;
    steps.clear = steps.clear ? steps.clear : base_clear;
    steps.running_max = steps.running_max ? steps.running_max : base_running_max;
    steps.rescale = steps.rescale ? steps.rescale : base_rescale;
    steps.exponential = steps.exponential ? steps.exponential : expf;
    steps.add = steps.add ? steps.add : base_add;
    steps.before_store = steps.before_store ? steps.before_store : base_before_store;
    return steps;
}

/* sums: D_v floats. */
static inline void base_attend(const struct attn_problem *problem, const struct attn_args *args,
                               const struct attn_span *span, const struct base_steps *steps, int64_t b, int64_t h,
                               int64_t i, float *sums)
{
    const int64_t key_head = steps->key_head(problem, h);
    const float *q = (const float *)args->q.data + steps->offset(&args->q, b, h, i);
    float *out = (float *)args->out.data + steps->offset(&args->out, b, h, i);
    float max = -INFINITY, row_sum = 0;
    bool seen = false;
    steps->clear(problem, span, i, sums);
    for (int64_t j = span->k0; j < span->k1; j++) {
        if (!steps->allowed(problem, args, b, h, i, j))
            continue;
        const float *k = (const float *)args->k.data + steps->offset(&args->k, b, key_head, j);
        const float *v = (const float *)args->v.data + steps->offset(&args->v, b, key_head, j);
        const float score = steps->score(problem, args, q, k) + base_bias(args, b, h, i, j);
        const float new_max = steps->running_max(max, score), factor = steps->rescale(max, new_max);
        const float weight = score == -INFINITY ? 0 : steps->exponential(score - (isinf(new_max) ? 0 : new_max));
        row_sum = row_sum * factor + weight;
        for (int64_t d = 0; d < problem->D_v; d++)
            sums[d] = steps->add(sums[d] * factor, weight * v[d]);
        max = new_max;
        seen = true;
    }
    steps->before_store(span, i);
    for (int64_t d = 0; d < problem->D_v; d++)
        out[d] = seen ? sums[d] / row_sum : 0;
}

static inline int base_plan(const struct attn_problem *problem, int32_t threads, void *state, struct attn_plan *plan)
{
    (void)threads;
    (void)state;
    plan->thread_bytes = (size_t)problem->D_v * sizeof(float);
    return 0;
}

/* sums: D_v floats, kept from row to row. */
static inline int base_run(const struct attn_problem *problem, const struct attn_args *args,
                           const struct attn_span *span, const struct base_steps *swapped, float *sums)
{
    const struct base_steps steps = base_complete(swapped);
    for (int64_t b = span->b0; b < span->b1; b++)
        for (int64_t h = span->h0; h < span->h1; h++)
            for (int64_t i = span->q0; i < span->q1; i++)
                base_attend(problem, args, span, &steps, b, h, i, sums);
    return 0;
}

#endif
