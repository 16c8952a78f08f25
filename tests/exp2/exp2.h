/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels' 2^x, each compiled as its kernels are, for a test that tries every float.
 */
#ifndef TESTS_EXP2_H
#define TESTS_EXP2_H

enum { EXP2_BATCH = 4096 };

/* y[i] = 2^x[i] for EXP2_BATCH values, each <= 0 or NaN. Only on a machine that has the instructions. */
typedef void exp2_batch(const float *x, float *y);

exp2_batch exp2_portable, exp2_avx2, exp2_avx512;

#endif
