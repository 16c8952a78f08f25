/* SPDX-License-Identifier: Apache-2.0
 *
 * Scores of the additive rule for a few rows that share their keys: score(i,j) = sum_h u_h tanh(q_ih + k_jh).
 *
 * Lanes are features. A vector of a key is added to the same features of a query, goes through tanh and is added, times
 * u, to the sum of its pair; SIMD_LANES pairs (1 query x all of them, or 2 or 4 queries x fewer keys) are then summed
 * over their lanes together by a transposing add tree. So keys and queries are read as they lie, no lane is lost to
 * short sequences, and few features are all that costs: those beyond the last whole vector are 0 in q, k and u.
 */
#ifndef KERNELS_ADDITIVE_SCORES_H
#define KERNELS_ADDITIVE_SCORES_H

#include "../flash/stream.h"

enum {
    /* keys whose tanh are under way together; with 16 registers four spill (0.56 of the tanh rate instead of 0.65) */
    ADDITIVE_CHAINS = SIMD_REGISTERS >= 32 ? 4 : 2,
    ADDITIVE_QUERIES = SIMD_LANES / 4 /* most queries of a tile: then it is 4 keys wide */
};

/* Features h.. of one query and `keys` (a constant) keys, n of them: 1..SIMD_LANES, added to the sums. */
SIMD_INLINE void additive_step(uint32_t dtype, int keys, int64_t n, simd_f32 q, simd_f32 factor, const void *k,
                               int64_t k_stride, int64_t h, simd_f32 *sum)
{
    simd_f32 x[ADDITIVE_CHAINS];
    SIMD_UNROLL
    for (int t = 0; t < keys; t++)
        x[t] = simd_add(q, load_elements(dtype, element_at(dtype, k, t * k_stride), h, n));
    simd_tanh_each(keys, x);
    SIMD_UNROLL
    for (int t = 0; t < keys; t++)
        sum[t] = simd_fma(factor, x[t], sum[t]);
}

/* Features h.. of a tile. */
SIMD_INLINE void additive_features(uint32_t dtype, int queries, int64_t n, const struct stream_row *states,
                                   const float *u, const void *k, int64_t k_stride, int64_t h, int64_t keys,
                                   simd_f32 *sum)
{
    const int width = SIMD_LANES / queries;
    const simd_f32 factor = simd_load(u + h);
    for (int r = 0; r < queries; r++) {
        const simd_f32 q = simd_load(states[r].query + h);
        int64_t t = 0;
        for (; t + ADDITIVE_CHAINS <= keys; t += ADDITIVE_CHAINS)
            additive_step(dtype, ADDITIVE_CHAINS, n, q, factor, element_at(dtype, k, t * k_stride), k_stride, h,
                          sum + r * width + t);
        for (; t < keys; t++)
            additive_step(dtype, 1, n, q, factor, element_at(dtype, k, t * k_stride), k_stride, h, sum + r * width + t);
    }
}

/* Scores j.. of `queries` (a constant) rows against 1..SIMD_LANES / queries keys from k on. */
SIMD_INLINE void additive_tile(uint32_t dtype, int64_t hidden, int queries, const struct stream_row *states,
                               const float *u, const void *k, int64_t k_stride, int64_t j, int64_t keys)
{
    const int width = SIMD_LANES / queries;
    simd_f32 sum[SIMD_LANES];
    SIMD_UNROLL
    for (int t = 0; t < SIMD_LANES; t++)
        sum[t] = simd_zero();
    int64_t h = 0;
    for (; h + SIMD_LANES <= hidden; h += SIMD_LANES)
        additive_features(dtype, queries, SIMD_LANES, states, u, k, k_stride, h, keys, sum);
    if (h < hidden)
        additive_features(dtype, queries, hidden - h, states, u, k, k_stride, h, keys, sum);
    float score[SIMD_LANES];
    simd_store(score, simd_sum_rows(sum));
    SIMD_UNROLL
    for (int r = 0; r < queries; r++)
        memcpy(states[r].score + j, score + r * width, sizeof *score * (size_t)width);
}

/* The same for n keys. */
SIMD_INLINE void additive_strip(uint32_t dtype, int64_t hidden, int queries, const struct stream_row *states,
                                const float *u, const void *k, int64_t k_stride, int64_t n)
{
    const int64_t width = SIMD_LANES / queries;
    for (int64_t j = 0; j < n; j += width)
        additive_tile(dtype, hidden, queries, states, u, element_at(dtype, k, j * k_stride), k_stride, j,
                      n - j < width ? n - j : width);
}

SIMD_INLINE void additive_scores_as(uint32_t dtype, int64_t hidden, const struct stream_row *states, int count,
                                    const float *u, const void *k, int64_t k_stride, int64_t n)
{
    int r = 0;
    if (ADDITIVE_QUERIES == 4)
        for (; r + 4 <= count; r += 4)
            additive_strip(dtype, hidden, ADDITIVE_QUERIES, states + r, u, k, k_stride, n);
    for (; r + 2 <= count; r += 2)
        additive_strip(dtype, hidden, 2, states + r, u, k, k_stride, n);
    if (r < count)
        additive_strip(dtype, hidden, 1, states + r, u, k, k_stride, n);
}

/* Scores 0..n-1 of each row against n <= STREAM_KEYS keys from k on. u: features up to whole vectors, 0 beyond. */
SIMD_OUTLINE void additive_scores(uint32_t dtype, int64_t hidden, const struct stream_row *states, int count,
                                  const float *u, const void *k, int64_t k_stride, int64_t n)
{
    switch (dtype) {
    case ATTN_BF16:
        additive_scores_as(ATTN_BF16, hidden, states, count, u, k, k_stride, n);
        break;
    case ATTN_F16:
        additive_scores_as(ATTN_F16, hidden, states, count, u, k, k_stride, n);
        break;
    default:
        additive_scores_as(ATTN_F32, hidden, states, count, u, k, k_stride, n);
    }
}

#endif
