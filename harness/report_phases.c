/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the time of layers goes: for rules whose records tell it, the share of each phase in the fastest point of each
 * problem and kernel.
 */
#include <stdlib.h>

#include "json_util.h"
#include "report_html.h"
#include "report_parts.h"

/* Rows; the rest stands in the table of records. */
enum { ROWS = 100 };

static double sum_of(const json_t *phases)
{
    const char *name;
    const json_t *ns;
    double sum = 0;
    json_object_foreach((json_t *)phases, name, ns) sum += json_is_number(ns) ? json_number_value(ns) : 0;
    return sum;
}

/* A bar with a part a phase, then the phases in words. Colours go by the place of a phase in its record. */
static void put_shares(const json_t *phases, FILE *page)
{
    const char *name;
    const json_t *ns;
    const double sum = sum_of(phases);
    int color = 0;
    fputs("<td><span class=\"stack\" aria-hidden=\"true\">", page);
    json_object_foreach((json_t *)phases, name, ns)
        fprintf(page, "<span style=\"flex-grow:%.4g;background:var(--s%d)\"></span>", json_number_value(ns) / sum,
                color++ % REPORT_COLORS);
    fputs("</span><td class=\"long\">", page);
    color = 0;
    json_object_foreach((json_t *)phases, name, ns)
    {
        fprintf(page, "%s<span class=\"swatch\" style=\"background:var(--s%d)\"></span>", color > 0 ? ", " : "",
                color % REPORT_COLORS);
        html_format(page, "%s ", name);
        report_percent(json_number_value(ns) / sum, page);
        color++;
    }
}

void report_phases(const struct report *report, FILE *page)
{
    static const char *const titles[] = {"problem", "point", "#time", "shares", "phases"};
    size_t *order = report_order(report), rows = 0;
    for (size_t i = 0; i < report->record_count && rows < ROWS; i++) {
        const struct report_record *record = &report->records[order[i]];
        const struct report_record *before = i > 0 ? &report->records[order[i - 1]] : NULL;
        const json_t *phases = json_object_get(record->json, "phases_ns");
        bool is_slower = before && before->source == record->source && before->problem == record->problem &&
                         before->kernel == record->kernel;
        if (is_slower || record->status != RECORD_OK || sum_of(phases) <= 0)
            continue;
        if (rows++ == 0) {
            fputs("<h3>Where the time of layers goes</h3>\n", page);
            html_table_begin(page, "Phases of the fastest point of each problem and kernel", titles,
                             sizeof titles / sizeof titles[0]);
        }
        fputs("\n<tr><td class=\"long\">", page);
        report_problem(report, record->problem, page);
        fputs("<td>", page);
        report_who(record, page);
        if (report->source_count > 1)
            html_format(page, " (%s)", report->sources[record->source].label);
        fputs("<td class=\"figure\">", page);
        report_time(report_median(record), page);
        put_shares(phases, page);
    }
    if (rows > 0)
        html_table_end(page);
    if (rows == ROWS)
        fprintf(page,
                "<p class=\"note\">%d rows at most stand here; every record's phases are in its details below.</p>\n",
                ROWS);
    free(order);
}
