/* SPDX-License-Identifier: Apache-2.0
 *
 * A gate as JUnit's XML; see gate_report.h.
 */
#include <math.h>
#include <stdlib.h>

#include "duet_table.h"
#include "gate_report.h"
#include "json_util.h"
#include "record_name.h"
#include "xml_text.h"

/* Element that tells an outcome; NULL: the test passed. */
static const char *element_of(enum gate_outcome outcome)
{
    switch (outcome) {
    case GATE_WRONG:
    case GATE_REGRESSION:
        return "failure";
    case GATE_FAILED:
        return "error";
    case GATE_INCONCLUSIVE:
    case GATE_UNREACHED:
    case GATE_SKIPPED:
        return "skipped";
    default:
        return NULL;
    }
}

static void put_case(FILE *file, const json_t *record)
{
    char ratio[DUET_RATIO_BYTES], message[512];
    char *problem = record_problem_name(record), *who = record_who_name(record);
    const enum gate_outcome outcome = gate_outcome(record);
    const char *element = element_of(outcome), *why = gate_why(record),
               *cache = json_get_string(record, "cache", "warm");
    duet_ratio_text(record, ratio);
    snprintf(message, sizeof message, "%s: %s%s%s", gate_outcome_name(outcome), ratio, why ? ": " : "", why ? why : "");
    fputs("  <testcase", file);
    xml_put_attribute(file, "classname", problem);
    fputs(" name=\"", file);
    xml_put_text(file, who);
    fprintf(file, "/%s\">", cache);
    if (element) {
        fprintf(file, "<%s", element);
        if (outcome == GATE_WRONG || outcome == GATE_REGRESSION || outcome == GATE_FAILED)
            xml_put_attribute(file, "type", gate_outcome_name(outcome));
        xml_put_attribute(file, "message", message);
        fputs("/>", file);
    } else {
        fputs("<system-out>", file);
        xml_put_text(file, message);
        fputs("</system-out>", file);
    }
    fputs("</testcase>\n", file);
    free(problem);
    free(who);
}

/* A control is no test, but one that is broken must not be missed. */
static void put_control(FILE *file, const json_t *control)
{
    const enum gate_outcome outcome = gate_control_outcome(control);
    char *text = gate_control_text(control);
    if (outcome != GATE_SAME) {
        fputs("  <testcase classname=\"control\"", file);
        fprintf(file, " name=\"%s/%s\"", json_get_string(control, "class", "?"),
                json_get_string(control, "judged_by", "?"));
        fprintf(file, "><%s type=\"%s\"", element_of(outcome), gate_outcome_name(outcome));
        xml_put_attribute(file, "message", text ? text : "");
        fputs("/></testcase>\n", file);
    }
    free(text);
}

/* Else an interrupted gate would look like a smaller one that passed. */
static void put_unmet(FILE *file, const struct gate_report *report, const char *met)
{
    char message[128];
    snprintf(message, sizeof message, "%s: %s", gate_headline(report), met);
    fputs("  <testcase classname=\"gate\" name=\"points never met\"><skipped", file);
    xml_put_attribute(file, "message", message);
    fputs("/></testcase>\n", file);
}

void gate_junit_print(FILE *file, const struct gate_report *report)
{
    const size_t *counts = report->result->counts;
    const size_t wrong = report->result->wrong_controls, failed = report->result->failed_controls;
    char *met = gate_met_text(report);
    const size_t unmet = met ? 1 : 0, open = counts[GATE_INCONCLUSIVE] + counts[GATE_UNREACHED] + counts[GATE_SKIPPED];
    size_t i;
    const json_t *record;
    fprintf(file,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"attnbench gate\">\n"
            " <testsuite name=\"attnbench gate\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\""
            " time=\"%.3f\"",
            json_array_size(report->records) + wrong + failed + unmet,
            counts[GATE_WRONG] + counts[GATE_REGRESSION] + wrong, counts[GATE_FAILED] + failed, open + unmet,
            report->spent_s);
    xml_put_attribute(file, "hostname", json_get_string(report->context, "host", "unknown"));
    fputs(">\n", file);
    json_array_foreach((json_t *)report->records, i, record) put_case(file, record);
    json_array_foreach((json_t *)report->controls, i, record) put_control(file, record);
    if (met)
        put_unmet(file, report, met);
    free(met);
    fputs(" </testsuite>\n</testsuites>\n", file);
}
