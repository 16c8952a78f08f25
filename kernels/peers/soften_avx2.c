/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax of a row in AVX2; only to be called where the machine has it.
 *
 * build-flags: -mavx2 -mfma -mf16c
 * build-flags-clang: -mavx2 -mfma -mf16c
 * The adapters themselves are compiled for the baseline. With its vectors of four floats the softmax would take as long
 * as a product of a head of 64 features, which no user of these libraries would put up with.
 */
#include "soften.h"

#include "../simd_avx2.h"

#include "../simd_math.h"

enum { VECTORS = 4, STEP = SIMD_LANES * VECTORS }; /* vectors at a time: each waits for its own last operation */

static float maximum_of(const float *score, int64_t count)
{
    simd_f32 max[VECTORS];
    int64_t n = 0;
    for (int v = 0; v < VECTORS; v++)
        max[v] = simd_set(-INFINITY);
    for (; n + STEP <= count; n += STEP)
        for (int v = 0; v < VECTORS; v++)
            max[v] = simd_max(simd_load(score + n + v * SIMD_LANES), max[v]); /* passes over NaN, which soften keeps */
    for (; n < count; n += SIMD_LANES) {
        const simd_mask mask = simd_first(count - n);
        max[0] = simd_max(simd_select(mask, simd_load_masked(score + n, mask), max[0]), max[0]);
    }
    return simd_reduce_max(simd_max(simd_max(max[0], max[1]), simd_max(max[2], max[3])));
}

/* e^x for x <= 0 */
SIMD_INLINE simd_f32 exponential(simd_f32 x)
{
    return simd_exp2(simd_mul(x, simd_set(SIMD_LOG2_E)));
}

static float soften(float *score, int64_t count)
{
    const simd_f32 max = simd_set(maximum_of(score, count));
    simd_f32 sum[VECTORS];
    int64_t n = 0;
    for (int v = 0; v < VECTORS; v++)
        sum[v] = simd_zero();
    for (; n + STEP <= count; n += STEP)
        for (int v = 0; v < VECTORS; v++) {
            const simd_f32 x = exponential(simd_sub(simd_load(score + n + v * SIMD_LANES), max));
            simd_store(score + n + v * SIMD_LANES, x);
            sum[v] = simd_add(sum[v], x);
        }
    for (; n < count; n += SIMD_LANES) {
        const simd_mask mask = simd_first(count - n);
        const simd_f32 x = exponential(simd_sub(simd_load_masked(score + n, mask), max));
        simd_store_masked(score + n, mask, x);
        sum[0] = simd_add(sum[0], simd_select(mask, x, simd_zero()));
    }
    return simd_reduce_add(simd_add(simd_add(sum[0], sum[1]), simd_add(sum[2], sum[3])));
}

static void cap_scores(float *score, int64_t count, float cap)
{
    for (int64_t n = 0; n < count; n += SIMD_LANES) {
        const simd_mask mask = simd_first(count - n);
        const simd_f32 x = simd_tanh(simd_div(simd_load_masked(score + n, mask), simd_set(cap)));
        simd_store_masked(score + n, mask, simd_mul(x, simd_set(cap)));
    }
}

static void scale(float *x, int64_t count, float factor)
{
    for (int64_t n = 0; n < count; n += SIMD_LANES) {
        const simd_mask mask = simd_first(count - n);
        simd_store_masked(x + n, mask, simd_mul(simd_load_masked(x + n, mask), simd_set(factor)));
    }
}

const struct peer_softmax peer_softmax_avx2 = {.cap = cap_scores, .soften = soften, .scale = scale};
