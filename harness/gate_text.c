/* SPDX-License-Identifier: Apache-2.0
 *
 * A gate in words; see gate_report.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "duet_table.h"
#include "gate_report.h"
#include "json_util.h"
#include "record_repro.h"
#include "record_text.h"

const char *gate_headline(const struct gate_report *report)
{
    const struct gate_result *result = report->result;
    if (report->interrupted)
        return "interrupted";
    switch (result->exit_code) {
    case EXIT_OK:
        return "no regression";
    case EXIT_WRONG:
        return result->counts[GATE_WRONG] || result->wrong_controls ? "wrong results" : "failed";
    case EXIT_REGRESSION:
        return "regression";
    case EXIT_NOTHING_RAN:
        return "nothing could run here";
    default:
        return "inconclusive";
    }
}

char *gate_counts_text(const struct gate_result *result)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    const char *separator = "";
    for (int outcome = 0; file && outcome < GATE_OUTCOMES; outcome++) {
        if (!result->counts[outcome])
            continue;
        fprintf(file, "%s%zu %s", separator, result->counts[outcome], gate_outcome_name((enum gate_outcome)outcome));
        separator = ", ";
    }
    if (file && !*separator)
        fputs("no points", file);
    if (file)
        fclose(file);
    return text;
}

char *gate_point_text(const json_t *record)
{
    char *problem = record_problem(record), *text = NULL;
    if (asprintf(&text, "%s %s %lld thr  %s", json_get_string(record, "kernel", "?"),
                 json_get_string(record, "schedule", ""), (long long)json_get_int(record, "threads", 1),
                 problem ? problem : "") < 0)
        text = NULL;
    free(problem);
    return text;
}

const char *gate_why(const json_t *record)
{
    return json_get_string(record, "note", json_get_string(record, "reason", NULL));
}

static const char *verdict_of(const json_t *record)
{
    return json_get_string(record, "verdict", json_get_string(record, "status", "failed"));
}

char *gate_control_text(const json_t *control)
{
    char ratio[DUET_RATIO_BYTES], again_ratio[DUET_RATIO_BYTES], *text = NULL;
    const json_t *first = json_object_get(control, "first"), *again = json_object_get(control, "again");
    const bool repeated = json_is_object(again), wall = strcmp(json_get_string(control, "judged_by", ""), "wall") == 0;
    const char *reason = json_get_string(repeated ? again : first, "reason", NULL);
    duet_ratio_text(first, ratio);
    duet_ratio_text(again, again_ratio);
    if (asprintf(&text, "%s (%s%s): %s %s%s%s%s%s%s%s", json_get_string(control, "class", "?"),
                 json_get_string(control, "kernel", "?"), wall ? ", by wall time" : "", verdict_of(first), ratio,
                 repeated ? "; repeated: " : "", repeated ? verdict_of(again) : "", repeated ? " " : "",
                 repeated ? again_ratio : "", reason ? ": " : "", reason ? reason : "") < 0)
        text = NULL;
    return text;
}

char *gate_budget_text(const struct gate_report *report)
{
    char *text = NULL, limit[64] = "";
    if (report->max_time_s > 0)
        snprintf(limit, sizeof limit, " of at most %.0f s", report->max_time_s);
    if (asprintf(&text, "%zu processes in %.0f s%s", report->processes, report->spent_s, limit) < 0)
        text = NULL;
    return text;
}

char *gate_met_text(const struct gate_report *report)
{
    const size_t met = json_array_size(report->records);
    char *text = NULL;
    if (met < report->planned && asprintf(&text, "%zu of %zu points were met", met, report->planned) < 0)
        text = NULL;
    return text;
}

char *gate_tau_text(const struct gate_report *report)
{
    const double least = 100 * report->tau_least, most = 100 * report->tau_most;
    char *text = NULL;
    const int bytes =
        least < most
            ? asprintf(&text, "a slowdown counts from %g to %g %% on, as the config says of each point", least, most)
            : asprintf(&text, "a slowdown counts from %g %% on", least);
    return bytes < 0 ? NULL : text;
}

char *gate_flags_text(const json_t *record)
{
    static const char command[] = "attnbench run ";
    char *repro = record_repro(record), *flags = NULL;
    const double tau = json_get_number(record, "tau", 0);
    if (repro && strncmp(repro, command, strlen(command)) == 0 &&
        asprintf(&flags, "%s --tau %g%%", repro + strlen(command), 100 * tau) < 0)
        flags = NULL;
    free(repro);
    return flags;
}

bool gate_is_news(const json_t *record)
{
    const enum gate_outcome outcome = gate_outcome(record);
    return (outcome != GATE_SAME && outcome != GATE_SKIPPED) || json_get_string(record, "note", NULL);
}
