/* SPDX-License-Identifier: Apache-2.0
 *
 * Results as Google Benchmark's JSON; see export.h. Fields as in its JSONReporter, version 1.8.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "export.h"
#include "json_util.h"
#include "record_key.h"
#include "record_name.h"
#include "record_text.h"
#include "statistics.h"

/* ---- context ----------------------------------------------------------------------------------------------------- */

/* "Data", "Instruction", "Unified"; sizes in bytes. */
static json_t *caches_of(const json_t *topology)
{
    json_t *caches = json_array(), *cache;
    size_t index;
    json_array_foreach(json_object_get(topology, "caches"), index, cache)
    {
        const char *type = json_get_string(cache, "type", "unified");
        json_array_append_new(caches, json_pack("{s:s,s:I,s:I,s:I}", "type",
                                                strcmp(type, "data") == 0          ? "Data"
                                                : strcmp(type, "instruction") == 0 ? "Instruction"
                                                                                   : "Unified",
                                                "level", (json_int_t)json_get_int(cache, "level", 0), "size",
                                                (json_int_t)json_get_int(cache, "size", 0), "num_sharing",
                                                (json_int_t)json_get_int(cache, "shared_by", 0)));
    }
    return caches;
}

/* The fastest kind of core; null: unknown. */
static json_t *clock_of(const json_t *topology)
{
    double fastest = NAN;
    size_t index;
    json_t *kind;
    json_array_foreach(json_object_get(topology, "kinds"), index, kind) fastest =
        fmax(fastest, json_get_number(kind, "max_mhz", NAN));
    return isfinite(fastest) ? json_integer((json_int_t)llround(fastest)) : json_null();
}

static json_t *context_of(const json_t *contexts)
{
    const json_t *context = json_array_get(contexts, 0), *topology = json_object_get(context, "topology");
    const char *governor = json_get_string(context, "governor", NULL);
    /* What was not recorded is empty, not made up: the load average. */
    const char *executable = json_string_value(json_array_get(json_object_get(context, "command"), 0));
    json_t *out =
        json_pack("{s:s,s:s,s:s,s:I,s:o,s:o,s:[],s:s}", "date", json_get_string(context, "time_utc", ""), "host_name",
                  json_get_string(context, "host", ""), "executable", executable ? executable : "attnbench", "num_cpus",
                  (json_int_t)json_get_int(topology, "pus", 0), "mhz_per_cpu", clock_of(topology), "caches",
                  caches_of(topology), "load_avg", "library_build_type",
                  strstr(json_get_string(context, "flags", ""), "-DNDEBUG") ? "release" : "debug");
    /* Left out where unknown, as there. */
    if (governor)
        json_object_set_new(out, "cpu_scaling_enabled", json_boolean(strcmp(governor, "performance") != 0));
    static const char *const own[] = {"cpu_model", "machine_key", "kernel_release", "compiler", "build_commit"};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        if (json_is_string(json_object_get(context, own[i])))
            json_object_set(out, own[i], json_object_get(context, own[i]));
    }
    return out;
}

/* ---- benchmarks -------------------------------------------------------------------------------------------------- */

struct benchmark {
    const json_t *record;
    const char *name;
    size_t family, repetitions;
    double cpu_over_wall; /* of the point as a whole; 1 where it was not measured */
};

static json_t *entry_of(const struct benchmark *benchmark, const char *suffix, const char *run_type)
{
    return json_pack("{s:s+,s:I,s:i,s:s,s:s,s:I,s:I}", "name", benchmark->name, suffix, "family_index",
                     (json_int_t)benchmark->family, "per_family_instance_index", 0, "run_name", benchmark->name,
                     "run_type", run_type, "repetitions", (json_int_t)benchmark->repetitions, "threads",
                     (json_int_t)json_get_int(benchmark->record, "threads", 1));
}

static void set_times(json_t *entry, const struct benchmark *benchmark, double ns, int64_t iterations)
{
    json_object_set_new(entry, "iterations", json_integer(iterations));
    json_object_set_new(entry, "real_time", json_number_or_null(ns));
    json_object_set_new(entry, "cpu_time", json_number_or_null(ns * benchmark->cpu_over_wall));
    json_object_set_new(entry, "time_unit", json_string("ns"));
}

static void add_samples(json_t *entries, const struct benchmark *benchmark, const double *samples)
{
    for (size_t i = 0; i < benchmark->repetitions; i++) {
        json_t *entry = entry_of(benchmark, "", "iteration");
        json_object_set_new(entry, "repetition_index", json_integer((json_int_t)i));
        set_times(entry, benchmark, samples[i], json_get_int(benchmark->record, "calls_per_sample", 1));
        json_array_append_new(entries, entry);
    }
}

static void add_aggregate(json_t *entries, const struct benchmark *benchmark, const char *suffix, double ns)
{
    json_t *entry = entry_of(benchmark, suffix, "aggregate");
    static const char *const counters[] = {"gflops", "gb_per_s", "roof_fraction"};
    json_object_set_new(entry, "aggregate_name", json_string(suffix + 1));
    json_object_set_new(entry, "aggregate_unit", json_string("time"));
    set_times(entry, benchmark, ns, (int64_t)benchmark->repetitions);
    /* The record's rates are those of its median. */
    for (size_t i = 0; strcmp(suffix, "_median") == 0 && i < sizeof counters / sizeof counters[0]; i++) {
        if (json_is_number(json_object_get(benchmark->record, counters[i])))
            json_object_set(entry, counters[i], json_object_get(benchmark->record, counters[i]));
    }
    json_array_append_new(entries, entry);
}

static double mean_of(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum / (double)count;
}

/* Of a sample of the population; 0 for a single value, as there. */
static double deviation_of(const double *values, size_t count)
{
    double mean = mean_of(values, count), sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (values[i] - mean) * (values[i] - mean);
    return count > 1 ? sqrt(sum / (double)(count - 1)) : 0;
}

static void add_measured(json_t *entries, struct benchmark *benchmark)
{
    const json_t *list = json_object_get(benchmark->record, "samples_ns");
    double *samples = calloc(json_array_size(list) + 1, sizeof *samples);
    double wall_over_cpu = json_get_number(json_object_get(benchmark->record, "noise"), "wall_over_cpu", NAN);
    size_t index;
    json_t *sample;
    if (!samples)
        abort(); /* memory is exhausted; a benchmark without its repetitions would be worse than none */
    json_array_foreach((json_t *)list, index, sample)
    {
        if (json_is_number(sample))
            samples[benchmark->repetitions++] = json_number_value(sample);
    }
    benchmark->cpu_over_wall = wall_over_cpu > 0 ? 1 / wall_over_cpu : 1;
    if (benchmark->repetitions > 0) {
        add_samples(entries, benchmark, samples);
        add_aggregate(entries, benchmark, "_mean", mean_of(samples, benchmark->repetitions));
        add_aggregate(entries, benchmark, "_median", statistics_median(samples, benchmark->repetitions));
        add_aggregate(entries, benchmark, "_stddev", deviation_of(samples, benchmark->repetitions));
    }
    free(samples);
}

/* What has no time stands beside the benchmarks. Among them, with a time of 0 as its own programs give to an error,
 * compare.py would take a point that fails for one that became infinitely fast, and the mean over all would be 0. */
static void add_skipped(json_t *skipped, const struct benchmark *benchmark)
{
    json_array_append_new(skipped, json_pack("{s:s,s:s}", "name", benchmark->name, "skip_message",
                                             json_get_string(benchmark->record, "reason", "no reason recorded")));
}

static void add_error(json_t *errors, const struct benchmark *benchmark)
{
    json_t *message = json_sprintf("%s: %s", record_status_name(record_status(benchmark->record)),
                                   json_get_string(benchmark->record, "reason", "no reason recorded"));
    json_array_append_new(
        errors, json_pack("{s:s,s:b,s:o}", "name", benchmark->name, "error_occurred", 1, "error_message", message));
}

void export_google_benchmark(FILE *file, const json_t *contexts, const json_t *records)
{
    json_t *latest = record_latest(contexts, records), *names = record_names(contexts, latest);
    json_t *entries = json_array(), *skipped = json_array(), *errors = json_array(), *record;
    size_t index;
    json_array_foreach(latest, index, record)
    {
        struct benchmark benchmark = {.record = record,
                                      .name = json_string_value(json_array_get(names, index)),
                                      .family = index,
                                      .cpu_over_wall = 1};
        if (record_status(record) == RECORD_OK)
            add_measured(entries, &benchmark);
        else if (record_status(record) == RECORD_SKIPPED)
            add_skipped(skipped, &benchmark);
        else
            add_error(errors, &benchmark);
    }
    json_t *whole = json_pack("{s:o,s:o,s:o,s:o}", "context", context_of(contexts), "benchmarks", entries, "skipped",
                              skipped, "errors", errors);
    json_dumpf(whole, file, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
    fputc('\n', file);
    json_decref(whole);
    json_decref(names);
    json_decref(latest);
}
