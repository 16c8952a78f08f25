/* SPDX-License-Identifier: Apache-2.0
 *
 * bhq: batch x head x query block over the threads. Threads take the next task when they are free, from one shared
 * counter. Under a causal mask late query blocks see more keys: these long tasks go out first, so that the short ones
 * even out the end. A product of matrices is cut by columns and rows.
 */
#include "team.h"

/* Tasks a thread: the end of the call, where some threads have run out of work, then costs at most 1/32 of it. */
enum { TASKS_A_THREAD = 32 };

/* Of a product of matrices: tasks are equally long, and larger ones pack the right operand less often. One with fewer
 * multiplications than LEAST_WORK is done before another thread has heard of it. */
enum { MATMUL_TASKS_A_THREAD = 16, LEAST_WORK = 1 << 16 };

/* The smallest number of rows that does not make more tasks than wanted; one thread has nothing to balance. */
static int64_t query_block(const struct attn_job *job)
{
    const struct attn_problem *problem = job->problem;
    const int64_t heads = problem->B * ((problem->H + job->plan->head_grain - 1) / job->plan->head_grain);
    const int64_t wanted = job->threads > 1 ? (int64_t)job->threads * TASKS_A_THREAD : 1;
    const int64_t blocks = heads > 0 && heads < wanted ? (wanted + heads - 1) / heads : 1;
    return (problem->S_q + blocks - 1) / blocks;
}

static struct attn_cut matmul_cut(const struct attn_job *job)
{
    const struct attn_problem *problem = job->problem;
    const double work = (double)problem->B * (double)problem->H * (double)problem->S_q * (double)problem->S_kv *
                        (double)problem->D / LEAST_WORK;
    int64_t wanted = job->threads;
    if (job->threads > 1 && work > (double)job->threads)
        wanted = work < (double)job->threads * MATMUL_TASKS_A_THREAD ? (int64_t)work
                                                                     : (int64_t)job->threads * MATMUL_TASKS_A_THREAD;
    return attn_cut_matmul(problem, job->plan, wanted);
}

static int run(const struct attn_job *job)
{
    const struct attn_problem *problem = job->problem;
    if (problem->rule == ATTN_MATMUL) {
        struct attn_cut cut = matmul_cut(job);
        return attn_team_run(job, &cut, true);
    }
    const bool late_blocks_are_long = problem->right != INT64_MAX && problem->left == INT64_MAX;
    struct attn_cut cut = attn_cut_make(problem, job->plan, query_block(job), late_blocks_are_long);
    return attn_team_run(job, &cut, true);
}

const struct attn_schedule attn_schedule_bhq = {
    .name = "bhq",
    .summary = "OpenMP over batch x head x query block, long blocks first; matmul: x blocks of rows and columns",
    .refuse = attn_team_refuse,
    .run = run,
};
