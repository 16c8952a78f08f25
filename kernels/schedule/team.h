/* SPDX-License-Identifier: Apache-2.0
 *
 * What the schedules share: a problem cut into equal tasks, and a team of threads that works them off. Internal to
 * kernels/schedule.
 */
#ifndef ATTN_SCHEDULE_TEAM_H
#define ATTN_SCHEDULE_TEAM_H

#include <stdbool.h>

#include "schedule.h"

/* The last phase as numbered tasks, each one batch entry x head_grain heads x q_block query rows x all keys; of a
 * product of matrices batch_block entries x head_grain heads x q_block rows x k_block columns. */
struct attn_cut {
    int64_t batch_block, batch_blocks; /* batch entries a task; tasks over them (the last of each may have fewer) */
    int64_t head_grain, head_groups;   /* heads a task; tasks over the heads */
    int64_t q_block, q_blocks;         /* query rows a task; tasks over the query rows */
    int64_t k_block, k_blocks;         /* columns a task; tasks over the columns. Attention: all keys, 1 */
    int64_t tasks;                     /* in all */
    bool late_blocks_first; /* the last query block of every head, then the one before ...; else head by head */
};

/* q_block: rounded up to a multiple of the kernel's q_grain. */
struct attn_cut attn_cut_make(const struct attn_problem *problem, const struct attn_plan *plan, int64_t q_block,
                              bool late_blocks_first);

/* A product of matrices in about `wanted` tasks of equal size: whole matrices, several a task where there are more of
 * them; else cut by columns, since each task reads, or packs, its columns of the right operand once, and by rows only
 * where columns are too few. Blocks are multiples of the kernel's grains. */
struct attn_cut attn_cut_matmul(const struct attn_problem *problem, const struct attn_plan *plan, int64_t wanted);

struct attn_span attn_cut_span(const struct attn_problem *problem, const struct attn_cut *cut, int64_t task);

/* What the team does in the last phase, and what behind it. */
struct attn_team_work {
    int64_t tasks;
    /* Threads take the next task when they are free; else contiguous shares, the same for every call. */
    bool by_demand;
    const void *context; /* of the two functions */
    /* One task, 0..tasks-1, on this thread. 0 or -errno. */
    int (*task)(const struct attn_job *job, const void *context, int64_t task, int thread);
    /* This thread's share of what follows when all tasks are done; not called after an error. NULL: nothing. */
    void (*finish)(const struct attn_job *job, const void *context, int thread, int threads);
};

/*
 * Runs the phases before the last (items in contiguous shares, a barrier behind each), then the tasks, then, behind one
 * more barrier, the finish, in one parallel region of job->threads threads. After an error no new task begins. Returns
 * 0 or the first -errno.
 */
int attn_team_work(const struct attn_job *job, const struct attn_team_work *work);

/* attn_team_work whose tasks are the spans of the cut. */
int attn_team_run(const struct attn_job *job, const struct attn_cut *cut, bool by_demand);

/* CLOCK_MONOTONIC, in ns. */
double attn_team_now_ns(void);

/* The refusal that the schedules which cut a problem into spans have in common. */
const char *attn_team_refuse(const struct attn_kernel *kernel, const struct attn_problem *problem, int threads);

#endif
