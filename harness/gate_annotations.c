/* SPDX-License-Identifier: Apache-2.0
 *
 * A gate as workflow commands of GitHub Actions, which it shows beside the change; see gate_report.h.
 */
#include <stdlib.h>
#include <string.h>

#include "duet_table.h"
#include "gate_report.h"
#include "json_util.h"

/* What would end a command or one of its properties stands as %XX. */
static void put_escaped(FILE *file, const char *text, bool property)
{
    for (; *text; text++) {
        if (strchr("%\r\n", *text) || (property && strchr(":,", *text)))
            fprintf(file, "%%%02X", (unsigned char)*text);
        else
            fputc(*text, file);
    }
}

static void put_command(FILE *file, const char *command, const char *title, const char *text)
{
    fprintf(file, "::%s title=", command);
    put_escaped(file, title, true);
    fputs("::", file);
    put_escaped(file, text, false);
    fputc('\n', file);
}

static void put_record(FILE *file, const json_t *record)
{
    const enum gate_outcome outcome = gate_outcome(record);
    const bool bad = outcome == GATE_WRONG || outcome == GATE_FAILED || outcome == GATE_REGRESSION;
    char ratio[DUET_RATIO_BYTES], title[128], *point = gate_point_text(record), *text = NULL;
    const char *why = gate_why(record);
    if (!bad && outcome != GATE_INCONCLUSIVE && outcome != GATE_UNREACHED) {
        free(point);
        return;
    }
    duet_ratio_text(record, ratio);
    snprintf(title, sizeof title, "attnbench gate: %s", gate_outcome_name(outcome));
    if (asprintf(&text, "%s: %s%s%s", point ? point : "", ratio, why ? ": " : "", why ? why : "") >= 0)
        put_command(file, bad ? "error" : "warning", title, text);
    free(text);
    free(point);
}

/* One warning of all that is lost, since a service shows but a few: how many points, and which kernels'. */
static void put_lost(FILE *file, const json_t *records)
{
    size_t i, lost = 0;
    const json_t *record;
    json_t *told = json_object();
    char *kernels = NULL, *text = NULL;
    size_t bytes;
    FILE *list = open_memstream(&kernels, &bytes);
    json_array_foreach((json_t *)records, i, record)
    {
        const char *kernel = json_get_string(record, "kernel", "?");
        if (!gate_is_lost(record))
            continue;
        lost++;
        if (list && !json_object_get(told, kernel))
            fprintf(list, "%s%s", json_object_size(told) ? ", " : "", kernel);
        json_object_set_new(told, kernel, json_true());
    }
    if (list)
        fclose(list);
    if (lost && asprintf(&text, "BASE does what NEW does not: %zu point%s of %s", lost, lost > 1 ? "s" : "",
                         kernels ? kernels : "?") >= 0)
        put_command(file, "warning", "attnbench gate: lost", text);
    free(text);
    free(kernels);
    json_decref(told);
}

void gate_annotations_print(FILE *file, const struct gate_report *report)
{
    size_t i;
    const json_t *record;
    json_array_foreach((json_t *)report->controls, i, record)
    {
        char *text = gate_control_outcome(record) == GATE_SAME ? NULL : gate_control_text(record);
        if (text)
            put_command(file, "error", "attnbench gate: controls", text);
        free(text);
    }
    json_array_foreach((json_t *)report->records, i, record) put_record(file, record);
    put_lost(file, report->records);
    if (report->result->tainted)
        put_command(file, "warning", "attnbench gate: controls",
                    "identical code differs on this machine, twice: no change of this run counts");
}
