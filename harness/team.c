/* SPDX-License-Identifier: Apache-2.0
 *
 * Binding the team and reading it back; see team.h.
 */
#include "team.h"

#include <errno.h>
#include <omp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "placement.h"
#include "probe.h"

int team_create(int threads, const int32_t *cpus, struct team *team, struct error *error)
{
    *team = (struct team){.threads = threads};
    team->actual = malloc((size_t)threads * sizeof *team->actual);
    if (cpus)
        team->cpus = malloc((size_t)threads * sizeof *team->cpus);
    if (!team->actual || (cpus && !team->cpus)) {
        team_release(team);
        return error_system(error, ENOMEM, "cannot describe a team of %d threads", threads);
    }
    if (cpus)
        memcpy(team->cpus, cpus, (size_t)threads * sizeof *cpus);
    for (int i = 0; i < threads; i++)
        team->actual[i] = -1;
    atomic_int failed = 0, size = 0;
    omp_set_dynamic(0);
#pragma omp parallel num_threads(threads)
    {
        int i = omp_get_thread_num();
        if (i == 0)
            size = omp_get_num_threads();
        if (cpus) {
            int rc = placement_bind_self(cpus[i]);
            if (rc < 0)
                failed = rc;
        }
    }
    if (size != threads || failed) {
        int got = size, number = failed ? -failed : EAGAIN;
        team_release(team);
        if (got != threads)
            return error_system(error, number, "asked for %d threads, got %d", threads, got);
        return error_wrong(error, number, "cannot bind a team of %d threads: %s", threads,
                           placement_bind_reason(-number));
    }
    return team_inspect(team, error);
}

void team_release(struct team *team)
{
    free(team->cpus);
    free(team->actual);
    *team = (struct team){0};
}

int team_inspect(struct team *team, struct error *error)
{
    atomic_int stray = -1;
    int64_t moved = 0;
#pragma omp parallel num_threads(team->threads) reduction(+ : moved)
    {
        int i = omp_get_thread_num();
        probe_clear_float_mode();
        int32_t cpu = placement_current_cpu();
        moved += team->actual[i] >= 0 && team->actual[i] != cpu;
        team->actual[i] = cpu;
        if (team->cpus && (cpu != team->cpus[i] || !placement_is_bound(0, team->cpus[i])))
            stray = i;
    }
    team->migrations += moved;
    if (stray >= 0) {
        int i = stray;
        return error_wrong(error, EXDEV, "thread %d, bound to CPU %d, lost its mask and is on CPU %d", i, team->cpus[i],
                           team->actual[i]);
    }
    return 0;
}

bool team_flushes_subnormals(const struct team *team)
{
    atomic_int flushes = 0;
#pragma omp parallel num_threads(team->threads)
    if (probe_float_mode())
        flushes = 1;
    return flushes != 0;
}
