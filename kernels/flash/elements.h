/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements of any dtype, read and written as vectors of f32. Where dtype is a constant, one instruction or two are
 * left.
 */
#ifndef KERNELS_FLASH_ELEMENTS_H
#define KERNELS_FLASH_ELEMENTS_H

#include <stddef.h>
#include <stdint.h>

#include "../attn.h"
#include "../simd.h"

static inline size_t element_size(uint32_t dtype)
{
    return dtype == ATTN_F32 ? sizeof(float) : sizeof(uint16_t);
}

/* The place of element `index` behind `from` */
SIMD_INLINE const void *element_at(uint32_t dtype, const void *from, int64_t index)
{
    return (const char *)from + index * (int64_t)element_size(dtype);
}

/* Elements index..index+n-1 of a row, n at most SIMD_LANES; reads no others, the lanes beyond are 0. */
SIMD_INLINE simd_f32 load_elements(uint32_t dtype, const void *row, int64_t index, int64_t n)
{
    const void *p = element_at(dtype, row, index);
    if (dtype == ATTN_BF16)
        return simd_load_bf16(p, n);
    if (dtype == ATTN_F16)
        return simd_load_f16(p, n);
    return n >= SIMD_LANES ? simd_load(p) : simd_load_masked(p, simd_first(n));
}

/* Rounds once, to nearest even; writes no others. */
SIMD_INLINE void store_elements(uint32_t dtype, void *row, int64_t index, int64_t n, simd_f32 x)
{
    void *p = (char *)row + index * (int64_t)element_size(dtype);
    if (dtype == ATTN_BF16)
        simd_store_bf16(p, n, x);
    else if (dtype == ATTN_F16)
        simd_store_f16(p, n, x);
    else if (n >= SIMD_LANES)
        simd_store(p, x);
    else
        simd_store_masked(p, simd_first(n), x);
}

SIMD_INLINE void elements_to_floats_as(uint32_t dtype, const void *from, int64_t stride, int64_t rows, int64_t columns,
                                       float *to)
{
    for (int64_t r = 0; r < rows; r++) {
        const void *row = element_at(dtype, from, r * stride);
        int64_t d = 0;
        for (; d + SIMD_LANES <= columns; d += SIMD_LANES)
            simd_store(to + d, load_elements(dtype, row, d, SIMD_LANES));
        if (d < columns)
            simd_store_masked(to + d, simd_first(columns - d), load_elements(dtype, row, d, columns - d));
        to += columns;
    }
}

/* Rows of bf16 or f16, `stride` elements apart, as rows of floats without gaps. */
SIMD_OUTLINE void elements_to_floats(uint32_t dtype, const void *from, int64_t stride, int64_t rows, int64_t columns,
                                     float *to)
{
    if (dtype == ATTN_BF16)
        elements_to_floats_as(ATTN_BF16, from, stride, rows, columns, to);
    else
        elements_to_floats_as(ATTN_F16, from, stride, rows, columns, to);
}

#endif
