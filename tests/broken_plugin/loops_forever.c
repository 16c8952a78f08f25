/* SPDX-License-Identifier: Apache-2.0
 *
 * loops_forever: never returns. Ends by --point-timeout.
 */
#include "sound.h"

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    static volatile bool again = true;
    while (again)
        continue;
    return sound_run(problem, args, span, phase, state, scratch);
}

const struct attn_kernel *const *attn_kernels(uint32_t *abi)
{
    return sound_table(sound_kernel("loops_forever", "never returns", run), abi);
}
