/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker's "duet": one process's comparison of two kernels, A and B, on the same inputs. Samples of both alternate
 * in blocks ABBA or BAAB at random, so that a drift of the machine meets both alike; outputs and workspaces change
 * hands from block to block, so that a lucky address is nobody's. The process is the replicate: its one result is the
 * logarithm of the ratio of medians, and what its order of loading and its addresses did to it shows between processes.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "fill.h"
#include "json_util.h"
#include "statistics.h"
#include "trespass.h"
#include "worker_duet.h"

enum { LEAST_BLOCKS = 4, WARM_KEPT = 63 };
static const double sample_aim_ns = 5e5; /* calls are batched to samples of 0.3-1 ms */

uint64_t worker_duet_draw(struct duet *duet)
{
    return fill_bits(duet->seed, 2, FILL_Q, duet->draws++);
}

/* The second output. Cold calls rotate over copies, each with its own output, which both sides meet alike. */
static int make_outputs(struct duet *duet, struct error *error)
{
    const struct operands *operands = &duet->rotation.operands;
    duet->args[A] = duet->args[B] = duet->rotation.args[0];
    int rc = 0;
    if (duet->rotation.count > 1)
        return 0;
    rc = memory_allocate(&duet->out, operands->out.bytes, MEMORY_HUGE, error);
    if (rc == 0 && operands->weights.data)
        rc = memory_allocate(&duet->weights, operands->weights.bytes, MEMORY_HUGE, error);
    if (rc < 0)
        return rc;
    duet->args[B].out.data = duet->out.data;
    if (operands->weights.data)
        duet->args[B].weights.data = duet->weights.data;
    memset(duet->out.data, 0xff, duet->out.bytes);
    if (duet->weights.data)
        memset(duet->weights.data, 0xff, duet->weights.bytes);
    return 0;
}

static const struct attn_args *args_of(struct duet *duet, int side)
{
    struct rotation *rotation = &duet->rotation;
    if (rotation->count == 1)
        return &duet->args[side ^ (int)duet->swapped];
    const struct attn_args *args = &rotation->args[rotation->next];
    if (++rotation->next == rotation->count)
        rotation->next = 0;
    return args;
}

static int call(struct duet *duet, int s, struct error *error)
{
    int rc = member_call(&duet->sides[s].member, args_of(duet, s));
    if (rc < 0)
        return error_system(error, -rc, "%s returned an error", duet->sides[s].label);
    return 0;
}

/* CPU time is the whole process's, on one thread too: work that a kernel hands to threads of its own is not free. */
static int sample(struct duet *duet, int s, struct error *error)
{
    struct side *side = &duet->sides[s];
    const double calls = (double)side->calls;
    int rc = 0;
    worker_turn(duet->worker, s);
    const double cpu = clock_process_cpu_ns(), wall = clock_ns();
    for (int64_t c = 0; c < side->calls && rc == 0; c++)
        rc = call(duet, s, error);
    const double wall_spent = clock_ns() - wall, cpu_spent = clock_process_cpu_ns() - cpu;
    worker_turn(duet->worker, -1);
    if (rc == 0 && (series_add(&side->wall, wall_spent / calls) < 0 || series_add(&side->cpu, cpu_spent / calls) < 0))
        rc = error_system(error, ENOMEM, "samples");
    return rc;
}

static void swap(struct duet *duet)
{
    duet->swapped = !duet->swapped;
    member_swap_workspaces(&duet->sides[A].member, &duet->sides[B].member);
}

void worker_duet_batches(const double call_ns[SIDES], int64_t calls[SIDES])
{
    const bool alike = call_ns[A] <= 2 * call_ns[B] && call_ns[B] <= 2 * call_ns[A];
    for (int s = 0; s < SIDES; s++) {
        const double one_ns = alike ? (call_ns[A] + call_ns[B]) / 2 : call_ns[s];
        const int64_t batch = (int64_t)(sample_aim_ns / fmax(one_ns, 1) + 0.5);
        calls[s] = batch < 1 ? 1 : batch;
    }
}

/* Both in turn until warm, and as many calls a sample as their last ones suggest: by the clock that will judge, and
 * their medians, for time that others took must not make the batches of one side shorter. */
static int warm_up(struct duet *duet, double seconds, struct error *error)
{
    const double began = clock_ns();
    double cpu[SIDES][WARM_KEPT], wall[SIDES][WARM_KEPT], call_ns[SIDES];
    size_t rounds = 0;
    int rc = 0;
    do {
        for (int s = 0; s < SIDES && rc == 0; s++) {
            worker_turn(duet->worker, s);
            const double cpu_before = clock_process_cpu_ns(), wall_before = clock_ns();
            rc = call(duet, s, error);
            wall[s][rounds % WARM_KEPT] = clock_ns() - wall_before;
            cpu[s][rounds % WARM_KEPT] = clock_process_cpu_ns() - cpu_before;
            worker_turn(duet->worker, -1);
        }
        rounds++;
    } while (rc == 0 && clock_ns() - began < 1e9 * seconds);
    if (rc < 0)
        return rc;
    const size_t kept = rounds < WARM_KEPT ? rounds : WARM_KEPT;
    for (int s = 0; s < SIDES; s++) {
        const double by_cpu = duet->worker->team.threads == 1 ? statistics_median(cpu[s], kept) : 0;
        call_ns[s] = by_cpu > 0 ? by_cpu : statistics_median(wall[s], kept); /* 0: a clock that ticks too seldom */
    }
    int64_t calls[SIDES];
    worker_duet_batches(call_ns, calls);
    for (int s = 0; s < SIDES; s++)
        duet->sides[s].calls = calls[s];
    return 0;
}

/* Nanoseconds of CPU time that a chain of multiplications takes: the clock of the core, and nothing else. Best of five,
 * since only a slower clock, and no visitor, can raise it. */
static double calibrate(void)
{
    enum { LINKS = 200000, REPEATS = 5 };
    double best = INFINITY;
    for (int r = 0; r < REPEATS; r++) {
        volatile uint64_t end;
        uint64_t x = 1;
        const double began = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
        for (int i = 0; i < LINKS; i++)
            x = x * UINT64_C(6364136223846793005) + 1;
        end = x;
        const double spent = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - began;
        (void)end;
        best = spent < best ? spent : best;
    }
    return best;
}

static int play(struct duet *duet, double seconds, int *blocks, struct error *error)
{
    double played = 0;
    int rc = 0;
    *blocks = 0;
    while (rc == 0 && (played < 1e9 * seconds || *blocks < LEAST_BLOCKS)) {
        const int outer = (int)(worker_duet_draw(duet) & 1), order[] = {outer, !outer, !outer, outer};
        for (int i = 0; i < 4 && rc == 0; i++) {
            rc = sample(duet, order[i], error);
            const struct side *side = &duet->sides[order[i]];
            if (rc == 0)
                played += side->wall.values[side->wall.count - 1] * (double)side->calls;
        }
        ++*blocks;
        swap(duet);
    }
    return rc;
}

static double sum(const struct series *series)
{
    double total = 0;
    for (size_t i = 0; i < series->count; i++)
        total += series->values[i];
    return total;
}

static double median(const struct series *series)
{
    return statistics_median(series->values, series->count);
}

/* Of all that the calls read and wrote. */
static const char *page_mode(const struct duet *duet)
{
    const struct operands *o = &duet->rotation.operands;
    const struct memory_block *all[] = {&o->q,
                                        &o->k,
                                        &o->v,
                                        &o->out,
                                        &o->weights,
                                        &duet->out,
                                        &duet->weights,
                                        &duet->sides[A].member.scratch,
                                        &duet->sides[B].member.scratch,
                                        &duet->rotation.copies};
    return memory_page_mode(all, sizeof all / sizeof *all);
}

/* What was seen around the samples. */
struct gauges {
    struct noise_reading before, after;
    double drift; /* of the clock, a share */
    double busy_ns;
    int64_t migrations; /* -1: nothing says where a thread should be */
    int blocks;
};

static void forget_busy(struct duet *duet)
{
    for (int s = 0; s < SIDES; s++)
        memset(duet->sides[s].member.busy_ns, 0, (size_t)duet->worker->team.threads * sizeof(double));
}

/* Time on the wall that threads were busy: one that has nothing to do loses nothing to others. */
static double busy_ns(const struct duet *duet)
{
    double total = 0;
    for (int s = 0; s < SIDES; s++)
        for (int t = 0; t < duet->worker->team.threads; t++)
            total += duet->sides[s].member.busy_ns[t];
    return total;
}

static json_t *result(const struct duet *duet, const struct gauges *gauges)
{
    const struct side *a = &duet->sides[A], *b = &duet->sides[B];
    const struct noise_reading *before = &gauges->before, *after = &gauges->after;
    const double cpus = (double)sysconf(_SC_NPROCESSORS_ONLN); /* steal is told of all together */
    const double wall_ns = sum(&a->wall) * (double)a->calls + sum(&b->wall) * (double)b->calls;
    const double cpu = sum(&a->cpu) * (double)a->calls + sum(&b->cpu) * (double)b->calls;
    json_t *event = json_pack("{s:s,s:i,s:s,s:s,s:I,s:I}", "event", "duet", "blocks", gauges->blocks, "schedule_a",
                              a->member.schedule->name, "schedule_b", b->member.schedule->name, "calls_a",
                              (json_int_t)a->calls, "calls_b", (json_int_t)b->calls);
    json_object_set_new(event, "log_ratio_wall", json_number_or_null(log(median(&b->wall) / median(&a->wall))));
    json_object_set_new(event, "log_ratio_cpu", json_number_or_null(log(median(&b->cpu) / median(&a->cpu))));
    json_object_set_new(event, "median_wall_a_ns", json_number_or_null(median(&a->wall)));
    json_object_set_new(event, "median_wall_b_ns", json_number_or_null(median(&b->wall)));
    json_object_set_new(event, "median_cpu_a_ns", json_number_or_null(median(&a->cpu)));
    json_object_set_new(event, "median_cpu_b_ns", json_number_or_null(median(&b->cpu)));
    json_object_set_new(event, "wall_over_cpu", json_number_or_null(gauges->busy_ns / cpu));
    json_object_set_new(
        event, "switches_per_s",
        json_number_or_null((double)(after->involuntary_switches - before->involuntary_switches) / (wall_ns / 1e9)));
    json_object_set_new(
        event, "steal_share",
        json_number_or_null(before->steal_ns < 0 ? NAN : (after->steal_ns - before->steal_ns) / (wall_ns * cpus)));
    json_object_set_new(event, "clock_drift", json_number_or_null(gauges->drift));
    const char *pages = page_mode(duet);
    json_object_set_new(event, "page_mode", pages ? json_string(pages) : json_null());
    json_object_set_new(event, "migrations", json_count_or_null(gauges->migrations));
    return event;
}

static int measure(struct duet *duet, double seconds, struct gauges *gauges, struct error *error)
{
    struct team *team = &duet->worker->team;
    team->migrations = 0;
    forget_busy(duet);
    const double clock_before = calibrate();
    noise_read(&gauges->before);
    int rc = play(duet, seconds, &gauges->blocks, error);
    noise_read(&gauges->after);
    gauges->drift = fabs(calibrate() / clock_before - 1);
    gauges->busy_ns = busy_ns(duet);
    if (rc == 0)
        rc = worker_duet_inspect(duet, -1, error);
    gauges->migrations = team->cpus ? team->migrations : -1;
    return rc;
}

/* A kernel that waits for ever as it is closed is watched like any other. */
static void duet_release(struct duet *duet)
{
    for (int s = 0; s < SIDES; s++) {
        worker_turn(duet->worker, s);
        member_close(&duet->sides[s].member);
        worker_turn(duet->worker, -1);
        free(duet->sides[s].wall.values);
        free(duet->sides[s].cpu.values);
    }
    memory_release(&duet->out);
    memory_release(&duet->weights);
    rotation_release(&duet->rotation);
    free(duet->offset);
}

static int open_side(struct duet *duet, int s, const char *schedule, struct error *error)
{
    struct side *side = &duet->sides[s];
    worker_turn(duet->worker, s);
    int rc = member_open(side->kernel, schedule, &duet->rotation.operands, &duet->worker->team, MEMORY_HUGE,
                         &side->member, error);
    worker_turn(duet->worker, -1);
    if (rc == -ENOTSUP)
        return rc;
    return rc < 0 ? error_prefix(error, rc, "%s", side->label) : worker_duet_trespass(duet, s, error);
}

/* *refused: a side can't do the problem, which is told. Where it is B, A is asked too: it may not be B's fault. */
static int open_sides(struct duet *duet, const json_t *request, bool *refused, struct error *error)
{
    const int first = (int)json_get_int(request, "open_first", A);
    const char *schedule = json_get_string(request, "schedule", "auto");
    int rc = 0;
    *refused = false;
    duet->threads = trespass_threads();
    for (int i = 0; i < SIDES && rc == 0; i++) {
        const int s = i ^ first;
        rc = *refused && s == B ? 0 : open_side(duet, s, schedule, error);
        if (rc != -ENOTSUP)
            continue;
        *refused = true;
        rc = worker_tell(duet->worker, json_pack("{s:s,s:i,s:o}", "event", "refused", "member", s, "text",
                                                 json_text(error->text, strlen(error->text))));
        if (rc < 0)
            error_system(error, -rc, "%s", duet->sides[s].label);
    }
    return rc;
}

int worker_duet(struct worker *worker, const json_t *request, struct error *error)
{
    struct duet duet = {.worker = worker, .seed = (uint64_t)json_get_int(request, "seed", 1)};
    struct problem_spec spec;
    struct gauges gauges = {0};
    bool refused = false;
    const enum cache_state cache = (enum cache_state)cache_from_name(json_get_string(request, "cache", "warm"));
    int rc = spec_from_json(json_object_get(request, "spec"), &spec, error);
    if (rc == 0)
        rc = worker_duet_load(&duet, request, error);
    if (rc == 0)
        rc = rotation_create(&spec, cache, worker->llc_bytes, worker->team.threads, &duet.rotation, error);
    if (rc == 0)
        rc = make_outputs(&duet, error);
    if (rc == 0)
        rc = open_sides(&duet, request, &refused, error);
    if (rc < 0 || refused)
        goto cleanup;
    rc = worker_duet_qualify(&duet, error);
    if (rc == 0)
        rc = warm_up(&duet, json_get_number(request, "warm_s", 0.3), error);
    if (rc == 0)
        rc = measure(&duet, json_get_number(request, "seconds", 1), &gauges, error);
    if (rc == 0)
        rc = worker_duet_show(&duet, error);
    if (rc == 0)
        rc = worker_tell(worker, result(&duet, &gauges));
cleanup:
    /* What a kernel left may still run or be damaged: nothing is closed or taken away from under it before the error
     * is told, and the process, which is one replicate, ends then. */
    if (rc == 0)
        duet_release(&duet);
    return rc;
}
