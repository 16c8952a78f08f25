/* SPDX-License-Identifier: Apache-2.0
 *
 * takes_memory: keeps a gigabyte of touched memory a call. Ends by --memory-limit.
 */
#include <stdlib.h>

#include "sound.h"

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    enum { GIGABYTE = 1 << 30, PAGE = 4096 };
    char *kept = malloc(GIGABYTE);
    for (size_t at = 0; kept && at < GIGABYTE; at += PAGE)
        kept[at] = 1;
    return sound_run(problem, args, span, phase, state, scratch);
}

const struct attn_kernel *const *attn_kernels(uint32_t *abi)
{
    return sound_table(sound_kernel("takes_memory", "takes a gigabyte a call", run), abi);
}
