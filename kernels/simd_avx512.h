/* SPDX-License-Identifier: Apache-2.0
 *
 * AVX-512 spelling of the vector operations that kernels/flash is written in: 16 floats a vector.
 * simd_avx2.h spells the same names for 8. A translation unit sees one of the two (simd.h chooses by its ISA flags),
 * and everything is static inline: code compiled for AVX-512 must not be callable from elsewhere.
 */
#ifndef KERNELS_SIMD_AVX512_H
#define KERNELS_SIMD_AVX512_H

#include <immintrin.h>
#include <stdint.h>

#include "simd_compiler.h"

typedef __m512 simd_f32;
typedef __mmask16 simd_mask;

enum {
    SIMD_LANES = 16,
    SIMD_REGISTERS = 32,
    /* A product tile is 6 rows by this many vectors: 24 accumulators, 4 vectors of b and 1 broadcast fit 32 registers
     * and keep both FMA latency (4) and the one 64-byte load a cycle of current cores covered. */
    SIMD_TILE_VECTORS = 4
};

SIMD_INLINE simd_f32 simd_zero(void)
{
    return _mm512_setzero_ps();
}

SIMD_INLINE simd_f32 simd_set(float x)
{
    return _mm512_set1_ps(x);
}

SIMD_INLINE simd_f32 simd_load(const float *p)
{
    return _mm512_loadu_ps(p);
}

SIMD_INLINE void simd_store(float *p, simd_f32 x)
{
    _mm512_storeu_ps(p, x);
}

SIMD_INLINE simd_f32 simd_add(simd_f32 a, simd_f32 b)
{
    return _mm512_add_ps(a, b);
}

SIMD_INLINE simd_f32 simd_sub(simd_f32 a, simd_f32 b)
{
    return _mm512_sub_ps(a, b);
}

SIMD_INLINE simd_f32 simd_mul(simd_f32 a, simd_f32 b)
{
    return _mm512_mul_ps(a, b);
}

SIMD_INLINE simd_f32 simd_div(simd_f32 a, simd_f32 b)
{
    return _mm512_div_ps(a, b);
}

/* a * b + c, rounded once */
SIMD_INLINE simd_f32 simd_fma(simd_f32 a, simd_f32 b, simd_f32 c)
{
    return _mm512_fmadd_ps(a, b, c);
}

/* b where either is NaN: the order of the operands decides whether a NaN is kept or dropped */
SIMD_INLINE simd_f32 simd_max(simd_f32 a, simd_f32 b)
{
    return _mm512_max_ps(a, b);
}

SIMD_INLINE simd_f32 simd_abs(simd_f32 x)
{
    return _mm512_abs_ps(x);
}

SIMD_INLINE simd_f32 simd_negative_abs(simd_f32 x)
{
    return _mm512_or_ps(x, _mm512_set1_ps(-0.0f));
}

/* |magnitude| with the sign bit of sign: one instruction that picks bits by a mask */
SIMD_INLINE simd_f32 simd_copy_sign(simd_f32 magnitude, simd_f32 sign)
{
    const __m512i bits = _mm512_ternarylogic_epi32(_mm512_castps_si512(magnitude), _mm512_castps_si512(sign),
                                                   _mm512_castps_si512(_mm512_set1_ps(-0.0f)), 0xd8);
    return _mm512_castsi512_ps(bits);
}

SIMD_INLINE simd_mask simd_less(simd_f32 a, simd_f32 b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}

SIMD_INLINE simd_mask simd_less_equal(simd_f32 a, simd_f32 b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ);
}

SIMD_INLINE simd_mask simd_equal(simd_f32 a, simd_f32 b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ);
}

SIMD_INLINE simd_mask simd_and(simd_mask a, simd_mask b)
{
    return a & b;
}

SIMD_INLINE int simd_any(simd_mask mask)
{
    return mask != 0;
}

SIMD_INLINE int simd_all(simd_mask mask)
{
    return mask == 0xffff;
}

/* Lanes 0..n-1; none for n <= 0, all for n >= 16 */
SIMD_INLINE simd_mask simd_first(int64_t n)
{
    return n >= 16 ? (simd_mask)0xffff : n <= 0 ? (simd_mask)0 : (simd_mask)((1u << n) - 1u);
}

SIMD_INLINE simd_f32 simd_select(simd_mask mask, simd_f32 yes, simd_f32 no)
{
    return _mm512_mask_blend_ps(mask, no, yes);
}

/* Touches only the lanes of mask; the others read as 0 */
SIMD_INLINE simd_f32 simd_load_masked(const float *p, simd_mask mask)
{
    return _mm512_maskz_loadu_ps(mask, p);
}

SIMD_INLINE void simd_store_masked(float *p, simd_mask mask, simd_f32 x)
{
    _mm512_mask_storeu_ps(p, mask, x);
}

/* n <= 16 elements of 16 bits at p, widened to 32; reads no more than those, the other lanes are 0 */
SIMD_INLINE __m512i simd_load_u16(const uint16_t *p, int64_t n)
{
    return _mm512_cvtepu16_epi32(n >= 16 ? _mm256_loadu_si256((const __m256i_u *)p)
                                         : _mm256_maskz_loadu_epi16(simd_first(n), p));
}

/* The same for bf16 and f16, as the floats that they stand for */
SIMD_INLINE simd_f32 simd_load_bf16(const uint16_t *p, int64_t n)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(simd_load_u16(p, n), 16));
}

SIMD_INLINE simd_f32 simd_load_f16(const uint16_t *p, int64_t n)
{
    return _mm512_cvtph_ps(n >= 16 ? _mm256_loadu_si256((const __m256i_u *)p)
                                   : _mm256_maskz_loadu_epi16(simd_first(n), p));
}

/* Rounds to nearest, ties to even, and writes n <= 16 elements; a NaN stays one */
SIMD_INLINE void simd_store_bf16(uint16_t *p, int64_t n, simd_f32 x)
{
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    const __m512i kept = _mm512_mask_blend_epi32(_mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), rounded, quiet);
    _mm256_mask_storeu_epi16(p, simd_first(n), _mm512_cvtepi32_epi16(_mm512_srli_epi32(kept, 16)));
}

SIMD_INLINE void simd_store_f16(uint16_t *p, int64_t n, simd_f32 x)
{
    _mm256_mask_storeu_epi16(p, simd_first(n), _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

/* Which of the n <= 16 bytes at p are not 0; reads n bytes */
SIMD_INLINE simd_mask simd_bytes_nonzero(const uint8_t *p, int64_t n)
{
    __m128i bytes = _mm_maskz_loadu_epi8(simd_first(n), p);
    return _mm_test_epi8_mask(bytes, bytes);
}

/* 0, 1, 2, ... */
SIMD_INLINE simd_f32 simd_lane_numbers(void)
{
    return _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

SIMD_INLINE float simd_reduce_add(simd_f32 x)
{
    return _mm512_reduce_add_ps(x);
}

/* No NaN may be among them */
SIMD_INLINE float simd_reduce_max(simd_f32 x)
{
    return _mm512_reduce_max_ps(x);
}

/* Nearest integer, ties to even */
SIMD_INLINE simd_f32 simd_round(simd_f32 x)
{
    return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* p * 2^n for p in [0.7, 1.5] and integral n in -126..0 */
SIMD_INLINE simd_f32 simd_scale_exponent(simd_f32 p, simd_f32 n)
{
    return _mm512_scalef_ps(p, n);
}

/* r[i] lane j <-> r[j] lane i: 64 two-source shuffles for 256 elements */
SIMD_INLINE void simd_transpose(simd_f32 r[16])
{
    simd_f32 a[16], b[16];
    SIMD_UNROLL
    for (int i = 0; i < 16; i += 2) {
        a[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        a[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
    SIMD_UNROLL
    for (int i = 0; i < 16; i += 4) {
        b[i] = _mm512_shuffle_ps(a[i], a[i + 2], 0x44);
        b[i + 1] = _mm512_shuffle_ps(a[i], a[i + 2], 0xee);
        b[i + 2] = _mm512_shuffle_ps(a[i + 1], a[i + 3], 0x44);
        b[i + 3] = _mm512_shuffle_ps(a[i + 1], a[i + 3], 0xee);
    }
    SIMD_UNROLL
    for (int i = 0; i < 4; i++) {
        a[i] = _mm512_shuffle_f32x4(b[i], b[i + 4], 0x88);
        a[i + 4] = _mm512_shuffle_f32x4(b[i], b[i + 4], 0xdd);
        a[i + 8] = _mm512_shuffle_f32x4(b[i + 8], b[i + 12], 0x88);
        a[i + 12] = _mm512_shuffle_f32x4(b[i + 8], b[i + 12], 0xdd);
    }
    SIMD_UNROLL
    for (int i = 0; i < 4; i++) {
        r[i] = _mm512_shuffle_f32x4(a[i], a[i + 8], 0x88);
        r[i + 8] = _mm512_shuffle_f32x4(a[i], a[i + 8], 0xdd);
        r[i + 4] = _mm512_shuffle_f32x4(a[i + 4], a[i + 12], 0x88);
        r[i + 12] = _mm512_shuffle_f32x4(a[i + 4], a[i + 12], 0xdd);
    }
}

/* Lane i is the sum over the lanes of r[i]: a transposing add tree, 15 adds for 16 sums */
SIMD_INLINE simd_f32 simd_sum_rows(const simd_f32 r[16])
{
    simd_f32 pair[8], quad[4], half[2];
    SIMD_UNROLL
    for (int i = 0; i < 8; i++) {
        simd_f32 swap = _mm512_mask_blend_ps(0x5555, r[2 * i], r[2 * i + 1]);
        pair[i] = _mm512_add_ps(_mm512_mask_blend_ps(0xaaaa, r[2 * i], r[2 * i + 1]), _mm512_permute_ps(swap, 0xb1));
    }
    SIMD_UNROLL
    for (int i = 0; i < 4; i++) {
        simd_f32 swap = _mm512_mask_blend_ps(0x3333, pair[2 * i], pair[2 * i + 1]);
        quad[i] =
            _mm512_add_ps(_mm512_mask_blend_ps(0xcccc, pair[2 * i], pair[2 * i + 1]), _mm512_permute_ps(swap, 0x4e));
    }
    SIMD_UNROLL
    for (int i = 0; i < 2; i++) {
        simd_f32 swap = _mm512_mask_blend_ps(0x0f0f, quad[2 * i], quad[2 * i + 1]);
        half[i] = _mm512_add_ps(_mm512_mask_blend_ps(0xf0f0, quad[2 * i], quad[2 * i + 1]),
                                _mm512_shuffle_f32x4(swap, swap, 0xb1));
    }
    simd_f32 swap = _mm512_mask_blend_ps(0x00ff, half[0], half[1]);
    return _mm512_add_ps(_mm512_mask_blend_ps(0xff00, half[0], half[1]), _mm512_shuffle_f32x4(swap, swap, 0x4e));
}

#endif
