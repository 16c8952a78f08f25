/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker's "measure": the kernels of one problem and the roof probes take turns in random order, round after round,
 * until every median is known well enough; the last sample of each is over a second data set and is what gets verified.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "clock.h"
#include "contestant.h"
#include "fill.h"
#include "intern.h"
#include "isa.h"
#include "json_util.h"
#include "peer_seat.h"
#include "probe.h"
#include "statistics.h"
#include "worker.h"

enum { CHEAP_SAMPLES = 11, SLOW_SAMPLES = 3, ROUNDS_LEAST = 3, MOST_CONTESTANTS = 1024, DRIFT_ROUNDS = 256 };
static const double turn_clocked_ns = 1e7;  /* clocked time of a turn: several samples where they are short */
static const double interval_enough = 0.01; /* half width of the 95 % interval, relative to the median */
static const double budget_factor = 3;      /* min-time times this is the most that a point gets */
static const double noisy_wall_over_cpu = 1.3, noisy_switches_per_s = 60, noisy_steal = 0.02, noisy_drift = 0.05,
                    noisy_interval = 0.05;

struct contest {
    struct worker *worker;
    struct problem_spec spec;
    struct work work;
    struct rotation rotation;
    struct roof roof;
    struct peer_table peers;
    struct contestant *contestants;
    int count;
    double min_time_ns, timeout_ns;
    int64_t samples_wanted; /* 0: until the interval is narrow */
    bool quick;
    enum roof_bound bound;
    struct series peak_rates; /* the flop probe's over all rounds: its spread is the clock's drift */
    uint64_t draws;           /* counter for the random order */
    uint64_t seed;
};

static bool racing(const struct contestant *contestant)
{
    return !contestant->failure;
}

/* All that is wanted but the last, verified sample. */
static bool satisfied(const struct contest *contest, const struct contestant *c, int rounds)
{
    size_t have = c->samples.count;
    if (contest->samples_wanted)
        return (int64_t)have + 1 >= contest->samples_wanted;
    double sample_ns = c->call_ns * (double)c->calls_per_sample;
    bool slow = sample_ns * (CHEAP_SAMPLES - 1) > contest->min_time_ns;
    if (rounds + 1 < ROUNDS_LEAST || have + 1 < (slow ? SLOW_SAMPLES : CHEAP_SAMPLES))
        return false;
    if (c->clocked_ns + sample_ns < contest->min_time_ns)
        return false;
    double low, high;
    double median = statistics_median(c->samples.values, have);
    if (statistics_median_ci95(c->samples.values, have, &low, &high) && (high - low) / 2 <= interval_enough * median)
        return true;
    return slow || c->clocked_ns >= budget_factor * contest->min_time_ns;
}

static int samples_of_turn(const struct contest *contest, const struct contestant *c)
{
    double sample_ns = c->call_ns * (double)(c->calls_per_sample ? c->calls_per_sample : 1);
    double n = sample_ns < 5e5 ? turn_clocked_ns / 5e5 : floor(turn_clocked_ns / sample_ns);
    if (contest->samples_wanted && n > (double)(contest->samples_wanted - 1 - (int64_t)c->samples.count))
        n = (double)(contest->samples_wanted - 1 - (int64_t)c->samples.count);
    return n < 1 ? 1 : (int)n;
}

static void shuffle(struct contest *contest, int *order, int count)
{
    for (int i = count - 1; i > 0; i--) {
        int j = (int)(fill_bits(contest->seed, 0, FILL_Q, contest->draws++) % (uint64_t)(i + 1));
        int kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

/* After a turn: a point that takes longer than the user allows ends as failed. */
static void judge_patience(const struct contest *contest, struct contestant *c)
{
    if (!c->failure && c->spent_ns > contest->timeout_ns)
        c->failure = intern_format("took %.1f s, longer than --point-timeout allows", c->spent_ns / 1e9);
}

/*
 * One round: the probes and each chosen contestant take one turn in random order. last: each turn ends with the
 * verified sample, which is shown to the referee at once, since outputs share their memory.
 */
static int round_of(struct contest *contest, const bool *chosen, bool last)
{
    int order[MOST_CONTESTANTS + 1] = {0};
    struct roof_rates rates = {0};
    int rc = 0;
    for (int i = 0; i <= contest->count; i++)
        order[i] = i;
    shuffle(contest, order, contest->count + 1);
    for (int i = 0; i <= contest->count && rc == 0; i++) {
        if (order[i] == contest->count) {
            roof_probe(&contest->roof, &rates);
            rc = series_add(&contest->peak_rates, rates.flops_per_s);
            continue;
        }
        struct contestant *c = &contest->contestants[order[i]];
        if (!chosen[order[i]] || !racing(c))
            continue;
        const void *out = NULL;
        int samples = last && !contest->quick ? 1 : samples_of_turn(contest, c);
        if (c->seat) { /* watched by this process, not by the one that watches it */
            out = contest->rotation.operands.out.data;
            peer_seat_turn(c, samples, last);
        } else {
            worker_turn(contest->worker, c->index);
            contestant_turn(c, &contest->rotation, &contest->worker->team, samples, last, &out);
            worker_turn(contest->worker, -1);
        }
        judge_patience(contest, c);
        if (last && racing(c))
            rc = worker_show_output(contest->worker, c->index, &contest->rotation.operands, out);
    }
    double roof_ns = 1e9 * roof_time_s(&contest->work, &rates, &contest->bound);
    for (int i = 0; i < contest->count && rc == 0; i++) {
        struct contestant *c = &contest->contestants[i];
        if (!chosen[i] || !racing(c))
            continue;
        rc = series_add(&c->roof_ns, roof_ns);
        if (rc == 0)
            rc = series_add(&c->ratios, roof_ns / c->turn_median_ns);
    }
    return rc;
}

/* Data set 0 or 1 for everybody. */
static void fill(struct contest *contest, uint32_t set, const bool *chosen)
{
    rotation_fill(&contest->rotation, set, contest->worker->team.threads);
    if (contest->peers.memory.tensors)
        peer_memory_load(&contest->peers.memory, &contest->rotation.operands);
    for (int i = 0; i < contest->count; i++)
        if (chosen[i] && contest->contestants[i].seat && racing(&contest->contestants[i]))
            peer_seat_load(&contest->contestants[i]);
}

/* Rounds until all chosen are satisfied, then the verified one. */
static int race(struct contest *contest, bool *chosen)
{
    int rc = 0;
    fill(contest, 0, chosen);
    for (int rounds = 0; !contest->quick && rc == 0 && !atomic_load(&contest->worker->exchange.mailbox->stop);
         rounds++) {
        bool wanting[MOST_CONTESTANTS] = {false};
        bool any = false;
        for (int i = 0; i < contest->count; i++) {
            struct contestant *c = &contest->contestants[i];
            wanting[i] = chosen[i] && racing(c) && !satisfied(contest, c, rounds);
            any |= wanting[i];
        }
        if (!any)
            break;
        rc = round_of(contest, wanting, false);
    }
    if (rc == 0) {
        fill(contest, 1, chosen);
        rc = round_of(contest, chosen, true);
    }
    return rc;
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Distance of the quartiles of the peak probe over the rounds, relative to their median: the clock's drift. Quartiles,
 * since one probe that lost its CPU says nothing of the clock. NaN below four rounds. */
static double drift(const struct contest *contest)
{
    const struct series *rates = &contest->peak_rates;
    double sorted[DRIFT_ROUNDS];
    size_t n = rates->count < DRIFT_ROUNDS ? rates->count : DRIFT_ROUNDS;
    if (n < 4)
        return NAN;
    memcpy(sorted, rates->values + (rates->count - n), n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_value);
    return (sorted[n - 1 - n / 4] - sorted[n / 4]) / sorted[n / 2];
}

/* Time on the wall that the threads were busy, over the CPU time that they got: above 1 somebody else ran. */
static double wall_over_cpu(const struct contestant *c)
{
    return c->noise.cpu_ns > 0 ? c->busy_sum_ns / c->noise.cpu_ns : NAN;
}

/* Half the 95 % interval of the median, relative to it: wider than this, the median means little. */
static double interval_width(const struct contestant *c)
{
    double low, high;
    if (!statistics_median_ci95(c->samples.values, c->samples.count, &low, &high))
        return 0; /* too few samples for an interval: nothing can be said */
    return (high - low) / 2 / statistics_median(c->samples.values, c->samples.count);
}

static bool noisy(const struct contest *contest, const struct contestant *c)
{
    double seconds = c->clocked_ns / 1e9;
    bool switched = (double)c->noise.involuntary_switches > 2 + noisy_switches_per_s * seconds;
    bool stolen = c->noise.steal_ns > noisy_steal * c->clocked_ns * contest->worker->team.threads;
    bool moved = contest->worker->team.cpus && c->migrations > 0;
    bool beyond = statistics_median(c->ratios.values, c->ratios.count) > ROOF_FRACTION_MOST;
    return wall_over_cpu(c) > noisy_wall_over_cpu || switched || stolen || moved || beyond ||
           drift(contest) > noisy_drift || interval_width(c) > noisy_interval || c->noise.throttled_ns > 0;
}

static json_t *series_json(const struct series *series)
{
    json_t *array = json_array();
    for (size_t i = 0; i < series->count; i++)
        json_array_append_new(array, json_real(series->values[i]));
    return array;
}

static json_t *noise_json(const struct contest *contest, const struct contestant *c)
{
    json_t *noise = json_pack("{s:s}", "quality", noisy(contest, c) ? "noisy" : "clean");
    json_object_set_new(noise, "wall_over_cpu", json_number_or_null(wall_over_cpu(c)));
    json_object_set_new(noise, "steal_ns", json_number_or_null(c->noise.steal_ns < 0 ? NAN : c->noise.steal_ns));
    json_object_set_new(noise, "involuntary_switches", json_count_or_null(c->noise.involuntary_switches));
    json_object_set_new(noise, "migrations", json_count_or_null(c->migrations));
    json_object_set_new(noise, "throttled_ns",
                        json_number_or_null(c->noise.throttled_ns < 0 ? NAN : c->noise.throttled_ns));
    json_object_set_new(noise, "clock_drift", json_number_or_null(drift(contest)));
    return noise;
}

static const char *page_mode(const struct contest *contest, const struct contestant *c)
{
    const struct operands *o = &contest->rotation.operands;
    const struct memory_block *all[] = {&o->q, &o->k, &o->v, &o->out, &c->member.scratch, &contest->rotation.copies};
    return memory_page_mode(all, sizeof all / sizeof *all);
}

static void tell_counters(json_t *event, const struct contestant *c)
{
    const double calls = (double)c->clocked_calls;
    const char *note = counters_note(c->counters);
    json_object_set_new(event, "counters", counters_to_json(c->counters, c->counted, calls));
    json_object_set_new(event, "joules_per_call", json_number_or_null(counters_joules(c->counters, c->counted, calls)));
    json_object_set_new(event, "counters_note", note ? json_string(note) : json_null());
}

/* Time in each phase of a layer, added up over the clocked samples. */
static void tell_phases(json_t *event, const struct contestant *c)
{
    json_t *phases = json_object();
    for (int p = 0; p < ATTN_PHASES; p++)
        if (c->phase_ns[p] > 0)
            json_object_set_new(phases, attn_phase_names[p], json_real(c->phase_ns[p]));
    if (json_object_size(phases))
        json_object_set_new(event, "phases_ns", phases);
    else
        json_decref(phases);
}

/* What only this process knows of a kernel that ran in it. */
static void tell_member(const struct contest *contest, struct contestant *c, json_t *event)
{
    const struct team *team = &contest->worker->team;
    const int used = strcmp(c->member.schedule->name, "serial") == 0 ? 1 : team->threads;
    const char *pages = page_mode(contest, c);
    json_t *cpus = json_array();
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    for (int t = 0; t < used; t++)
        json_array_append_new(cpus, json_integer(team->actual[t]));
    json_object_set_new(event, "schedule", json_string(c->member.schedule->name));
    json_object_set_new(event, "cpus", cpus);
    json_object_set_new(event, "workspace_bytes", json_integer((json_int_t)member_workspace_bytes(&c->member)));
    json_object_set_new(event, "peak_rss_bytes", json_integer((json_int_t)usage.ru_maxrss * 1024));
    json_object_set_new(event, "page_mode", pages ? json_string(pages) : json_null());
    if (c->member.matmul)
        json_object_set_new(event, "matmul_kernel", json_string(c->member.matmul->name));
    if (c->counters)
        tell_counters(event, c);
}

/* The best that the ISA of the kernel's own file could do; null for a library, which chooses for itself. */
static json_t *isa_roof(const struct contest *contest, const struct contestant *c)
{
    const int64_t isa = c->seat ? peer_seat_isa(c) : (int64_t)c->member.kernel->isa;
    const int own = isa < 0 ? -1 : roof_best_probe(&contest->worker->peaks, contest->spec.dtype, (uint64_t)isa);
    return own < 0 ? json_null() : json_number_or_null(contest->worker->peaks.flops_per_s[own] / 1e9);
}

static int tell_result(struct contest *contest, struct contestant *c)
{
    json_t *event = json_pack("{s:s,s:i,s:o}", "event", "result", "member", c->index, "failure",
                              c->failure ? json_string(c->failure) : json_null());
    if (c->seat)
        peer_seat_tell(c, event);
    if (!c->failure) {
        if (!c->seat)
            tell_member(contest, c, event);
        json_t *busy = json_array();
        for (size_t t = 0; t < json_array_size(json_object_get(event, "cpus")) && c->busy_sum_ns > 0; t++)
            json_array_append_new(busy, json_real(c->thread_busy_ns[t] / (double)c->clocked_calls));
        tell_phases(event, c);
        json_object_set_new(event, "thread_busy_ns", busy);
        json_object_set_new(event, "samples_ns", series_json(&c->samples));
        json_object_set_new(event, "calls_per_sample", json_integer(c->calls_per_sample));
        json_object_set_new(event, "ratios", series_json(&c->ratios));
        json_object_set_new(event, "roof_ns", series_json(&c->roof_ns));
        json_object_set_new(event, "bound", json_string(roof_bound_names[contest->bound]));
        json_object_set_new(event, "isa_roof_gflops", isa_roof(contest, c));
        json_object_set_new(event, "samples_retaken", json_integer((json_int_t)c->retaken));
        json_object_set_new(event, "changed_float_mode", json_boolean(c->changed_float_mode));
        json_object_set_new(event, "noise", noise_json(contest, c));
    }
    return worker_tell(contest->worker, event);
}

/* What was noisy is measured once more, on a machine that may have calmed down. */
static int race_again(struct contest *contest)
{
    bool chosen[MOST_CONTESTANTS] = {false};
    bool any = false;
    for (int i = 0; i < contest->count; i++) {
        chosen[i] = racing(&contest->contestants[i]) && noisy(contest, &contest->contestants[i]);
        any |= chosen[i];
    }
    if (!any || contest->quick || atomic_load(&contest->worker->exchange.mailbox->stop))
        return 0;
    contest->peak_rates.count = 0;
    for (int i = 0; i < contest->count; i++)
        if (chosen[i])
            contestant_forget(&contest->contestants[i]);
    return race(contest, chosen);
}

static int enter(struct contest *contest, const json_t *members, struct error *error)
{
    struct worker *worker = contest->worker;
    for (int i = 0; i < contest->count; i++) {
        struct contestant *c = &contest->contestants[i];
        const json_t *member = json_array_get(members, (size_t)i);
        c->index = i;
        c->kernel = intern(json_get_string(member, "kernel", ""));
        c->schedule = intern(json_get_string(member, "schedule", "auto"));
        c->region = intern(json_get_string(member, "point_id", ""));
        c->thread_busy_ns = calloc((size_t)worker->team.threads, sizeof *c->thread_busy_ns);
        c->threads = worker->team.threads;
        c->counters = json_object_get(member, "peer") ? NULL : worker->counters; /* they count this process */
        if (c->counters)
            c->counted = calloc(counters_columns(c->counters) + 1, sizeof *c->counted);
        if (!c->thread_busy_ns || (c->counters && !c->counted))
            return error_system(error, ENOMEM, "cannot keep what threads took and counters told");
        if (json_object_get(member, "peer")) {
            peer_seat_take(c, json_object_get(member, "peer"), &contest->peers);
            if (!c->failure)
                peer_seat_qualify(c);
            judge_patience(contest, c);
            continue;
        }
        worker_turn(worker, i);
        struct error why;
        if (member_open(c->kernel, c->schedule, &contest->rotation.operands, &worker->team, MEMORY_HUGE, &c->member,
                        &why) < 0)
            c->failure = intern(why.text);
        else
            contestant_qualify(c, &contest->rotation);
        worker_turn(worker, -1);
        judge_patience(contest, c);
    }
    return 0;
}

static void contest_release(struct contest *contest)
{
    for (int i = 0; contest->contestants && i < contest->count; i++)
        contestant_release(&contest->contestants[i]);
    free(contest->contestants);
    free(contest->peak_rates.values);
    peer_table_release(&contest->peers);
    roof_release(&contest->roof);
    rotation_release(&contest->rotation);
}

/* Opened once for all points of a worker: likwid takes its time. */
static void prepare_counters(struct worker *worker, const char *text)
{
    if (worker->counted == text)
        return;
    counters_close(worker->counters);
    worker->counters = counters_open(text, &worker->team);
    worker->counted = text;
}

int worker_measure(struct worker *worker, const json_t *request, struct error *error)
{
    const json_t *members = json_object_get(request, "members");
    struct contest contest = {
        .worker = worker,
        .count = (int)json_array_size(members),
        .min_time_ns = 1e9 * json_get_number(request, "min_time_s", 0.5),
        .timeout_ns = 1e9 * json_get_number(request, "point_timeout_s", 60),
        .samples_wanted = json_get_int(request, "samples", 0),
        .quick = json_is_true(json_object_get(request, "quick_check")),
        .seed = (uint64_t)json_get_int(request, "seed", 1),
    };
    int rc = spec_from_json(json_object_get(request, "spec"), &contest.spec, error);
    if (rc < 0)
        return rc;
    if (contest.count > MOST_CONTESTANTS)
        return error_usage(error, "%d kernels and schedules on one problem; at most %d", contest.count,
                           MOST_CONTESTANTS);
    enum cache_state cache = (enum cache_state)cache_from_name(json_get_string(request, "cache", "warm"));
    work_count(&contest.spec, &contest.work);
    prepare_counters(worker, intern(json_get_string(request, "counters", "none")));
    contest.contestants = calloc((size_t)contest.count, sizeof *contest.contestants);
    if (!contest.contestants)
        return error_system(error, ENOMEM, "%d contestants", contest.count);
    rc = rotation_create(&contest.spec, cache, worker->llc_bytes, worker->team.threads, &contest.rotation, error);
    if (rc == 0) {
        double cold = cache == CACHE_COLD ? 4 * worker->llc_bytes : 0;
        /* For each problem anew: one measurement may have been disturbed, and the best of all counts. */
        roof_measure_peaks(&worker->team, &worker->peaks);
        rc = roof_create(&worker->team, &worker->peaks, contest.spec.dtype, &contest.work, cold, worker->llc_bytes,
                         &contest.roof, error);
    }
    contest.peers = (struct peer_table){
        .pool = &worker->peers,
        .team = &worker->team,
        .rotation = &contest.rotation,
        .cache = cache,
        .llc_bytes = worker->llc_bytes,
        .timeout_s = contest.timeout_ns / 1e9,
        .memory_limit = json_get_number(request, "memory_limit", 0),
        .seed = contest.seed,
    };
    if (rc == 0)
        rc = enter(&contest, members, error);
    if (rc == 0) {
        bool all[MOST_CONTESTANTS] = {false};
        memset(all, true, sizeof all);
        rc = race(&contest, all);
        if (rc == 0)
            rc = race_again(&contest);
        for (int i = 0; i < contest.count && rc == 0; i++)
            if (contest.contestants[i].seat)
                peer_seat_leave(&contest.contestants[i]);
        for (int i = 0; i < contest.count && rc == 0; i++)
            rc = tell_result(&contest, &contest.contestants[i]);
        if (rc < 0)
            error_system(error, -rc, "measuring");
    }
    contest_release(&contest);
    return rc;
}
