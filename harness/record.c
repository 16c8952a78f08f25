/* SPDX-License-Identifier: Apache-2.0
 *
 * Building records; see record.h.
 */
#include "record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "contestant.h"
#include "json_util.h"
#include "roof.h"
#include "statistics.h"
#include "work.h"

static void set(json_t *record, const char *key, json_t *value)
{
    json_object_set_new(record, key, value);
}

static void set_real(json_t *record, const char *key, double value)
{
    set(record, key, json_number_or_null(value));
}

json_t *record_create(const struct point *point, const char *run_id)
{
    static const char *const unmeasured[] = {
        "calls_per_sample", "median_ns",       "ci95_low_ns",    "ci95_high_ns",    "ci_scope",
        "min_ns",           "mad_ns",          "gflops",         "gb_per_s",        "tokens_per_s",
        "roof_bound",       "roof_gflops",     "roof_fraction",  "isa_roof_gflops", "phases_ns",
        "thread_busy_ns",   "cause",           "rows_checked",   "max_abs_err",     "rms_err",
        "err_over_bound",   "workspace_bytes", "peak_rss_bytes", "page_mode",       "noise",
        "counters",         "joules_per_call"};
    struct work work;
    work_count(&point->spec, &work);
    json_t *record = json_pack("{s:s,s:s,s:s,s:s,s:n}", "schema", "attnbench.result/1", "run_id", run_id, "point_id",
                               point_id(point), "status", "skipped", "reason");
    json_t *spec = spec_to_json(&point->spec);
    json_object_update(record, spec);
    json_decref(spec);
    set(record, "kernel", json_string(point->kernel));
    set(record, "source", json_string(point->source));
    set(record, "schedule",
        json_string(strcmp(point->schedule_requested, "auto") ? point->schedule_requested : "none"));
    set(record, "schedule_requested", json_string(point->schedule_requested));
    set(record, "threads", json_integer(point->threads));
    set(record, "placement", json_string(point->placement));
    set(record, "mem", json_string(point->mem ? point->mem : "local"));
    set(record, "cpus", json_array());
    set(record, "cache", json_string(cache_name(point->cache)));
    set_real(record, "flops_useful", work.flops_useful);
    set_real(record, "flops_dense", work.flops_dense);
    set_real(record, "tanh_count", work.tanh_count);
    set_real(record, "bytes_min", work.bytes_min);
    set(record, "verified", json_string("off"));
    set(record, "samples_ns", json_array());
    for (size_t f = 0; f < sizeof unmeasured / sizeof *unmeasured; f++)
        set(record, unmeasured[f], json_null());
    char *repro = point_repro(point);
    set(record, "repro", repro ? json_string(repro) : json_null());
    free(repro);
    return record;
}

void record_set_status(json_t *record, const char *status, const char *reason)
{
    set(record, "status", json_string(status));
    set(record, "reason", reason ? json_string(reason) : json_null());
}

/* All numbers of an array field of all launches, one after the other. */
static void gather(const json_t *results, const char *key, struct series *series)
{
    size_t launch, i;
    json_t *result, *value;
    json_array_foreach(results, launch, result) json_array_foreach(
        json_object_get(result, key), i, value) if (series_add(series, json_number_value(value)) < 0) return;
}

/* Median of an array field of each launch. */
static void gather_medians(const json_t *results, const char *key, struct series *series)
{
    size_t launch;
    json_t *result;
    json_array_foreach(results, launch, result)
    {
        json_t *one = json_pack("[O]", result);
        struct series values = {0};
        gather(one, key, &values);
        series_add(series, statistics_median(values.values, values.count));
        free(values.values);
        json_decref(one);
    }
}

static void set_times(json_t *record, const json_t *results)
{
    struct series samples = {0}, medians = {0};
    double low, high;
    gather(results, "samples_ns", &samples);
    gather_medians(results, "samples_ns", &medians);
    bool across = json_array_size(results) > 1;
    const struct series *judged = across ? &medians : &samples;
    json_t *list = json_array();
    for (size_t i = 0; i < samples.count; i++)
        json_array_append_new(list, json_real(samples.values[i]));
    set(record, "samples_ns", list);
    set_real(record, "median_ns", statistics_median(judged->values, judged->count));
    set_real(record, "min_ns", statistics_min(samples.values, samples.count));
    set_real(record, "mad_ns", statistics_mad(samples.values, samples.count));
    if (statistics_median_ci95(judged->values, judged->count, &low, &high)) {
        set_real(record, "ci95_low_ns", low);
        set_real(record, "ci95_high_ns", high);
        set(record, "ci_scope", json_string(across ? "across_processes" : "within_process"));
    }
    free(samples.values);
    free(medians.values);
}

/* The memory level that the working set fits, counting the private caches of every thread used. */
static const char *memory_level(const struct point *point, double working_set, const struct topology *topology)
{
    if (point->cache == CACHE_COLD)
        return "dram";
    if (working_set <= (double)topology_cache_bytes(topology, 1) * point->threads)
        return "l1";
    if (working_set <= (double)topology_cache_bytes(topology, 2) * point->threads)
        return "l2";
    return working_set <= (double)topology_llc_total_bytes(topology) ? "l3" : "dram";
}

static void set_roof(json_t *record, const struct point *point, const json_t *results, const struct topology *topology)
{
    struct work work;
    struct series ratios = {0}, roofs = {0};
    work_count(&point->spec, &work);
    gather(results, "ratios", &ratios);
    gather(results, "roof_ns", &roofs);
    double fraction = statistics_median(ratios.values, ratios.count);
    double roof_ns = statistics_median(roofs.values, roofs.count);
    const char *bound = json_get_string(json_array_get(results, 0), "bound", "mixed");
    if (strcmp(bound, roof_bound_names[ROOF_MEMORY]) == 0)
        bound = memory_level(point, work.working_set, topology);
    set(record, "roof_bound", json_string(bound));
    set_real(record, "roof_gflops", work.flops_useful / roof_ns);
    if (fraction > ROOF_FRACTION_MOST) /* the noise rules have already measured it again */
        json_object_set_new(json_object_get(record, "noise"), "quality", json_string("noisy"));
    else
        set_real(record, "roof_fraction", fraction);
    free(ratios.values);
    free(roofs.values);
}

/* A layer's median time and its FLOPs by phase: the shares that the phases had of all clocked time, of the median. */
static void set_phases(json_t *record, const struct work *work, const json_t *results)
{
    double ns[ATTN_PHASES] = {0}, total = 0, median_ns = json_get_number(record, "median_ns", NAN);
    const json_t *matmul = json_object_get(json_array_get(results, 0), "matmul_kernel");
    size_t launch;
    json_t *result;
    json_array_foreach((json_t *)results, launch, result) for (int p = 0; p < ATTN_PHASES; p++)
    {
        const double one = json_get_number(json_object_get(result, "phases_ns"), attn_phase_names[p], 0);
        ns[p] += one;
        total += one;
    }
    if (total <= 0)
        return;
    json_t *times = json_object(), *flops = json_object();
    for (int p = 0; p < ATTN_PHASES; p++)
        if (ns[p] > 0) {
            json_object_set_new(times, attn_phase_names[p], json_real(median_ns * ns[p] / total));
            json_object_set_new(flops, attn_phase_names[p], json_real(work->phase[p].flops));
        }
    set(record, "phases_ns", times);
    set(record, "phases_flops", flops);
    if (matmul)
        set(record, "matmul_kernel", json_incref((json_t *)matmul));
}

static void copy_field(json_t *record, const json_t *from, const char *key)
{
    json_t *value = json_object_get(from, key);
    set(record, key, value ? json_incref(value) : json_null());
}

/* The launch whose noise is worst speaks for all. */
static const json_t *noisiest(const json_t *results)
{
    size_t launch;
    json_t *result;
    json_array_foreach(results, launch,
                       result) if (strcmp(json_get_string(json_object_get(result, "noise"), "quality", ""), "noisy") ==
                                   0) return result;
    return json_array_get(results, 0);
}

/* Mean over the launches, null where one has none; a yes or no is true where it is true in any of them. */
static json_t *counter_mean(const json_t *results, const char *group, const char *name)
{
    size_t launch, found = 0;
    double sum = 0;
    bool any = false, flag = false;
    json_t *result;
    json_array_foreach((json_t *)results, launch, result)
    {
        const json_t *value = json_object_get(json_object_get(json_object_get(result, "counters"), group), name);
        found += json_is_number(value);
        sum += json_number_value(value);
        flag |= json_is_boolean(value);
        any |= json_is_true(value);
    }
    if (flag)
        return json_boolean(any);
    return found == json_array_size(results) ? json_real(sum / (double)found) : json_null();
}

static void set_counters(json_t *record, const json_t *results)
{
    const json_t *first = json_array_get(results, 0);
    json_t *counters = json_deep_copy(json_object_get(first, "counters")), *group, *value, *result;
    const char *name, *column;
    double joules = 0;
    size_t launch;
    if (!counters)
        return;
    json_object_foreach(counters, name, group)
    {
        json_object_foreach(group, column, value)
            json_object_set_new(group, column, counter_mean(results, name, column));
    }
    json_array_foreach((json_t *)results, launch, result) joules += json_get_number(result, "joules_per_call", NAN);
    set(record, "counters", counters);
    set_real(record, "joules_per_call", joules / (double)json_array_size(results));
    copy_field(record, first, "counters_note");
}

void record_result(json_t *record, const struct point *point, const json_t *results, const json_t *judgement,
                   const struct topology *topology)
{
    static const char *const from_worker[] = {
        "schedule",       "cpus",      "calls_per_sample", "isa_roof_gflops", "workspace_bytes",
        "peak_rss_bytes", "page_mode", "thread_busy_ns",   "samples_retaken"};
    static const char *const from_referee[] = {"verified", "rows_checked", "max_abs_err", "rms_err", "err_over_bound"};
    const json_t *first = json_array_get(results, 0);
    struct work work;
    work_count(&point->spec, &work);
    for (size_t f = 0; f < sizeof from_worker / sizeof *from_worker; f++)
        copy_field(record, first, from_worker[f]);
    const char *source = json_get_string(first, "source", NULL);
    if (source)
        set(record, "source", json_string(source));
    for (size_t f = 0; f < sizeof from_referee / sizeof *from_referee; f++)
        copy_field(record, judgement, from_referee[f]);
    set(record, "noise", json_deep_copy(json_object_get(noisiest(results), "noise")));
    set_counters(record, results);
    set_times(record, results);
    if (json_is_true(json_object_get(first, "changed_float_mode")))
        set(record, "changed_float_mode", json_true());
    if (json_is_true(json_object_get(judgement, "wrong"))) {
        record_set_status(record, "wrong", json_get_string(judgement, "reason", "wrong result"));
        set(record, "isa_roof_gflops", json_null());
        return;
    }
    double median_ns = json_get_number(record, "median_ns", NAN);
    record_set_status(record, "ok", NULL);
    set_real(record, "gflops", work.flops_useful / median_ns);
    set_real(record, "gb_per_s", work.bytes_min / median_ns);
    if (point->spec.rule != ATTN_MATMUL)
        set_real(record, "tokens_per_s", 1e9 * (double)point->spec.B * (double)point->spec.S_q / median_ns);
    set_phases(record, &work, results);
    set_roof(record, point, results, topology);
}
