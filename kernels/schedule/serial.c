/* SPDX-License-Identifier: Apache-2.0
 *
 * serial: the calling thread (thread 0 of the team) does everything in order; the rest of the team sleeps. What one
 * core does, and the yardstick of the other schedules.
 */
#include "team.h"

static int run(const struct attn_job *job)
{
    struct attn_job alone = *job;
    alone.threads = 1;
    struct attn_cut cut = job->problem->rule == ATTN_MATMUL
                              ? attn_cut_matmul(job->problem, job->plan, 1)
                              : attn_cut_make(job->problem, job->plan, job->problem->S_q, false);
    return attn_team_run(&alone, &cut, false);
}

const struct attn_schedule attn_schedule_serial = {
    .name = "serial",
    .summary = "one thread, heads in order",
    .refuse = attn_team_refuse,
    .run = run,
};
