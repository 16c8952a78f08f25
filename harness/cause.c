/* SPDX-License-Identifier: Apache-2.0
 *
 * Telling what holds a point back; see cause.h.
 */
#include "cause.h"

#include <math.h>
#include <string.h>

#include "json_util.h"

static const double near_roof = 0.8;      /* of the roof: what is left is loop ends, exponentials, start-up */
static const double imbalance_most = 1.1; /* slowest / mean busy time */
static const double starved_least = 0.05; /* of the mean busy time: less is a thread without a task */

struct busy {
    double mean, most, least;
    size_t threads;
};

static struct busy busy_times(const json_t *record)
{
    struct busy busy = {.least = INFINITY};
    const json_t *list = json_object_get(record, "thread_busy_ns");
    size_t i;
    json_t *value;
    json_array_foreach(list, i, value)
    {
        double ns = json_number_value(value);
        busy.mean += ns;
        busy.most = ns > busy.most ? ns : busy.most;
        busy.least = ns < busy.least ? ns : busy.least;
        busy.threads++;
    }
    if (busy.threads)
        busy.mean /= (double)busy.threads;
    return busy;
}

/* Distinct cores among the record's CPUs; 0 where a CPU is unknown to the topology. */
static int distinct_cores(const json_t *record, const struct topology *topology)
{
    const json_t *cpus = json_object_get(record, "cpus");
    hwloc_bitmap_t cores = hwloc_bitmap_alloc();
    size_t i;
    json_t *cpu;
    json_array_foreach(cpus, i, cpu)
    {
        const struct topology_pu *pu = topology_pu(topology, (int32_t)json_integer_value(cpu));
        if (pu)
            hwloc_bitmap_set(cores, (unsigned)pu->core);
    }
    int count = hwloc_bitmap_weight(cores);
    hwloc_bitmap_free(cores);
    return count;
}

static const char *cause_of(const json_t *record, const struct busy *busy, int cores)
{
    const json_t *noise = json_object_get(record, "noise");
    const char *bound = json_get_string(record, "roof_bound", "");
    if (json_get_number(noise, "throttled_ns", 0) > 0)
        return "throttled";
    if (strcmp(json_get_string(noise, "quality", ""), "noisy") == 0)
        return "noisy";
    if (busy->threads > 1 && busy->least < starved_least * busy->mean)
        return "starved";
    if (busy->threads > 1 && busy->most > imbalance_most * busy->mean)
        return "imbalance";
    if (cores > 0 && (size_t)cores < json_array_size(json_object_get(record, "cpus")))
        return "smt-shared";
    if (json_get_number(record, "roof_fraction", 0) < near_roof)
        return "kernel";
    if (strcmp(bound, "compute") == 0)
        return "compute-bound";
    if (strcmp(bound, "tanh") == 0)
        return "tanh-bound";
    if (strcmp(bound, "mixed") == 0)
        return "mixed-bound";
    return strcmp(bound, "dram") == 0 ? "dram-bound" : "cache-bound";
}

/* Median time of the one-thread record of the same kernel, problem and cache state; NaN: there is none. */
static double one_thread_ns(const struct point *point, const json_t *record, const json_t *records)
{
    static const char *const same[] = {"kernel", "source", "cache", "layout"};
    json_t *spec = spec_to_json(&point->spec), *other, *value;
    const char *key;
    size_t i;
    double found = NAN;
    json_array_foreach(records, i, other)
    {
        bool matches =
            json_get_int(other, "threads", 0) == 1 && strcmp(json_get_string(other, "status", ""), "ok") == 0;
        for (size_t s = 0; matches && s < sizeof same / sizeof *same; s++)
            matches = strcmp(json_get_string(other, same[s], ""), json_get_string(record, same[s], "")) == 0;
        json_object_foreach(spec, key, value) matches = matches && json_equal(value, json_object_get(other, key));
        double ns = matches ? json_get_number(other, "median_ns", NAN) : NAN;
        if (isnan(found) || ns < found) /* the fastest schedule of one thread is what more threads must beat */
            found = ns;
    }
    json_decref(spec);
    return found;
}

void cause_annotate(json_t *record, const struct point *point, const json_t *records, const struct topology *topology)
{
    if (strcmp(json_get_string(record, "status", ""), "ok") != 0)
        return;
    struct busy busy = busy_times(record);
    int cores = distinct_cores(record, topology);
    double gflops = json_get_number(record, "gflops", NAN), median_ns = json_get_number(record, "median_ns", NAN);
    size_t threads = json_array_size(json_object_get(record, "cpus"));
    double base_ns = threads == 1 ? median_ns : one_thread_ns(point, record, records);
    json_object_set_new(record, "cause", json_string(cause_of(record, &busy, cores)));
    json_object_set_new(record, "imbalance", json_number_or_null(busy.threads > 1 ? busy.most / busy.mean : NAN));
    json_object_set_new(record, "gflops_per_core", json_number_or_null(cores > 0 ? gflops / cores : NAN));
    json_object_set_new(record, "parallel_efficiency", json_number_or_null(base_ns / ((double)threads * median_ns)));
}
