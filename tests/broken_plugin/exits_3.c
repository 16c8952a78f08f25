/* SPDX-License-Identifier: Apache-2.0
 *
 * exits_3: ends its process with status 3.
 */
#include <stdlib.h>

#include "sound.h"

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    exit(3);
    return sound_run(problem, args, span, phase, state, scratch);
}

const struct attn_kernel *const *attn_kernels(uint32_t *abi)
{
    return sound_table(sound_kernel("exits_3", "calls exit(3)", run), abi);
}
