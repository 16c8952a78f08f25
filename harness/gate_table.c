/* SPDX-License-Identifier: Apache-2.0
 *
 * A gate's table for a terminal; see gate_report.h.
 */
#include <stdlib.h>

#include "color.h"
#include "duet_table.h"
#include "gate_report.h"
#include "json_util.h"

static enum paint paint_of(enum gate_outcome outcome)
{
    switch (outcome) {
    case GATE_WRONG:
    case GATE_FAILED:
    case GATE_REGRESSION:
        return PAINT_BAD;
    case GATE_INCONCLUSIVE:
    case GATE_UNREACHED:
        return PAINT_WARNING;
    case GATE_IMPROVEMENT:
        return PAINT_GOOD;
    default:
        return PAINT_PLAIN;
    }
}

static void print_row(FILE *file, const json_t *record, const struct output_style *style)
{
    char ratio[DUET_RATIO_BYTES], *point = gate_point_text(record), *flags = gate_flags_text(record);
    const char *why = gate_why(record);
    const json_t *confirmation = json_object_get(record, "confirmation");
    duet_ratio_text(record, ratio);
    const enum paint outcome_paint = gate_is_lost(record) ? PAINT_WARNING : paint_of(gate_outcome(record));
    fprintf(file, "%s%-12s%s %-26s %s\n", paint(style->color, outcome_paint), gate_outcome_name(gate_outcome(record)),
            paint(style->color, PAINT_PLAIN), ratio, point ? point : "");
    if (json_get_int(confirmation, "processes", 0) > 0) {
        duet_ratio_text(confirmation, ratio);
        fprintf(file, "    %sagain in %lld fresh processes: %s, p = %.2g%s\n", paint(style->color, PAINT_FAINT),
                (long long)json_get_int(confirmation, "processes", 0), ratio, json_get_number(confirmation, "p", 1),
                paint(style->color, PAINT_PLAIN));
    }
    if (why)
        fprintf(file, "    %s%s%s\n", paint(style->color, PAINT_FAINT), why, paint(style->color, PAINT_PLAIN));
    if (gate_outcome(record) < GATE_UNREACHED && flags)
        fprintf(file, "    %sthis point alone: %s%s\n", paint(style->color, PAINT_FAINT), flags,
                paint(style->color, PAINT_PLAIN));
    free(flags);
    free(point);
}

static void print_rows(FILE *file, const struct gate_report *report, const struct output_style *style)
{
    size_t i, shown = 0;
    const json_t *record;
    json_array_foreach((json_t *)report->records, i, record)
    {
        if (!gate_is_news(record))
            continue;
        if (!shown++)
            fprintf(file, "%s%-12s %-26s %s%s\n", paint(style->color, PAINT_FAINT), "outcome",
                    "time of NEW against BASE", "point", paint(style->color, PAINT_PLAIN));
        print_row(file, record, style);
    }
    if (shown)
        fputc('\n', file);
}

void gate_table_print(FILE *file, const struct gate_report *report, const struct output_style *style)
{
    char *counts = gate_counts_text(report->result), *budget = gate_budget_text(report), *tau = gate_tau_text(report);
    char *met = gate_met_text(report);
    size_t i;
    const json_t *control;
    print_rows(file, report, style);
    fprintf(file, "%s%s%s: %s (%s)\n", paint(style->color, PAINT_HEADING), gate_headline(report),
            paint(style->color, PAINT_PLAIN), counts ? counts : "", tau ? tau : "");
    free(tau);
    if (met)
        fprintf(file, "%s\n", met);
    free(met);
    json_array_foreach((json_t *)report->controls, i, control)
    {
        char *text = gate_control_text(control);
        fprintf(file, "control %s\n", text ? text : "");
        free(text);
    }
    if (report->result->tainted)
        fprintf(file, "%sidentical code differs on this machine, twice: no change of this run counts%s\n",
                paint(style->color, PAINT_WARNING), paint(style->color, PAINT_PLAIN));
    fprintf(file, "%s\n", budget ? budget : "");
    free(counts);
    free(budget);
}
