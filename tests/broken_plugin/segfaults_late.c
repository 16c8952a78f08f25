/* SPDX-License-Identifier: Apache-2.0
 *
 * segfaults_late: goes well for thirty spans, more than verifying takes, and then dies: while it is timed, however slow
 * the machine is just then.
 */
#include "sound.h"

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    static _Atomic int spans;
    volatile int *nowhere = (volatile int *)(uintptr_t)problem->struct_size; /* in the page of null */
    if (++spans == 30)
        *nowhere = 1;
    return sound_run(problem, args, span, phase, state, scratch);
}

const struct attn_kernel *const *attn_kernels(uint32_t *abi)
{
    return sound_table(sound_kernel("segfaults_late", "stores into nowhere in its thirtieth span", run), abi);
}
