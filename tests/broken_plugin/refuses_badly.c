/* SPDX-License-Identifier: Apache-2.0
 *
 * refuses_badly: dies when it is asked whether it can do a problem.
 */
#include <stdlib.h>

#include "sound.h"

static const char *refuse(const struct attn_problem *problem)
{
    (void)problem;
    abort();
}

const struct attn_kernel *const *attn_kernels(uint32_t *abi)
{
    struct attn_kernel kernel = sound_kernel("refuses_badly", "refuse calls abort", sound_run);
    kernel.refuse = refuse;
    return sound_table(kernel, abi);
}
