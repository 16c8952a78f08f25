/* SPDX-License-Identifier: Apache-2.0
 *
 * exp2 and tanh in the vector operations of simd.h.
 */
#ifndef KERNELS_SIMD_MATH_H
#define KERNELS_SIMD_MATH_H

#include <math.h>

#include "simd.h"

#define SIMD_LOG2_E 1.44269504088896340736f
#define SIMD_LN_2 0.69314718055994530942f

enum { SIMD_TANH_MOST = 4 }; /* vectors that simd_tanh_each takes */

/*
 * 2^x for x <= 0, within 1.89 ulp (every float tried) down to 2^-126; below that, -inf included, 0; NaN stays NaN; 2^0
 * is 1.
 *
 * x = n + f with n integral and |f| <= 1/2 exactly; 2^f = 1 + f P(f), P of degree 4 by weighted least squares iterated
 * to the minimax of the error in ulp (Lawson), then a search over neighbouring floats for the smallest error of the
 * evaluation as it is done here, fused multiply-adds included.
 */
SIMD_INLINE simd_f32 simd_exp2(simd_f32 x)
{
    simd_f32 n = simd_round(x);
    simd_f32 f = simd_sub(x, n);
    simd_f32 p = simd_set(0x1.5ab2dp-10f);
    p = simd_fma(p, f, simd_set(0x1.3cecp-7f));
    p = simd_fma(p, f, simd_set(0x1.c6baaap-5f));
    p = simd_fma(p, f, simd_set(0x1.ebf9b4p-3f));
    p = simd_fma(p, f, simd_set(0x1.62e424p-1f));
    p = simd_fma(p, f, simd_set(1.0f));
    /* whatever came of what lies below -126, f of -inf among it, is passed over */
    return simd_select(simd_less(x, simd_set(-126.0f)), simd_zero(), simd_scale_exponent(p, n));
}

/*
 * tanh of `count` (a constant) vectors, within 2.6 ulp for every x (every float tried) and never beyond 1; NaN stays
 * NaN, -0 stays -0.
 *
 * tanh|x| = -m / (m + 2) with m = e^t - 1 and t = -2|x|, where nothing cancels. With n = round(t log2(e)), s = 2^n and
 * r = -|x| - n ln(2) / 2 it is m = s (e^2r - 1) + (s - 1), and a small |x| is its own r, exact. e^2r - 1 is
 * r (2 + r P(r)), P of degree 4 by the same fit in relative error (0.1 ulp before rounding). Below -20, m is -1 anyway.
 *
 * Step by step for all vectors: one vector after the other has 8% less speed, since each step waits for the last.
 */
SIMD_INLINE void simd_tanh_each(const int count, simd_f32 x[])
{
    simd_f32 r[SIMD_TANH_MOST], n[SIMD_TANH_MOST], p[SIMD_TANH_MOST];
    SIMD_UNROLL
    for (int i = 0; i < count; i++) /* the operand order keeps a NaN in x */
        r[i] = simd_max(simd_set(-20.0f), simd_negative_abs(x[i]));
    SIMD_UNROLL
    for (int i = 0; i < count; i++)
        n[i] = simd_round(simd_mul(r[i], simd_set(2.0f * SIMD_LOG2_E)));
    SIMD_UNROLL
    for (int i = 0; i < count; i++)
        r[i] = simd_fma(n[i], simd_set(-0.5f * SIMD_LN_2), r[i]);
    SIMD_UNROLL
    for (int i = 0; i < count; i++)
        p[i] = simd_fma(simd_set(0x1.6bec06p-4f), r[i], simd_set(0x1.122776p-2f));
    SIMD_UNROLL
    for (int i = 0; i < count; i++)
        p[i] = simd_fma(p[i], r[i], simd_set(0x1.555674p-1f));
    SIMD_UNROLL
    for (int i = 0; i < count; i++)
        p[i] = simd_fma(p[i], r[i], simd_set(0x1.5554bp+0f));
    SIMD_UNROLL
    for (int i = 0; i < count; i++)
        p[i] = simd_fma(p[i], r[i], simd_set(0x1.fffffep+0f));
    SIMD_UNROLL
    for (int i = 0; i < count; i++)
        p[i] = simd_fma(p[i], r[i], simd_set(2.0f));
    SIMD_UNROLL
    for (int i = 0; i < count; i++) {
        n[i] = simd_scale_exponent(simd_set(1.0f), n[i]);
        r[i] = simd_mul(n[i], r[i]);
    }
    SIMD_UNROLL
    for (int i = 0; i < count; i++) {
        p[i] = simd_fma(r[i], p[i], simd_sub(n[i], simd_set(1.0f)));
        x[i] = simd_copy_sign(simd_div(p[i], simd_add(p[i], simd_set(2.0f))), x[i]);
    }
}

SIMD_INLINE simd_f32 simd_tanh(simd_f32 x)
{
    simd_tanh_each(1, &x);
    return x;
}

#endif
