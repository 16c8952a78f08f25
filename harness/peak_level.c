/* SPDX-License-Identifier: Apache-2.0
 *
 * Bandwidth and load latency of one level of the memory hierarchy; see peaks.h.
 */
#include <errno.h>
#include <omp.h>
#include <stdlib.h>

#include "clock.h"
#include "environment.h"
#include "intern.h"
#include "isa.h"
#include "json_util.h"
#include "latency.h"
#include "memory_policy.h"
#include "operands.h"
#include "peaks.h"
#include "probe.h"

enum { STREAM_CHOICES = 3, HUGE_PAGE = 2 << 20 };
static const int stream_choices[STREAM_CHOICES] = {1, 2, 4};
static const double memory_share = 0.8; /* of what is available: more is not taken */

enum direction { READ, WRITE, COPY, DIRECTIONS };

struct bench {
    const struct team *team;
    const struct level *level;
    const struct stream_probe *probe;
    struct memory_block buffer, chain;
    size_t *offsets; /* [team] of each thread's part */
    double clocked_ns;
    enum direction direction; /* of the sample under way */
    int streams[DIRECTIONS];
    void *at;       /* where the chase stands */
    uint64_t steps; /* of one sample of it */
    double rates[DIRECTIONS][PEAK_REPEATS_MOST], latencies[PEAK_REPEATS_MOST];
};

static const struct stream_probe *widest_stream(void)
{
    const struct stream_probe *widest = NULL;
    for (int s = 0; stream_probes[s]; s++)
        if (!(stream_probes[s]->isa & ~isa_available()))
            widest = stream_probes[s];
    return widest;
}

/* Parts of huge pages begin at one, so that first touch decides for each thread alone. Returns bytes in all. */
static size_t lay_out(const struct level *level, int team, size_t *offsets)
{
    size_t end = 0;
    for (int t = 0; t < team; t++) {
        if (level->parts[t] >= HUGE_PAGE)
            end = (end + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
        offsets[t] = end;
        end += level->parts[t];
    }
    return end;
}

/* One pass over a part; returns the bytes moved. */
static double pass(const struct bench *bench, char *part, size_t bytes)
{
    const int streams = bench->streams[bench->direction];
    uint64_t seen = 0;
    if (bench->direction == READ)
        seen = bench->probe->read(part, bytes, streams);
    else if (bench->direction == WRITE)
        bench->probe->write(part, bytes, streams);
    else
        bench->probe->copy(part + bytes / 2, part, bytes / 2);
    __asm__ volatile("" : : "r"(seen) : "memory"); /* the reads are wanted */
    return (double)bytes;
}

/* Bytes per second of all threads that have the level. */
static double stream_rate(void *context)
{
    const struct bench *bench = context;
    double total = 0;
#pragma omp parallel num_threads(bench->team->threads) reduction(+ : total)
    {
        const int thread = omp_get_thread_num();
        const size_t bytes = bench->level->parts[thread];
        char *part = (char *)bench->buffer.data + bench->offsets[thread];
        double done = 0, began, now;
        if (bytes) /* into the cache that is meant */
            pass(bench, part, bytes);
#pragma omp barrier
        if (bytes) {
            began = clock_ns();
            do {
                /* A look at the clock every 256 KiB at most, so that it costs little against a pass over 16 KiB. */
                for (size_t walked = 0; walked < (size_t)256 << 10; walked += bytes)
                    done += pass(bench, part, bytes);
                now = clock_ns();
            } while (now - began < bench->clocked_ns);
            total += 1e9 * done / (now - began);
        }
    }
    return total;
}

static void choose_streams(struct bench *bench, enum direction direction)
{
    bench->direction = direction;
    double best = 0;
    int chosen = 1;
    for (int s = 0; s < STREAM_CHOICES; s++) {
        bench->streams[direction] = stream_choices[s];
        double rate = peak_sample(stream_rate, bench);
        if (rate > best) {
            best = rate;
            chosen = stream_choices[s];
        }
    }
    bench->streams[direction] = chosen;
}

/* Time of one dependent load on the calling thread. */
static double load_ns(void *context)
{
    struct bench *bench = context;
    const double began = clock_ns();
    bench->at = latency_chase(bench->at, bench->steps);
    return (clock_ns() - began) / (double)bench->steps;
}

/* Steps that take between a quarter and a half of clocked_ns: short, so that few samples are disturbed. */
static void choose_steps(struct bench *bench)
{
    double spent = 0;
    for (bench->steps = 256; spent < bench->clocked_ns / 4; bench->steps *= 2)
        spent = (double)bench->steps * load_ns(bench);
    bench->steps /= 2;
}

static void chase(struct bench *bench, const struct peak_effort *effort)
{
    const struct level *level = bench->level;
    latency_link(bench->chain.data, level->chase_bytes, level->line_bytes, 1);
    /* Memory is met as linking left it; a cache is filled by one round. */
    const bool cached = (double)level->chase_bytes <= level->cache_bytes;
    bench->at = latency_chase(bench->chain.data, cached ? level->chase_bytes / level->line_bytes : 1);
    choose_steps(bench);
    for (int r = 0; r < effort->repeats; r++)
        bench->latencies[r] = peak_sample(load_ns, bench);
}

static void measure(struct bench *bench, const struct peak_effort *effort)
{
    const int chaser = bench->level->chaser;
#pragma omp parallel num_threads(bench->team->threads)
    {
        const int thread = omp_get_thread_num(); /* first touch by the thread that walks the part */
        bench->probe->write((char *)bench->buffer.data + bench->offsets[thread], bench->level->parts[thread], 1);
    }
    bench->clocked_ns = effort->clocked_ns;
    choose_streams(bench, READ);
    choose_streams(bench, WRITE);
    for (int r = 0; r < effort->repeats; r++)
        for (int d = 0; d < DIRECTIONS; d++) {
            bench->direction = (enum direction)d;
            bench->rates[d][r] = 1e-9 * peak_sample(stream_rate, bench);
        }
    if (chaser == 0) { /* outside of a region, where no other thread spins for its end */
        chase(bench, effort);
    } else {
#pragma omp parallel num_threads(bench->team->threads)
        if (omp_get_thread_num() == chaser)
            chase(bench, effort);
    }
}

static int allocate(struct bench *bench, struct error *error)
{
    const double available = (double)environment_memory_available(),
                 needed = level_bytes(bench->level, bench->team->threads);
    if (!bench->probe)
        return error_machine(error, "no loop measures bandwidth on this machine");
    if (available > 0 && needed > memory_share * available)
        return error_machine(error, "needs %.2f GB of memory, %.2f GB are available", needed / 1e9, available / 1e9);
    bench->offsets = calloc((size_t)bench->team->threads, sizeof *bench->offsets);
    if (!bench->offsets)
        return error_system(error, ENOMEM, "parts of %d threads", bench->team->threads);
    size_t bytes = lay_out(bench->level, bench->team->threads, bench->offsets);
    int rc = memory_allocate(&bench->buffer, bytes, MEMORY_HUGE, error);
    return rc < 0 ? rc : memory_allocate(&bench->chain, bench->level->chase_bytes, MEMORY_HUGE, error);
}

static void set(json_t *object, const char *key, json_t *value)
{
    json_object_set_new(object, key, value);
}

static json_t *text_or_null(const char *text)
{
    return text ? json_string(text) : json_null();
}

/* reason: NULL, or why nothing was measured. */
static json_t *bench_to_json(const struct bench *bench, int repeats, const char *reason)
{
    static const char *const rates[] = {"read_gb_per_s", "write_gb_per_s", "copy_gb_per_s"};
    static const char *const streams[] = {"read_streams", "write_streams", NULL};
    const struct level *level = bench->level;
    const struct memory_block *const blocks[] = {&bench->buffer, &bench->chain};
    json_t *object = json_object(),
           *nodes = reason ? NULL : memory_policy_found(bench->buffer.data, bench->buffer.bytes);
    size_t bytes = 0;
    for (int t = 0; t < bench->team->threads; t++)
        bytes += level->parts[t];
    set(object, "level", json_string(level->name));
    set(object, "cache_bytes", level->cache_bytes > 0 ? json_integer((json_int_t)level->cache_bytes) : json_null());
    set(object, "threads", json_integer(level->threads));
    set(object, "bytes", json_integer((json_int_t)bytes));
    set(object, "vector", text_or_null(bench->probe ? bench->probe->name : NULL));
    set(object, "page_mode", text_or_null(reason ? NULL : memory_page_mode(blocks, 2)));
    set(object, "mem_nodes", nodes ? nodes : json_null());
    for (int d = 0; d < DIRECTIONS; d++) {
        set(object, rates[d], peak_summary(bench->rates[d], repeats));
        if (streams[d])
            set(object, streams[d], repeats ? json_integer(bench->streams[d]) : json_null());
    }
    set(object, "latency_bytes", json_integer((json_int_t)level->chase_bytes));
    set(object, "latency_ns", peak_summary(bench->latencies, repeats));
    set(object, "reason", text_or_null(reason));
    return object;
}

json_t *peak_level(const struct team *team, const struct level *level, const struct peak_effort *effort)
{
    struct bench *bench = calloc(1, sizeof *bench);
    struct error error;
    if (!bench)
        return NULL;
    bench->team = team;
    bench->level = level;
    bench->probe = widest_stream();
    int rc = allocate(bench, &error);
    if (rc == 0)
        measure(bench, effort);
    json_t *result = bench_to_json(bench, rc < 0 ? 0 : effort->repeats, rc < 0 ? error.text : NULL);
    memory_release(&bench->buffer);
    memory_release(&bench->chain);
    free(bench->offsets);
    free(bench);
    return result;
}
