/* SPDX-License-Identifier: Apache-2.0
 *
 * Vectors of four floats in portable C (vector extensions of gcc and clang, no intrinsics): load, store, broadcast,
 * maximum, exp2, tanh, 4 x 4 transpose. Whatever the target's baseline is (SSE2, NEON), the compiler finds it.
 */
#ifndef SIMD_PORTABLE_H
#define SIMD_PORTABLE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef float f32x4 __attribute__((vector_size(16)));
typedef int32_t i32x4 __attribute__((vector_size(16)));
typedef uint32_t u32x4 __attribute__((vector_size(16)));
typedef float f32x4_unaligned __attribute__((vector_size(16), aligned(4), may_alias));

#define SIMD_INLINE static inline __attribute__((always_inline))

SIMD_INLINE f32x4 f32x4_all(float x)
{
    return (f32x4){x, x, x, x};
}

SIMD_INLINE f32x4 f32x4_load(const float *from) /* 16-byte aligned */
{
    return *(const f32x4 *)__builtin_assume_aligned(from, 16);
}

SIMD_INLINE void f32x4_store(float *to, f32x4 x) /* 16-byte aligned */
{
    *(f32x4 *)__builtin_assume_aligned(to, 16) = x;
}

SIMD_INLINE f32x4 f32x4_load_unaligned(const float *from)
{
    return *(const f32x4_unaligned *)from;
}

SIMD_INLINE void f32x4_store_unaligned(float *to, f32x4 x)
{
    *(f32x4_unaligned *)to = x;
}

/* Element i in all four places; i is a constant after unrolling. (As integers: one instruction on SSE2, not two.) */
SIMD_INLINE f32x4 f32x4_element(f32x4 x, int i)
{
    const i32x4 bits = (i32x4)x;
    switch (i) {
    case 0:
        return (f32x4)__builtin_shufflevector(bits, bits, 0, 0, 0, 0);
    case 1:
        return (f32x4)__builtin_shufflevector(bits, bits, 1, 1, 1, 1);
    case 2:
        return (f32x4)__builtin_shufflevector(bits, bits, 2, 2, 2, 2);
    default:
        return (f32x4)__builtin_shufflevector(bits, bits, 3, 3, 3, 3);
    }
}

/* a > b ? a : b, so b where either is NaN. Written by elements: both compilers make one max instruction of it. */
SIMD_INLINE f32x4 f32x4_maximum(f32x4 a, f32x4 b)
{
    f32x4 larger;
    for (int i = 0; i < 4; i++)
        larger[i] = a[i] > b[i] ? a[i] : b[i];
    return larger;
}

/* yes where the mask is all ones, no where it is zero. */
SIMD_INLINE f32x4 f32x4_select(i32x4 mask, f32x4 yes, f32x4 no)
{
    return (f32x4)((mask & (i32x4)yes) | (~mask & (i32x4)no));
}

SIMD_INLINE bool i32x4_any(i32x4 mask)
{
    return (mask[0] | mask[1] | mask[2] | mask[3]) != 0;
}

SIMD_INLINE void f32x4_transpose(f32x4 row[4])
{
    f32x4 a = __builtin_shufflevector(row[0], row[1], 0, 4, 1, 5),
          b = __builtin_shufflevector(row[2], row[3], 0, 4, 1, 5);
    f32x4 c = __builtin_shufflevector(row[0], row[1], 2, 6, 3, 7),
          d = __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7);
    row[0] = __builtin_shufflevector(a, b, 0, 1, 4, 5);
    row[1] = __builtin_shufflevector(a, b, 2, 3, 6, 7);
    row[2] = __builtin_shufflevector(c, d, 0, 1, 4, 5);
    row[3] = __builtin_shufflevector(c, d, 2, 3, 6, 7);
}

/*
 * 2^x for x <= 0, within 1.4 ulp (every float tried), gradual underflow included; exp2(-inf) = 0, NaN stays NaN. x = n
 * + r with |r| <= 1/2; adding 1.5 * 2^23 rounds to n and leaves it in the low bits, biased here by 127 + 64 so that one
 * shift makes 2^(n + 64) of it, a normal number down to n = -160 (below, the result is masked away); the 2^-64 is exact
 * above the subnormals. 2^r: minimax polynomial in relative error (Remez), coefficients rounded to float one after the
 * other with the rest fitted again: 2.7e-8 off at most, before rounding.
 */
SIMD_INLINE void f32x4_exp2_each(const int count, f32x4 x[])
{
    static const float coefficient[] = {0x1.5fa818p-10f, 0x1.3b21aap-7f, 0x1.c6ada4p-5f,
                                        0x1.ebfbe6p-3f,  0x1.62e432p-1f, 1};
    const f32x4 round = f32x4_all(0x1.8p23f + 191);
    f32x4 shifted[4], r[4], p[4];
    for (int n = 0; n < count; n++)
        shifted[n] = x[n] + round;
    for (int n = 0; n < count; n++)
        r[n] = x[n] - (shifted[n] - round);
    for (int n = 0; n < count; n++)
        p[n] = f32x4_all(0x1.4c99dep-13f);
    for (int term = 0; term < 6; term++)
        for (int n = 0; n < count; n++)
            p[n] = p[n] * r[n] + f32x4_all(coefficient[term]);
    for (int n = 0; n < count; n++)
        p[n] = p[n] * (f32x4)((u32x4)shifted[n] << 23) * f32x4_all(0x1p-64f);
    for (int n = 0; n < count; n++)
        x[n] = (f32x4)((i32x4)p[n] & ~(x[n] < f32x4_all(-160)));
}

SIMD_INLINE f32x4 f32x4_exp2(f32x4 x)
{
    f32x4_exp2_each(1, &x);
    return x;
}

/*
 * tanh within 2 ulp (every float tried). Below 0.625: y + y^3 * P(y^2), minimax in relative error (Remez, 4.5e-9 off at
 * most before rounding); above: (1 - t) / (1 + t) with t = e^(-2|y|), where nothing cancels. NaN stays NaN.
 */
SIMD_INLINE f32x4 f32x4_tanh(f32x4 y)
{
    const i32x4 sign = (i32x4)y & INT32_MIN;
    const f32x4 size = (f32x4)((i32x4)y & INT32_MAX);
    f32x4 t = f32x4_exp2(size * f32x4_all(-0x1.715476p+1f)); /* 2 log2(e) */
    f32x4 large = (f32x4)((i32x4)((f32x4_all(1) - t) / (f32x4_all(1) + t)) | sign);
    f32x4 z = y * y;
    f32x4 p = f32x4_all(-0x1.750ce4p-8f) * z + f32x4_all(0x1.51f8cep-6f);
    p = p * z + f32x4_all(-0x1.b835a4p-5f);
    p = p * z + f32x4_all(0x1.1106f6p-3f);
    p = p * z + f32x4_all(-0x1.555532p-2f);
    return f32x4_select(size < f32x4_all(0.625f), y + y * (z * p), large);
}

#endif
