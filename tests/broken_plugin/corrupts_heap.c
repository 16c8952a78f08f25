/* SPDX-License-Identifier: Apache-2.0
 *
 * corrupts_heap: writes behind a block of the heap. What comes of it shows later, where the C library meets the damage.
 */
#include <stdlib.h>

#include "sound.h"

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    enum { BLOCK = 24, MORE = 64 };
    volatile char *block = malloc(BLOCK);
    for (int at = 0; block && at < MORE; at++)
        block[at] = 0x55;
    free((void *)block);
    return sound_run(problem, args, span, phase, state, scratch);
}

const struct attn_kernel *const *attn_kernels(uint32_t *abi)
{
    return sound_table(sound_kernel("corrupts_heap", "writes behind a block of the heap", run), abi);
}
