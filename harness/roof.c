/* SPDX-License-Identifier: Apache-2.0
 *
 * Measuring the roof; see roof.h.
 *
 * Rates are summed over threads, each timed by itself: that is what a perfectly balanced kernel could use, also where
 * one of the CPUs is slower than the others.
 */
#include "roof.h"

#include <omp.h>
#include <string.h>

#include "clock.h"
#include "isa.h"
#include "probe.h"

enum { PAGE = 4096, STREAM_CHOICES = 3, TANH_VALUES = 1024, TANH_REPEATS = 64 };
static const int stream_choices[STREAM_CHOICES] = {1, 2, 4};
static const double probe_ns = 1e6;     /* clocked time of one probe */
static const double peak_warm_ns = 1e5; /* before it: enough for the clock's licence to settle between kernels */
static const size_t window_most = (size_t)32 << 20; /* bytes that one pass over a rotating buffer reads, all threads */

static double team_flops(const struct team *team, const struct flop_probe *probe)
{
    double total = 0;
#pragma omp parallel num_threads(team->threads) reduction(+ : total)
    {
        uint64_t iterations = 1000;
        double began, spent = 0;
#pragma omp barrier
        /* Grow until one timed run is long enough: nothing is assumed about the machine's speed. */
        for (; spent < peak_warm_ns; iterations *= 2) {
            began = clock_ns();
            probe->run(iterations);
            spent = clock_ns() - began;
        }
        iterations = (uint64_t)((double)iterations / 2 * (probe_ns / spent)) + 1;
#pragma omp barrier
        began = clock_ns();
        probe->run(iterations);
        spent = clock_ns() - began;
        total += 1e9 * (double)iterations * probe->flops_per_iteration / spent;
    }
    return total;
}

void roof_measure_peaks(const struct team *team, struct roof_peaks *peaks)
{
    for (int p = 0; p < ROOF_MOST_PROBES && flop_probes[p]; p++) {
        if (flop_probes[p]->isa & ~isa_available())
            continue;
        for (int repeat = 0; repeat < 3;
             repeat++) { /* best of three: this picks the probe and names the ISA's ceiling */
            double rate = team_flops(team, flop_probes[p]);
            if (rate > peaks->flops_per_s[p])
                peaks->flops_per_s[p] = rate;
        }
    }
}

int roof_best_probe(const struct roof_peaks *peaks, enum attn_dtype dtype, uint64_t isa)
{
    int best = -1;
    for (int p = 0; p < ROOF_MOST_PROBES && flop_probes[p]; p++) {
        bool serves = flop_probes[p]->dtype == dtype || flop_probes[p]->dtype == ATTN_F32;
        if (serves && !(flop_probes[p]->isa & ~isa) &&
            peaks->flops_per_s[p] > (best < 0 ? 0 : peaks->flops_per_s[best]))
            best = p;
    }
    return best;
}

/* tanh per second of the team, over arrays that stay in each thread's first-level cache. */
static double team_tanh(const struct team *team, const struct function_probe *probe)
{
    double total = 0;
#pragma omp parallel num_threads(team->threads) reduction(+ : total)
    {
        _Alignas(64) float x[TANH_VALUES], y[TANH_VALUES];
        double spent = 0, done = 0;
        for (int i = 0; i < TANH_VALUES; i++)
            x[i] = 8.0f * (float)i / TANH_VALUES - 4.0f;
        probe->apply(x, y, TANH_VALUES);
#pragma omp barrier
        const double began = clock_ns();
        do {
            for (int repeat = 0; repeat < TANH_REPEATS; repeat++)
                probe->apply(x, y, TANH_VALUES);
            done += (double)TANH_REPEATS * TANH_VALUES;
            spent = clock_ns() - began;
        } while (spent < probe_ns);
        total += 1e9 * done / spent;
    }
    return total;
}

/* The next probe of tanh that runs here behind number p, in a circle; -1: there is none. */
static int next_tanh(int p)
{
    int count = 0;
    while (function_probes[count])
        count++;
    for (int tried = 1; tried <= count; tried++) {
        const int at = (p + tried) % count;
        if (strcmp(function_probes[at]->function, "tanh") == 0 && !(function_probes[at]->isa & ~isa_available()))
            return at;
    }
    return -1;
}

static const struct stream_probe *widest_stream(void)
{
    const struct stream_probe *widest = NULL;
    for (int s = 0; stream_probes[s]; s++)
        if (!(stream_probes[s]->isa & ~isa_available()))
            widest = stream_probes[s];
    return widest;
}

int roof_create(const struct team *team, const struct roof_peaks *peaks, enum attn_dtype dtype, const struct work *work,
                double cold_bytes, double cache_bytes, struct roof *roof, struct error *error)
{
    *roof = (struct roof){.team = team, .tanh_probe = work->tanh_count > 0 ? next_tanh(-1) : -1};
    roof->flop_probe = roof_best_probe(peaks, dtype, isa_available());
    if (roof->flop_probe < 0 || !widest_stream())
        return error_machine(error, "no probe measures this machine's peak for %s", dtype_name(dtype));
    double bytes = cold_bytes > work->working_set ? cold_bytes : work->working_set;
    size_t threads = (size_t)team->threads;
    roof->part = ((size_t)(bytes / (double)threads) + PAGE - 1) / PAGE * PAGE;
    if (roof->part == 0)
        roof->part = PAGE;
    roof->rotates = cold_bytes > 0 || (double)roof->part * (double)threads > 4 * cache_bytes;
    roof->window = roof->part;
    if (roof->rotates && roof->window > window_most / threads)
        roof->window = (window_most / threads + PAGE - 1) / PAGE * PAGE;
    int rc = memory_allocate(&roof->buffer, roof->part * threads, MEMORY_HUGE, error);
    if (rc < 0)
        return rc;
        /* First touch by the thread that will walk the part. */
#pragma omp parallel num_threads(team->threads)
    widest_stream()->write((char *)roof->buffer.data + (size_t)omp_get_thread_num() * roof->part, roof->part, 1);
    return 0;
}

void roof_release(struct roof *roof)
{
    memory_release(&roof->buffer);
}

/* Bytes per second of the team, reading or writing, each thread its own part. */
static double team_stream(struct roof *roof, bool write, int streams)
{
    const struct stream_probe *probe = widest_stream();
    double total = 0;
    size_t next = 0;
#pragma omp parallel num_threads(roof->team->threads) reduction(+ : total) reduction(max : next)
    {
        char *part = (char *)roof->buffer.data + (size_t)omp_get_thread_num() * roof->part;
        size_t offset = roof->offset;
        uint64_t seen = 0;
        double spent = 0, bytes = 0;
        if (!roof->rotates) { /* the kernels' turns have evicted it: bring it back unclocked */
            if (write)
                probe->write(part, roof->window, streams);
            else
                seen += probe->read(part, roof->window, streams);
        }
#pragma omp barrier
        double began = clock_ns();
        do {
            if (offset + roof->window > roof->part)
                offset = 0;
            if (write)
                probe->write(part + offset, roof->window, streams);
            else
                seen += probe->read(part + offset, roof->window, streams);
            offset += roof->rotates ? roof->window : 0;
            bytes += (double)roof->window;
            spent = clock_ns() - began;
        } while (spent < probe_ns);
        __asm__ volatile("" : : "r"(seen)); /* the reads are wanted */
        total += 1e9 * bytes / spent;
        next = offset;
    }
    roof->offset = next;
    return total;
}

/* The best stream count so far, and one of the others in turn, so that a change of fortune is seen. */
static double best_stream(struct roof *roof, bool write, int *best)
{
    int other = (*best + 1 + (int)(roof->turn % (STREAM_CHOICES - 1))) % STREAM_CHOICES;
    double rate = team_stream(roof, write, stream_choices[*best]);
    double other_rate = team_stream(roof, write, stream_choices[other]);
    if (other_rate > rate) {
        *best = other;
        rate = other_rate;
    }
    return rate;
}

/* The best probe so far, and one of the others in turn. */
static double best_tanh(struct roof *roof)
{
    int other = roof->tanh_probe;
    for (unsigned steps = 0; steps <= roof->turn % 2; steps++)
        other = next_tanh(other);
    double rate = team_tanh(roof->team, function_probes[roof->tanh_probe]);
    double other_rate = other == roof->tanh_probe ? rate : team_tanh(roof->team, function_probes[other]);
    if (other_rate > rate) {
        roof->tanh_probe = other;
        rate = other_rate;
    }
    return rate;
}

void roof_probe(struct roof *roof, struct roof_rates *rates)
{
    rates->flops_per_s = team_flops(roof->team, flop_probes[roof->flop_probe]);
    rates->read_bytes_per_s = best_stream(roof, false, &roof->read_streams);
    rates->write_bytes_per_s = best_stream(roof, true, &roof->write_streams);
    rates->tanh_per_s = roof->tanh_probe < 0 ? 0 : best_tanh(roof);
    roof->turn++;
}

const char *const roof_bound_names[] = {"compute", "tanh", "memory", "mixed"};

double roof_time_s(const struct work *work, const struct roof_rates *rates, enum roof_bound *bound)
{
    double by_kind[ROOF_MIXED] = {0}, total = 0;
    for (int p = 0; p < ATTN_PHASES; p++) {
        const struct work_phase *phase = &work->phase[p];
        const double seconds[ROOF_MIXED] = {
            [ROOF_COMPUTE] = phase->flops / rates->flops_per_s,
            [ROOF_TANH] = phase->tanh_count > 0 ? phase->tanh_count / rates->tanh_per_s : 0,
            [ROOF_MEMORY] =
                phase->bytes_read / rates->read_bytes_per_s + phase->bytes_written / rates->write_bytes_per_s,
        };
        int most = ROOF_COMPUTE;
        for (int kind = ROOF_TANH; kind <= ROOF_MEMORY; kind++)
            if (seconds[kind] > seconds[most])
                most = kind;
        by_kind[most] += seconds[most];
        total += seconds[most];
    }
    *bound = ROOF_MIXED;
    for (int kind = ROOF_COMPUTE; kind <= ROOF_MEMORY; kind++)
        if (by_kind[kind] >= 0.75 * total)
            *bound = (enum roof_bound)kind;
    return total;
}
