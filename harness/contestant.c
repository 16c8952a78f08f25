/* SPDX-License-Identifier: Apache-2.0
 *
 * Qualifying, taking turns, clocking; see contestant.h.
 */
#include "contestant.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "clock.h"
#include "intern.h"
#include "peer_seat.h"
#include "statistics.h"

static const double sample_aim_ns = 5e5;  /* calls are batched to samples of 0.3-1 ms where they are shorter */
static const double retake_most_ns = 1e7; /* a shorter sample in which a thread lost its CPU is taken again */
static const double turn_warm_ns = 2e6;   /* unclocked at the start of a turn: caches, clock licence */

int series_add(struct series *series, double value)
{
    if (series->count == series->capacity) {
        size_t capacity = series->capacity ? 2 * series->capacity : 64;
        double *grown = realloc(series->values, capacity * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        series->values = grown;
        series->capacity = capacity;
    }
    series->values[series->count++] = value;
    return 0;
}

static struct attn_args *next_args(struct rotation *rotation)
{
    struct attn_args *args = &rotation->args[rotation->next];
    rotation->next = (rotation->next + 1) % rotation->count;
    return args;
}

static bool call(struct contestant *contestant, const struct attn_args *args)
{
    int rc = member_call(&contestant->member, args);
    if (rc < 0)
        contestant->failure = intern_format("the kernel returned error %d (%s)", -rc, strerror(-rc));
    return rc == 0;
}

static void check_surroundings(struct contestant *contestant, const struct rotation *rotation)
{
    const char *broken = operands_canary_broken(&rotation->operands);
    if (!broken)
        broken = memory_canary_broken(&rotation->copies);
    if (broken)
        contestant->failure = intern_format("wrote out of bounds (%s)", broken);
    else
        contestant->failure = member_canary_broken(&contestant->member);
}

void contestant_qualify(struct contestant *contestant, struct rotation *rotation)
{
    uint64_t before = operands_input_digest(&rotation->operands);
    double began = clock_ns();
    if (!call(contestant, &rotation->args[0]))
        return;
    contestant->call_ns = clock_ns() - began;
    contestant->spent_ns += contestant->call_ns;
    check_surroundings(contestant, rotation);
    if (!contestant->failure && operands_input_digest(&rotation->operands) != before)
        contestant->failure = "wrote to its inputs";
}

/* Unclocked calls until the caches and the clock are this kernel's. Tells how long one took, the first call apart: it
 * pays for what others evicted. */
static bool warm_up(struct contestant *contestant, struct rotation *rotation)
{
    double began = clock_ns(), now, first = 0;
    int64_t calls = 0;
    do {
        if (!call(contestant, next_args(rotation)))
            return false;
        now = clock_ns();
        if (++calls == 1)
            first = now;
    } while (now - began < turn_warm_ns);
    contestant->call_ns = calls > 1 ? (now - first) / (double)(calls - 1) : now - began;
    int64_t batch = contestant->calls_wanted;
    if (batch == 0)
        batch = (int64_t)(sample_aim_ns / contestant->call_ns + 0.5);
    if (contestant->samples.count == 0) /* one batch size for all samples of a series */
        contestant->calls_per_sample = batch < 1 ? 1 : batch;
    return true;
}

static void add_noise(struct contestant *contestant, const struct noise_reading *before)
{
    struct noise_reading after;
    noise_read(&after);
    contestant->noise.steal_ns += after.steal_ns - before->steal_ns;
    contestant->noise.involuntary_switches += after.involuntary_switches - before->involuntary_switches;
    contestant->noise.cpu_ns += after.cpu_ns - before->cpu_ns;
    if (after.throttled_ns < 0 || contestant->noise.throttled_ns < 0)
        contestant->noise.throttled_ns = -1;
    else
        contestant->noise.throttled_ns += after.throttled_ns - before->throttled_ns;
}

/* After a call that failed: what was counted so far must not fall to the next contestant. */
static void drop_counts(struct contestant *contestant)
{
    if (!contestant->counters)
        return;
    counters_stop(contestant->counters);
    counters_take(contestant->counters, contestant->counted);
}

/* One sample: a batch of calls. Returns its time, or a negative value if a call failed. *args: of the last call. */
static double clock_sample(struct contestant *contestant, struct rotation *rotation, const struct attn_args **args)
{
    assert(contestant->calls_per_sample >= 1);
    if (contestant->counters)
        counters_start(contestant->counters);
    double began = clock_ns();
    for (int64_t c = 0; c < contestant->calls_per_sample; c++) {
        *args = next_args(rotation);
        if (!call(contestant, *args)) {
            drop_counts(contestant);
            return -1;
        }
    }
    double spent = clock_ns() - began;
    if (contestant->counters)
        counters_stop(contestant->counters);
    contestant->clocked_ns += spent;
    contestant->clocked_calls += contestant->calls_per_sample;
    return spent;
}

/* Times that a thread of this process was made to give up its CPU. */
static int64_t preemptions(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (int64_t)usage.ru_nivcsw : 0;
}

void contestant_turn(struct contestant *contestant, struct rotation *rotation, struct team *team, int samples,
                     bool last, const void **out)
{
    struct error error;
    double turn_began = clock_ns();
    int64_t migrations = team->migrations;
    size_t first = contestant->samples.count;
    if (team_inspect(team, &error) < 0) {
        contestant->failure = intern(error.text);
        return;
    }
    if (!warm_up(contestant, rotation))
        return;
    memset(contestant->member.busy_ns, 0, (size_t)team->threads * sizeof(double));
    memset(contestant->member.phase_ns, 0, sizeof contestant->member.phase_ns);
    if (contestant->counters)
        counters_turn(contestant->counters, contestant->region);
    int retaken = 0;
    struct noise_reading before;
    noise_read(&before);
    for (int s = 0; s < samples; s++) {
        const struct attn_args *args = NULL;
        if (last && s == samples - 1) { /* poisoning is not the kernel's work: the gauges leave it out */
            add_noise(contestant, &before);
            rotation_poison(rotation, team->threads);
            noise_read(&before);
        }
        int64_t preempted = preemptions();
        double spent = clock_sample(contestant, rotation, &args);
        if (spent < 0)
            return;
        /* Long samples meet the scheduler sooner or later, and taking them again would not help. */
        if (preemptions() > preempted && spent < retake_most_ns && retaken < samples) {
            retaken++;
            s--;
            continue;
        }
        if (series_add(&contestant->samples, spent / (double)contestant->calls_per_sample) < 0) {
            contestant->failure = "out of memory for samples";
            return;
        }
        if (last && s == samples - 1) {
            *out = args->out.data;
            if (rotation->operands.weights.data && args->weights.data != rotation->operands.weights.data)
                memcpy(rotation->operands.weights.data, args->weights.data, rotation->operands.weights.bytes);
        }
    }
    add_noise(contestant, &before);
    contestant->retaken += retaken;
    if (contestant->counters)
        counters_take(contestant->counters, contestant->counted);
    for (int t = 0; t < team->threads; t++) {
        contestant->thread_busy_ns[t] += contestant->member.busy_ns[t];
        contestant->busy_sum_ns += contestant->member.busy_ns[t];
    }
    for (int p = 0; p < ATTN_PHASES; p++)
        contestant->phase_ns[p] += contestant->member.phase_ns[p];
    contestant->turn_median_ns =
        statistics_median(contestant->samples.values + first, contestant->samples.count - first);
    contestant->changed_float_mode |= team_flushes_subnormals(team);
    if (team_inspect(team, &error) < 0) /* a kernel that rebinds its threads shows here */
        contestant->failure = intern(error.text);
    contestant->migrations += team->migrations - migrations;
    check_surroundings(contestant, rotation);
    contestant->spent_ns += clock_ns() - turn_began;
}

void contestant_forget(struct contestant *contestant)
{
    contestant->samples.count = contestant->ratios.count = contestant->roof_ns.count = 0;
    contestant->clocked_ns = contestant->busy_sum_ns = 0;
    contestant->clocked_calls = contestant->migrations = contestant->retaken = 0;
    contestant->noise = (struct noise_reading){0};
    memset(contestant->thread_busy_ns, 0, (size_t)contestant->threads * sizeof(double));
    memset(contestant->phase_ns, 0, sizeof contestant->phase_ns);
    if (contestant->counters)
        memset(contestant->counted, 0, counters_columns(contestant->counters) * sizeof(double));
}

void contestant_release(struct contestant *contestant)
{
    member_close(&contestant->member);
    peer_seat_release(contestant);
    free(contestant->samples.values);
    free(contestant->ratios.values);
    free(contestant->roof_ns.values);
    free(contestant->thread_busy_ns);
    free(contestant->counted);
}
