/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights times values for the additive rule: four rows share every vector of V while it is in a register, where their
 * outputs are whole vectors; what only some of them see, and other shapes, go row by row as in the flash stream.
 */
#ifndef KERNELS_ADDITIVE_VALUES_H
#define KERNELS_ADDITIVE_VALUES_H

#include "../flash/stream.h"

enum {
    ADDITIVE_ROWS = 4,
    ADDITIVE_VECTORS = SIMD_REGISTERS >= 32 ? 4 : 2 /* 4 x 4 sums, 4 of V, 1 weight; with 16 registers 4 x 2, 2, 1 */
};

/* `vectors` (a constant) vectors of ADDITIVE_ROWS outputs; keys from..to-1 of the block, v: the panel's columns of its
 * first key. */
SIMD_INLINE void additive_add_panel(uint32_t dtype, int vectors, const struct stream_row *states, int64_t column,
                                    const void *v, int64_t v_stride, int64_t from, int64_t to)
{
    simd_f32 sum[ADDITIVE_ROWS][ADDITIVE_VECTORS];
    SIMD_UNROLL
    for (int r = 0; r < ADDITIVE_ROWS; r++)
        SIMD_UNROLL
    for (int c = 0; c < vectors; c++)
        sum[r][c] = simd_load(states[r].output + column + c * SIMD_LANES);
    for (int64_t j = from; j < to; j++) {
        const void *row = element_at(dtype, v, j * v_stride);
        simd_f32 x[ADDITIVE_VECTORS];
        SIMD_UNROLL
        for (int c = 0; c < vectors; c++)
            x[c] = load_elements(dtype, row, c * SIMD_LANES, SIMD_LANES);
        SIMD_UNROLL
        for (int r = 0; r < ADDITIVE_ROWS; r++) {
            const simd_f32 weight = simd_set(states[r].score[j]);
            SIMD_UNROLL
            for (int c = 0; c < vectors; c++)
                sum[r][c] = simd_fma(weight, x[c], sum[r][c]);
        }
    }
    SIMD_UNROLL
    for (int r = 0; r < ADDITIVE_ROWS; r++)
        SIMD_UNROLL
    for (int c = 0; c < vectors; c++)
        simd_store(states[r].output + column + c * SIMD_LANES, sum[r][c]);
}

/* All columns: whole vectors. */
SIMD_INLINE void additive_add_rows(uint32_t dtype, int64_t D_v, const struct stream_row *states, const void *v,
                                   int64_t v_stride, int64_t from, int64_t to)
{
    int64_t c = 0;
    for (; c + ADDITIVE_VECTORS * SIMD_LANES <= D_v; c += ADDITIVE_VECTORS * SIMD_LANES)
        additive_add_panel(dtype, ADDITIVE_VECTORS, states, c, element_at(dtype, v, c), v_stride, from, to);
    if (ADDITIVE_VECTORS > 2 && c + 2 * SIMD_LANES <= D_v) {
        additive_add_panel(dtype, 2, states, c, element_at(dtype, v, c), v_stride, from, to);
        c += 2 * SIMD_LANES;
    }
    if (c < D_v)
        additive_add_panel(dtype, 1, states, c, element_at(dtype, v, c), v_stride, from, to);
}

/* Keys from..to-1 of the block, if any, for one row. */
SIMD_INLINE void additive_add_keys(uint32_t dtype, int64_t D_v, const struct stream_row *state, const void *v,
                                   int64_t v_stride, int64_t from, int64_t to)
{
    if (from < to)
        stream_add_values(dtype, D_v, state->score + from, element_at(dtype, v, from * v_stride), v_stride, to - from,
                          state->output);
}

/* Adds the values of the keys j0..j0+n-1, of which each row sees a..b-1, to the outputs. Only those: what lies in the
 * others must not meet a weight of 0. */
SIMD_INLINE void additive_values(uint32_t dtype, int64_t D_v, const struct stream_row *states, int count,
                                 const int64_t *a, const int64_t *b, const struct key_head *head, int64_t j0, int64_t n)
{
    const void *v = element_at(dtype, head->v, j0 * head->v_stride);
    int r = 0;
    for (; D_v % SIMD_LANES == 0 && r + ADDITIVE_ROWS <= count; r += ADDITIVE_ROWS) {
        int64_t from = a[r], to = b[r];
        for (int i = 1; i < ADDITIVE_ROWS; i++) {
            from = a[r + i] > from ? a[r + i] : from;
            to = b[r + i] < to ? b[r + i] : to;
        }
        if (from >= to)
            from = to = INT64_MAX;
        if (from < to)
            additive_add_rows(dtype, D_v, states + r, v, head->v_stride, from, to);
        for (int i = r; i < r + ADDITIVE_ROWS; i++) {
            additive_add_keys(dtype, D_v, &states[i], v, head->v_stride, a[i], b[i] < from ? b[i] : from);
            additive_add_keys(dtype, D_v, &states[i], v, head->v_stride, to, b[i]);
        }
    }
    stream_values(dtype, D_v, states + r, count - r, a + r, b + r, head, j0, n);
}

#endif
