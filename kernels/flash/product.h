/* SPDX-License-Identifier: Apache-2.0
 *
 * The micro-kernel of both products of attention where lanes are queries: c[r][lane] (+)= sum_k a(r, k) b[k][lane].
 * a is K (r a key, k a feature) or V (r a feature, k a key), broadcast element by element from where it lies; b is the
 * transposed query block or the weights. 6 rows by SIMD_TILE_VECTORS vectors of accumulators stay in registers: of the
 * 24 + 10 instructions a step of k with AVX-512 (12 + 8 with AVX2) 24 (12) are FMAs.
 *
 * With AVX512_BF16 an element of a and b can be a pair of bf16 instead, adjacent along k: the same loads and as many
 * vdpbf16ps do twice the work.
 *
 * Between tiles a product can ask for rows that the next steps need: rows read across (V, the queries, the output) are
 * not what hardware prefetchers foresee.
 */
#ifndef KERNELS_FLASH_PRODUCT_H
#define KERNELS_FLASH_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

#include "../simd.h"

enum { PRODUCT_ROWS = 6, PRODUCT_AHEAD = 2, PRODUCT_LINE = 64 /* bytes fetched at once */ };

/* 32 bits of a, one float or two bf16; rows of bf16 need not start at a multiple of 4 bytes. */
typedef float product_word __attribute__((may_alias, aligned(2)));

/* Rows that will be wanted soon. They need not exist: a fetch of an address without memory does nothing. */
struct product_ahead {
    uintptr_t address;
    int64_t stride, bytes; /* from one row to the next, of one row */
    int64_t rows;          /* 0: nothing */
};

struct product {
    const product_word *a;
    int64_t a_row, a_step; /* elements from one r, one k to the next */
    int64_t depth;         /* number of k, at least 1 */
    const float *b;
    float *c;
    int64_t lanes;                     /* elements from one row of b and c to the next */
    bool pairs;                        /* a and b hold pairs of bf16 */
    bool accumulate;                   /* c is added to; else it is written */
    float *top;                        /* [lanes] raised to the largest c (NaN passed over); NULL: not wanted */
    const struct product_ahead *ahead; /* [PRODUCT_AHEAD]; NULL: nothing */
};

/* sum + element * column, of floats or of pairs */
SIMD_INLINE simd_f32 product_step(bool pairs, simd_f32 element, simd_f32 column, simd_f32 sum)
{
#if defined(__AVX512BF16__)
    if (pairs)
        return _mm512_dpbf16_ps(sum, (__m512bh)element, (__m512bh)column);
#endif
    (void)pairs;
    return simd_fma(element, column, sum);
}

SIMD_INLINE void product_tile(const struct product *p, int rows, int vectors)
{
    simd_f32 sum[PRODUCT_ROWS][SIMD_TILE_VECTORS];
    SIMD_UNROLL
    for (int r = 0; r < rows; r++) {
        SIMD_UNROLL
        for (int v = 0; v < vectors; v++)
            sum[r][v] = p->accumulate ? simd_load(p->c + r * p->lanes + v * SIMD_LANES) : simd_zero();
    }

    const product_word *a = p->a;
    const float *b = p->b;
    const int64_t a_row = p->a_row, a_step = p->a_step, lanes = p->lanes;
    for (int64_t k = 0; k < p->depth; k++) {
        simd_f32 column[SIMD_TILE_VECTORS];
        SIMD_UNROLL
        for (int v = 0; v < vectors; v++)
            column[v] = simd_load(b + v * SIMD_LANES);
        SIMD_UNROLL
        for (int r = 0; r < rows; r++) {
            simd_f32 element = simd_set(a[r * a_row]);
            SIMD_UNROLL
            for (int v = 0; v < vectors; v++)
                sum[r][v] = product_step(p->pairs, element, column[v], sum[r][v]);
        }
        a += a_step;
        b += lanes;
    }

    SIMD_UNROLL
    for (int r = 0; r < rows; r++) {
        SIMD_UNROLL
        for (int v = 0; v < vectors; v++)
            simd_store(p->c + r * lanes + v * SIMD_LANES, sum[r][v]);
    }
    if (!p->top)
        return;
    SIMD_UNROLL
    for (int v = 0; v < vectors; v++) {
        simd_f32 top = simd_load(p->top + v * SIMD_LANES);
        SIMD_UNROLL
        for (int r = 0; r < rows; r++)
            top = simd_max(sum[r][v], top);
        simd_store(p->top + v * SIMD_LANES, top);
    }
}

SIMD_INLINE void product_rows(const struct product *p, int rows, int vectors)
{
    switch (rows) {
    case 1:
        product_tile(p, 1, vectors);
        break;
    case 2:
        product_tile(p, 2, vectors);
        break;
    case 3:
        product_tile(p, 3, vectors);
        break;
    case 4:
        product_tile(p, 4, vectors);
        break;
    case 5:
        product_tile(p, 5, vectors);
        break;
    default:
        product_tile(p, 6, vectors);
    }
}

/* The share of tile `tile` in what is wanted soon, into L2: L1 is full of b and c. Inline, for gcc drops calls of a
 * function that does nothing but fetch. */
SIMD_INLINE void product_fetch(const struct product_ahead *ahead, int64_t tile, int64_t tiles)
{
    for (int i = 0; i < PRODUCT_AHEAD; i++) {
        const int64_t share = (ahead[i].rows + tiles - 1) / tiles;
        const int64_t begin = tile * share, end = begin + share;
        for (int64_t row = begin; row < end && row < ahead[i].rows; row++)
            for (int64_t byte = 0; byte < ahead[i].bytes; byte += PRODUCT_LINE)
                __builtin_prefetch((const void *)(ahead[i].address + (uintptr_t)(row * ahead[i].stride + byte)), 0, 2);
    }
}

/* All rows of the product; vectors is 1..SIMD_TILE_VECTORS. a_row and a_step arrive as constants where they are 1. */
SIMD_INLINE void product_strip(struct product *p, int64_t rows, int vectors, int64_t a_row, int64_t a_step)
{
    p->a_row = a_row;
    p->a_step = a_step;
    p->lanes = (int64_t)vectors * SIMD_LANES;
    const int64_t tiles = (rows + PRODUCT_ROWS - 1) / PRODUCT_ROWS;
    for (int64_t r = 0; r < rows; r += PRODUCT_ROWS) {
        if (p->ahead)
            product_fetch(p->ahead, r / PRODUCT_ROWS, tiles);
        product_rows(p, rows - r < PRODUCT_ROWS ? (int)(rows - r) : PRODUCT_ROWS, vectors);
        p->a += PRODUCT_ROWS * a_row;
        p->c += PRODUCT_ROWS * p->lanes;
    }
}

SIMD_INLINE void product_any(struct product *p, int64_t rows, int vectors, int64_t a_row, int64_t a_step)
{
    switch (vectors) {
    case 1:
        product_strip(p, rows, 1, a_row, a_step);
        break;
    case 2:
        product_strip(p, rows, 2, a_row, a_step);
        break;
#if defined(__AVX512F__)
    case 3:
        product_strip(p, rows, 3, a_row, a_step);
        break;
    default:
        product_strip(p, rows, 4, a_row, a_step);
#endif
    }
}

/* score[j][lane] = sum_d k[j][d] query[d][lane] for keys j; top is raised to the largest score of each lane. */
SIMD_OUTLINE void score_product(const float *k, int64_t k_stride, int64_t keys, int64_t D, const float *query,
                                int vectors, float *score, float *top, const struct product_ahead *ahead)
{
    struct product p = {.a = k, .depth = D, .b = query, .c = score, .top = top, .ahead = ahead};
    product_any(&p, keys, vectors, k_stride, 1);
}

/* output[d][lane] (+)= sum_j v[j][d] weight[j][lane] for keys j. */
SIMD_OUTLINE void value_product(const float *v, int64_t v_stride, int64_t keys, int64_t D_v, const float *weight,
                                int vectors, float *output, bool accumulate, const struct product_ahead *ahead)
{
    struct product p = {.a = v, .depth = keys, .b = weight, .c = output, .accumulate = accumulate, .ahead = ahead};
    product_any(&p, D_v, vectors, 1, v_stride);
}

#endif
