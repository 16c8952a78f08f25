/* SPDX-License-Identifier: Apache-2.0
 *
 * The report's heat map: for each problem and kernel the share of the roof that its fastest point reaches, as a table
 * whose cells are coloured, so that it reads without colours too.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json_util.h"
#include "report_html.h"
#include "report_parts.h"
#include "text.h"

enum { STEPS = 10 };

struct map {
    const struct report *report;
    const size_t *order; /* report_order */
    size_t begin, end;   /* the source's part of order */
    bool *used;          /* [kernel_count] kernels with a record at the source */
};

/* Colour steps are tenths of the roof; beyond it (1.02 at most) counts as the last. */
static int step_of(double fraction)
{
    int step = (int)(fraction * STEPS);
    return step < 0 ? 0 : step >= STEPS ? STEPS - 1 : step;
}

/* The fastest point of one problem and kernel; where none has a time, how it ended. */
static void put_cell(const struct map *map, size_t index, FILE *page)
{
    const struct report_record *record = &map->report->records[index];
    double fraction = json_get_number(record->json, "roof_fraction", NAN);
    const char *noisy = record->noisy ? " n" : "";
    if (record->status != RECORD_OK)
        fprintf(page, "<td class=\"%s\" data-r=\"%zu\">%s", record->status == RECORD_SKIPPED ? "h none" : "h bad",
                index, record_status_name(record->status));
    else if (isnan(fraction))
        fprintf(page, "<td class=\"h none%s\" data-r=\"%zu\">%s?", noisy, index, record->noisy ? "~" : "");
    else {
        fprintf(page, "<td class=\"h h%d%s\" data-r=\"%zu\">%s", step_of(fraction), noisy, index,
                record->noisy ? "~" : "");
        report_percent(fraction, page);
    }
}

/* One row: the records from `begin` on that belong to the same problem. Returns where the next row begins. A wrong or
 * failed point must not hide behind an ok one of the same kernel: it is told after the row's figure. */
static size_t put_row(const struct map *map, size_t begin, FILE *page)
{
    const struct report *report = map->report;
    const size_t problem = report->records[map->order[begin]].problem;
    size_t at = begin;
    fputs("\n<tr><th scope=\"row\">", page);
    report_problem(report, problem, page);
    for (size_t kernel = 0; kernel < report->kernel_count; kernel++) {
        size_t bad = 0, first = at;
        for (; at < map->end && report->records[map->order[at]].problem == problem &&
               report->records[map->order[at]].kernel == kernel;
             at++)
            bad += report->records[map->order[at]].status == RECORD_WRONG ||
                   report->records[map->order[at]].status == RECORD_FAILED;
        if (!map->used[kernel])
            continue;
        if (at == first) {
            fputs("<td>", page);
            continue;
        }
        put_cell(map, map->order[first], page);
        if (bad > 0 && report->records[map->order[first]].status == RECORD_OK)
            fprintf(page, " <b class=\"bad\">%zu bad</b>", bad);
    }
    return at;
}

static void put_map(struct map *map, const char *caption, FILE *page)
{
    const struct report *report = map->report;
    for (size_t i = map->begin; i < map->end; i++)
        map->used[report->records[map->order[i]].kernel] = true;
    fputs("<div class=\"scroll tall\" tabindex=\"0\" role=\"region\" aria-label=\"", page);
    html_text(page, caption);
    fputs("\"><table class=\"heat\">\n<caption>", page);
    html_text(page, caption);
    fputs("</caption>\n<thead><tr><th scope=\"col\">problem</th>", page);
    for (size_t kernel = 0; kernel < report->kernel_count; kernel++) {
        if (!map->used[kernel])
            continue;
        fputs("<th scope=\"col\" class=\"h\">", page);
        html_text(page, report->kernels[kernel]);
        fputs("</th>", page);
    }
    fputs("</tr></thead>\n<tbody>", page);
    for (size_t row = map->begin; row < map->end;)
        row = put_row(map, row, page);
    html_table_end(page);
}

static void put_legend(FILE *page)
{
    fputs("<p class=\"legend\" aria-hidden=\"true\">", page);
    for (int step = 0; step < STEPS; step++)
        fprintf(page, "<span class=\"h h%d\">%d%%</span>", step, 10 * step);
    fputs("<span class=\"h h5 n\">~ noisy</span><span class=\"h none\">skipped</span><span class=\"h bad\">wrong</span>"
          "</p>\n",
          page);
}

void report_heat_map(const struct report *report, FILE *page)
{
    size_t *order = report_order(report);
    struct map map = {.report = report, .order = order};
    if (report->record_count == 0)
        fputs("<p class=\"note\">There is no record to map.</p>\n", page);
    else
        fputs("<p>Each cell is the fastest point of a kernel on a problem, over its schedules, threads and placements: "
              "the share of what this machine could do. Point at a cell, or tap it, to see which point it is.</p>\n",
              page);
    for (size_t source = 0; source < report->source_count && report->record_count > 0; source++) {
        const char *label = report->sources[source].label;
        char caption[512] = "Share of the roof, kernel by problem";
        map.begin = map.end;
        while (map.end < report->record_count && report->records[order[map.end]].source == source)
            map.end++;
        if (map.begin == map.end)
            continue;
        map.used = calloc(report->kernel_count, sizeof *map.used);
        if (!map.used)
            abort();
        if (report->source_count > 1)
            snprintf(caption, sizeof caption, "Share of the roof, kernel by problem: %s", label);
        put_map(&map, caption, page);
        free(map.used);
    }
    if (report->record_count > 0)
        put_legend(page);
    free(order);
}
