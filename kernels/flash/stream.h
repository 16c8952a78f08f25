/* SPDX-License-Identifier: Apache-2.0
 *
 * Flash attention as a stream, for the few rows of a decode step that share their keys (one query, or the query heads
 * of a grouped key head).
 *
 * Rows of K are read strictly in order, each dotted with every query while it is close, by up to four of them while it
 * is in a register; SIMD_LANES of the products are reduced together by a transposing add tree. A block of scores comes
 * before its values; rows of V are then read in order and added to outputs in registers, those of two queries at once
 * where they fit. Memory sees one long run at a time, which is what its prefetchers follow; a handful of keys re-read
 * for the next queries come from L1. bf16 and f16 become f32 in registers.
 */
#ifndef KERNELS_FLASH_STREAM_H
#define KERNELS_FLASH_STREAM_H

#include <string.h>

#include "rows.h"
#include "weights.h"

enum {
    STREAM_ROWS = 8, /* more rows are better off as lanes */
    STREAM_KEYS = 512,
    STREAM_VALUE_KEYS = 16, /* values that every row adds before the next ones are read */
    STREAM_PANEL = 8,       /* vectors of output kept in registers */
    STREAM_GROUP = 4,       /* rows that use a vector of K while it is in a register */
    STREAM_PAIR = 2         /* rows that use a vector of V likewise: their outputs fill half of 32 registers */
};

struct stream_row {
    float *query, *output, *score; /* [D up to whole vectors], [D_v likewise], [STREAM_KEYS] */
    float max, sum;
};

static inline int64_t stream_padded(int64_t n)
{
    return (n + SIMD_LANES - 1) / SIMD_LANES * SIMD_LANES;
}

static inline size_t stream_scratch_floats(int64_t D, int64_t D_v)
{
    return (size_t)(stream_padded(D) + stream_padded(D_v) + STREAM_KEYS) * STREAM_ROWS;
}

/* fresh: a load that no other one is moved over. Lines that come from DRAM must be asked for in their order: compilers
 * shuffle a handful of independent loads, and that alone costs up to a third of the bandwidth. */
SIMD_INLINE simd_f32 stream_vector(uint32_t dtype, bool fresh, const void *row, int64_t index)
{
    simd_f32 x = load_elements(dtype, row, index, SIMD_LANES);
    if (fresh)
        __asm__ volatile("" : "+v"(x) : : "memory");
    return x;
}

/* SIMD_LANES scores of one query from `count` rows of K (the last one stands in for those beyond). vectors: D in whole
 * vectors where it is known and D is a multiple of them, else 0. fresh: these rows are read for the first time; the
 * query then comes from L1 beside every vector of K, since with both the order and the pace of the loads right a core
 * draws 1.0 of its DRAM bandwidth, with the query in registers 0.8. Rows that are close want it in registers. */
SIMD_INLINE void stream_dot_rows(uint32_t dtype, int64_t D, int vectors, bool fresh, const float *query, const void *k,
                                 int64_t k_stride, int64_t count, float *score)
{
    const int64_t whole = vectors ? vectors : D / SIMD_LANES;
    const int64_t rest = vectors ? 0 : D % SIMD_LANES;
    const bool held = !fresh && vectors && vectors + SIMD_LANES + 4 <= SIMD_REGISTERS;
    simd_f32 kept[SIMD_REGISTERS], sum[SIMD_LANES];
    if (held) {
        SIMD_UNROLL
        for (int c = 0; c < vectors; c++)
            kept[c] = simd_load(query + c * SIMD_LANES);
    }
    SIMD_UNROLL
    for (int t = 0; t < SIMD_LANES; t++) {
        const void *row = element_at(dtype, k, (t < count ? t : count - 1) * k_stride);
        simd_f32 part[2] = {simd_zero(), simd_zero()};
        if (vectors) {
            SIMD_UNROLL
            for (int c = 0; c < vectors; c++)
                part[c % 2] = simd_fma(held ? kept[c] : simd_load(query + c * SIMD_LANES),
                                       stream_vector(dtype, fresh, row, c * SIMD_LANES), part[c % 2]);
        } else {
            for (int64_t c = 0; c < whole; c++)
                part[0] = simd_fma(simd_load(query + c * SIMD_LANES), stream_vector(dtype, fresh, row, c * SIMD_LANES),
                                   part[0]);
        }
        if (rest)
            part[1] = simd_fma(simd_load(query + whole * SIMD_LANES),
                               load_elements(dtype, row, whole * SIMD_LANES, rest), part[1]);
        sum[t] = simd_add(part[0], part[1]);
    }
    simd_store(score, simd_sum_rows(sum));
}

/* The products of one vector of K with that of each query. */
SIMD_INLINE void stream_dot_column(int queries, const float *const *query, int64_t column, simd_f32 x, simd_f32 *part)
{
    SIMD_UNROLL
    for (int r = 0; r < queries; r++)
        part[r] = simd_fma(simd_load(query[r] + column), x, part[r]);
}

/* SIMD_LANES / queries scores of each query: a vector of K is loaded once for all of them. vectors as above. */
SIMD_INLINE void stream_dot_group(uint32_t dtype, int64_t D, int vectors, int queries, const struct stream_row *states,
                                  const void *k, int64_t k_stride, int64_t j)
{
    const int keys = SIMD_LANES / queries;
    const int64_t whole = vectors ? vectors : D / SIMD_LANES, rest = vectors ? 0 : D % SIMD_LANES;
    simd_f32 sum[SIMD_LANES];
    const float *query[STREAM_GROUP]; /* of its own: the order of the loads of K would have them read again and again */
    SIMD_UNROLL
    for (int r = 0; r < queries; r++)
        query[r] = states[r].query;
    SIMD_UNROLL
    for (int t = 0; t < keys; t++) {
        simd_f32 part[STREAM_GROUP];
        SIMD_UNROLL
        for (int r = 0; r < queries; r++)
            part[r] = simd_zero();
        if (vectors) {
            SIMD_UNROLL
            for (int c = 0; c < vectors; c++)
                stream_dot_column(queries, query, c * SIMD_LANES, stream_vector(dtype, true, k, c * SIMD_LANES), part);
        } else {
            for (int64_t c = 0; c < whole; c++)
                stream_dot_column(queries, query, c * SIMD_LANES, stream_vector(dtype, true, k, c * SIMD_LANES), part);
        }
        if (rest)
            stream_dot_column(queries, query, whole * SIMD_LANES, load_elements(dtype, k, whole * SIMD_LANES, rest),
                              part);
        SIMD_UNROLL
        for (int r = 0; r < queries; r++)
            sum[r * keys + t] = part[r];
        k = element_at(dtype, k, k_stride);
    }
    float score[SIMD_LANES];
    simd_store(score, simd_sum_rows(sum));
    SIMD_UNROLL
    for (int r = 0; r < queries; r++)
        memcpy(states[r].score + j, score + r * keys, sizeof(float) * (size_t)keys);
}

SIMD_INLINE void stream_scores_of(uint32_t dtype, int64_t D, int vectors, const struct stream_row *states,
                                  const struct query_row *rows, int count, const struct key_head *head, int64_t j0,
                                  int64_t n)
{
    for (int64_t j = 0; j < n; j += SIMD_LANES) {
        const int64_t keys = n - j < SIMD_LANES ? n - j : SIMD_LANES;
        const void *k = element_at(dtype, head->k, (j0 + j) * head->k_stride);
        bool fresh = true;
        int r = 0;
        if (keys == SIMD_LANES)
            for (; r + STREAM_GROUP <= count; r += STREAM_GROUP) {
                for (int64_t t = 0; t < SIMD_LANES; t += SIMD_LANES / STREAM_GROUP)
                    stream_dot_group(dtype, D, vectors, STREAM_GROUP, states + r,
                                     element_at(dtype, k, t * head->k_stride), head->k_stride, j + t);
                fresh = false;
            }
        for (; r < count; r++) {
            if (j0 + j + keys <= rows[r].first || j0 + j >= rows[r].last)
                continue;
            float *score = states[r].score + j;
            if (keys < SIMD_LANES)
                stream_dot_rows(dtype, D, 0, true, states[r].query, k, head->k_stride, keys, score);
            else if (fresh)
                stream_dot_rows(dtype, D, vectors, true, states[r].query, k, head->k_stride, SIMD_LANES, score);
            else
                stream_dot_rows(dtype, D, vectors, false, states[r].query, k, head->k_stride, SIMD_LANES, score);
            fresh = false;
        }
    }
}

SIMD_INLINE void stream_scores(uint32_t dtype, int64_t D, const struct stream_row *states, const struct query_row *rows,
                               int count, const struct key_head *head, int64_t j0, int64_t n)
{
    if (D == 128)
        stream_scores_of(dtype, D, 128 / SIMD_LANES, states, rows, count, head, j0, n);
    else if (D == 64)
        stream_scores_of(dtype, D, 64 / SIMD_LANES, states, rows, count, head, j0, n);
    else
        stream_scores_of(dtype, D, 0, states, rows, count, head, j0, n);
}

/* Scores a..b-1 (counted from key j0; n keys lie in this block) of one row become weights; maximum, sum and output
 * follow. */
static inline void stream_softmax(const struct flash_form *form, const struct query_row *row, struct stream_row *state,
                                  int64_t j0, int64_t n, int64_t a, int64_t b)
{
    const simd_f32 never = simd_set(-INFINITY);
    const int64_t start = a / SIMD_LANES * SIMD_LANES;
    simd_f32 top = never;
    for (int64_t j = start; j < b; j += SIMD_LANES) {
        simd_f32 score = cap_score(form, simd_load(state->score + j));
        if (form->has_tile)
            score = add_or_mask(score, row_addend(row, j0 + j, n - j < SIMD_LANES ? n - j : SIMD_LANES));
        score = simd_select(simd_first(b - j), score, never);
        score = simd_select(simd_first(a - j), never, score);
        simd_store(state->score + j, score);
        if (form->weights)
            simd_store_masked(row->weights + j0 + j, simd_first(n - j), score);
        top = simd_max(score, top);
    }

    const float highest = simd_reduce_max(top);
    if (highest > state->max) {
        /* the vector exp here too: one definition of a weight */
        const simd_f32 factor = weight_of(form->natural, simd_set(state->max), simd_set(highest));
        for (int64_t d = 0; d < form->D_v; d += SIMD_LANES)
            simd_store(state->output + d, simd_mul(simd_load(state->output + d), factor));
        state->sum *= simd_reduce_max(factor);
        state->max = highest;
    }

    const simd_f32 max = finite_maximum(simd_set(state->max));
    simd_f32 sum = simd_zero();
    for (int64_t j = start; j < b; j += SIMD_LANES) {
        const simd_f32 weight = weight_of(form->natural, simd_load(state->score + j), max);
        simd_store(state->score + j, weight);
        sum = simd_add(sum, weight);
    }
    state->sum += simd_reduce_add(sum);
}

/* Reads one element of every line of `keys` rows in order, so that what then goes through them in pieces finds them
 * close. */
static inline void stream_touch(uint32_t dtype, const void *v, int64_t v_stride, int64_t keys, int64_t D_v)
{
    const int64_t line = 64 / (int64_t)element_size(dtype);
    for (int64_t j = 0; j < keys; j++)
        for (int64_t d = 0; d < D_v; d += line)
            __asm__ volatile("" : : "r"(*(const char *)element_at(dtype, v, j * v_stride + d)) : "memory");
}

/* output += weight[j] v[j] for `vectors` vectors of columns of width elements each; only a single one is cut short. */
SIMD_INLINE void stream_add_panel(uint32_t dtype, int vectors, int64_t width, const float *weight, const void *v,
                                  int64_t v_stride, int64_t keys, float *output)
{
    simd_f32 sum[STREAM_PANEL];
    SIMD_UNROLL
    for (int c = 0; c < vectors; c++)
        sum[c] = simd_load(output + c * SIMD_LANES);
    for (int64_t j = 0; j < keys; j++) {
        const simd_f32 w = simd_set(weight[j]);
        SIMD_UNROLL
        for (int c = 0; c < vectors; c++)
            sum[c] = simd_fma(w, load_elements(dtype, v, c * SIMD_LANES, width), sum[c]);
        v = element_at(dtype, v, v_stride);
    }
    SIMD_UNROLL
    for (int c = 0; c < vectors; c++)
        simd_store(output + c * SIMD_LANES, sum[c]);
}

SIMD_INLINE void stream_add_values(uint32_t dtype, int64_t D_v, const float *weight, const void *v, int64_t v_stride,
                                   int64_t keys, float *output)
{
    int64_t c = 0;
    for (; D_v - c >= 8 * SIMD_LANES; c += 8 * SIMD_LANES)
        stream_add_panel(dtype, 8, SIMD_LANES, weight, element_at(dtype, v, c), v_stride, keys, output + c);
    if (D_v - c >= 4 * SIMD_LANES) {
        stream_add_panel(dtype, 4, SIMD_LANES, weight, element_at(dtype, v, c), v_stride, keys, output + c);
        c += 4 * SIMD_LANES;
    }
    for (; D_v - c >= SIMD_LANES; c += SIMD_LANES)
        stream_add_panel(dtype, 1, SIMD_LANES, weight, element_at(dtype, v, c), v_stride, keys, output + c);
    if (c < D_v)
        stream_add_panel(dtype, 1, D_v - c, weight, element_at(dtype, v, c), v_stride, keys, output + c);
}

/* stream_add_panel of STREAM_PAIR rows, STREAM_PANEL whole vectors each. Rows of V come whole and in order: panels of
 * half a row for four queries at once drew 0.4 to 0.7 of the bandwidth of these, prefetch instructions or not. */
SIMD_INLINE void stream_add_pair(uint32_t dtype, const struct stream_row *states, int64_t j, int64_t column,
                                 const void *v, int64_t v_stride, int64_t keys)
{
    simd_f32 sum[STREAM_PAIR][STREAM_PANEL], weight[STREAM_PAIR];
    SIMD_UNROLL
    for (int r = 0; r < STREAM_PAIR; r++)
        SIMD_UNROLL
    for (int c = 0; c < STREAM_PANEL; c++)
        sum[r][c] = simd_load(states[r].output + column + c * SIMD_LANES);
    for (int64_t t = j; t < j + keys; t++) {
        SIMD_UNROLL
        for (int r = 0; r < STREAM_PAIR; r++)
            weight[r] = simd_set(states[r].score[t]);
        SIMD_UNROLL
        for (int c = 0; c < STREAM_PANEL; c++) {
            const simd_f32 x = load_elements(dtype, v, c * SIMD_LANES, SIMD_LANES);
            SIMD_UNROLL
            for (int r = 0; r < STREAM_PAIR; r++)
                sum[r][c] = simd_fma(weight[r], x, sum[r][c]);
        }
        v = element_at(dtype, v, v_stride);
    }
    SIMD_UNROLL
    for (int r = 0; r < STREAM_PAIR; r++)
        SIMD_UNROLL
    for (int c = 0; c < STREAM_PANEL; c++)
        simd_store(states[r].output + column + c * SIMD_LANES, sum[r][c]);
}

static inline void stream_load_query(const struct flash_form *form, const struct query_row *row, float *query)
{
    const simd_f32 scale = simd_set(form->query_scale);
    for (int64_t d = 0; d < form->D; d += SIMD_LANES)
        simd_store(query + d, simd_mul(load_elements(form->dtype, row->q, d, form->D - d), scale));
}

static inline void stream_store_row(const struct flash_form *form, const struct query_row *row,
                                    const struct stream_row *state)
{
    const float factor = row_factor(form, row, state->max, state->sum);
    if (form->weights)
        weights_finish_scores(form, row, state->max, factor);
    for (int64_t d = 0; d < form->D_v; d += SIMD_LANES) {
        const simd_f32 output = factor == 0.0f ? simd_zero() : simd_mul(simd_load(state->output + d), simd_set(factor));
        store_elements(form->out_dtype, row->out, d, form->D_v - d, output);
    }
}

/* Whether each of STREAM_PAIR rows, which see a..b-1, sees all of j..j+keys-1 */
static inline bool stream_pair_sees(const int64_t *a, const int64_t *b, int64_t j, int64_t keys)
{
    bool all = true;
    for (int r = 0; r < STREAM_PAIR; r++)
        all = all && a[r] <= j && b[r] >= j + keys;
    return all;
}

/* Adds the values of keys j0..j0+n-1, of which each row sees a..b-1, to the outputs. */
SIMD_INLINE void stream_values(uint32_t dtype, int64_t D_v, const struct stream_row *states, int count,
                               const int64_t *a, const int64_t *b, const struct key_head *head, int64_t j0, int64_t n)
{
    const bool paired = SIMD_REGISTERS >= 32 && D_v % (STREAM_PANEL * SIMD_LANES) == 0;
    for (int64_t j = 0; j < n; j += STREAM_VALUE_KEYS) {
        const int64_t keys = n - j < STREAM_VALUE_KEYS ? n - j : STREAM_VALUE_KEYS;
        if (D_v > STREAM_PANEL * SIMD_LANES)
            stream_touch(dtype, element_at(dtype, head->v, (j0 + j) * head->v_stride), head->v_stride, keys, D_v);
        int r = 0;
        if (paired)
            for (; r + STREAM_PAIR <= count && stream_pair_sees(a + r, b + r, j, keys); r += STREAM_PAIR)
                for (int64_t c = 0; c < D_v; c += STREAM_PANEL * SIMD_LANES)
                    stream_add_pair(dtype, states + r, j, c, element_at(dtype, head->v, (j0 + j) * head->v_stride + c),
                                    head->v_stride, keys);
        for (; r < count; r++) {
            /* only keys that this row may see: what lies in the others must not meet a weight of 0 */
            const int64_t from = a[r] > j ? a[r] : j;
            const int64_t to = b[r] < j + keys ? b[r] : j + keys;
            if (from < to)
                stream_add_values(dtype, D_v, states[r].score + from,
                                  element_at(dtype, head->v, (j0 + from) * head->v_stride), head->v_stride, to - from,
                                  states[r].output);
        }
    }
}

/* The keys begin..end-1, block by block. */
SIMD_INLINE void stream_keys_as(uint32_t dtype, const struct flash_form *form, const struct key_head *head,
                                const struct query_row *rows, int count, struct stream_row *states, int64_t begin,
                                int64_t end)
{
    for (int64_t j0 = begin; j0 < end; j0 += STREAM_KEYS) {
        const int64_t n = end - j0 < STREAM_KEYS ? end - j0 : STREAM_KEYS;
        stream_scores(dtype, form->D, states, rows, count, head, j0, n);

        int64_t a[STREAM_ROWS], b[STREAM_ROWS];
        for (int r = 0; r < count; r++) {
            a[r] = rows[r].first > j0 ? rows[r].first - j0 : 0;
            b[r] = rows[r].last < j0 + n ? rows[r].last - j0 : n;
            if (a[r] < b[r])
                stream_softmax(form, &rows[r], &states[r], j0, n, a[r], b[r]);
        }
        stream_values(dtype, form->D_v, states, count, a, b, head, j0, n);
    }
}

SIMD_OUTLINE void stream_keys(const struct flash_form *form, const struct key_head *head, const struct query_row *rows,
                              int count, struct stream_row *states, int64_t begin, int64_t end)
{
    switch (form->dtype) {
    case ATTN_BF16:
        stream_keys_as(ATTN_BF16, form, head, rows, count, states, begin, end);
        break;
    case ATTN_F16:
        stream_keys_as(ATTN_F16, form, head, rows, count, states, begin, end);
        break;
    default:
        stream_keys_as(ATTN_F32, form, head, rows, count, states, begin, end);
    }
}

/* Attention of 1..STREAM_ROWS rows over the keys that they may see. scratch: stream_scratch_floats, 64-byte aligned. */
static inline void stream_attend(const struct flash_form *form, const struct key_head *head,
                                 const struct query_row *rows, int count, float *scratch)
{
    int64_t begin, end;
    rows_key_hull(rows, count, &begin, &end);

    struct stream_row states[STREAM_ROWS];
    for (int r = 0; r < count; r++) {
        const int64_t D = stream_padded(form->D), D_v = stream_padded(form->D_v);
        states[r] = (struct stream_row){.query = scratch, .output = scratch + D, .score = scratch + D + D_v};
        states[r].max = -INFINITY;
        scratch += D + D_v + STREAM_KEYS;
        stream_load_query(form, &rows[r], states[r].query);
        memset(states[r].output, 0, sizeof(float) * (size_t)D_v);
    }

    stream_keys(form, head, rows, count, states, begin, end);
    for (int r = 0; r < count; r++)
        stream_store_row(form, &rows[r], &states[r]);
}

#endif
