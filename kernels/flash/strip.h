/* SPDX-License-Identifier: Apache-2.0
 *
 * A strip of query rows as vector lanes: what is known of it while it goes through the keys, how it begins (Q is turned
 * and scaled) and how it ends (the output is turned back and divided).
 */
#ifndef KERNELS_FLASH_STRIP_H
#define KERNELS_FLASH_STRIP_H

#include <string.h>

#include "product.h"
#include "rows.h"
#include "weights.h"

enum {
    LANES_ROWS = 64,
    LANES_STRIP = SIMD_TILE_VECTORS * SIMD_LANES,
    LANES_STRIPS = LANES_ROWS / LANES_STRIP,
    LANES_KEYS = 192 /* 48 KiB of scores with AVX-512, 12 KiB with AVX2 */
};

_Static_assert(LANES_KEYS % PRODUCT_ROWS == 0 && LANES_KEYS % WEIGHTS_GRAIN == 0, "blocks of even size are rounded up");

/* A strip of rows as wide as the micro-kernel; lanes beyond the rows are computed and never written anywhere. */
struct lane_block {
    const struct flash_form *form;
    const struct query_row *rows;
    int count, vectors;
    int64_t lanes;
    bool first_strip, last_strip;  /* of those that go through the keys together */
    bool begun;                    /* some keys are done: output holds their part */
    int64_t begin, end;            /* keys that some row may see */
    int64_t full_first, full_last; /* keys that every row may see */
    float *query, *output, *score; /* [D][lanes], [D_v][lanes], [LANES_KEYS][lanes] */
    struct weights_peaks peaks;    /* where weights are returned */
    float max[LANES_STRIP] __attribute__((aligned(64)));
    float sum[LANES_STRIP] __attribute__((aligned(64)));
    float top[LANES_STRIP] __attribute__((aligned(64)));   /* largest score of the current keys */
    float first[LANES_STRIP] __attribute__((aligned(64))); /* key interval, counted from the current keys' start */
    float last[LANES_STRIP] __attribute__((aligned(64)));
};

/* SIMD_LANES rows by SIMD_LANES columns of Q, scaled and turned; whole tiles know that they are. */
SIMD_INLINE void lanes_load_query_tile(uint32_t dtype, const struct query_row *rows, int present, int64_t d,
                                       int64_t columns, simd_f32 scale, float *query, int64_t lanes)
{
    simd_f32 tile[SIMD_LANES];
    SIMD_UNROLL
    for (int t = 0; t < SIMD_LANES; t++) {
        if (t >= present)
            tile[t] = simd_zero();
        else
            tile[t] = simd_mul(load_elements(dtype, rows[t].q, d, columns), scale);
    }
    simd_transpose(tile);
    SIMD_UNROLL
    for (int t = 0; t < SIMD_LANES; t++)
        if (t < columns)
            simd_store(query + (d + t) * lanes, tile[t]);
}

SIMD_INLINE void lanes_load_queries_as(uint32_t dtype, struct lane_block *block)
{
    const int64_t D = block->form->D, lanes = block->lanes;
    const simd_f32 scale = simd_set(block->form->query_scale);
    for (int v = 0; v < block->vectors; v++) {
        const int present = block->count - v * SIMD_LANES;
        const struct query_row *rows = block->rows + v * SIMD_LANES;
        float *query = block->query + v * SIMD_LANES;
        for (int64_t d = 0; d < D; d += SIMD_LANES) {
            if (present >= SIMD_LANES && D - d >= SIMD_LANES)
                lanes_load_query_tile(dtype, rows, SIMD_LANES, d, SIMD_LANES, scale, query, lanes);
            else
                lanes_load_query_tile(dtype, rows, present, d, D - d < SIMD_LANES ? D - d : SIMD_LANES, scale, query,
                                      lanes);
        }
    }
}

static inline void lanes_load_queries(struct lane_block *block)
{
    switch (block->form->dtype) {
    case ATTN_BF16:
        lanes_load_queries_as(ATTN_BF16, block);
        break;
    case ATTN_F16:
        lanes_load_queries_as(ATTN_F16, block);
        break;
    default:
        lanes_load_queries_as(ATTN_F32, block);
    }
}

/* SIMD_LANES columns of SIMD_LANES output rows, turned back and scaled; whole tiles know that they are. */
SIMD_INLINE void lanes_store_tile(uint32_t dtype, const float *output, int64_t lanes, simd_f32 factor,
                                  const struct query_row *rows, int present, int64_t d, int64_t columns)
{
    const simd_mask empty = simd_equal(factor, simd_zero());
    simd_f32 tile[SIMD_LANES];
    SIMD_UNROLL
    for (int t = 0; t < SIMD_LANES; t++) {
        if (t < columns)
            tile[t] = simd_select(empty, simd_zero(), simd_mul(simd_load(output + (d + t) * lanes), factor));
        else
            tile[t] = simd_zero();
    }
    simd_transpose(tile);
    SIMD_UNROLL
    for (int t = 0; t < SIMD_LANES; t++) {
        if (t < present)
            store_elements(dtype, rows[t].out, d, columns, tile[t]);
    }
}

SIMD_INLINE void lanes_store_rows_as(uint32_t dtype, struct lane_block *block)
{
    const int64_t D_v = block->form->D_v, lanes = block->lanes;
    float factors[LANES_STRIP] = {0};
    for (int r = 0; r < lanes; r++)
        factors[r] = r < block->count ? row_factor(block->form, &block->rows[r], block->max[r], block->sum[r]) : 0.0f;
    if (block->form->weights)
        weights_finish_lanes(block->form, block->rows, block->count, &block->peaks, block->max, factors);
    for (int v = 0; v < block->vectors; v++) {
        const simd_f32 factor = simd_load(factors + v * SIMD_LANES);
        const int present = block->count - v * SIMD_LANES;
        const struct query_row *rows = block->rows + v * SIMD_LANES;
        const float *output = block->output + v * SIMD_LANES;
        for (int64_t d = 0; d < D_v; d += SIMD_LANES) {
            if (present >= SIMD_LANES && D_v - d >= SIMD_LANES)
                lanes_store_tile(dtype, output, lanes, factor, rows, SIMD_LANES, d, SIMD_LANES);
            else
                lanes_store_tile(dtype, output, lanes, factor, rows, present, d,
                                 D_v - d < SIMD_LANES ? D_v - d : SIMD_LANES);
        }
    }
}

static inline void lanes_store_rows(struct lane_block *block)
{
    switch (block->form->out_dtype) {
    case ATTN_BF16:
        lanes_store_rows_as(ATTN_BF16, block);
        break;
    case ATTN_F16:
        lanes_store_rows_as(ATTN_F16, block);
        break;
    default:
        lanes_store_rows_as(ATTN_F32, block);
    }
}

/* Prepares one strip, all but its queries. */
static inline void lanes_begin(struct lane_block *block, float *query, float *output, float *score)
{
    rows_key_hull(block->rows, block->count, &block->begin, &block->end);
    block->begun = false;
    block->peaks = (struct weights_peaks){0};
    block->vectors = (block->count + SIMD_LANES - 1) / SIMD_LANES;
    block->lanes = (int64_t)block->vectors * SIMD_LANES;
    block->full_first = block->begin;
    block->full_last = block->end;
    for (int r = 0; r < block->count; r++) {
        const struct query_row *row = &block->rows[r];
        block->full_first = row->first > block->full_first ? row->first : block->full_first;
        block->full_last = row->last < block->full_last ? row->last : block->full_last;
    }
    block->query = query;
    block->output = output;
    block->score = score;
    for (int r = 0; r < block->lanes; r++) {
        block->max[r] = -INFINITY;
        block->sum[r] = 0.0f;
    }
}

static inline void lanes_end(struct lane_block *block)
{
    if (block->begun) {
        lanes_store_rows(block);
        return;
    }
    for (int r = 0; r < block->count; r++)
        row_write_zero(block->form, &block->rows[r]);
}

#endif
