/* SPDX-License-Identifier: Apache-2.0
 *
 * Flash attention with queries as vector lanes, for up to 64 rows that share their keys.
 *
 * Q is transposed once into query[d][lane], scaled. A block of keys at a time: score[key][lane] = K . query; the
 * running maximum, the sum and the rescale are vertical vector operations; the weights overwrite the scores and are, as
 * they stand, the b of output[d][lane] += V . weight. K and V are read in place; a block of them in bf16 or f16 is
 * converted once for all rows.
 */
#ifndef KERNELS_FLASH_LANES_H
#define KERNELS_FLASH_LANES_H

#include <string.h>

#include "strip.h"

/* Some keys as floats: key first + n is at k + n k_stride. */
struct lane_keys {
    const float *k, *v;
    int64_t k_stride, v_stride, first;
};

/* What weights take besides: a maximum a row and block of keys, 256 bytes for LANES_KEYS keys. */
static inline size_t lanes_peaks_floats(const struct attn_problem *problem)
{
    const int64_t blocks = (problem->S_kv + LANES_KEYS - 1) / LANES_KEYS;
    return problem->flags & ATTN_FLAG_WEIGHTS ? (size_t)(blocks * LANES_ROWS) : 0;
}

static inline size_t lanes_scratch_floats(const struct attn_problem *problem)
{
    const int64_t columns = problem->D + problem->D_v;
    const int64_t converted = problem->dtype == ATTN_F32 ? 0 : columns * LANES_KEYS;
    return (size_t)(columns * LANES_ROWS + LANES_KEYS * LANES_STRIP + converted) + lanes_peaks_floats(problem);
}

static inline void lanes_set_ranges(struct lane_block *block, int64_t j0, int64_t n)
{
    for (int r = 0; r < block->lanes; r++) {
        int64_t first = r < block->count ? block->rows[r].first - j0 : 0;
        int64_t last = r < block->count ? block->rows[r].last - j0 : 0;
        block->first[r] = (float)(first < 0 ? 0 : first > n ? n : first);
        block->last[r] = (float)(last < 0 ? 0 : last > n ? n : last);
    }
}

/* Softcap, bias, masks and key intervals on the raw scores of n keys from j0; finds their maximum again. */
SIMD_OUTLINE void lanes_adjust_scores(struct lane_block *block, int64_t j0, int64_t n)
{
    const struct flash_form *form = block->form;
    const simd_f32 never = simd_set(-INFINITY);
    for (int v = 0; v < block->vectors; v++) {
        const simd_f32 first = simd_load(block->first + v * SIMD_LANES);
        const simd_f32 last = simd_load(block->last + v * SIMD_LANES);
        const struct query_row *rows = block->rows + v * SIMD_LANES;
        const int present = block->count - v * SIMD_LANES;
        simd_f32 top = never;
        for (int64_t jt = 0; jt < n; jt += SIMD_LANES) {
            const int64_t keys = n - jt < SIMD_LANES ? n - jt : SIMD_LANES;
            simd_f32 addend[SIMD_LANES];
            if (form->has_tile) {
                for (int t = 0; t < SIMD_LANES; t++)
                    addend[t] = t < present ? row_addend(&rows[t], j0 + jt, keys) : simd_zero();
                simd_transpose(addend);
            }
            for (int t = 0; t < keys; t++) {
                float *place = block->score + (jt + t) * block->lanes + v * SIMD_LANES;
                simd_f32 score = cap_score(form, simd_load(place));
                if (form->has_tile)
                    score = add_or_mask(score, addend[t]);
                const simd_f32 key = simd_set((float)(jt + t));
                score = simd_select(simd_and(simd_less_equal(first, key), simd_less(key, last)), score, never);
                simd_store(place, score);
                top = simd_max(score, top);
            }
        }
        simd_store(block->top + v * SIMD_LANES, top);
    }
}

/* Raises the running maximum to top; sum and output follow where it moved. */
static inline void lanes_raise_maximum(struct lane_block *block)
{
    simd_f32 factor[SIMD_TILE_VECTORS];
    bool moved = false;
    for (int v = 0; v < block->vectors; v++) {
        const simd_f32 old = simd_load(block->max + v * SIMD_LANES);
        const simd_f32 max = simd_max(simd_load(block->top + v * SIMD_LANES), old);
        if (simd_any(simd_less(old, max)))
            moved = true;
        factor[v] = weight_of(block->form->natural, old, finite_maximum(max));
        simd_store(block->max + v * SIMD_LANES, max);
    }
    if (!moved || !block->begun)
        return;
    for (int v = 0; v < block->vectors; v++) {
        float *sum = block->sum + v * SIMD_LANES;
        simd_store(sum, simd_mul(simd_load(sum), factor[v]));
    }
    for (int64_t d = 0; d < block->form->D_v; d++)
        for (int v = 0; v < block->vectors; v++) {
            float *output = block->output + d * block->lanes + v * SIMD_LANES;
            simd_store(output, simd_mul(simd_load(output), factor[v]));
        }
}

/* Weights in place of the scores of n keys, and their sums. */
SIMD_INLINE void lanes_exponentiate_as(struct lane_block *block, int64_t n, bool natural, int vectors)
{
    simd_f32 max[SIMD_TILE_VECTORS], sum[SIMD_TILE_VECTORS];
    SIMD_UNROLL
    for (int v = 0; v < vectors; v++) {
        max[v] = finite_maximum(simd_load(block->max + v * SIMD_LANES));
        sum[v] = simd_load(block->sum + v * SIMD_LANES);
    }
    float *score = block->score;
    for (int64_t j = 0; j < n; j++) {
        SIMD_UNROLL
        for (int v = 0; v < vectors; v++) {
            simd_f32 weight = weight_of(natural, simd_load(score + v * SIMD_LANES), max[v]);
            simd_store(score + v * SIMD_LANES, weight);
            sum[v] = simd_add(sum[v], weight);
        }
        score += vectors * SIMD_LANES;
    }
    SIMD_UNROLL
    for (int v = 0; v < vectors; v++)
        simd_store(block->sum + v * SIMD_LANES, sum[v]);
}

SIMD_OUTLINE void lanes_exponentiate(struct lane_block *block, int64_t n)
{
    const bool natural = block->form->natural;
    switch (block->vectors) {
    case 1:
        lanes_exponentiate_as(block, n, natural, 1);
        break;
    case 2:
        lanes_exponentiate_as(block, n, natural, 2);
        break;
#if defined(__AVX512F__)
    case 3:
        lanes_exponentiate_as(block, n, natural, 3);
        break;
    default:
        lanes_exponentiate_as(block, n, natural, 4);
#endif
    }
}

/* Whether every value of n keys from j0 that some row may not see is finite: 0 times it is 0 then. */
static inline bool lanes_hidden_values_finite(const struct lane_block *block, const struct lane_keys *keys, int64_t j0,
                                              int64_t n)
{
    const int64_t D_v = block->form->D_v;
    simd_f32 total = simd_zero();
    for (int64_t j = j0; j < j0 + n; j++) {
        if (j >= block->full_first && j < block->full_last)
            continue;
        const float *value = keys->v + (j - keys->first) * keys->v_stride;
        for (int64_t d = 0; d < D_v; d += SIMD_LANES) {
            const simd_f32 x =
                D_v - d >= SIMD_LANES ? simd_load(value + d) : simd_load_masked(value + d, simd_first(D_v - d));
            /* 0 where finite, NaN where not */
            total = simd_fma(x, simd_zero(), total);
        }
    }
    return simd_all(simd_equal(total, simd_zero()));
}

/* The value product key by key, each added to the rows that may see it only. */
static inline void lanes_add_visible_values(struct lane_block *block, const struct lane_keys *keys, int64_t j0,
                                            int64_t n)
{
    const int64_t D_v = block->form->D_v;
    if (!block->begun)
        memset(block->output, 0, sizeof(float) * (size_t)(D_v * block->lanes));
    for (int64_t j = 0; j < n; j++) {
        const float *value = keys->v + (j0 + j - keys->first) * keys->v_stride;
        const simd_f32 key = simd_set((float)j);
        for (int v = 0; v < block->vectors; v++) {
            const simd_mask visible = simd_and(simd_less_equal(simd_load(block->first + v * SIMD_LANES), key),
                                               simd_less(key, simd_load(block->last + v * SIMD_LANES)));
            const simd_f32 weight = simd_load(block->score + j * block->lanes + v * SIMD_LANES);
            for (int64_t d = 0; d < D_v; d++) {
                float *place = block->output + d * block->lanes + v * SIMD_LANES;
                const simd_f32 output = simd_load(place);
                simd_store(place, simd_select(visible, simd_fma(simd_set(value[d]), weight, output), output));
            }
        }
    }
}

/*
 * What the two products over n keys from j0 fetch for those who come after: the values of these keys (the first strip
 * does, for all) and, before the last keys, the lines that the output goes to; then the next keys (the last strip does)
 * and, before the last keys, the queries one block on, before others the lines that the next weights go to. Where the
 * rows or keys end, what lies behind them belongs to the next head if heads are contiguous, and is of no use, nor harm,
 * if not.
 *
 * Without it every line of V, Q and output waits for L3 or DRAM in turn: 0.64 of the peak instead of 0.77 at S 128, D
 * 64, 96 heads (AVX-512); 0.80 and 0.84 at S 512.
 */
static inline void lanes_look_ahead(const struct lane_block *block, const struct lane_keys *keys, int64_t j0, int64_t n,
                                    struct product_ahead *scores, struct product_ahead *values)
{
    const struct flash_form *form = block->form;
    const struct query_row *rows = block->rows;
    const int64_t size = (int64_t)sizeof(float), from = j0 - keys->first;
    const bool in_place = form->dtype == ATTN_F32;
    scores[0] = (struct product_ahead){.address = (uintptr_t)keys->v + (uintptr_t)(from * keys->v_stride * size),
                                       .stride = keys->v_stride * size,
                                       .bytes = form->D_v * size,
                                       .rows = in_place && block->first_strip ? n : 0};
    values[0] = (struct product_ahead){.address = (uintptr_t)keys->k + (uintptr_t)((from + n) * keys->k_stride * size),
                                       .stride = keys->k_stride * size,
                                       .bytes = form->D * size,
                                       .rows = in_place && block->last_strip ? n : 0};
    scores[1] = values[1] = (struct product_ahead){.rows = 0};
    if (block->count < 2)
        return;
    if (j0 + n < block->end) {
        if (form->weights)
            values[1] = weights_ahead(rows, block->count, j0 + n, n);
        return;
    }
    const int64_t out_stride = (int64_t)((uintptr_t)rows[1].out - (uintptr_t)rows[0].out);
    const int64_t q_stride = (int64_t)((uintptr_t)rows[1].q - (uintptr_t)rows[0].q);
    scores[1] = (struct product_ahead){.address = (uintptr_t)rows[0].out,
                                       .stride = out_stride,
                                       .bytes = form->D_v * (int64_t)element_size(form->out_dtype),
                                       .rows = block->count};
    values[1] = (struct product_ahead){.address = (uintptr_t)rows[0].q + (uintptr_t)(LANES_ROWS * q_stride),
                                       .stride = q_stride,
                                       .bytes = form->D * (int64_t)element_size(form->dtype),
                                       .rows = block->count};
}

/* n <= LANES_KEYS keys from j0, some of which some row may see. */
static inline void lanes_add_keys(struct lane_block *block, const struct lane_keys *keys, int64_t j0, int64_t n)
{
    const struct flash_form *form = block->form;
    const float *k = keys->k + (j0 - keys->first) * keys->k_stride;
    const float *v = keys->v + (j0 - keys->first) * keys->v_stride;
    const bool whole = j0 >= block->full_first && j0 + n <= block->full_last;
    struct product_ahead during_scores[PRODUCT_AHEAD], during_values[PRODUCT_AHEAD];
    lanes_look_ahead(block, keys, j0, n, during_scores, during_values);
    for (int r = 0; r < block->lanes; r++)
        block->top[r] = -INFINITY;
    score_product(k, keys->k_stride, n, form->D, block->query, block->vectors, block->score, block->top, during_scores);
    if (!whole || form->natural || form->has_tile) {
        lanes_set_ranges(block, j0, n);
        lanes_adjust_scores(block, j0, n);
    }
    lanes_raise_maximum(block);
    lanes_exponentiate(block, n);
    if (form->weights) {
        weights_store(block->score, block->vectors, block->rows, block->count, j0, n);
        weights_note_peaks(&block->peaks, block->max, block->lanes);
    }
    if (whole || lanes_hidden_values_finite(block, keys, j0, n))
        value_product(v, keys->v_stride, n, form->D_v, block->score, block->vectors, block->output, block->begun,
                      during_values);
    else
        lanes_add_visible_values(block, keys, j0, n);
    block->begun = true;
}

/* Blocks of one size, a multiple of the micro-kernel's rows: no stub of a few keys at the end. */
static inline int64_t lanes_step(const struct flash_form *form, int64_t keys)
{
    const int64_t blocks = (keys + LANES_KEYS - 1) / LANES_KEYS, even = (keys + blocks - 1) / blocks;
    const int64_t grain = form->weights ? WEIGHTS_GRAIN : PRODUCT_ROWS;
    return (even + grain - 1) / grain * grain;
}

/* Attention of 1..LANES_ROWS rows over the keys that they may see, all strips of rows going through one block of keys
 * before the next. scratch: lanes_scratch_floats, 64-byte aligned. */
SIMD_OUTLINE void lanes_attend(const struct flash_form *form, const struct key_head *head, const struct query_row *rows,
                               int count, float *scratch)
{
    struct lane_block strips[LANES_STRIPS];
    const int used = (count + LANES_STRIP - 1) / LANES_STRIP;
    float *score = scratch + (form->D + form->D_v) * LANES_ROWS;
    for (int s = 0; s < used; s++) {
        const int left = count - s * LANES_STRIP;
        strips[s].form = form;
        strips[s].first_strip = s == 0;
        strips[s].last_strip = s == used - 1;
        strips[s].rows = rows + s * LANES_STRIP;
        strips[s].count = left < LANES_STRIP ? left : LANES_STRIP;
        float *query = scratch + s * (form->D + form->D_v) * LANES_STRIP;
        lanes_begin(&strips[s], query, query + form->D * LANES_STRIP, score);
        if (strips[s].begin < strips[s].end)
            lanes_load_queries(&strips[s]);
    }

    const bool convert = form->dtype != ATTN_F32;
    float *converted_k = score + LANES_KEYS * LANES_STRIP, *converted_v = converted_k + LANES_KEYS * form->D;
    struct lane_keys keys = {.k = head->k, .v = head->v, .k_stride = head->k_stride, .v_stride = head->v_stride};
    if (convert)
        keys = (struct lane_keys){.k = converted_k, .v = converted_v, .k_stride = form->D, .v_stride = form->D_v};
    int64_t begin, end;
    rows_key_hull(rows, count, &begin, &end);
    if (begin < end) {
        const int64_t step = lanes_step(form, end - begin);
        float *peaks = convert ? converted_v + LANES_KEYS * form->D_v : converted_k;
        for (int s = 0; s < used && form->weights; s++) {
            const int64_t skipped = strips[s].begin > begin ? (strips[s].begin - begin) / step : 0;
            strips[s].peaks = (struct weights_peaks){.at = peaks, .step = step, .begin = begin + skipped * step};
            peaks += (end - begin + step - 1) / step * LANES_STRIP;
        }
        for (int64_t j0 = begin; j0 < end; j0 += step) {
            if (convert) {
                const int64_t n = end - j0 < step ? end - j0 : step;
                elements_to_floats(form->dtype, element_at(form->dtype, head->k, j0 * head->k_stride), head->k_stride,
                                   n, form->D, converted_k);
                elements_to_floats(form->dtype, element_at(form->dtype, head->v, j0 * head->v_stride), head->v_stride,
                                   n, form->D_v, converted_v);
                keys.first = j0;
            }
            for (int s = 0; s < used; s++) {
                const int64_t from = strips[s].begin > j0 ? strips[s].begin : j0;
                const int64_t to = strips[s].end < j0 + step ? strips[s].end : j0 + step;
                if (from < to)
                    lanes_add_keys(&strips[s], &keys, from, to - from);
            }
        }
    }
    for (int s = 0; s < used; s++)
        lanes_end(&strips[s]);
}

#endif
