/* SPDX-License-Identifier: Apache-2.0
 *
 * The team of threads behind the schedules; see team.h. OpenMP stands here and nowhere else among the kernels.
 */
#include "team.h"

#include <omp.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

/* What the threads of one call share. The counter has a cache line of its own: every thread writes to it. */
struct team {
    _Alignas(64) _Atomic int64_t next_task;
    _Alignas(64) _Atomic int error;
    _Atomic int arrived; /* threads that have done all their tasks */
};

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The smallest multiple of the grain, 0 excepted, that is at least x. */
static int64_t whole_grains(int64_t x, int64_t grain)
{
    return x > grain ? ceil_div(x, grain) * grain : grain;
}

static void count_tasks(const struct attn_problem *problem, struct attn_cut *cut)
{
    cut->batch_blocks = ceil_div(problem->B, cut->batch_block);
    cut->head_groups = ceil_div(problem->H, cut->head_grain);
    cut->q_blocks = ceil_div(problem->S_q, cut->q_block);
    cut->tasks = cut->batch_blocks * cut->head_groups * cut->q_blocks * cut->k_blocks;
}

struct attn_cut attn_cut_make(const struct attn_problem *problem, const struct attn_plan *plan, int64_t q_block,
                              bool late_blocks_first)
{
    struct attn_cut cut = {
        .batch_block = 1,
        .head_grain = plan->head_grain,
        .q_block = whole_grains(q_block, plan->q_grain),
        .k_block = problem->S_kv,
        .k_blocks = 1,
        .late_blocks_first = late_blocks_first,
    };
    count_tasks(problem, &cut);
    return cut;
}

struct attn_cut attn_cut_matmul(const struct attn_problem *problem, const struct attn_plan *plan, int64_t wanted)
{
    const int64_t M = problem->S_q, N = problem->S_kv, matrices = problem->B * problem->H;
    struct attn_cut cut = attn_cut_make(problem, plan, M, false);
    if (matrices == 0)
        return cut;
    if (problem->B >= wanted) {
        cut.batch_block = problem->B / wanted;
        cut.head_grain = problem->H;
    } else if (matrices >= wanted) {
        cut.head_grain = whole_grains(matrices / wanted, plan->head_grain);
    } else {
        const int64_t pieces = ceil_div(wanted, matrices);
        cut.k_block = whole_grains(ceil_div(N, pieces), plan->k_grain);
        cut.k_blocks = N > 0 ? ceil_div(N, cut.k_block) : 1;
        cut.q_block = whole_grains(ceil_div(M, ceil_div(pieces, cut.k_blocks)), plan->q_grain);
    }
    count_tasks(problem, &cut);
    return cut;
}

struct attn_span attn_cut_span(const struct attn_problem *problem, const struct attn_cut *cut, int64_t task)
{
    const int64_t groups = cut->batch_blocks * cut->head_groups, blocks = cut->q_blocks * cut->k_blocks;
    const int64_t group = cut->late_blocks_first ? task % groups : task / blocks;
    const int64_t block = cut->late_blocks_first ? cut->q_blocks - 1 - task / groups : task % blocks;
    const int64_t b0 = group / cut->head_groups * cut->batch_block, h0 = group % cut->head_groups * cut->head_grain;
    const int64_t q0 = block % cut->q_blocks * cut->q_block, k0 = block / cut->q_blocks * cut->k_block;
    return (struct attn_span){
        .b0 = b0,
        .b1 = least(b0 + cut->batch_block, problem->B),
        .h0 = h0,
        .h1 = least(h0 + cut->head_grain, problem->H),
        .q0 = q0,
        .q1 = least(q0 + cut->q_block, problem->S_q),
        .k0 = k0,
        .k1 = least(k0 + cut->k_block, problem->S_kv),
        .split = 0,
    };
}

double attn_team_now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void keep_error(struct team *team, int error)
{
    int none = 0;
    if (error)
        atomic_compare_exchange_strong(&team->error, &none, error);
}

/* This thread's share of an earlier phase's items. */
static void run_items(const struct attn_job *job, struct team *team, int32_t phase, int thread, int threads)
{
    const int64_t items = job->plan->items[phase];
    const struct attn_span span = {
        .b1 = job->problem->B,
        .h1 = job->problem->H,
        .q0 = items * thread / threads,
        .q1 = items * (thread + 1) / threads,
        .k1 = job->problem->S_kv,
    };
    if (span.q0 < span.q1 && !atomic_load(&team->error))
        keep_error(team, job->kernel->run(job->problem, job->args, &span, phase, job->state, job->scratch[thread]));
}

static void run_tasks(const struct attn_job *job, struct team *team, const struct attn_team_work *work, int thread,
                      int threads)
{
    int64_t task = work->tasks * thread / threads;
    const int64_t end = work->by_demand ? work->tasks : work->tasks * (thread + 1) / threads;
    for (;; task++) {
        if (work->by_demand)
            task = atomic_fetch_add_explicit(&team->next_task, 1, memory_order_relaxed);
        if (task >= end || atomic_load(&team->error))
            return;
        keep_error(team, work->task(job, work->context, task, thread));
    }
}

/* What each thread of the team does, all of it. */
static void take_part(const struct attn_job *job, const struct attn_team_work *work, struct team *team, int thread,
                      int threads)
{
    double busy = 0;
    for (int32_t phase = 0; phase < job->plan->phases - 1; phase++) {
        const double begin = attn_team_now_ns();
        run_items(job, team, phase, thread, threads);
        busy += attn_team_now_ns() - begin;
#pragma omp barrier
    }
    double begin = attn_team_now_ns();
    run_tasks(job, team, work, thread, threads);
    busy += attn_team_now_ns() - begin;
    if (work->finish) {
        /* The barrier orders memory; the counter says so to thread sanitizers, which can't see into it. */
        atomic_fetch_add(&team->arrived, 1);
#pragma omp barrier
        begin = attn_team_now_ns();
        if (atomic_load(&team->arrived) == threads && !atomic_load(&team->error))
            work->finish(job, work->context, thread, threads);
        busy += attn_team_now_ns() - begin;
    }
    if (job->busy_ns)
        job->busy_ns[thread] += busy; /* once a call: no false sharing while there is work */
}

int attn_team_work(const struct attn_job *job, const struct attn_team_work *work)
{
    struct team team;
    atomic_init(&team.next_task, 0);
    atomic_init(&team.error, 0);
    atomic_init(&team.arrived, 0);
    if (job->threads == 1) { /* a region of one thread would cost as much as a tiny problem takes */
        take_part(job, work, &team, 0, 1);
        return atomic_load(&team.error);
    }
#pragma omp parallel num_threads(job->threads) default(none) shared(job, work, team)
    {
        /* The runtime may give fewer threads than asked for; the shares go by those that are here. */
        take_part(job, work, &team, omp_get_thread_num(), omp_get_num_threads());
    }
    return atomic_load(&team.error);
}

static int run_span(const struct attn_job *job, const void *context, int64_t task, int thread)
{
    const struct attn_span span = attn_cut_span(job->problem, context, task);
    return job->kernel->run(job->problem, job->args, &span, job->plan->phases - 1, job->state, job->scratch[thread]);
}

int attn_team_run(const struct attn_job *job, const struct attn_cut *cut, bool by_demand)
{
    const struct attn_team_work work = {.tasks = cut->tasks, .by_demand = by_demand, .context = cut, .task = run_span};
    return attn_team_work(job, &work);
}

const char *attn_team_refuse(const struct attn_kernel *kernel, const struct attn_problem *problem, int threads)
{
    (void)problem;
    (void)threads;
    const bool own = kernel->caps & ATTN_CAP_OWN_THREADS, spans = kernel->caps & ATTN_CAP_SPANS;
    return own && !spans ? "the kernel has threads of its own" : NULL;
}
