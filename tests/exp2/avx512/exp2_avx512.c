/* SPDX-License-Identifier: Apache-2.0
 *
 * 2^x as the kernels of this folder's name compute it, with their flags; for check_exp2.c.
 */
#include "../exp2.h"

#include "../../../kernels/simd_math.h"

void exp2_avx512(const float *x, float *y)
{
    for (int i = 0; i < EXP2_BATCH; i += SIMD_LANES)
        simd_store(y + i, simd_exp2(simd_load(x + i)));
}
