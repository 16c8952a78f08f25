/* SPDX-License-Identifier: Apache-2.0
 *
 * exp and tanh with 256-bit registers, by the functions that the kernels use: four vectors at a time, so that their
 * latencies overlap.
 */
#include "../../probe.h"

#include "../../../kernels/simd_math.h"

enum { UNROLL = 4 };

static void apply_exp(const float *x, float *y, size_t count)
{
    for (size_t i = 0; i < count; i += UNROLL * SIMD_LANES)
        for (size_t u = 0; u < UNROLL; u++) {
            const simd_f32 scaled = simd_mul(simd_load(x + i + u * SIMD_LANES), simd_set(SIMD_LOG2_E));
            simd_store(y + i + u * SIMD_LANES, simd_exp2(scaled));
        }
}

static void apply_tanh(const float *x, float *y, size_t count)
{
    for (size_t i = 0; i < count; i += UNROLL * SIMD_LANES) {
        simd_f32 vector[UNROLL];
        for (size_t u = 0; u < UNROLL; u++)
            vector[u] = simd_load(x + i + u * SIMD_LANES);
        simd_tanh_each(UNROLL, vector);
        for (size_t u = 0; u < UNROLL; u++)
            simd_store(y + i + u * SIMD_LANES, vector[u]);
    }
}

const struct function_probe function_probe_ymm_exp = {
    .function = "exp",
    .vector = "ymm",
    .isa = ATTN_ISA_AVX2 | ATTN_ISA_FMA,
    .apply = apply_exp,
};

const struct function_probe function_probe_ymm_tanh = {
    .function = "tanh",
    .vector = "ymm",
    .isa = ATTN_ISA_AVX2 | ATTN_ISA_FMA,
    .apply = apply_tanh,
};
