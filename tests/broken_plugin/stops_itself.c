/* SPDX-License-Identifier: Apache-2.0
 *
 * stops_itself: raises SIGSTOP, as if it wanted to be debugged: nothing goes on, and nothing has died.
 */
#include <signal.h>

#include "sound.h"

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    raise(SIGSTOP);
    return sound_run(problem, args, span, phase, state, scratch);
}

const struct attn_kernel *const *attn_kernels(uint32_t *abi)
{
    return sound_table(sound_kernel("stops_itself", "raises SIGSTOP", run), abi);
}
