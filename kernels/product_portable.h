/* SPDX-License-Identifier: Apache-2.0
 *
 * The two products of tiled attention in portable vectors, where lanes are queries: scores of a few keys, and a few
 * columns of the output. Two rows (keys, or columns of v) x 4 vectors = 8 sums, the rows' 2 broadcasts, an operand, a
 * product: 16 registers of four floats.
 */
#ifndef KERNELS_PRODUCT_PORTABLE_H
#define KERNELS_PRODUCT_PORTABLE_H

#include "simd_portable.h"

enum { LANES = 4 };

/* tile[key][lanes] = k[key][.] . q[.][lanes] for a few keys. */
SIMD_INLINE void score_keys(const int keys, const int vectors, const float *k, int64_t stride, const float *q,
                            int64_t D, float *tile)
{
    const int lanes = vectors * LANES;
    f32x4 sum[4][4];
    for (int key = 0; key < keys; key++)
        for (int c = 0; c < vectors; c++)
            sum[key][c] = f32x4_all(0);
    int64_t d = 0;
    for (; d + 4 <= D; d += 4) {
        f32x4 row[4];
        for (int key = 0; key < keys; key++)
            row[key] = f32x4_load_unaligned(k + key * stride + d);
        for (int step = 0; step < 4; step++) {
            f32x4 factor[4];
            for (int key = 0; key < keys; key++)
                factor[key] = f32x4_element(row[key], step);
            for (int c = 0; c < vectors; c++) {
                f32x4 query = f32x4_load(q + (d + step) * lanes + c * LANES);
                for (int key = 0; key < keys; key++)
                    sum[key][c] += factor[key] * query;
            }
        }
    }
    for (; d < D; d++)
        for (int key = 0; key < keys; key++)
            for (int c = 0; c < vectors; c++)
                sum[key][c] += f32x4_all(k[key * stride + d]) * f32x4_load(q + d * lanes + c * LANES);
    for (int key = 0; key < keys; key++)
        for (int c = 0; c < vectors; c++)
            f32x4_store(tile + key * lanes + c * LANES, sum[key][c]);
}

SIMD_INLINE void score_tile(const int vectors, const float *k, int64_t stride, const float *q, int64_t D, int64_t keys,
                            float *tile)
{
    const int lanes = vectors * LANES, together = vectors == 4 ? 2 : 4;
    int64_t key = 0;
    for (; key + together <= keys; key += together)
        score_keys(together, vectors, k + key * stride, stride, q, D, tile + key * lanes);
    for (; key < keys; key++)
        score_keys(1, vectors, k + key * stride, stride, q, D, tile + key * lanes);
}

/* out[column][lanes] += v[.][column] * tile[.][lanes] for a few columns. */
SIMD_INLINE void add_columns(const int columns, const int vectors, const float *v, int64_t stride, const float *tile,
                             int64_t keys, float *out)
{
    const int lanes = vectors * LANES;
    f32x4 sum[4][4];
    for (int column = 0; column < columns; column++)
        for (int c = 0; c < vectors; c++)
            sum[column][c] = f32x4_load(out + column * lanes + c * LANES);
    for (int64_t key = 0; key < keys; key++) {
        f32x4 factor[4];
        for (int column = 0; column < columns; column++)
            factor[column] = f32x4_all(v[key * stride + column]);
        for (int c = 0; c < vectors; c++) {
            f32x4 weight = f32x4_load(tile + key * lanes + c * LANES);
            for (int column = 0; column < columns; column++)
                sum[column][c] += factor[column] * weight;
        }
    }
    for (int column = 0; column < columns; column++)
        for (int c = 0; c < vectors; c++)
            f32x4_store(out + column * lanes + c * LANES, sum[column][c]);
}

SIMD_INLINE void add_values(const int vectors, const float *v, int64_t stride, const float *tile, int64_t keys,
                            int64_t D_v, float *out)
{
    const int lanes = vectors * LANES, together = vectors == 4 ? 2 : 4;
    int64_t d = 0;
    for (; d + together <= D_v; d += together)
        add_columns(together, vectors, v + d, stride, tile, keys, out + d * lanes);
    for (; d < D_v; d++)
        add_columns(1, vectors, v + d, stride, tile, keys, out + d * lanes);
}

#endif
