/* SPDX-License-Identifier: Apache-2.0
 *
 * writes_beyond_out: clears a row more than the output has. Shows in the memory behind the tensor: a canary where it is
 * timed, a guard page where it is checked.
 */
#include "sound.h"

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    for (int64_t d = 0; d < problem->D_v; d++)
        ((float *)args->out.data)[base_offset(&args->out, problem->B - 1, problem->H - 1, problem->S_q) + d] = 0;
    return sound_run(problem, args, span, phase, state, scratch);
}

const struct attn_kernel *const *attn_kernels(uint32_t *abi)
{
    return sound_table(sound_kernel("writes_beyond_out", "writes a row beyond the output", run), abi);
}
