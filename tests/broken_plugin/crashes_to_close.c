/* SPDX-License-Identifier: Apache-2.0
 *
 * crashes_to_close: dies when it is told that nothing more is wanted of it.
 */
#include <stdlib.h>

#include "sound.h"

static void close_kernel(void *state)
{
    (void)state;
    abort();
}

const struct attn_kernel *const *attn_kernels(uint32_t *abi)
{
    struct attn_kernel kernel = sound_kernel("crashes_to_close", "close calls abort", sound_run);
    kernel.close = close_kernel;
    return sound_table(kernel, abi);
}
