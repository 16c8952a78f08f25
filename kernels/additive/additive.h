/* SPDX-License-Identifier: Apache-2.0
 *
 * The additive rule in the vector operations of simd.h: how a problem is cut, and how up to 8 rows that share their
 * keys go through them block by block. Scores and values are its own (scores.h, values.h); softmax and ranges are those
 * of the flash stream.
 */
#ifndef KERNELS_ADDITIVE_ADDITIVE_H
#define KERNELS_ADDITIVE_ADDITIVE_H

#include <assert.h>

#include "../flash/flash.h"
#include "scores.h"
#include "values.h"

/* What a span's rows have in common. */
struct additive_form {
    struct flash_form flash;
    const float *u; /* [hidden], up to whole vectors; 0 beyond */
    bool weights;   /* they are wanted */
    float *peaks;   /* [STREAM_ROWS][blocks], WEIGHTS only: the maximum that a block's weights are relative to */
    int64_t blocks; /* that a row's keys are in, at most */
    int64_t k0, k1; /* the span's keys */
    float *scratch; /* of the rows */
};

static inline int64_t additive_blocks(const struct attn_problem *problem)
{
    return (problem->S_kv + STREAM_KEYS - 1) / STREAM_KEYS;
}

SIMD_OUTLINE int additive_plan(const struct attn_problem *problem, int32_t threads, void *state, struct attn_plan *plan)
{
    (void)threads;
    (void)state;
    plan->q_grain = STREAM_ROWS;
    plan->k_grain = SIMD_LANES;
    if (problem->S_q < STREAM_ROWS)
        plan->head_grain = problem->H / problem->H_kv;
    const size_t peaks = problem->flags & ATTN_FLAG_WEIGHTS ? (size_t)additive_blocks(problem) * STREAM_ROWS : 0;
    plan->thread_bytes =
        sizeof(float) * (stream_scratch_floats(problem->D, problem->D_v) + (size_t)stream_padded(problem->D) + peaks);
    return 0;
}

static inline void additive_load_u(const struct attn_problem *problem, const struct attn_args *args, float *u)
{
    const void *from = args->param ? args->param[0].data : NULL;
    for (int64_t h = 0; h < problem->D; h += SIMD_LANES) {
        const int64_t n = problem->D - h;
        simd_store(u + h, from ? load_elements(problem->dtype, from, h, n)
                               : simd_select(simd_first(n), simd_set(1.0f), simd_zero()));
    }
}

static inline struct additive_form additive_form(const struct attn_problem *problem, const struct attn_args *args,
                                                 const struct attn_span *span, float *scratch)
{
    const bool weights = (problem->flags & ATTN_FLAG_WEIGHTS) != 0;
    struct additive_form form = {
        .flash = flash_form(problem, args), .weights = weights, .k0 = span->k0, .k1 = span->k1};
    form.flash.natural = true;
    form.flash.query_scale = 1.0f;
    form.flash.softcap = 0.0f;
    form.blocks = additive_blocks(problem);
    additive_load_u(problem, args, scratch);
    form.u = scratch;
    form.scratch = scratch + stream_padded(problem->D);
    form.peaks = form.scratch + stream_scratch_floats(problem->D, problem->D_v);
    return form;
}

/* Weights of one row, returned: what its blocks left, relative to their own maxima, times exp(maximum of the block -
 * row's) and the factor of its output. */
static inline void additive_finish_weights(const struct additive_form *form, const struct query_row *row,
                                           const float *peaks, int64_t begin, float max, float factor, float *weights)
{
    int64_t first = row->first < form->k1 ? row->first : form->k1, last = row->last;
    if (factor == 0.0f || last < first)
        last = first;
    memset(weights + form->k0, 0, sizeof *weights * (size_t)(first - form->k0));
    memset(weights + last, 0, sizeof *weights * (size_t)(form->k1 - last));
    if (isnan(factor)) { /* 0 * NaN would show in hidden keys as well */
        for (int64_t j = first; j < last; j++)
            weights[j] = (row->mask && row->mask[j] == 0) || (row->bias && row->bias[j] == -INFINITY) ? 0.0f : NAN;
        return;
    }
    for (int64_t j0 = begin, block = 0; j0 < last; j0 += STREAM_KEYS, block++) {
        const int64_t from = first > j0 ? first : j0, to = last < j0 + STREAM_KEYS ? last : j0 + STREAM_KEYS;
        const simd_f32 scale = simd_mul(weight_of(true, simd_set(peaks[block]), simd_set(max)), simd_set(factor));
        for (int64_t j = from; j < to; j += SIMD_LANES) {
            const simd_mask present = simd_first(to - j);
            simd_store_masked(weights + j, present, simd_mul(simd_load_masked(weights + j, present), scale));
        }
    }
}

/* One block's keys j0..j0+n-1 for rows whose scores are known. */
static inline void additive_add_block(const struct additive_form *form, const struct key_head *head,
                                      const struct query_row *rows, float *const *weights, int count,
                                      struct stream_row *states, int64_t j0, int64_t n, int64_t block)
{
    int64_t a[STREAM_ROWS], b[STREAM_ROWS];
    for (int r = 0; r < count; r++) {
        a[r] = rows[r].first > j0 ? rows[r].first - j0 : 0;
        b[r] = rows[r].last < j0 + n ? rows[r].last - j0 : n;
        if (a[r] >= b[r])
            continue;
        stream_softmax(&form->flash, &rows[r], &states[r], j0, n, a[r], b[r]);
        if (form->weights) {
            memcpy(weights[r] + j0 + a[r], states[r].score + a[r], sizeof(float) * (size_t)(b[r] - a[r]));
            form->peaks[r * form->blocks + block] = states[r].max;
        }
    }
    switch (form->flash.dtype) {
    case ATTN_BF16:
        additive_values(ATTN_BF16, form->flash.D_v, states, count, a, b, head, j0, n);
        break;
    case ATTN_F16:
        additive_values(ATTN_F16, form->flash.D_v, states, count, a, b, head, j0, n);
        break;
    default:
        additive_values(ATTN_F32, form->flash.D_v, states, count, a, b, head, j0, n);
    }
}

/* Attention of 1..STREAM_ROWS rows over the keys that they may see. weights: where each row's go; WEIGHTS only. */
SIMD_OUTLINE void additive_attend(const struct additive_form *form, const struct key_head *head,
                                  const struct query_row *rows, float *const *weights, int count)
{
    const int64_t D = form->flash.D, D_v = form->flash.D_v;
    int64_t begin, end;
    rows_key_hull(rows, count, &begin, &end);

    struct stream_row states[STREAM_ROWS];
    float *free = form->scratch;
    for (int r = 0; r < count; r++) {
        states[r] = (struct stream_row){.query = free, .max = -INFINITY};
        states[r].output = states[r].query + stream_padded(D);
        states[r].score = states[r].output + stream_padded(D_v);
        free = states[r].score + STREAM_KEYS;
        stream_load_query(&form->flash, &rows[r], states[r].query);
        memset(states[r].output, 0, sizeof(float) * (size_t)stream_padded(D_v));
    }

    for (int64_t j0 = begin, block = 0; j0 < end; j0 += STREAM_KEYS, block++) {
        const int64_t n = end - j0 < STREAM_KEYS ? end - j0 : STREAM_KEYS;
        additive_scores(form->flash.dtype, D, states, count, form->u,
                        element_at(form->flash.dtype, head->k, j0 * head->k_stride), head->k_stride, n);
        additive_add_block(form, head, rows, weights, count, states, j0, n, block);
    }

    for (int r = 0; r < count; r++) {
        stream_store_row(&form->flash, &rows[r], &states[r]);
        if (form->weights) {
            const float factor = row_factor(&form->flash, &rows[r], states[r].max, states[r].sum);
            additive_finish_weights(form, &rows[r], form->peaks + r * form->blocks, begin, states[r].max, factor,
                                    weights[r]);
        }
    }
}

/* The span's query rows of `heads` heads of one key head from h0 on, neighbours of one query first. */
static inline void additive_heads(const struct attn_problem *problem, const struct attn_args *args,
                                  const struct attn_span *span, const struct additive_form *form, int64_t b, int64_t h0,
                                  int64_t heads)
{
    const int64_t key_head = h0 / (problem->H / problem->H_kv);
    struct key_head head = {.k_stride = args->k.stride[2], .v_stride = args->v.stride[2]};
    if (problem->S_kv > 0) {
        head.k = flash_row(&args->k, problem->dtype, b, key_head, 0);
        head.v = flash_row(&args->v, problem->dtype, b, key_head, 0);
    }
    const int64_t total = (span->q1 - span->q0) * heads;
    for (int64_t start = 0; start < total; start += STREAM_ROWS) {
        struct query_row rows[STREAM_ROWS];
        float *weights[STREAM_ROWS];
        const int count = total - start < STREAM_ROWS ? (int)(total - start) : STREAM_ROWS;
        for (int r = 0; r < count; r++) {
            const int64_t i = span->q0 + (start + r) / heads, h = h0 + (start + r) % heads;
            rows[r] = flash_query_row(problem, args, span, &form->flash, b, h, i);
            weights[r] = form->weights ? flash_row(&args->weights, ATTN_F32, b, h, i) : NULL;
        }
        additive_attend(form, &head, rows, weights, count);
    }
}

SIMD_OUTLINE int additive_run(const struct attn_problem *problem, const struct attn_args *args,
                              const struct attn_span *span, int32_t phase, void *state, void *scratch)
{
    (void)phase;
    (void)state;
    assert(problem->D > 0 && problem->H_kv > 0 && problem->H % problem->H_kv == 0);
    const struct additive_form form = additive_form(problem, args, span, scratch);
    const int64_t group = problem->H / problem->H_kv;
    const bool together = span->q1 - span->q0 < STREAM_ROWS;
    for (int64_t b = span->b0; b < span->b1; b++) {
        int64_t heads;
        for (int64_t h = span->h0; h < span->h1; h += heads) {
            const int64_t group_end = (h / group + 1) * group;
            heads = !together ? 1 : (group_end < span->h1 ? group_end : span->h1) - h;
            additive_heads(problem, args, span, &form, b, h, heads);
        }
    }
    return 0;
}

#endif
