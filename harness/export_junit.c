/* SPDX-License-Identifier: Apache-2.0
 *
 * Results as JUnit's XML; see export.h.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "export.h"
#include "json_util.h"
#include "machines.h"
#include "record_key.h"
#include "record_name.h"
#include "record_text.h"
#include "xml_text.h"

static void put_property(FILE *file, const char *name, const json_t *value)
{
    if (!json_is_string(value))
        return;
    fputs("   <property", file);
    xml_put_attribute(file, "name", name);
    xml_put_attribute(file, "value", json_string_value(value));
    fputs("/>\n", file);
}

/* Seconds of one call: what a test's duration means to those who plot it. Without an exponent, which readers of
 * xs:decimal don't take. */
static double seconds_of(const json_t *record)
{
    double median = json_get_number(record, "median_ns", NAN);
    return record_status(record) == RECORD_OK && isfinite(median) ? median * 1e-9 : 0;
}

static void put_counts(FILE *file, const json_t *records)
{
    size_t counts[RECORD_STATUS_COUNT] = {0}, index;
    double seconds = 0;
    json_t *record;
    json_array_foreach((json_t *)records, index, record)
    {
        counts[record_status(record)]++;
        seconds += seconds_of(record);
    }
    fprintf(file, " tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\" time=\"%.9f\"",
            json_array_size(records), counts[RECORD_WRONG] + counts[RECORD_FAILED], counts[RECORD_SKIPPED], seconds);
}

static void put_figures(FILE *file, const json_t *record)
{
    double fraction = json_get_number(record, "roof_fraction", NAN), half = record_ci_half(record);
    fprintf(file, "   <system-out>median %.17g ns", json_get_number(record, "median_ns", NAN));
    if (isfinite(half))
        fprintf(file, ", 95 %% interval within %.2g %% of it", 100 * half);
    fprintf(file, ", %.4g GFLOP/s", json_get_number(record, "gflops", 0));
    if (isfinite(fraction))
        fprintf(file, ", %.1f %% of the roof", 100 * fraction);
    fprintf(file, "%s</system-out>\n", record_noisy(record) ? ", noisy" : "");
}

static void put_outcome(FILE *file, const json_t *record)
{
    enum record_status status = record_status(record);
    const char *reason = json_get_string(record, "reason", "no reason recorded");
    if (status == RECORD_OK) {
        put_figures(file, record);
        return;
    }
    fprintf(file, "   <%s", status == RECORD_SKIPPED ? "skipped" : "failure");
    if (status != RECORD_SKIPPED)
        xml_put_attribute(file, "type", record_status_name(status));
    xml_put_attribute(file, "message", reason);
    fputs("/>\n", file);
}

/* The part of a name after the problem: what tells points of one problem apart. */
static const char *case_name(const json_t *name, const char *problem)
{
    return json_string_value(name) + strlen(problem) + 1;
}

static void put_case(FILE *file, const json_t *record, const json_t *name)
{
    char *problem = record_problem_name(record);
    fputs("  <testcase", file);
    xml_put_attribute(file, "classname", problem);
    xml_put_attribute(file, "name", case_name(name, problem));
    fprintf(file, " time=\"%.9f\">\n", seconds_of(record));
    put_outcome(file, record);
    fputs("  </testcase>\n", file);
    free(problem);
}

/* Everything there is to take apart: the latest record of each point, and its name. */
struct cases {
    const json_t *contexts, *records, *names;
};

static void put_cases(FILE *file, const struct machine *machine, const struct cases *cases)
{
    size_t index;
    json_t *record;
    json_array_foreach((json_t *)cases->records, index, record)
    {
        const json_t *context = machines_context_of(cases->contexts, record);
        if (strcmp(json_get_string(context, "machine_key", ""), machine->key) == 0)
            put_case(file, record, json_array_get(cases->names, index));
    }
}

/* One suite a machine. */
static void put_suite(FILE *file, const struct machine *machine, const struct cases *cases)
{
    static const char *const properties[] = {"machine_key", "cpu_model",    "kernel_release", "compiler",
                                             "flags",       "build_commit", "run_id"};
    const json_t *context = json_array_get(machine->contexts, 0);
    char timestamp[20]; /* to the second: xs:dateTime without a zone */
    fputs(" <testsuite", file);
    xml_put_attribute(file, "name", "attnbench");
    put_counts(file, machine->records);
    snprintf(timestamp, sizeof timestamp, "%s", json_get_string(context, "time_utc", "1970-01-01T00:00:00"));
    xml_put_attribute(file, "timestamp", timestamp);
    xml_put_attribute(file, "hostname", json_get_string(context, "host", "unknown"));
    fputs(">\n  <properties>\n", file);
    for (size_t i = 0; i < sizeof properties / sizeof properties[0]; i++)
        put_property(file, properties[i], json_object_get(context, properties[i]));
    fputs("  </properties>\n", file);
    put_cases(file, machine, cases);
    fputs(" </testsuite>\n", file);
}

void export_junit(FILE *file, const json_t *contexts, const json_t *records)
{
    size_t count;
    json_t *latest = record_latest(contexts, records), *names = record_names(contexts, latest);
    struct machine *machines = machines_split(contexts, latest, &count);
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites", file);
    xml_put_attribute(file, "name", "attnbench");
    put_counts(file, latest);
    fputs(">\n", file);
    for (size_t i = 0; i < count; i++)
        put_suite(file, &machines[i], &(struct cases){contexts, latest, names});
    fputs("</testsuites>\n", file);
    machines_release(machines, count);
    json_decref(names);
    json_decref(latest);
}
