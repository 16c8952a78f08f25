/* SPDX-License-Identifier: Apache-2.0
 *
 * Measuring a team's ceilings; see peaks.h.
 *
 * Rates are summed over threads, each timed by itself, as roof.c does: what a perfectly balanced kernel could use. The
 * repeats of different loops take turns, so that a disturbance falls on one repeat of each and not on all of one.
 */
#include "peaks.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "clock.h"
#include "intern.h"
#include "isa.h"
#include "json_util.h"
#include "probe.h"
#include "statistics.h"

enum { VALUES = 1024, MOST_LOOPS = 32, ATTEMPTS = 4 };

static const double warm_ns = 1e5;  /* before each repeat: the clock's licence settles, the chunk's size is found */
static const double chunk_ns = 2e4; /* of work between two looks at the clock, so that threads end close together */

/* A loop under measurement: work does `units` of it on the calling thread and returns the amount done. */
struct loop {
    double (*work)(const void *probe, uint64_t units);
    const void *probe;
    uint64_t isa;
    const struct team *team;
    double clocked_ns;
    double samples[PEAK_REPEATS_MOST];
    int count;
};

/* 2 x VALUES floats of every thread: arguments and results stay in the first-level cache. */
static _Thread_local _Alignas(64) float results[VALUES];
static _Alignas(64) float exp_arguments[VALUES], tanh_arguments[VALUES];

static long involuntary_switches(void)
{
    struct rusage usage = {0};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nivcsw;
}

double peak_sample(double (*take)(void *context), void *context)
{
    double sample = 0;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        const long before = involuntary_switches();
        sample = take(context);
        if (involuntary_switches() == before)
            break;
    }
    return sample;
}

json_t *peak_summary(const double *values, int count)
{
    if (count < 1)
        return json_null();
    double least = statistics_min(values, (size_t)count), most = values[0];
    for (int i = 1; i < count; i++)
        most = values[i] > most ? values[i] : most;
    return json_pack("{s:o,s:o,s:o,s:o,s:i}", "median", json_number_or_null(statistics_median(values, (size_t)count)),
                     "mad", json_number_or_null(statistics_mad(values, (size_t)count)), "min",
                     json_number_or_null(least), "max", json_number_or_null(most), "repeats", count);
}

static double flops_work(const void *probe, uint64_t units)
{
    const struct flop_probe *flops = probe;
    flops->run(units);
    return flops->flops_per_iteration * (double)units;
}

static double function_work(const void *probe, uint64_t units)
{
    const struct function_probe *function = probe;
    const float *arguments = strcmp(function->function, "exp") == 0 ? exp_arguments : tanh_arguments;
    for (uint64_t u = 0; u < units; u++) {
        function->apply(arguments, results, VALUES);
        __asm__ volatile("" : : "r"(results) : "memory"); /* each pass is wanted */
    }
    return (double)VALUES * (double)units;
}

/* Amount per second of the whole team, in one repeat. */
static double loop_rate(void *context)
{
    const struct loop *loop = context;
    double total = 0;
#pragma omp parallel num_threads(loop->team->threads) reduction(+ : total)
    {
        uint64_t units = 1;
        double began = clock_ns(), chunk_began = began, now = began;
        /* Nothing is assumed about the machine's speed: the chunk doubles until it is long enough. */
        while (now - began < warm_ns) {
            if (now - chunk_began < chunk_ns && now > began)
                units *= 2;
            chunk_began = now;
            loop->work(loop->probe, units);
            now = clock_ns();
        }
        double done = 0;
#pragma omp barrier
        began = clock_ns();
        do {
            done += loop->work(loop->probe, units);
            now = clock_ns();
        } while (now - began < loop->clocked_ns);
        total += 1e9 * done / (now - began);
    }
    return total;
}

static void measure_loops(const struct team *team, struct loop *loops, int count, const struct peak_effort *effort)
{
    for (int repeat = 0; repeat < effort->repeats; repeat++)
        for (int l = 0; l < count; l++) {
            loops[l].team = team;
            loops[l].clocked_ns = effort->clocked_ns;
            if (!(loops[l].isa & ~isa_available()))
                loops[l].samples[loops[l].count++] = 1e-9 * peak_sample(loop_rate, &loops[l]);
        }
}

static json_t *missing_isa(uint64_t isa)
{
    uint64_t missing = isa & ~isa_available();
    return missing ? json_string(intern_format("this machine lacks %s", isa_names(missing))) : json_null();
}

json_t *peak_compute(const struct team *team, const struct peak_effort *effort)
{
    const struct flop_probe *const *const tables[] = {flop_probes, other_flop_probes};
    struct loop *loops = calloc(MOST_LOOPS, sizeof *loops);
    int count = 0;
    if (!loops)
        return NULL;
    for (int t = 0; t < 2; t++)
        for (int p = 0; tables[t][p] && count < MOST_LOOPS; p++)
            loops[count++] = (struct loop){.work = flops_work, .probe = tables[t][p], .isa = tables[t][p]->isa};
    measure_loops(team, loops, count, effort);
    json_t *array = json_array();
    for (int l = 0; l < count; l++) {
        const struct flop_probe *probe = loops[l].probe;
        json_array_append_new(array, json_pack("{s:s,s:s,s:s,s:o,s:o}", "element", probe->element, "vector",
                                               probe->vector, "name", probe->name, "giga_ops_per_s",
                                               peak_summary(loops[l].samples, loops[l].count), "reason",
                                               missing_isa(probe->isa)));
    }
    free(loops);
    return array;
}

json_t *peak_functions(const struct team *team, const struct peak_effort *effort)
{
    struct loop *loops = calloc(MOST_LOOPS, sizeof *loops);
    int count = 0;
    if (!loops)
        return NULL;
    for (int i = 0; i < VALUES; i++) { /* scores under the row's maximum; and both branches of tanh */
        exp_arguments[i] = -16.0f * (float)i / VALUES;
        tanh_arguments[i] = 4.0f * (float)i / VALUES - 2.0f;
    }
    for (int p = 0; function_probes[p] && count < MOST_LOOPS; p++)
        loops[count++] =
            (struct loop){.work = function_work, .probe = function_probes[p], .isa = function_probes[p]->isa};
    measure_loops(team, loops, count, effort);
    json_t *array = json_array();
    for (int l = 0; l < count; l++) {
        const struct function_probe *probe = loops[l].probe;
        json_array_append_new(
            array, json_pack("{s:s,s:s,s:o,s:o}", "function", probe->function, "vector", probe->vector, "giga_per_s",
                             peak_summary(loops[l].samples, loops[l].count), "reason", missing_isa(probe->isa)));
    }
    free(loops);
    return array;
}

struct waits {
    const struct team *team;
    double clocked_ns;
};

/* Mean time of an empty parallel region, over at least clocked_ns. */
static double fork_join_ns(void *context)
{
    enum { BATCH = 16 };
    const struct waits *waits = context;
    double began = 0, spent = 0;
    int64_t regions = -BATCH; /* the first batch only wakes the team */
    while (spent < waits->clocked_ns) {
        if (regions == 0)
            began = clock_ns();
        for (int i = 0; i < BATCH; i++) {
#pragma omp parallel num_threads(waits->team->threads)
            __asm__ volatile("" : : : "memory");
        }
        regions += BATCH;
        if (regions > 0)
            spent = clock_ns() - began;
    }
    return spent / (double)regions;
}

/* Mean time of a barrier inside a region. */
static double barrier_ns(void *context)
{
    enum { BATCH = 64 };
    const struct waits *waits = context;
    double spent = 0;
    int64_t barriers = 0;
    while (spent < waits->clocked_ns) {
#pragma omp parallel num_threads(waits->team->threads)
        {
            double began = 0;
#pragma omp barrier
            if (omp_get_thread_num() == 0)
                began = clock_ns();
            for (int i = 0; i < BATCH; i++) {
#pragma omp barrier
            }
            if (omp_get_thread_num() == 0)
                spent += clock_ns() - began;
        }
        barriers += BATCH;
    }
    return spent / (double)barriers;
}

json_t *peak_team(const struct team *team, const struct peak_effort *effort)
{
    struct waits waits = {team, effort->clocked_ns};
    double forks[PEAK_REPEATS_MOST], barriers[PEAK_REPEATS_MOST];
    for (int r = 0; r < effort->repeats; r++) {
        forks[r] = peak_sample(fork_join_ns, &waits);
        barriers[r] = peak_sample(barrier_ns, &waits);
    }
    return json_pack("{s:o,s:o}", "fork_join_ns", peak_summary(forks, effort->repeats), "barrier_ns",
                     peak_summary(barriers, effort->repeats));
}
