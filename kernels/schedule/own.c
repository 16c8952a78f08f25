/* SPDX-License-Identifier: Apache-2.0
 *
 * own: the kernel's own threads do the problem in one call; how it is cut is the kernel's affair.
 */
#include "team.h"

static const char *refuse(const struct attn_kernel *kernel, const struct attn_problem *problem, int threads)
{
    (void)problem;
    (void)threads;
    return kernel->caps & ATTN_CAP_OWN_THREADS ? NULL : "the kernel has no threads of its own";
}

/* The calling thread is the only one whose time is seen: it counts for all. */
static int run(const struct attn_job *job)
{
    struct attn_problem problem = *job->problem;
    problem.flags |= ATTN_FLAG_OWN;
    const struct attn_span whole = {
        .b1 = problem.B,
        .h1 = problem.H,
        .q1 = problem.S_q,
        .k1 = problem.S_kv,
    };
    const double began = attn_team_now_ns();
    const int rc = job->kernel->run(&problem, job->args, &whole, job->plan->phases - 1, job->state, job->scratch[0]);
    const double spent = attn_team_now_ns() - began;
    for (int t = 0; job->busy_ns && t < job->threads; t++)
        job->busy_ns[t] += spent;
    return rc;
}

const struct attn_schedule attn_schedule_own = {
    .name = "own",
    .summary = "the library's own threads",
    .refuse = refuse,
    .kernel_flags = ATTN_FLAG_OWN,
    .run = run,
};
