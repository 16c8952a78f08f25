/* SPDX-License-Identifier: Apache-2.0
 *
 * sleeps: sleeps through --point-timeout without using the CPU.
 */
#include <unistd.h>

#include "sound.h"

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    sleep(60);
    return sound_run(problem, args, span, phase, state, scratch);
}

const struct attn_kernel *const *attn_kernels(uint32_t *abi)
{
    return sound_table(sound_kernel("sleeps", "sleeps for a minute", run), abi);
}
