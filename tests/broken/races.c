/* SPDX-License-Identifier: Apache-2.0
 *
 * races: the sums stand in one static buffer instead of the thread's scratch. Right on one thread; with two, each
 * span's first row lies there for 0.2 ms, in which the other thread's row goes over it: spans that are run at the same
 * time corrupt each other in practice every time. Needs work for both threads (bhq, or bh with more than one head).
 */
#include <time.h>

#include "base.h"

enum { LONGEST_ROW = 4096 };

static float sums_of_all[LONGEST_ROW];

static void before_store(const struct attn_span *span, int64_t i)
{
    const struct timespec pause = {.tv_nsec = 200000};
    if (i == span->q0)
        nanosleep(&pause, NULL);
}

static const char *refuse(const struct attn_problem *problem)
{
    return problem->D_v > LONGEST_ROW ? "value rows of more than 4096 elements" : NULL;
}

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    static const struct base_steps steps = {.before_store = before_store};
    (void)phase;
    (void)state;
    (void)scratch;
    return base_run(problem, args, span, &steps, sums_of_all);
}

const struct attn_kernel attn_kernel_races = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "races",
    .summary = "planted fault: all threads sum up in one buffer",
    .rules = ATTN_BIT(ATTN_SCALED_DOT_PRODUCT),
    .dtypes = ATTN_BIT(ATTN_F32),
    .refuse = refuse,
    .plan = base_plan,
    .run = run,
};
