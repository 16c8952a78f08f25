/* SPDX-License-Identifier: Apache-2.0
 *
 * The columns of the table of records; see record_text.h.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "json_util.h"
#include "record_text.h"
#include "text.h"

static void put_string(const json_t *record, const char *key, char *out, size_t size)
{
    const char *text = json_get_string(record, key, "");
    text_fit(text[0] ? text : "-", size, out, size);
}

static void put_number(const json_t *record, const char *key, int digits, size_t width, char *out, size_t size)
{
    char figure[TEXT_FIGURE];
    text_number(json_get_number(record, key, NAN), digits, width, figure);
    snprintf(out, size, "%s", figure);
}

static void put_time(const json_t *record, const char *key, char *out, size_t size)
{
    char figure[TEXT_FIGURE];
    text_time(json_get_number(record, key, NAN), figure);
    snprintf(out, size, "%s", figure);
}

static void put_count(const json_t *record, const char *key, char *out, size_t size)
{
    int64_t count = json_get_int(record, key, -1);
    if (count >= 0)
        snprintf(out, size, "%lld", (long long)count);
    else
        snprintf(out, size, "-");
}

static void kernel_cell(const json_t *record, char *out, size_t size)
{
    put_string(record, "kernel", out, size);
}

static void schedule_cell(const json_t *record, char *out, size_t size)
{
    put_string(record, "schedule", out, size);
}

static void threads_cell(const json_t *record, char *out, size_t size)
{
    /* More than five digits would push the line over its width. */
    if (json_get_int(record, "threads", 0) > 99999)
        put_number(record, "threads", 1, 5, out, size);
    else
        put_count(record, "threads", out, size);
}

static void placement_cell(const json_t *record, char *out, size_t size)
{
    put_string(record, "placement", out, size);
}

static void time_cell(const json_t *record, char *out, size_t size)
{
    put_time(record, "median_ns", out, size);
}

static void interval_cell(const json_t *record, char *out, size_t size)
{
    char figure[TEXT_FIGURE];
    double percent = 100 * record_ci_half(record);
    text_number(percent, 2, 4, figure);
    snprintf(out, size, "%s", percent > 9999 ? ">1e4" : figure);
}

static void gflops_cell(const json_t *record, char *out, size_t size)
{
    put_number(record, "gflops", 4, 7, out, size);
}

static void bandwidth_cell(const json_t *record, char *out, size_t size)
{
    put_number(record, "gb_per_s", 3, 5, out, size);
}

static void roof_cell(const json_t *record, char *out, size_t size)
{
    char figure[TEXT_FIGURE];
    text_percent(json_get_number(record, "roof_fraction", NAN), figure);
    snprintf(out, size, "%s", figure);
}

static void bound_cell(const json_t *record, char *out, size_t size)
{
    put_string(record, "roof_bound", out, size);
}

static void error_cell(const json_t *record, char *out, size_t size)
{
    put_number(record, "err_over_bound", 2, 5, out, size);
}

static void mark_cell(const json_t *record, char *out, size_t size)
{
    snprintf(out, size, "%s", record_noisy(record) ? "~" : "");
}

static void least_time_cell(const json_t *record, char *out, size_t size)
{
    put_time(record, "min_ns", out, size);
}

static void mad_cell(const json_t *record, char *out, size_t size)
{
    put_time(record, "mad_ns", out, size);
}

static void samples_cell(const json_t *record, char *out, size_t size)
{
    snprintf(out, size, "%zu", json_array_size(json_object_get(record, "samples_ns")));
}

static void calls_cell(const json_t *record, char *out, size_t size)
{
    put_count(record, "calls_per_sample", out, size);
}

static void tokens_cell(const json_t *record, char *out, size_t size)
{
    put_number(record, "tokens_per_s", 4, 9, out, size);
}

static void isa_roof_cell(const json_t *record, char *out, size_t size)
{
    put_number(record, "isa_roof_gflops", 4, 7, out, size);
}

static void verified_cell(const json_t *record, char *out, size_t size)
{
    int64_t rows = json_get_int(record, "rows_checked", -1);
    const char *how = json_get_string(record, "verified", "-");
    if (rows >= 0)
        snprintf(out, size, "%.10s %lld", how, (long long)rows);
    else
        snprintf(out, size, "%.10s", how);
}

static void pages_cell(const json_t *record, char *out, size_t size)
{
    put_string(record, "page_mode", out, size);
}

static void wall_cell(const json_t *record, char *out, size_t size)
{
    put_number(json_object_get(record, "noise"), "wall_over_cpu", 3, 5, out, size);
}

static void switches_cell(const json_t *record, char *out, size_t size)
{
    put_count(json_object_get(record, "noise"), "involuntary_switches", out, size);
}

/* "0-3,8": runs of neighbours are drawn together; thread order stays. */
static void cpus_cell(const json_t *record, char *out, size_t size)
{
    const json_t *cpus = json_object_get(record, "cpus");
    size_t count = json_array_size(cpus), used = 0;
    snprintf(out, size, "-");
    for (size_t i = 0; i < count && used + 32 < size;) {
        int first = (int)json_integer_value(json_array_get(cpus, i));
        size_t run = 1;
        while (i + run < count && json_integer_value(json_array_get(cpus, i + run)) == first + (int)run)
            run++;
        used += (size_t)snprintf(out + used, size - used, "%s%d", i ? "," : "", first);
        if (run > 1)
            used += (size_t)snprintf(out + used, size - used, "-%d", first + (int)run - 1);
        i += run;
    }
}

static void per_core_cell(const json_t *record, char *out, size_t size)
{
    put_number(record, "gflops_per_core", 4, 7, out, size);
}

static void efficiency_cell(const json_t *record, char *out, size_t size)
{
    char figure[TEXT_FIGURE];
    text_percent(json_get_number(record, "parallel_efficiency", NAN), figure);
    snprintf(out, size, "%s", figure);
}

static void cause_cell(const json_t *record, char *out, size_t size)
{
    put_string(record, "cause", out, size);
}

/* "pack 1.200 µs + attend 30.10 µs": what the phases of one call took. */
static void phases_cell(const json_t *record, char *out, size_t size)
{
    const char *key;
    json_t *value;
    size_t used = 0;
    snprintf(out, size, "-");
    json_object_foreach((json_t *)json_object_get(record, "phases_ns"), key, value)
    {
        char name[64], time[TEXT_FIGURE];
        text_fit(key, 15, name, sizeof name);
        text_time(json_number_value(value), time);
        if (json_is_number(value) && used + sizeof name + TEXT_FIGURE < size)
            used += (size_t)snprintf(out + used, size - used, "%s%s %s", used ? " + " : "", name, time);
    }
}

const struct record_column record_columns[] = {
    {"kernel", NULL, false, true, 8, kernel_cell},
    {"sched", "schedule", false, true, 5, schedule_cell},
    {"thr", "threads", false, false, 0, threads_cell},
    {"place", "placement", false, true, 5, placement_cell},
    {"time", "median", false, false, 0, time_cell},
    {"±%", "95% ±%", false, false, 0, interval_cell},
    {"GFLOP/s", NULL, false, false, 0, gflops_cell},
    {"GB/s", NULL, false, false, 0, bandwidth_cell},
    {"roof", "of roof", false, false, 0, roof_cell},
    {"bound", "bound by", false, true, 7, bound_cell},
    {"err", "err/bound", false, false, 0, error_cell},
    {"", NULL, false, true, 1, mark_cell},
    {"min", NULL, true, false, 0, least_time_cell},
    {"MAD", NULL, true, false, 0, mad_cell},
    {"samples", NULL, true, false, 0, samples_cell},
    {"calls", "calls each", true, false, 0, calls_cell},
    {"tokens/s", NULL, true, false, 0, tokens_cell},
    {"ISA peak", "ISA GFLOP/s", true, false, 0, isa_roof_cell},
    {"verified", "rows verified", true, true, 8, verified_cell},
    {"pages", NULL, true, true, 5, pages_cell},
    {"wall/CPU", NULL, true, false, 0, wall_cell},
    {"switches", NULL, true, false, 0, switches_cell},
    {"per core", "GFLOP/s/core", true, false, 0, per_core_cell},
    {"par.eff", "parallel eff.", true, false, 0, efficiency_cell},
    {"cpus", NULL, true, true, 4, cpus_cell},
    {"cause", NULL, true, true, 5, cause_cell},
    {"phases", NULL, true, true, 6, phases_cell},
};
const size_t record_column_count = sizeof record_columns / sizeof record_columns[0];
