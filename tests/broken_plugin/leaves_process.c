/* SPDX-License-Identifier: Apache-2.0
 *
 * leaves_process: forks a process that spins on when the call is over, and that holds what its parent had open.
 */
#include <stdatomic.h>
#include <unistd.h>

#include "sound.h"

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    static _Atomic bool started;
    if (!atomic_exchange(&started, true) && fork() == 0)
        for (volatile bool again = true; again;)
            continue;
    return sound_run(problem, args, span, phase, state, scratch);
}

const struct attn_kernel *const *attn_kernels(uint32_t *abi)
{
    return sound_table(sound_kernel("leaves_process", "leaves a spinning process", run), abi);
}
