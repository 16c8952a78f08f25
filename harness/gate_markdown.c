/* SPDX-License-Identifier: Apache-2.0
 *
 * A gate as the summary of a CI job; see gate_report.h.
 */
#include <stdlib.h>

#include "duet_table.h"
#include "export.h"
#include "gate_report.h"
#include "json_util.h"

static void put_cell(FILE *file, const char *text)
{
    fputs("| ", file);
    export_markdown_text(file, text ? text : "");
    fputc(' ', file);
}

static void put_row(FILE *file, const json_t *record)
{
    char ratio[DUET_RATIO_BYTES], *point = gate_point_text(record);
    const json_t *confirmation = json_object_get(record, "confirmation");
    put_cell(file, gate_outcome_name(gate_outcome(record)));
    duet_ratio_text(record, ratio);
    put_cell(file, ratio);
    duet_ratio_text(confirmation, ratio);
    put_cell(file, ratio);
    put_cell(file, point);
    put_cell(file, gate_why(record));
    fputs("|\n", file);
    free(point);
}

static void put_line(FILE *file, const char *before, char *text)
{
    fputs(before, file);
    export_markdown_text(file, text ? text : "");
    fputc('\n', file);
    free(text);
}

void gate_markdown_print(FILE *file, const struct gate_report *report)
{
    size_t i, shown = 0;
    const json_t *record, *control;
    fprintf(file, "## attnbench gate: %s\n\n", gate_headline(report));
    put_line(file, "", gate_counts_text(report->result));
    fputc('\n', file);
    json_array_foreach((json_t *)report->records, i, record)
    {
        if (!gate_is_news(record))
            continue;
        if (!shown++)
            fputs("| outcome | time of NEW against BASE | again | point | why |\n| --- | --- | --- | --- | --- |\n",
                  file);
        put_row(file, record);
    }
    if (shown)
        fputc('\n', file);
    char *met = gate_met_text(report);
    if (met)
        put_line(file, "- ", met);
    json_array_foreach((json_t *)report->controls, i, control) put_line(file, "- control ", gate_control_text(control));
    if (report->result->tainted)
        fputs("- identical code differs on this machine, twice: no change of this run counts\n", file);
    put_line(file, "- ", gate_budget_text(report));
    fputs("- ", file);
    export_markdown_text(file, json_get_string(report->context, "cpu_model", "unknown CPU"));
    char *tau = gate_tau_text(report);
    fprintf(file, ", %s\n", tau ? tau : "");
    free(tau);
}
