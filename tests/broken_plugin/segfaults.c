/* SPDX-License-Identifier: Apache-2.0
 *
 * segfaults: stores through a pointer into nowhere. The process dies of signal 11.
 */
#include "sound.h"

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    volatile int *nowhere = (volatile int *)(uintptr_t)problem->struct_size; /* in the page of null */
    *nowhere = 1;
    return sound_run(problem, args, span, phase, state, scratch);
}

const struct attn_kernel *const *attn_kernels(uint32_t *abi)
{
    return sound_table(sound_kernel("segfaults", "stores through a pointer into nowhere", run), abi);
}
