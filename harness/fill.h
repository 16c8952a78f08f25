/* SPDX-License-Identifier: Apache-2.0
 *
 * Input data from a counter-based generator: an element's value depends on (seed, set, tensor, logical index) alone, so
 * it is the same for every layout, thread count and process.
 */
#ifndef HARNESS_FILL_H
#define HARNESS_FILL_H

#include "spec.h"

/* Which tensor an element belongs to: part of the counter. */
enum fill_tensor { FILL_Q, FILL_K, FILL_V, FILL_BIAS, FILL_MASK, FILL_KV_LENGTHS, FILL_PARAM };

/* 64 random bits for a counter. */
uint64_t fill_bits(uint64_t seed, uint32_t set, enum fill_tensor tensor, uint64_t index);

/* Uniform in (0,1), never 0 or 1; and N(0,1) by the inverse normal distribution. */
double fill_uniform(uint64_t bits);
float fill_normal(uint64_t bits);

/* Fills tensor (sizes and strides say where; dtype of spec, bias f32, mask uint8) with the values of one data set.
 * Set 0 is timed, set 1 is the one that is verified. OpenMP-parallel over rows where the caller allows threads > 1. */
void fill_tensor(const struct problem_spec *spec, uint32_t set, enum fill_tensor which, struct attn_tensor *tensor,
                 int threads);

/* Fills parameter number `index` of a layer uniformly within +-bound, rounded to dtype. Absent tensors are passed over.
 */
void fill_param(const struct problem_spec *spec, uint32_t set, int index, enum attn_dtype dtype, double bound,
                const struct attn_tensor *tensor, int threads);

/* Round-to-nearest-even conversions between float and the 16-bit formats (subnormals, infinities, NaN kept). */
uint16_t bf16_from_float(float x);
float float_from_bf16(uint16_t x);
uint16_t f16_from_float(float x);
float float_from_f16(uint16_t x);

#endif
