/* SPDX-License-Identifier: Apache-2.0
 *
 * frees_inputs: frees the memory of q, which no allocator gave out.
 */
#include <stdlib.h>

#include "sound.h"

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    free(args->q.data);
    return sound_run(problem, args, span, phase, state, scratch);
}

const struct attn_kernel *const *attn_kernels(uint32_t *abi)
{
    return sound_table(sound_kernel("frees_inputs", "frees q", run), abi);
}
