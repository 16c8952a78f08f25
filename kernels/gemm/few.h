/* SPDX-License-Identifier: Apache-2.0
 *
 * A product with few rows of a (up to 8: the projections of a decode step), which reads b once, in place: packing would
 * only add to what memory has to give.
 *
 * b as [N][K]: rows of b are read in order, one at a time or, for more rows of a, two, each dotted with every row of a
 * while it is in a register; SIMD_LANES of the products are reduced together by a transposing add tree. b as [K][N]:
 * columns are lanes; as many of them as registers hold sums for go down all of K together.
 *
 * bf16 and f16 become f32 in registers, a before (8 x K floats of scratch). With vdpbf16ps rows of [N][K] are pairs of
 * bf16 along K as they lie.
 */
#ifndef KERNELS_GEMM_FEW_H
#define KERNELS_GEMM_FEW_H

#include "pack.h"

enum { GEMM_FEW = 8 };

struct gemm_few {
    const struct gemm *g;
    const void *a; /* rows m0.. of a: floats, or with pairs what they are */
    int64_t a_row; /* elements */
};

/* Columns n..n+columns-1 (at most SIMD_LANES) of row r: their sums. */
SIMD_INLINE void gemm_few_end(const struct gemm *g, int64_t r, int64_t n, int64_t columns, simd_f32 sum)
{
    const int64_t m = g->m0 + r;
    void *out = (char *)g->out + m * g->out_stride * (int64_t)element_size(g->dtype);
    if (g->bias)
        sum = simd_add(sum, load_elements(ATTN_F32, g->bias + m * g->bias_stride, n, columns));
    if (g->accumulate)
        sum = simd_add(sum, load_elements(g->dtype, out, n, columns));
    store_elements(g->dtype, out, n, columns, sum);
}

/* A vector of b, at most n elements. Lines that come from DRAM must be asked for in their order, and compilers shuffle
 * loads: no other one is moved over it. */
SIMD_INLINE simd_f32 gemm_few_fresh(bool pairs, uint32_t dtype, const void *row, int64_t index, int64_t n)
{
    simd_f32 x;
#if defined(__AVX512BF16__)
    if (pairs)
        x = _mm512_castsi512_ps(
            _mm512_maskz_loadu_epi16(n >= 32 ? 0xffffffffu : (1u << n) - 1u, (const uint16_t *)row + index));
    else
#endif
        x = load_elements(dtype, row, index, n);
    (void)pairs;
    __asm__ volatile("" : "+v"(x) : : "memory");
    return x;
}

SIMD_INLINE simd_f32 gemm_few_factor(bool pairs, const void *row, int64_t index, int64_t n)
{
#if defined(__AVX512BF16__)
    if (pairs)
        return _mm512_castsi512_ps(
            _mm512_maskz_loadu_epi16(n >= 32 ? 0xffffffffu : (1u << n) - 1u, (const uint16_t *)row + index));
#endif
    (void)pairs;
    return load_elements(ATTN_F32, row, index, n);
}

/* `together` rows of b from row b on, by `rows` of a: vectors whose lanes' sum is the product, to sum[row][..]. chains:
 * sums for each, so that an FMA need not wait for the one before. */
SIMD_INLINE void gemm_few_dots(bool pairs, uint32_t dtype, int rows, int together, int chains,
                               const struct gemm_few *few, const void *b, simd_f32 sum[][SIMD_LANES])
{
    const int64_t width = pairs ? 2 * SIMD_LANES : SIMD_LANES, depth = few->g->depth;
    const uint32_t a_dtype = pairs ? dtype : ATTN_F32;
    simd_f32 part[4][2][GEMM_FEW];
    SIMD_UNROLL
    for (int i = 0; i < chains * together * rows; i++)
        part[i / rows / together][i / rows % together][i % rows] = simd_zero();
    int64_t k = 0;
    for (; k + chains * width <= depth; k += chains * width) {
        SIMD_UNROLL
        for (int i = 0; i < chains; i++) {
            simd_f32 x[2];
            SIMD_UNROLL
            for (int t = 0; t < together; t++)
                x[t] = gemm_few_fresh(pairs, dtype, element_at(dtype, b, t * few->g->b_stride), k + i * width, width);
            SIMD_UNROLL
            for (int r = 0; r < rows; r++) {
                const simd_f32 factor =
                    gemm_few_factor(pairs, element_at(a_dtype, few->a, r * few->a_row), k + i * width, width);
                SIMD_UNROLL
                for (int t = 0; t < together; t++)
                    part[i][t][r] = product_step(pairs, factor, x[t], part[i][t][r]);
            }
        }
    }
    for (; k < depth; k += width)
        SIMD_UNROLL
    for (int t = 0; t < together; t++) {
        const simd_f32 x = gemm_few_fresh(pairs, dtype, element_at(dtype, b, t * few->g->b_stride), k, depth - k);
        SIMD_UNROLL
        for (int r = 0; r < rows; r++)
            part[0][t][r] =
                product_step(pairs, gemm_few_factor(pairs, element_at(a_dtype, few->a, r * few->a_row), k, depth - k),
                             x, part[0][t][r]);
    }
    SIMD_UNROLL
    for (int i = 0; i < together * rows; i++) {
        const int t = i / rows, r = i % rows;
        SIMD_UNROLL
        for (int c = 1; c < chains; c++)
            part[0][t][r] = simd_add(part[0][t][r], part[c][t][r]);
        sum[r][t] = part[0][t][r];
    }
}

SIMD_INLINE void gemm_few_transposed(bool pairs, uint32_t dtype, int rows, int together, int chains,
                                     const struct gemm_few *few)
{
    const struct gemm *g = few->g;
    for (int64_t n = g->n0; n < g->n1; n += SIMD_LANES) {
        const int64_t columns = gemm_least(g->n1 - n, SIMD_LANES);
        simd_f32 sum[GEMM_FEW][SIMD_LANES];
        int64_t t = 0;
        for (; t + together <= columns; t += together)
            gemm_few_dots(pairs, dtype, rows, together, chains, few, element_at(dtype, g->b, (n + t) * g->b_stride),
                          (simd_f32(*)[SIMD_LANES]) & sum[0][t]);
        if (t < columns) {
            gemm_few_dots(pairs, dtype, rows, 1, chains, few, element_at(dtype, g->b, (n + t) * g->b_stride),
                          (simd_f32(*)[SIMD_LANES]) & sum[0][t]);
            t++;
        }
        for (; t < SIMD_LANES; t++)
            for (int r = 0; r < rows; r++)
                sum[r][t] = simd_zero();
        for (int r = 0; r < rows; r++)
            gemm_few_end(g, r, n, columns, simd_sum_rows(sum[r]));
    }
}

/* Up to vectors * SIMD_LANES columns from n on, [K][N], down all of K; a single vector may have fewer columns. */
SIMD_INLINE void gemm_few_columns(uint32_t dtype, int rows, int vectors, const struct gemm_few *few, int64_t n,
                                  int64_t columns)
{
    const struct gemm *g = few->g;
    const float *a = few->a;
    simd_f32 sum[GEMM_FEW][16];
    SIMD_UNROLL
    for (int i = 0; i < rows * vectors; i++)
        sum[i / vectors][i % vectors] = simd_zero();
    for (int64_t k = 0; k < g->depth; k++) {
        const void *row = element_at(dtype, g->b, k * g->b_stride + n);
        SIMD_UNROLL
        for (int v = 0; v < vectors; v++) {
            const simd_f32 x = gemm_few_fresh(false, dtype, row, v * SIMD_LANES, vectors == 1 ? columns : SIMD_LANES);
            SIMD_UNROLL
            for (int r = 0; r < rows; r++)
                sum[r][v] = simd_fma(simd_set(a[r * few->a_row + k]), x, sum[r][v]);
        }
    }
    SIMD_UNROLL
    for (int r = 0; r < rows; r++) {
        SIMD_UNROLL
        for (int v = 0; v < vectors; v++)
            gemm_few_end(g, r, n + v * SIMD_LANES, vectors == 1 ? columns : SIMD_LANES, sum[r][v]);
    }
}

/* most: vectors of columns that registers hold sums for. */
SIMD_INLINE void gemm_few_straight(uint32_t dtype, int rows, int most, const struct gemm_few *few)
{
    const int64_t end = few->g->n1;
    int64_t n = few->g->n0;
    for (; n + most * SIMD_LANES <= end; n += most * SIMD_LANES)
        gemm_few_columns(dtype, rows, most, few, n, most * SIMD_LANES);
    if (most >= 8)
        for (; n + most / 4 * SIMD_LANES <= end; n += most / 4 * SIMD_LANES)
            gemm_few_columns(dtype, rows, most / 4, few, n, most / 4 * SIMD_LANES);
    for (; n < end; n += SIMD_LANES)
        gemm_few_columns(dtype, rows, 1, few, n, gemm_least(end - n, SIMD_LANES));
}

SIMD_INLINE void gemm_few_rows(bool pairs, uint32_t dtype, int rows, const struct gemm_few *few)
{
    enum { SHARE = SIMD_REGISTERS / 2 };
    if (few->g->transposed)
        gemm_few_transposed(pairs, dtype, rows, rows * 2 <= SHARE && rows > 1 ? 2 : 1,
                            rows == 1   ? 4
                            : rows == 2 ? 2
                                        : 1,
                            few);
    else if (!pairs)
        gemm_few_straight(dtype, rows,
                          rows == 1   ? SHARE
                          : rows <= 3 ? SHARE / 2
                          : rows <= 6 ? SHARE / 4
                                      : SHARE / 8,
                          few);
}

SIMD_INLINE void gemm_few_as(bool pairs, uint32_t dtype, int rows, const struct gemm_few *few)
{
    switch (rows) {
    case 1:
        gemm_few_rows(pairs, dtype, 1, few);
        break;
    case 2:
        gemm_few_rows(pairs, dtype, 2, few);
        break;
    case 3:
        gemm_few_rows(pairs, dtype, 3, few);
        break;
    case 4:
        gemm_few_rows(pairs, dtype, 4, few);
        break;
    case 5:
        gemm_few_rows(pairs, dtype, 5, few);
        break;
    case 6:
        gemm_few_rows(pairs, dtype, 6, few);
        break;
    case 7:
        gemm_few_rows(pairs, dtype, 7, few);
        break;
    default:
        gemm_few_rows(pairs, dtype, 8, few);
    }
}

static inline size_t gemm_few_floats(const struct attn_problem *problem)
{
    return problem->dtype == ATTN_F32 ? 0 : (size_t)(gemm_least(problem->S_q, GEMM_FEW) * problem->D);
}

/* Scratch of a kernel that does few rows so and more of them by blocks. */
static inline size_t gemm_scratch_floats(const struct attn_problem *problem, const struct gemm_room *room)
{
    const size_t few = gemm_few_floats(problem), blocks = gemm_room_floats(room);
    return problem->S_q <= GEMM_FEW || few > blocks ? few : blocks;
}

/* The product of g, which has at most GEMM_FEW rows. scratch: gemm_few_floats. */
SIMD_OUTLINE void gemm_few(const struct gemm *g, float *scratch)
{
    const int rows = (int)(g->m1 - g->m0);
    struct gemm_few few = {.g = g, .a = element_at(g->dtype, g->a, g->m0 * g->a_stride), .a_row = g->a_stride};
    if (g->dtype == ATTN_F32) {
        gemm_few_as(false, ATTN_F32, rows, &few);
        return;
    }
    elements_to_floats(g->dtype, few.a, g->a_stride, rows, g->depth, scratch);
    few.a = scratch;
    few.a_row = g->depth;
    if (g->dtype == ATTN_BF16)
        gemm_few_as(false, ATTN_BF16, rows, &few);
    else
        gemm_few_as(false, ATTN_F16, rows, &few);
}

#endif
