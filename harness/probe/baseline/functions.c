/* SPDX-License-Identifier: Apache-2.0
 *
 * exp and tanh without any ISA flag, by the functions that the portable kernels use: four vectors at a time, so that
 * their latencies overlap.
 */
#include "../../probe.h"

#include "../../../kernels/simd_portable.h"

enum { LANES = 4, UNROLL = 4 };

static void apply_exp(const float *x, float *y, size_t count)
{
    for (size_t i = 0; i < count; i += UNROLL * LANES) {
        f32x4 v[UNROLL];
        for (size_t u = 0; u < UNROLL; u++)
            v[u] = f32x4_load(x + i + u * LANES) * f32x4_all(0x1.715476p+0f); /* log2(e) */
        f32x4_exp2_each(UNROLL, v);
        for (size_t u = 0; u < UNROLL; u++)
            f32x4_store(y + i + u * LANES, v[u]);
    }
}

static void apply_tanh(const float *x, float *y, size_t count)
{
    for (size_t i = 0; i < count; i += UNROLL * LANES)
        for (size_t u = 0; u < UNROLL; u++)
            f32x4_store(y + i + u * LANES, f32x4_tanh(f32x4_load(x + i + u * LANES)));
}

const struct function_probe function_probe_sse2_exp = {
    .function = "exp",
    .vector = "sse2",
    .isa = 0,
    .apply = apply_exp,
};

const struct function_probe function_probe_sse2_tanh = {
    .function = "tanh",
    .vector = "sse2",
    .isa = 0,
    .apply = apply_tanh,
};
