/* SPDX-License-Identifier: Apache-2.0
 *
 * Libraries for tests of duet and gate: the sound kernel of tests/broken/base.h under the names "steady" and "changed",
 * and in "changed" what the build asks for:
 *
 *   -DEXTRA=N    N % of the query rows are computed a second time: so much slower, and still right
 *   -DHELPED     those rows are another thread's, which starts and ends in every call
 *   -DSHIFTY     as side B (the mapping's name tells) it computes all rows a second time
 *   -DWRONG      the output of the last row is off
 *   -DCRASHES    it dies
 *   -DNEWER      the table tells another ABI
 *   -DALONE      there is no "changed"
 *   -DTELLS="X"  it adds "load X" and "open X" to the file $ORDER, as that is done to it
 *   -DHANGS      it is never loaded whole, but where it is only asked for its table
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broken_plugin/sound.h"

#ifndef EXTRA
#define EXTRA 0
#endif

/* In percent, the rows that are computed a second time. */
static int64_t extra(void)
{
#ifdef SHIFTY
    static int side_b = -1;
    if (side_b < 0) {
        char line[4096];
        FILE *maps = fopen("/proc/self/maps", "r");
        side_b = 0;
        while (maps && fgets(line, sizeof line, maps)) {
            uintptr_t from, to;
            if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &from, &to) == 2 && (uintptr_t)&side_b >= from &&
                (uintptr_t)&side_b < to)
                side_b = strstr(line, "attnbench-b:") != NULL;
        }
        if (maps)
            fclose(maps);
    }
    if (side_b)
        return 100;
#endif
    return EXTRA;
}

/* A span that a thread computes. */
struct job {
    const struct attn_problem *problem;
    const struct attn_args *args;
    const struct attn_span *span;
    void *scratch;
    int rc;
};

static void *work(void *argument)
{
    struct job *job = argument;
    job->rc = sound_run(job->problem, job->args, job->span, 0, NULL, job->scratch);
    return NULL;
}

static int compute_again(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
                         void *scratch)
{
    struct job job = {problem, args, span, scratch, 0};
#ifdef HELPED
    pthread_t helper;
    if (pthread_create(&helper, NULL, work, &job) != 0)
        return -1;
    pthread_join(helper, NULL);
#else
    work(&job);
#endif
    return job.rc;
}

static int changed_run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
                       int32_t phase, void *state, void *scratch)
{
    struct attn_span again = *span;
    int rc = sound_run(problem, args, span, phase, state, scratch);
    again.q1 = span->q0 + (span->q1 - span->q0) * extra() / 100;
    if (again.q1 > again.q0 && rc == 0)
        rc = compute_again(problem, args, &again, scratch);
#ifdef WRONG
    ((float *)args->out.data)[base_offset(&args->out, span->b1 - 1, span->h1 - 1, span->q1 - 1)] += 0.25f;
#endif
#ifdef CRASHES
    __builtin_trap();
#endif
    return rc;
}

#ifdef TELLS
static void tell(const char *what)
{
    const char *path = getenv("ORDER");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file)
        return;
    fprintf(file, "%s %s\n", what, TELLS);
    fclose(file);
}

__attribute__((constructor)) static void load(void)
{
    tell("load");
}

static int open_kernel(const struct attn_problem *problem, const struct attn_tensor *param, const int32_t *cpus,
                       int32_t threads, void **state)
{
    (void)problem;
    (void)param;
    (void)cpus;
    (void)threads;
    (void)state;
    tell("open");
    return 0;
}
#endif

#ifdef HANGS
__attribute__((constructor)) static void hang(void)
{
    char words[4096];
    FILE *file = fopen("/proc/self/cmdline", "r");
    const size_t length = file ? fread(words, 1, sizeof words, file) : 0;
    if (file)
        fclose(file);
    while (memmem(words, length, "@worker", strlen("@worker")))
        pause();
}
#endif

const struct attn_kernel *const *attn_kernels(uint32_t *abi)
{
    static struct attn_kernel kernels[2];
    static const struct attn_kernel *table[] = {&kernels[0], &kernels[1], NULL};
    kernels[0] = sound_kernel("steady", "the sound kernel", sound_run);
    kernels[1] = sound_kernel("changed", "the sound kernel, or not", changed_run);
#ifdef TELLS
    kernels[0].open = kernels[1].open = open_kernel;
#endif
#ifdef ALONE
    table[1] = NULL;
#endif
#ifdef NEWER
    *abi = ATTN_ABI + 1;
#else
    *abi = ATTN_ABI;
#endif
    return table;
}
