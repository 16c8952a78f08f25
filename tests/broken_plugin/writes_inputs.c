/* SPDX-License-Identifier: Apache-2.0
 *
 * writes_inputs: scales q in place, so that the second call sees other queries than the first.
 */
#include "sound.h"

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    for (int64_t d = 0; d < problem->D; d++)
        ((float *)args->q.data)[d] *= 2;
    return sound_run(problem, args, span, phase, state, scratch);
}

const struct attn_kernel *const *attn_kernels(uint32_t *abi)
{
    return sound_table(sound_kernel("writes_inputs", "scales q in place", run), abi);
}
