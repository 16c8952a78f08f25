/* SPDX-License-Identifier: Apache-2.0
 *
 * b packed into panels of floats, whatever its dtype and whichever way it lies. A panel of n columns is
 * [depth][n up to whole vectors]; columns beyond the last are zeros. [K][N] is copied row by row, over all panels: long
 * runs for the prefetchers; [N][K] is transposed in registers, SIMD_LANES x SIMD_LANES elements at a time.
 */
#ifndef KERNELS_GEMM_PACK_H
#define KERNELS_GEMM_PACK_H

#include "tile.h"

SIMD_INLINE void gemm_pack_rows(uint32_t dtype, const struct gemm *g, int64_t k, int64_t depth, int64_t n,
                                int64_t columns, float *panels)
{
    for (int64_t step = 0; step < depth; step++) {
        const void *row = element_at(dtype, g->b, (k + step) * g->b_stride + n);
        float *panel = panels;
        int64_t c = 0;
        for (; c + GEMM_PANEL <= columns; c += GEMM_PANEL) {
            SIMD_UNROLL
            for (int v = 0; v < SIMD_TILE_VECTORS; v++)
                simd_store(panel + step * GEMM_PANEL + v * SIMD_LANES,
                           load_elements(dtype, row, c + v * SIMD_LANES, SIMD_LANES));
            panel += depth * GEMM_PANEL;
        }
        const int64_t width = gemm_up(columns - c, SIMD_LANES);
        for (int64_t lane = 0; c + lane < columns; lane += SIMD_LANES)
            simd_store(panel + step * width + lane, load_elements(dtype, row, c + lane, columns - c - lane));
    }
}

/* SIMD_LANES steps of k (or `steps`) by SIMD_LANES columns (or `columns`), to rows `width` apart. */
SIMD_INLINE void gemm_pack_square(uint32_t dtype, const void *b, int64_t b_stride, int64_t steps, int64_t columns,
                                  float *to, int64_t width)
{
    simd_f32 square[SIMD_LANES];
    SIMD_UNROLL
    for (int t = 0; t < SIMD_LANES; t++)
        square[t] = t < columns ? load_elements(dtype, element_at(dtype, b, t * b_stride), 0, steps) : simd_zero();
    simd_transpose(square);
    SIMD_UNROLL
    for (int t = 0; t < SIMD_LANES; t++)
        if (t < steps)
            simd_store(to + t * width, square[t]);
}

SIMD_INLINE void gemm_pack_columns(uint32_t dtype, const struct gemm *g, int64_t k, int64_t depth, int64_t n,
                                   int64_t columns, float *panels)
{
    for (int64_t c = 0; c < columns; c += SIMD_LANES) {
        const int64_t panel = c / GEMM_PANEL * GEMM_PANEL, left = columns - c;
        const int64_t width = gemm_up(gemm_least(columns - panel, GEMM_PANEL), SIMD_LANES);
        float *to = panels + panel * depth + (c - panel);
        const void *from = element_at(dtype, g->b, (n + c) * g->b_stride + k);
        int64_t step = 0;
        if (left >= SIMD_LANES)
            for (; step + SIMD_LANES <= depth; step += SIMD_LANES)
                gemm_pack_square(dtype, element_at(dtype, from, step), g->b_stride, SIMD_LANES, SIMD_LANES,
                                 to + step * width, width);
        for (; step < depth; step += SIMD_LANES)
            gemm_pack_square(dtype, element_at(dtype, from, step), g->b_stride, depth - step, left, to + step * width,
                             width);
    }
}

SIMD_INLINE void gemm_pack_as(uint32_t dtype, const struct gemm *g, int64_t k, int64_t depth, int64_t n,
                              int64_t columns, float *panels)
{
    if (g->transposed)
        gemm_pack_columns(dtype, g, k, depth, n, columns, panels);
    else
        gemm_pack_rows(dtype, g, k, depth, n, columns, panels);
}

SIMD_OUTLINE void gemm_pack_floats(const struct gemm *g, int64_t k, int64_t depth, int64_t n, int64_t columns,
                                   float *panels)
{
    if (g->dtype == ATTN_BF16)
        gemm_pack_as(ATTN_BF16, g, k, depth, n, columns, panels);
    else if (g->dtype == ATTN_F16)
        gemm_pack_as(ATTN_F16, g, k, depth, n, columns, panels);
    else
        gemm_pack_as(ATTN_F32, g, k, depth, n, columns, panels);
}

#endif
