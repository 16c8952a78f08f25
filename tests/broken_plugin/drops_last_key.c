/* SPDX-License-Identifier: Apache-2.0
 *
 * drops_last_key: leaves the last key out.
 */
#include "sound.h"

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    struct attn_span shorter = *span;
    shorter.k1--;
    return sound_run(problem, args, &shorter, phase, state, scratch);
}

const struct attn_kernel *const *attn_kernels(uint32_t *abi)
{
    return sound_table(sound_kernel("drops_last_key", "leaves the last key out", run), abi);
}
