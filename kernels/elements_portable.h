/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements of any dtype in portable C: bf16 and f16 read as f32, and f32 rounded to them once, ties to even.
 */
#ifndef KERNELS_ELEMENTS_PORTABLE_H
#define KERNELS_ELEMENTS_PORTABLE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "attn.h"

static inline float float_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint32_t bits_of_float(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* The exponent moves by a multiplication, which normalises subnormal numbers too; 2^16 and up were infinite or NaN. */
static inline float float_of_f16(uint16_t x)
{
    const uint32_t sign = (uint32_t)(x & 0x8000u) << 16;
    const float size = float_of_bits((uint32_t)(x & 0x7fffu) << 13) * 0x1p112f;
    const uint32_t special = size >= 0x1p16f ? 0x7f800000u : 0;
    return float_of_bits(bits_of_float(size) | special | sign);
}

static inline uint16_t bf16_of_float(float x)
{
    const uint32_t bits = bits_of_float(x);
    if (x != x)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/* Adding a number whose last bit has the place of the result's last bit lets the adder round: 2^(e + 13) for 2^e <=
 * |x|, and never less than 2^-1, whose last bit is worth the 2^-24 of a subnormal. */
static inline uint16_t f16_of_float(float x)
{
    const uint32_t sign = bits_of_float(x) >> 16 & 0x8000u, size = bits_of_float(x) & 0x7fffffffu;
    if (size > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u);
    if (size >= 0x477ff000u) /* 65520 and up */
        return (uint16_t)(sign | 0x7c00u);
    const uint32_t exponent = size >> 23 < 113 ? 113 : size >> 23;
    const float rounder = float_of_bits((exponent + 13) << 23);
    const uint32_t fraction = bits_of_float(float_of_bits(size) + rounder) - bits_of_float(rounder);
    return (uint16_t)(sign | (((exponent - 113) << 10) + fraction));
}

static inline size_t element_size(uint32_t dtype)
{
    return dtype == ATTN_F32 ? sizeof(float) : sizeof(uint16_t);
}

/* The place of a tensor's row; its last stride is 1. */
static inline void *row_in(const struct attn_tensor *t, uint32_t dtype, int64_t b, int64_t h, int64_t row)
{
    const int64_t index = b * t->stride[0] + h * t->stride[1] + row * t->stride[2];
    return (char *)t->data + index * (int64_t)element_size(dtype);
}

/* n elements as floats: where they lie if they are floats, else in buffer. */
static inline const float *read_elements(uint32_t dtype, const void *from, int64_t n, float *buffer)
{
    if (dtype == ATTN_F32)
        return from;
    const uint16_t *element = from;
    if (dtype == ATTN_BF16)
        for (int64_t d = 0; d < n; d++)
            buffer[d] = float_of_bits((uint32_t)element[d] << 16);
    else
        for (int64_t d = 0; d < n; d++)
            buffer[d] = float_of_f16(element[d]);
    return buffer;
}

static inline void write_element(uint32_t dtype, void *to, int64_t index, float x)
{
    if (dtype == ATTN_F32)
        ((float *)to)[index] = x;
    else
        ((uint16_t *)to)[index] = dtype == ATTN_BF16 ? bf16_of_float(x) : f16_of_float(x);
}

#endif
