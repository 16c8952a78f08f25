/* SPDX-License-Identifier: Apache-2.0
 *
 * The micro-kernel of a product of matrices, and what becomes of its sums. Lanes are columns of b: 6 rows of a,
 * broadcast element by element from where they lie, by SIMD_TILE_VECTORS vectors of a packed panel. 24 accumulators,
 * 4 vectors of b and a broadcast are 29 of 32 registers with AVX-512 (12 + 2 + 1 of 16 with AVX2); of the 34 (20)
 * instructions a step of k 24 (12) are FMAs. With AVX512_BF16 an element is a pair of bf16, adjacent along k.
 */
#ifndef KERNELS_GEMM_TILE_H
#define KERNELS_GEMM_TILE_H

#include "../flash/elements.h"
#include "../flash/product.h"
#include "nest.h"

enum { GEMM_ROWS = PRODUCT_ROWS, GEMM_PANEL = SIMD_TILE_VECTORS * SIMD_LANES };

/* What becomes of the sums of one tile: sum + add + bias + old, to `to`. */
struct gemm_end {
    const float *add; /* this, bias, old: NULL where there is nothing to add */
    const float *bias;
    const void *old; /* in the problem's dtype */
    void *to;
    int64_t add_stride, bias_stride, old_stride, to_stride;
    uint32_t dtype, to_dtype; /* of old, of to */
    int64_t columns;
};

/* Rows r.. of a tile: its sums, from the first column on. */
SIMD_OUTLINE void gemm_end_rows(const struct gemm_end *end, const float *sums, int rows)
{
    for (int r = 0; r < rows; r++) {
        const float *add = end->add ? end->add + r * end->add_stride : NULL;
        const float *bias = end->bias ? end->bias + r * end->bias_stride : NULL;
        const void *old = end->old ? element_at(end->dtype, end->old, r * end->old_stride) : NULL;
        void *to = (char *)end->to + r * end->to_stride * (int64_t)element_size(end->to_dtype);
        for (int64_t n = 0; n < end->columns; n += SIMD_LANES) {
            const int64_t left = end->columns - n;
            simd_f32 x = simd_load(sums + r * GEMM_PANEL + n);
            if (add)
                x = simd_add(x, load_elements(ATTN_F32, add, n, left));
            if (bias)
                x = simd_add(x, load_elements(ATTN_F32, bias, n, left));
            if (old)
                x = simd_add(x, load_elements(end->dtype, old, n, left));
            store_elements(end->to_dtype, to, n, left, x);
        }
    }
}

/* The sums of rows x vectors over depth (in pairs: half of k). b: [depth][vectors * SIMD_LANES]. */
SIMD_INLINE void gemm_tile_as(bool pairs, int rows, int vectors, const product_word *a, int64_t a_row, int64_t depth,
                              const float *b, const struct gemm_end *end)
{
    simd_f32 sum[GEMM_ROWS][SIMD_TILE_VECTORS];
    SIMD_UNROLL
    for (int r = 0; r < rows; r++) {
        SIMD_UNROLL
        for (int v = 0; v < vectors; v++)
            sum[r][v] = simd_zero();
    }
    for (int64_t k = 0; k < depth; k++) {
        simd_f32 column[SIMD_TILE_VECTORS];
        SIMD_UNROLL
        for (int v = 0; v < vectors; v++)
            column[v] = simd_load(b + v * SIMD_LANES);
        SIMD_UNROLL
        for (int r = 0; r < rows; r++) {
            simd_f32 element = simd_set(a[r * a_row]);
            SIMD_UNROLL
            for (int v = 0; v < vectors; v++)
                sum[r][v] = product_step(pairs, element, column[v], sum[r][v]);
        }
        a++;
        b += vectors * SIMD_LANES;
    }
    if (end->to_dtype == ATTN_F32 && end->columns == vectors * SIMD_LANES && !end->old) {
        SIMD_UNROLL
        for (int r = 0; r < rows; r++) {
            SIMD_UNROLL
            for (int v = 0; v < vectors; v++) {
                if (end->add)
                    sum[r][v] = simd_add(sum[r][v], simd_load(end->add + r * end->add_stride + v * SIMD_LANES));
                if (end->bias)
                    sum[r][v] = simd_add(sum[r][v], simd_load(end->bias + r * end->bias_stride + v * SIMD_LANES));
                simd_store((float *)end->to + r * end->to_stride + v * SIMD_LANES, sum[r][v]);
            }
        }
        return;
    }
    float sums[GEMM_ROWS * GEMM_PANEL];
    SIMD_UNROLL
    for (int r = 0; r < rows; r++) {
        SIMD_UNROLL
        for (int v = 0; v < vectors; v++)
            simd_store(sums + r * GEMM_PANEL + v * SIMD_LANES, sum[r][v]);
    }
    gemm_end_rows(end, sums, rows);
}

SIMD_INLINE void gemm_tile_rows(bool pairs, int rows, int vectors, const product_word *a, int64_t a_row, int64_t depth,
                                const float *b, const struct gemm_end *end)
{
    switch (rows) {
    case 1:
        gemm_tile_as(pairs, 1, vectors, a, a_row, depth, b, end);
        break;
    case 2:
        gemm_tile_as(pairs, 2, vectors, a, a_row, depth, b, end);
        break;
    case 3:
        gemm_tile_as(pairs, 3, vectors, a, a_row, depth, b, end);
        break;
    case 4:
        gemm_tile_as(pairs, 4, vectors, a, a_row, depth, b, end);
        break;
    case 5:
        gemm_tile_as(pairs, 5, vectors, a, a_row, depth, b, end);
        break;
    default:
        gemm_tile_as(pairs, 6, vectors, a, a_row, depth, b, end);
    }
}

SIMD_INLINE void gemm_tile(bool pairs, int rows, int vectors, const product_word *a, int64_t a_row, int64_t depth,
                           const float *b, const struct gemm_end *end)
{
    switch (vectors) {
    case 1:
        gemm_tile_rows(pairs, rows, 1, a, a_row, depth, b, end);
        break;
#if defined(__AVX512F__)
    case 2:
        gemm_tile_rows(pairs, rows, 2, a, a_row, depth, b, end);
        break;
    case 3:
        gemm_tile_rows(pairs, rows, 3, a, a_row, depth, b, end);
        break;
#endif
    default:
        gemm_tile_rows(pairs, rows, SIMD_TILE_VECTORS, a, a_row, depth, b, end);
    }
}

/* Where the sums of a strip go, its first panel's. */
static inline struct gemm_end gemm_end(const struct gemm *g, const struct gemm_strip *s)
{
    const bool f32 = g->dtype == ATTN_F32, in_sums = s->sums && !s->last, out = !in_sums;
    void *place = (char *)g->out + (s->m * g->out_stride + s->n) * (int64_t)element_size(g->dtype);
    struct gemm_end end = {
        .to = in_sums ? (void *)s->sums : place,
        .to_stride = in_sums ? s->sums_stride : g->out_stride,
        .to_dtype = in_sums ? ATTN_F32 : g->dtype,
        .dtype = g->dtype,
    };
    if (s->sums && !s->first) {
        end.add = s->sums;
        end.add_stride = s->sums_stride;
    } else if (f32 && (g->accumulate || !s->first)) {
        end.add = place;
        end.add_stride = g->out_stride;
    }
    if (g->accumulate && !f32 && out) {
        end.old = place;
        end.old_stride = g->out_stride;
    }
    if (g->bias && (s->sums ? s->last : s->first)) {
        end.bias = g->bias + s->m * g->bias_stride + s->n;
        end.bias_stride = g->bias_stride;
    }
    return end;
}

/* The next panel's. */
static inline void gemm_end_move(struct gemm_end *end)
{
    end->add = end->add ? end->add + GEMM_PANEL : NULL;
    end->bias = end->bias ? end->bias + GEMM_PANEL : NULL;
    end->old = end->old ? element_at(end->dtype, end->old, GEMM_PANEL) : NULL;
    end->to = (char *)end->to + GEMM_PANEL * element_size(end->to_dtype);
}

/* All panels of a strip whose rows of a lie a_row words apart; depth and panels in words too. */
SIMD_INLINE void gemm_panels(bool pairs, const struct gemm *g, const struct gemm_strip *s, const product_word *a,
                             int64_t a_row, int64_t depth)
{
    struct gemm_end end = gemm_end(g, s);
    const float *b = s->panels;
    for (int64_t n = 0; n < s->columns; n += GEMM_PANEL) {
        end.columns = gemm_least(s->columns - n, GEMM_PANEL);
        const int vectors = (int)((end.columns + SIMD_LANES - 1) / SIMD_LANES);
        gemm_tile(pairs, (int)s->rows, vectors, a, a_row, depth, b, &end);
        gemm_end_move(&end);
        b += depth * GEMM_PANEL;
    }
}

#endif
