/* SPDX-License-Identifier: Apache-2.0
 *
 * bh: batch x head over the threads, in contiguous shares that are the same for every call, so that a head's keys and
 * values stay in the cache of the core that had them before. A group of query heads that shares a key head stays
 * together where the kernel asks for it. Fewer heads than threads leave threads idle, as one product of matrices
 * does: that is what bhq is for.
 */
#include "team.h"

static int run(const struct attn_job *job)
{
    struct attn_cut cut = attn_cut_make(job->problem, job->plan, job->problem->S_q, false);
    return attn_team_run(job, &cut, false);
}

const struct attn_schedule attn_schedule_bh = {
    .name = "bh",
    .summary = "OpenMP over batch x head",
    .refuse = attn_team_refuse,
    .run = run,
};
