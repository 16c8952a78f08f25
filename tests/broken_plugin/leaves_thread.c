/* SPDX-License-Identifier: Apache-2.0
 *
 * leaves_thread: starts a thread that spins on when the call is over.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "sound.h"

static void *spin(void *unused)
{
    for (volatile bool again = true; again;)
        continue;
    return unused;
}

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    static _Atomic bool started;
    pthread_t thread;
    if (!atomic_exchange(&started, true))
        pthread_create(&thread, NULL, spin, NULL);
    return sound_run(problem, args, span, phase, state, scratch);
}

const struct attn_kernel *const *attn_kernels(uint32_t *abi)
{
    return sound_table(sound_kernel("leaves_thread", "leaves a spinning thread", run), abi);
}
