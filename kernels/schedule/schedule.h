/* SPDX-License-Identifier: Apache-2.0
 *
 * Schedules: how a kernel's spans are spread over a team of threads. OpenMP lives here and nowhere else among the
 * kernels; the team's threads are bound by the harness beforehand.
 */
#ifndef ATTN_SCHEDULE_H
#define ATTN_SCHEDULE_H

#include "../attn.h"

struct attn_job {
    const struct attn_kernel *kernel;
    const struct attn_problem *problem;
    const struct attn_args *args;
    const struct attn_plan *plan; /* as the kernel filled it */
    void *state;                  /* of kernel->open */
    void *const *scratch;         /* [threads], plan->thread_bytes each */
    void *workspace; /* of the schedule, shared by the threads: schedule->workspace bytes, 64-byte aligned */
    double *busy_ns; /* [threads] time each spent in run calls is added here; NULL: not wanted */
    int threads;     /* size of the team */
};

struct attn_schedule {
    const char *name, *summary;
    /* Why it can't serve this kernel and problem, or NULL. */
    const char *(*refuse)(const struct attn_kernel *kernel, const struct attn_problem *problem, int threads);
    /* Bytes that run wants in job->workspace, contents undefined. NULL: none. */
    size_t (*workspace)(const struct attn_problem *problem, const struct attn_plan *plan, int threads);
    uint32_t kernel_flags; /* ATTN_FLAG_* that the kernel is opened, planned and run with besides the problem's own */
    /* Does the whole problem. 0, or the first -errno that a run call returned. */
    int (*run)(const struct attn_job *job);
};

extern const struct attn_schedule attn_schedule_serial;  /* one thread, all spans in order */
extern const struct attn_schedule attn_schedule_bh;      /* OpenMP over batch x head */
extern const struct attn_schedule attn_schedule_bhq;     /* OpenMP over batch x head x query block, long blocks first */
extern const struct attn_schedule attn_schedule_splitkv; /* one head's keys over several threads, then merged */
extern const struct attn_schedule attn_schedule_own;     /* the kernel's own threads: one run call */
extern const struct attn_schedule *const attn_schedules[]; /* NULL-terminated */

const struct attn_schedule *attn_schedule_find(const char *name); /* NULL: no such schedule */

/* What "auto" stands for: one of the above, from what the kernel can, the problem and the number of threads alone; the
 * rules are in auto.c. Never NULL; like any other it may refuse the kernel. */
const struct attn_schedule *attn_schedule_choose(const struct attn_kernel *kernel, const struct attn_problem *problem,
                                                 int threads);

#endif
