/* SPDX-License-Identifier: Apache-2.0
 *
 * own_threads: a kernel with threads of its own, which it starts anew in every call. Where one of them may not use all
 * the CPUs that it was told of, the call fails: all of them would share what the first thread is bound to.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "../broken_plugin/sound.h"

enum { MOST_THREADS = 64 };

struct job {
    const struct attn_problem *problem;
    const struct attn_args *args;
    struct attn_span span;
    float *sums;
    int threads, error;
};

static void *work(void *argument)
{
    struct job *job = argument;
    cpu_set_t cpus;
    if (sched_getaffinity(0, sizeof cpus, &cpus) == 0 && CPU_COUNT(&cpus) < job->threads)
        job->error = -EXDEV;
    else
        job->error = sound_run(job->problem, job->args, &job->span, 0, NULL, job->sums);
    return NULL;
}

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    const int threads = *(const int *)state;
    const int64_t queries = span->q1 - span->q0;
    struct job jobs[MOST_THREADS];
    pthread_t ids[MOST_THREADS];
    int error = 0;
    (void)phase;
    for (int t = 0; t < threads; t++) {
        jobs[t] = (struct job){problem, args, *span, (float *)scratch + t * problem->D_v, threads, 0};
        jobs[t].span.q0 = span->q0 + queries * t / threads;
        jobs[t].span.q1 = span->q0 + queries * (t + 1) / threads;
        if (pthread_create(&ids[t], NULL, work, &jobs[t]) != 0)
            abort();
    }
    for (int t = 0; t < threads; t++) {
        pthread_join(ids[t], NULL);
        error = error ? error : jobs[t].error;
    }
    return error;
}

static int plan(const struct attn_problem *problem, int32_t threads, void *state, struct attn_plan *plan)
{
    (void)threads;
    plan->thread_bytes = (size_t)(*(const int *)state * problem->D_v) * sizeof(float);
    return 0;
}

static int open_kernel(const struct attn_problem *problem, const struct attn_tensor *param, const int32_t *cpus,
                       int32_t threads, void **state)
{
    int *kept = malloc(sizeof *kept);
    (void)problem;
    (void)param;
    (void)cpus;
    if (!kept || threads > MOST_THREADS) {
        free(kept);
        return kept ? -E2BIG : -ENOMEM;
    }
    *kept = threads;
    *state = kept;
    return 0;
}

const struct attn_kernel *const *attn_kernels(uint32_t *abi)
{
    struct attn_kernel kernel = sound_kernel("own_threads", "threads of its own, new ones in every call", run);
    kernel.caps = ATTN_CAP_OWN_THREADS;
    kernel.open = open_kernel;
    kernel.close = free;
    kernel.plan = plan;
    return sound_table(kernel, abi);
}
