/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax of a row in portable vectors of four floats, and the choice between this and AVX2.
 */
#include "soften.h"

#include "../simd_portable.h"

#define LOG2_E 0x1.715476p+0f

enum { LANES = 4, VECTORS = 4, STEP = LANES * VECTORS }; /* vectors at a time: each waits for its own last operation */

/* The last elements, and -inf behind them. */
static void pad(const float *score, int64_t n, int64_t count, float padded[STEP])
{
    for (int i = 0; i < STEP; i++)
        padded[i] = n + i < count ? score[n + i] : -INFINITY;
}

static float maximum_of(const float *score, int64_t count)
{
    f32x4 max[VECTORS];
    float padded[STEP] __attribute__((aligned(16))), largest = -INFINITY;
    for (int v = 0; v < VECTORS; v++)
        max[v] = f32x4_all(-INFINITY);
    for (int64_t n = 0; n < count; n += STEP) {
        const float *from = score + n;
        if (count - n < STEP) {
            pad(score, n, count, padded);
            from = padded;
        }
        for (int v = 0; v < VECTORS; v++)
            max[v] = f32x4_maximum(f32x4_load(from + v * LANES), max[v]); /* passes over NaN, which soften keeps */
    }
    for (int i = 0; i < STEP; i++)
        largest = max[i / LANES][i % LANES] > largest ? max[i / LANES][i % LANES] : largest;
    return largest;
}

static float soften(float *score, int64_t count)
{
    const f32x4 max = f32x4_all(maximum_of(score, count));
    f32x4 sum[VECTORS];
    float padded[STEP] __attribute__((aligned(16))), total = 0;
    for (int v = 0; v < VECTORS; v++)
        sum[v] = f32x4_all(0);
    for (int64_t n = 0; n < count; n += STEP) {
        float *at = score + n;
        if (count - n < STEP) {
            pad(score, n, count, padded);
            at = padded;
        }
        f32x4 x[VECTORS];
        for (int v = 0; v < VECTORS; v++)
            x[v] = (f32x4_load(at + v * LANES) - max) * f32x4_all(LOG2_E);
        f32x4_exp2_each(VECTORS, x);
        for (int v = 0; v < VECTORS; v++) {
            sum[v] += x[v];
            f32x4_store(at + v * LANES, x[v]);
        }
        for (int i = 0; at == padded && n + i < count; i++)
            score[n + i] = padded[i];
    }
    for (int i = 0; i < STEP; i++)
        total += sum[i / LANES][i % LANES];
    return total;
}

static void cap_scores(float *score, int64_t count, float cap)
{
    int64_t n = 0;
    for (; n + LANES <= count; n += LANES)
        f32x4_store(score + n, f32x4_all(cap) * f32x4_tanh(f32x4_load(score + n) / f32x4_all(cap)));
    for (; n < count; n++)
        score[n] = cap * tanhf(score[n] / cap);
}

static void scale(float *x, int64_t count, float factor)
{
    for (int64_t n = 0; n < count; n++)
        x[n] *= factor;
}

const struct peer_softmax peer_softmax_portable = {.cap = cap_scores, .soften = soften, .scale = scale};

const struct peer_softmax *peer_softmax_choose(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &peer_softmax_avx2
                                                                           : &peer_softmax_portable;
}
