/* SPDX-License-Identifier: Apache-2.0
 *
 * fails_to_open: its preparation reports an error.
 */
#include <errno.h>

#include "sound.h"

static int open_kernel(const struct attn_problem *problem, const struct attn_tensor *param, const int32_t *cpus,
                       int32_t threads, void **state)
{
    (void)problem;
    (void)param;
    (void)cpus;
    (void)threads;
    (void)state;
    return -ENOMEM;
}

const struct attn_kernel *const *attn_kernels(uint32_t *abi)
{
    struct attn_kernel kernel = sound_kernel("fails_to_open", "open returns -ENOMEM", sound_run);
    kernel.open = open_kernel;
    return sound_table(kernel, abi);
}
