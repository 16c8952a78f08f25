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
#include <sys/mman.h>
#include <unistd.h>

#include "clock.h"
#include "contestant.h"
#include "environment.h"
#include "file_copy.h"
#include "fill.h"
#include "intern.h"
#include "json_util.h"
#include "plugin.h"
#include "registry.h"
#include "statistics.h"
#include "worker.h"

enum { A, B, SIDES, LEAST_BLOCKS = 4, MOST_SHUFFLED = 4096 /* pages */ };
static const double sample_aim_ns = 5e5; /* calls are batched to samples of 0.3-1 ms */

struct side {
    const char *kernel; /* as the registry has it: of a library, behind its prefix */
    struct member member;
    double call_ns;
    int64_t calls; /* of a sample */
    struct series wall, cpu;
};

struct duet {
    struct worker *worker;
    struct rotation rotation;
    struct memory_block out, weights; /* the second ones, where calls do not rotate over copies */
    struct attn_args args[SIDES];     /* of the two outputs */
    struct side sides[SIDES];
    bool swapped; /* A writes to the second output now, in B's workspace */
    uint64_t seed, draws;
    void *offset; /* moves the heap */
};

static uint64_t draw(struct duet *duet)
{
    return fill_bits(duet->seed, 2, FILL_Q, duet->draws++);
}

/* Takes pages from the kernel and gives back every second one, so that the next ones that it hands out are not those of
 * the process before. */
static void shuffle_pages(struct duet *duet)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), count = 64 + draw(duet) % MOST_SHUFFLED;
    unsigned char *pages = mmap(NULL, count * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return;
    madvise(pages, count * page, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < count; i++)
        pages[i * page] = 1;
    for (size_t i = 0; i < count; i++)
        if (draw(duet) & 1)
            munmap(pages + i * page, page);
}

/* Opens a copy of the library. A process tends to get the pages of the one before, and those of the page cache stay for
 * hours: with the sets of a cache that code and data share, identical files then differ by the same 0.1 to 0.2 % in
 * every process of a duet (F = 2.2 between 17 duets of 8; from pages drawn anew 0.9). A library that wants to be opened
 * where it lies is. The descriptor stays open: the loader tells libraries by their paths, and would take the next copy
 * under the same number for this one. */
static int open_copy(struct duet *duet, const char *path, const char *prefix, struct plugin *plugin,
                     struct error *error)
{
    int copy;
    shuffle_pages(duet);
    int rc = file_copy(path, intern_format("attnbench-%s%s", prefix, path), &copy, error);
    if (rc == 0)
        rc = plugin_open(intern_format("/proc/self/fd/%d", copy), plugin, error);
    return rc < 0 ? plugin_open(path, plugin, error) : 0;
}

/* The kernels of a library join the registry behind a prefix, so that two builds of one kernel can stand beside each
 * other. The copies live as long as the process. */
static int add_library(struct duet *duet, const char *path, const char *prefix, struct error *error)
{
    struct plugin plugin = {0};
    int rc = open_copy(duet, path, prefix, &plugin, error);
    const struct registry_origin origin = {REGISTRY_PLUGIN, intern_format("plugin:%s%s", prefix, path), NULL};
    for (int k = 0; k < plugin.count && rc == 0; k++) {
        struct attn_kernel *copy = malloc(sizeof *copy);
        if (!copy)
            return error_system(error, ENOMEM, "%s", path);
        *copy = *plugin.kernels[k];
        copy->name = intern_format("%s%s", prefix, copy->name);
        rc = registry_add(copy, &origin, error);
    }
    return rc;
}

static int load_sides(struct duet *duet, const json_t *request, struct error *error)
{
    static const char *const prefixes[] = {"a:", "b:"};
    const json_t *sides = json_object_get(request, "sides");
    const int first = (int)(draw(duet) & 1);
    int rc = 0;
    registry_run_foreign();
    duet->offset = malloc(64 * (1 + draw(duet) % 16384));
    for (int i = 0; i < SIDES && rc == 0; i++) {
        const int s = i ^ first;
        const json_t *side = json_array_get(sides, (size_t)s);
        const char *library = json_get_string(side, "library", NULL);
        const char *kernel = json_get_string(side, "kernel", "");
        duet->sides[s].kernel = library ? intern_format("%s%s", prefixes[s], kernel) : intern(kernel);
        if (library)
            rc = add_library(duet, library, prefixes[s], error);
    }
    return rc;
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
        return error_system(error, -rc, "%s returned an error", duet->sides[s].kernel);
    return 0;
}

/* CPU time of the thread that does everything, or of the whole team. */
static double cpu_ns(const struct duet *duet)
{
    return duet->worker->team.threads == 1 ? clock_read_ns(CLOCK_THREAD_CPUTIME_ID) : clock_process_cpu_ns();
}

static int sample(struct duet *duet, int s, struct error *error)
{
    struct side *side = &duet->sides[s];
    const double calls = (double)side->calls;
    int rc = 0;
    worker_turn(duet->worker, s);
    const double cpu = cpu_ns(duet), wall = clock_ns();
    for (int64_t c = 0; c < side->calls && rc == 0; c++)
        rc = call(duet, s, error);
    const double wall_spent = clock_ns() - wall, cpu_spent = cpu_ns(duet) - cpu;
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

/* Both in turn until warm; tells how long their calls take. */
static int warm_up(struct duet *duet, double seconds, struct error *error)
{
    const double began = clock_ns();
    int64_t rounds = 0;
    double spent[SIDES] = {0};
    int rc = 0;
    do {
        for (int s = 0; s < SIDES && rc == 0; s++) {
            worker_turn(duet->worker, s);
            const double before = clock_ns();
            rc = call(duet, s, error);
            if (rounds > 0)
                spent[s] += clock_ns() - before;
            duet->sides[s].call_ns = rounds > 0 ? spent[s] / (double)rounds : clock_ns() - before;
            worker_turn(duet->worker, -1);
        }
        rounds++;
    } while (rc == 0 && clock_ns() - began < 1e9 * seconds);
    for (int s = 0; s < SIDES && rc == 0; s++) {
        const int64_t batch = (int64_t)(sample_aim_ns / duet->sides[s].call_ns + 0.5);
        duet->sides[s].calls = batch < 1 ? 1 : batch;
    }
    return rc;
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
        const int outer = (int)(draw(duet) & 1), order[] = {outer, !outer, !outer, outer};
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

/* What is judged is what was timed: the second data set, into poisoned outputs. */
static int show(struct duet *duet, struct error *error)
{
    struct operands *operands = &duet->rotation.operands;
    const int threads = duet->worker->team.threads;
    int rc = 0;
    rotation_fill(&duet->rotation, 1, threads);
    for (int s = 0; s < SIDES && rc == 0; s++) {
        operands_poison(operands, threads);
        worker_turn(duet->worker, s);
        rc = member_call(&duet->sides[s].member, &duet->rotation.args[0]);
        worker_turn(duet->worker, -1);
        if (rc == 0)
            rc = worker_show_output(duet->worker, s, operands, operands->out.data);
        if (rc < 0)
            error_system(error, -rc, "%s, on the data that are verified", duet->sides[s].kernel);
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

static json_t *result(const struct duet *duet, int blocks, double drift, const struct noise_reading *before,
                      const struct noise_reading *after)
{
    const struct side *a = &duet->sides[A], *b = &duet->sides[B];
    const double cpus = (double)sysconf(_SC_NPROCESSORS_ONLN); /* steal is told of all together */
    const int threads = strcmp(a->member.schedule->name, "serial") == 0 ? 1 : duet->worker->team.threads;
    const double wall_ns = sum(&a->wall) * (double)a->calls + sum(&b->wall) * (double)b->calls;
    const double cpu = sum(&a->cpu) * (double)a->calls + sum(&b->cpu) * (double)b->calls;
    json_t *event = json_pack("{s:s,s:i,s:s,s:s}", "event", "duet", "blocks", blocks, "schedule_a",
                              a->member.schedule->name, "schedule_b", b->member.schedule->name);
    json_object_set_new(event, "log_ratio_wall", json_number_or_null(log(median(&b->wall) / median(&a->wall))));
    json_object_set_new(event, "log_ratio_cpu", json_number_or_null(log(median(&b->cpu) / median(&a->cpu))));
    json_object_set_new(event, "median_wall_a_ns", json_number_or_null(median(&a->wall)));
    json_object_set_new(event, "median_wall_b_ns", json_number_or_null(median(&b->wall)));
    json_object_set_new(event, "median_cpu_a_ns", json_number_or_null(median(&a->cpu)));
    json_object_set_new(event, "median_cpu_b_ns", json_number_or_null(median(&b->cpu)));
    json_object_set_new(event, "wall_over_cpu", json_number_or_null(wall_ns * threads / cpu));
    json_object_set_new(
        event, "switches_per_s",
        json_number_or_null((double)(after->involuntary_switches - before->involuntary_switches) / (wall_ns / 1e9)));
    json_object_set_new(
        event, "steal_share",
        json_number_or_null(before->steal_ns < 0 ? NAN : (after->steal_ns - before->steal_ns) / (wall_ns * cpus)));
    json_object_set_new(event, "clock_drift", json_number_or_null(drift));
    const char *pages = page_mode(duet);
    json_object_set_new(event, "page_mode", pages ? json_string(pages) : json_null());
    json_object_set_new(event, "migrations", json_integer((json_int_t)duet->worker->team.migrations));
    return event;
}

static void duet_release(struct duet *duet)
{
    for (int s = 0; s < SIDES; s++) {
        member_close(&duet->sides[s].member);
        free(duet->sides[s].wall.values);
        free(duet->sides[s].cpu.values);
    }
    memory_release(&duet->out);
    memory_release(&duet->weights);
    rotation_release(&duet->rotation);
    free(duet->offset);
}

static int open_sides(struct duet *duet, const char *schedule, struct error *error)
{
    const int first = (int)(draw(duet) & 1);
    int rc = 0;
    for (int i = 0; i < SIDES && rc == 0; i++) {
        const int s = i ^ first;
        worker_turn(duet->worker, s);
        rc = member_open(duet->sides[s].kernel, schedule, &duet->rotation.operands, &duet->worker->team, MEMORY_HUGE,
                         &duet->sides[s].member, error);
        worker_turn(duet->worker, -1);
    }
    return rc;
}

int worker_duet(struct worker *worker, const json_t *request, struct error *error)
{
    struct duet duet = {.worker = worker, .seed = (uint64_t)json_get_int(request, "seed", 1)};
    struct problem_spec spec;
    struct noise_reading before, after;
    int blocks = 0;
    const enum cache_state cache = (enum cache_state)cache_from_name(json_get_string(request, "cache", "warm"));
    int rc = spec_from_json(json_object_get(request, "spec"), &spec, error);
    if (rc == 0)
        rc = load_sides(&duet, request, error);
    if (rc == 0)
        rc = rotation_create(&spec, cache, worker->llc_bytes, worker->team.threads, &duet.rotation, error);
    if (rc == 0)
        rc = make_outputs(&duet, error);
    if (rc == 0)
        rc = open_sides(&duet, json_get_string(request, "schedule", "auto"), error);
    if (rc == 0)
        rc = warm_up(&duet, json_get_number(request, "warm_s", 0.3), error);
    if (rc < 0)
        goto cleanup;
    worker->team.migrations = 0;
    const double clock_before = calibrate();
    noise_read(&before);
    rc = play(&duet, json_get_number(request, "seconds", 1), &blocks, error);
    noise_read(&after);
    const double drift = fabs(calibrate() / clock_before - 1);
    if (rc == 0)
        rc = team_inspect(&worker->team, error);
    if (rc < 0)
        goto cleanup;
    rc = show(&duet, error);
    if (rc == 0)
        rc = worker_tell(worker, result(&duet, blocks, drift, &before, &after));
cleanup:
    duet_release(&duet);
    return rc;
}
