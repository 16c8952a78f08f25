/* SPDX-License-Identifier: Apache-2.0
 *
 * 2^x as the portable kernels compute it; for check_exp2.c.
 */
#include "../exp2.h"

#include "../../../kernels/simd_portable.h"

void exp2_portable(const float *x, float *y)
{
    for (int i = 0; i < EXP2_BATCH; i += 4)
        f32x4_store_unaligned(y + i, f32x4_exp2(f32x4_load_unaligned(x + i)));
}
