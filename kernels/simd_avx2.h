/* SPDX-License-Identifier: Apache-2.0
 *
 * AVX2 and FMA spelling of the vector operations that kernels/flash is written in: 8 floats a vector.
 * simd_avx512.h spells the same names for 16 and says more about each.
 */
#ifndef KERNELS_SIMD_AVX2_H
#define KERNELS_SIMD_AVX2_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "simd_compiler.h"

typedef __m256 simd_f32;
typedef __m256 simd_mask; /* all bits of a lane, or none */

enum {
    SIMD_LANES = 8,
    SIMD_REGISTERS = 16,
    SIMD_TILE_VECTORS = 2 /* 6 x 2 accumulators, 2 vectors of b and 1 broadcast fit 16 registers */
};

SIMD_INLINE simd_f32 simd_zero(void)
{
    return _mm256_setzero_ps();
}

SIMD_INLINE simd_f32 simd_set(float x)
{
    return _mm256_set1_ps(x);
}

SIMD_INLINE simd_f32 simd_load(const float *p)
{
    return _mm256_loadu_ps(p);
}

SIMD_INLINE void simd_store(float *p, simd_f32 x)
{
    _mm256_storeu_ps(p, x);
}

SIMD_INLINE simd_f32 simd_add(simd_f32 a, simd_f32 b)
{
    return _mm256_add_ps(a, b);
}

SIMD_INLINE simd_f32 simd_sub(simd_f32 a, simd_f32 b)
{
    return _mm256_sub_ps(a, b);
}

SIMD_INLINE simd_f32 simd_mul(simd_f32 a, simd_f32 b)
{
    return _mm256_mul_ps(a, b);
}

SIMD_INLINE simd_f32 simd_div(simd_f32 a, simd_f32 b)
{
    return _mm256_div_ps(a, b);
}

/* a * b + c, rounded once */
SIMD_INLINE simd_f32 simd_fma(simd_f32 a, simd_f32 b, simd_f32 c)
{
    return _mm256_fmadd_ps(a, b, c);
}

/* b where either is NaN */
SIMD_INLINE simd_f32 simd_max(simd_f32 a, simd_f32 b)
{
    return _mm256_max_ps(a, b);
}

SIMD_INLINE simd_f32 simd_abs(simd_f32 x)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
}

SIMD_INLINE simd_f32 simd_negative_abs(simd_f32 x)
{
    return _mm256_or_ps(x, _mm256_set1_ps(-0.0f));
}

/* |magnitude| with the sign bit of sign */
SIMD_INLINE simd_f32 simd_copy_sign(simd_f32 magnitude, simd_f32 sign)
{
    return _mm256_or_ps(simd_abs(magnitude), _mm256_and_ps(sign, _mm256_set1_ps(-0.0f)));
}

SIMD_INLINE simd_mask simd_less(simd_f32 a, simd_f32 b)
{
    return _mm256_cmp_ps(a, b, _CMP_LT_OQ);
}

SIMD_INLINE simd_mask simd_less_equal(simd_f32 a, simd_f32 b)
{
    return _mm256_cmp_ps(a, b, _CMP_LE_OQ);
}

SIMD_INLINE simd_mask simd_equal(simd_f32 a, simd_f32 b)
{
    return _mm256_cmp_ps(a, b, _CMP_EQ_OQ);
}

SIMD_INLINE simd_mask simd_and(simd_mask a, simd_mask b)
{
    return _mm256_and_ps(a, b);
}

SIMD_INLINE int simd_any(simd_mask mask)
{
    return _mm256_movemask_ps(mask) != 0;
}

SIMD_INLINE int simd_all(simd_mask mask)
{
    return _mm256_movemask_ps(mask) == 0xff;
}

/* 0, 1, 2, ... */
SIMD_INLINE simd_f32 simd_lane_numbers(void)
{
    return _mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7);
}

/* Lanes 0..n-1; none for n <= 0, all for n >= 8 */
SIMD_INLINE simd_mask simd_first(int64_t n)
{
    int count = n >= 8 ? 8 : n <= 0 ? 0 : (int)n;
    return _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)));
}

SIMD_INLINE simd_f32 simd_select(simd_mask mask, simd_f32 yes, simd_f32 no)
{
    return _mm256_blendv_ps(no, yes, mask);
}

/* Touches only the lanes of mask; the others read as 0 */
SIMD_INLINE simd_f32 simd_load_masked(const float *p, simd_mask mask)
{
    return _mm256_maskload_ps(p, _mm256_castps_si256(mask));
}

SIMD_INLINE void simd_store_masked(float *p, simd_mask mask, simd_f32 x)
{
    _mm256_maskstore_ps(p, _mm256_castps_si256(mask), x);
}

/* n <= 8 elements of 16 bits at p; there is no masked load of them, and reading on could meet the end of memory */
SIMD_INLINE __m128i simd_load_u16(const uint16_t *p, int64_t n)
{
    if (n >= 8)
        return _mm_loadu_si128((const __m128i_u *)p);
    uint16_t element[8] = {0};
    for (int64_t i = 0; i < n; i++)
        element[i] = p[i];
    return _mm_loadu_si128((const __m128i_u *)element);
}

SIMD_INLINE void simd_store_u16(uint16_t *p, int64_t n, __m128i x)
{
    if (n >= 8) {
        _mm_storeu_si128((__m128i_u *)p, x);
        return;
    }
    uint16_t element[8];
    _mm_storeu_si128((__m128i_u *)element, x);
    for (int64_t i = 0; i < n; i++)
        p[i] = element[i];
}

SIMD_INLINE simd_f32 simd_load_bf16(const uint16_t *p, int64_t n)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(simd_load_u16(p, n)), 16));
}

SIMD_INLINE simd_f32 simd_load_f16(const uint16_t *p, int64_t n)
{
    return _mm256_cvtph_ps(simd_load_u16(p, n));
}

/* Rounds to nearest, ties to even; a NaN stays one */
SIMD_INLINE void simd_store_bf16(uint16_t *p, int64_t n, simd_f32 x)
{
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i kept = _mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)));
    const __m256i high = _mm256_srli_epi32(kept, 16);
    simd_store_u16(p, n, _mm_packus_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1)));
}

SIMD_INLINE void simd_store_f16(uint16_t *p, int64_t n, simd_f32 x)
{
    simd_store_u16(p, n, _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

/* Which of the n <= 8 bytes at p are not 0; reads n bytes */
SIMD_INLINE simd_mask simd_bytes_nonzero(const uint8_t *p, int64_t n)
{
    uint64_t bytes = 0;
    if (n >= 8)
        memcpy(&bytes, p, 8);
    else
        for (int64_t i = 0; i < n; i++)
            bytes |= (uint64_t)p[i] << (8 * i);
    __m256i wide = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)bytes));
    return _mm256_castsi256_ps(_mm256_cmpgt_epi32(wide, _mm256_setzero_si256()));
}

SIMD_INLINE float simd_reduce_add(simd_f32 x)
{
    __m128 sum = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
    return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
}

/* No NaN may be among them */
SIMD_INLINE float simd_reduce_max(simd_f32 x)
{
    __m128 max = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    max = _mm_max_ps(max, _mm_movehl_ps(max, max));
    return _mm_cvtss_f32(_mm_max_ss(max, _mm_movehdup_ps(max)));
}

/* Nearest integer, ties to even */
SIMD_INLINE simd_f32 simd_round(simd_f32 x)
{
    return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* p * 2^n for p in [0.7, 1.5] and integral n in -126..0; what falls below the normal range is wrong, but below it */
SIMD_INLINE simd_f32 simd_scale_exponent(simd_f32 p, simd_f32 n)
{
    __m256i exponent = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), exponent));
}

/* r[i] lane j <-> r[j] lane i */
SIMD_INLINE void simd_transpose(simd_f32 r[8])
{
    simd_f32 a[8], b[8];
    SIMD_UNROLL
    for (int i = 0; i < 8; i += 2) {
        a[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        a[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    SIMD_UNROLL
    for (int i = 0; i < 8; i += 4) {
        b[i] = _mm256_shuffle_ps(a[i], a[i + 2], 0x44);
        b[i + 1] = _mm256_shuffle_ps(a[i], a[i + 2], 0xee);
        b[i + 2] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0x44);
        b[i + 3] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0xee);
    }
    SIMD_UNROLL
    for (int i = 0; i < 4; i++) {
        r[i] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x20);
        r[i + 4] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x31);
    }
}

/* Lane i is the sum over the lanes of r[i] */
SIMD_INLINE simd_f32 simd_sum_rows(const simd_f32 r[8])
{
    simd_f32 pair[4], half[2];
    SIMD_UNROLL
    for (int i = 0; i < 4; i++) {
        simd_f32 swap = _mm256_blend_ps(r[2 * i], r[2 * i + 1], 0x55);
        pair[i] = _mm256_add_ps(_mm256_blend_ps(r[2 * i], r[2 * i + 1], 0xaa), _mm256_permute_ps(swap, 0xb1));
    }
    SIMD_UNROLL
    for (int i = 0; i < 2; i++) {
        simd_f32 swap = _mm256_blend_ps(pair[2 * i], pair[2 * i + 1], 0x33);
        half[i] = _mm256_add_ps(_mm256_blend_ps(pair[2 * i], pair[2 * i + 1], 0xcc), _mm256_permute_ps(swap, 0x4e));
    }
    simd_f32 swap = _mm256_blend_ps(half[0], half[1], 0x0f);
    return _mm256_add_ps(_mm256_blend_ps(half[0], half[1], 0xf0), _mm256_permute2f128_ps(swap, swap, 0x01));
}

#endif
