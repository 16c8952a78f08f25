/* SPDX-License-Identifier: Apache-2.0
 *
 * Libraries for tests of duet and gate: the sound kernel of tests/broken/base.h under the names "steady" and "changed",
 * and in "changed" what the build asks for:
 *
 *   -DEXTRA=N    N % of the query rows are computed a second time: so much slower, and still right
 *   -DSHIFTY     as side B (the mapping's name tells) it computes all rows a second time
 *   -DWRONG      the output of the last row is off
 *   -DCRASHES    it dies
 *   -DNEWER      the table tells another ABI
 *   -DALONE      there is no "changed"
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "broken_plugin/sound.h"

#ifndef EXTRA
#define EXTRA 0
#endif

/* In percent, the rows that are computed a second time. */
static int64_t extra(void)
{
#ifdef SHIFTY
    static int side_b = -1;
    if (side_b < 0) {
        char line[4096];
        FILE *maps = fopen("/proc/self/maps", "r");
        side_b = 0;
        while (maps && fgets(line, sizeof line, maps)) {
            uintptr_t from, to;
            if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &from, &to) == 2 && (uintptr_t)&side_b >= from &&
                (uintptr_t)&side_b < to)
                side_b = strstr(line, "attnbench-b:") != NULL;
        }
        if (maps)
            fclose(maps);
    }
    if (side_b)
        return 100;
#endif
    return EXTRA;
}

static int changed_run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
                       int32_t phase, void *state, void *scratch)
{
    struct attn_span again = *span;
    int rc = sound_run(problem, args, span, phase, state, scratch);
    again.q1 = span->q0 + (span->q1 - span->q0) * extra() / 100;
    if (again.q1 > again.q0 && rc == 0)
        rc = sound_run(problem, args, &again, phase, state, scratch);
#ifdef WRONG
    ((float *)args->out.data)[base_offset(&args->out, span->b1 - 1, span->h1 - 1, span->q1 - 1)] += 0.25f;
#endif
#ifdef CRASHES
    __builtin_trap();
#endif
    return rc;
}

const struct attn_kernel *const *attn_kernels(uint32_t *abi)
{
    static struct attn_kernel kernels[2];
    static const struct attn_kernel *table[] = {&kernels[0], &kernels[1], NULL};
    kernels[0] = sound_kernel("steady", "the sound kernel", sound_run);
    kernels[1] = sound_kernel("changed", "the sound kernel, or not", changed_run);
#ifdef ALONE
    table[1] = NULL;
#endif
#ifdef NEWER
    *abi = ATTN_ABI + 1;
#else
    *abi = ATTN_ABI;
#endif
    return table;
}
