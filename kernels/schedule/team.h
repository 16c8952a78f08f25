/* SPDX-License-Identifier: Apache-2.0
 *
 * What the schedules share: a problem cut into equal tasks, and a team of threads that works them off. Internal to
 * kernels/schedule.
 */
#ifndef ATTN_SCHEDULE_TEAM_H
#define ATTN_SCHEDULE_TEAM_H

#include <stdbool.h>

#include "schedule.h"

/* The last phase as numbered tasks, each one batch entry x head_grain heads x q_block query rows x all keys. */
struct attn_cut {
    int64_t head_grain, head_groups; /* heads a task; tasks over the heads (the last may have fewer) */
    int64_t q_block, q_blocks;       /* query rows a task; tasks over the query rows (the last may have fewer) */
    int64_t tasks;                   /* in all */
    bool late_blocks_first; /* the last query block of every head, then the one before ...; else head by head */
};

/* q_block: rounded up to a multiple of the kernel's q_grain. */
struct attn_cut attn_cut_make(const struct attn_problem *problem, const struct attn_plan *plan, int64_t q_block,
                              bool late_blocks_first);
struct attn_span attn_cut_span(const struct attn_problem *problem, const struct attn_cut *cut, int64_t task);

/*
 * Runs the phases before the last (items in contiguous shares, a barrier behind each), then the tasks, in one parallel
 * region of job->threads threads. by_demand: threads take the next task when they are free; else contiguous shares,
 * the same for every call. After an error no new task begins. Returns 0 or the first -errno.
 */
int attn_team_run(const struct attn_job *job, const struct attn_cut *cut, bool by_demand);

/* The refusal that all schedules of this folder have in common. */
const char *attn_team_refuse(const struct attn_kernel *kernel, const struct attn_problem *problem, int threads);

#endif
