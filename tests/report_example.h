/* SPDX-License-Identifier: Apache-2.0
 *
 * Small reports for unit tests: records with hand-picked figures, read through a results file as the program does it.
 * One test program includes this, after cmocka.h.
 */
#ifndef TESTS_REPORT_EXAMPLE_H
#define TESTS_REPORT_EXAMPLE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "harness/json_util.h"
#include "harness/report.h"

/* A measured record with the fields of `fields` (stolen) in place of the usual ones. Unless they are given, gflops
 * follows from flops_useful and median_ns, and the interval is 0.9 .. 1.25 of the median. */
static json_t *example_record(json_t *fields)
{
    static int count;
    char id[32];
    snprintf(id, sizeof id, "%016x", ++count);
    json_t *record = json_pack("{s:s,s:s,s:s,s:s,s:n,s:s,s:s,s:s,s:s,s:s,s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:f,s:s,s:s}",
                               "schema", "attnbench.result/1", "run_id", "run", "point_id", id, "status", "ok",
                               "reason", "rule", "scaled_dot_product", "kernel", "avx2", "source", "builtin",
                               "schedule", "bhq", "dtype", "f32", "layout", "BHSD", "B", 1, "H", 8, "H_kv", 8, "S_q",
                               128, "S_kv", 128, "D", 64, "D_v", 64, "scale", 0.125, "causal", "none", "cache", "warm");
    json_object_update_new(record,
                           json_pack("{s:i,s:s,s:s,s:[i],s:f,s:f,s:f,s:s,s:f,s:f,s:f,s:s,s:{s:s},s:[f]}", "threads", 1,
                                     "placement", "compact", "mem", "local", "cpus", 0, "flops_useful", 1e6,
                                     "bytes_min", 1e5, "median_ns", 1e4, "roof_bound", "compute", "roof_gflops", 200.0,
                                     "roof_fraction", 0.5, "isa_roof_gflops", 100.0, "verified", "full", "noise",
                                     "quality", "clean", "samples_ns", 1e4));
    json_object_update(record, fields);
    const double median = json_number_value(json_object_get(record, "median_ns"));
    json_t *derived =
        json_pack("{s:f,s:f,s:f}", "gflops", json_number_value(json_object_get(record, "flops_useful")) / median,
                  "ci95_low_ns", 0.9 * median, "ci95_high_ns", 1.25 * median);
    json_object_update_missing_new(record, derived);
    json_decref(fields);
    return record;
}

static json_t *example_context(const char *machine)
{
    return json_pack("{s:s,s:s,s:s,s:[s],s:i,s:s,s:s,s:s,s:{},s:{s:i,s:i,s:i,s:i,s:i},s:i,s:s,s:s,s:s,s:{},s:{}}",
                     "schema", "attnbench.context/1", "run_id", "run", "time_utc", "2026-01-01T00:00:00Z", "command",
                     "attnbench", "seed", 1, "host", machine, "machine_key", machine, "cpu_model", "a CPU", "isa",
                     "topology", "packages", 1, "numa_nodes", 1, "l3_domains", 1, "cores", 1, "pus", 1, "memory_bytes",
                     1 << 30, "compiler", "cc", "flags", "-O3", "build_commit", "abc", "omp", "libraries");
}

/* A results file of a context and an array of records (both stolen). path: an mkstemp template. */
static void example_file(json_t *context, json_t *records, char *path)
{
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    size_t i;
    json_t *record;
    assert_non_null(file);
    json_dumpf(context, file, JSON_LINE_FLAGS);
    json_array_foreach(records, i, record)
    {
        fputc('\n', file);
        json_dumpf(record, file, JSON_LINE_FLAGS);
    }
    fputc('\n', file);
    assert_int_equal(fclose(file), 0);
    json_decref(context);
    json_decref(records);
}

/* A report of one or (second not NULL) two machines' records; arrays are stolen. Without gnuplot. */
static void example_report(json_t *first, json_t *second, struct report *report)
{
    static char paths[2][64]; /* sources keep pointing at them */
    char *names[] = {paths[0], paths[1]};
    struct error error = {0};
    for (int i = 0; i < (second ? 2 : 1); i++) {
        snprintf(paths[i], sizeof paths[i], "%s", P_tmpdir "/report_example.XXXXXX");
        example_file(example_context(i ? "other" : "one"), i ? second : first, paths[i]);
    }
    const int rc = report_read(names, second ? 2 : 1, report, &error);
    for (int i = 0; i < (second ? 2 : 1); i++)
        unlink(paths[i]);
    if (rc)
        fail_msg("%s", error.text);
}

#endif
