/* SPDX-License-Identifier: Apache-2.0
 *
 * changes_affinity: lets its thread run anywhere.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <string.h>

#include "sound.h"

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    cpu_set_t all;
    memset(&all, 0xff, sizeof all);
    sched_setaffinity(0, sizeof all, &all);
    return sound_run(problem, args, span, phase, state, scratch);
}

const struct attn_kernel *const *attn_kernels(uint32_t *abi)
{
    return sound_table(sound_kernel("changes_affinity", "takes its thread's binding away", run), abi);
}
