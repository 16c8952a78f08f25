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
    double *busy_ns;              /* [threads] time each spent in run calls is added here; NULL: not wanted */
    int threads;                  /* size of the team */
};

struct attn_schedule {
    const char *name, *summary;
    /* Why it can't serve this kernel and problem, or NULL. */
    const char *(*refuse)(const struct attn_kernel *kernel, const struct attn_problem *problem, int threads);
    /* Does the whole problem. 0, or the first -errno that a run call returned. */
    int (*run)(const struct attn_job *job);
};

extern const struct attn_schedule attn_schedule_serial; /* one thread, all spans in order */
extern const struct attn_schedule attn_schedule_bh;     /* OpenMP over batch x head */
extern const struct attn_schedule attn_schedule_bhq;    /* OpenMP over batch x head x query block, long blocks first */
extern const struct attn_schedule *const attn_schedules[]; /* NULL-terminated */

const struct attn_schedule *attn_schedule_find(const char *name); /* NULL: no such schedule */

#endif
