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

/*
 * 2^x for x <= 0, within 1.85 ulp down to 2^-126; below that, -inf included, 0; NaN stays NaN; 2^0 is 1.
 *
 * x = n + f with n integral and |f| <= 1/2 exactly; 2^f = 1 + f P(f), P of degree 4 by weighted least squares iterated
 * to the minimax of the error in ulp (Lawson), then a search over neighbouring floats for the smallest error of the
 * evaluation as it is done here, fused multiply-adds included: the 1.85 is the largest of that evaluation over the
 * reduced range.
 */
SIMD_INLINE simd_f32 simd_exp2(simd_f32 x)
{
    const simd_f32 least = simd_set(-126.0f);
    /* the operand order keeps a NaN in x */
    simd_f32 y = simd_max(least, x);
    simd_f32 n = simd_round(y);
    simd_f32 f = simd_sub(y, n);
    simd_f32 p = simd_set(0x1.5ab2dp-10f);
    p = simd_fma(p, f, simd_set(0x1.3cecp-7f));
    p = simd_fma(p, f, simd_set(0x1.c6baaap-5f));
    p = simd_fma(p, f, simd_set(0x1.ebf9b4p-3f));
    p = simd_fma(p, f, simd_set(0x1.62e424p-1f));
    p = simd_fma(p, f, simd_set(1.0f));
    return simd_select(simd_less(x, least), simd_zero(), simd_scale_exponent(p, n));
}

/*
 * tanh(x), within about 3 ulp for every x; NaN stays NaN.
 *
 * Below 0.625: x + x^3 P(x^2), P of degree 4 by the same fit (0.04 ulp before rounding). Above: (1 - e) / (1 + e) with
 * e = exp(-2|x|) <= 0.29, where nothing cancels and e's own error counts at most a third.
 */
SIMD_INLINE simd_f32 simd_tanh(simd_f32 x)
{
    simd_f32 size = simd_abs(x);
    simd_f32 e = simd_exp2(simd_mul(size, simd_set(-2.0f * SIMD_LOG2_E)));
    simd_f32 large = simd_div(simd_sub(simd_set(1.0f), e), simd_add(simd_set(1.0f), e));
    simd_f32 z = simd_mul(x, x);
    simd_f32 p = simd_set(-0.005704986862838268f);
    p = simd_fma(p, z, simd_set(0.0206390880048275f));
    p = simd_fma(p, z, simd_set(-0.05373971536755562f));
    p = simd_fma(p, z, simd_set(0.13331441581249237f));
    p = simd_fma(p, z, simd_set(-0.3333328068256378f));
    simd_f32 small = simd_fma(simd_mul(p, z), size, size);
    return simd_copy_sign(simd_select(simd_less(size, simd_set(0.625f)), small, large), x);
}

#endif
