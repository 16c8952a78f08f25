/* SPDX-License-Identifier: Apache-2.0
 *
 * The throughput section: GFLOP/s against one size, a figure for each sweep, a line for each kernel and schedule, bars
 * for the 95 % intervals.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json_util.h"
#include "report_html.h"
#include "report_plot_sweeps.h"
#include "text.h"

enum { PANELS = 12, LINES = 10, ROWS_MOST = 1000 };
static const double log_from = 8; /* greatest over least rate from which the rates' axis is logarithmic */

static const char *const size_labels[SWEEP_SIZES] = {"S: queries and keys", "S_kv: keys",       "S_q: queries",
                                                     "D: size of a head",   "B: batch entries", "H: heads"};

struct placed {
    double x;
    size_t record;
};

static int by_size(const void *left, const void *right)
{
    const struct placed *a = left, *b = right;
    if (a->x != b->x)
        return a->x < b->x ? -1 : 1;
    return a->record < b->record ? -1 : a->record > b->record;
}

static void draw_line(const struct report *report, const struct plot_sweep *sweep, size_t index, bool titles,
                      struct plot *plot)
{
    const struct plot_group *line = &sweep->lines[index];
    struct placed *placed = calloc(line->count, sizeof *placed);
    struct plot_point *points = calloc(line->count, sizeof *points), *bars = calloc(3 * line->count, sizeof *bars);
    const enum gnuplot_color color = plot_kernel_color(report->records[line->records[0]].kernel);
    if (!placed || !points || !bars)
        abort();
    for (size_t i = 0; i < line->count; i++)
        placed[i] =
            (struct placed){plot_sweep_value(sweep->size, report->records[line->records[i]].json), line->records[i]};
    qsort(placed, line->count, sizeof *placed, by_size);
    for (size_t i = 0; i < line->count; i++) {
        const struct report_record *record = &report->records[placed[i].record];
        const struct plot_value rate = plot_gflops(record);
        points[i] = (struct plot_point){placed[i].x, rate.value};
        bars[3 * i] = (struct plot_point){placed[i].x, rate.low};
        bars[3 * i + 1] = (struct plot_point){placed[i].x, rate.high};
        bars[3 * i + 2] = (struct plot_point){NAN, NAN};
        plot_mark(plot, (struct plot_mark){.x = placed[i].x,
                                           .y = rate.value,
                                           .color = color,
                                           .shape = plot_shape(report, record),
                                           .hollow = record->noisy,
                                           .record = (long)placed[i].record,
                                           .title = titles ? plot_record_title(report, record) : NULL});
    }
    plot_line(plot, points, line->count, color, plot_line_dash(report, sweep->lines, index), 1.4);
    plot_line(plot, bars, 3 * line->count, color, 0, 1.6);
    free(placed);
    free(points);
    free(bars);
}

static void fit(const struct report *report, const struct plot_sweep *sweep, struct plot *plot)
{
    double least = INFINITY, most = 0;
    for (size_t l = 0; l < sweep->lines_drawn; l++)
        for (size_t i = 0; i < sweep->lines[l].count; i++) {
            const struct plot_value rate = plot_gflops(&report->records[sweep->lines[l].records[i]]);
            least = fmin(least, fmin(rate.value, rate.low)); /* fmin and fmax pass NaN over */
            most = fmax(most, fmax(rate.value, rate.high));
        }
    if (most > log_from * least)
        plot_axis_log(&plot->y, least, most);
    else
        plot_axis_linear(&plot->y, 0, most);
    plot->y.label = "GFLOP/s";
    plot->x.label = size_labels[sweep->size];
    plot_axis_values(&plot->x, sweep->values, sweep->value_count, plot->right - plot->left);
}

static void draw(const struct report *report, const struct plot_sweep *sweep, bool titles,
                 struct plot_renderer *renderer, FILE *page)
{
    struct plot plot;
    char *head = plot_sweep_heading(report, sweep), *title;
    if (asprintf(&title, "GFLOP/s against %s: %s", plot_sweep_names[sweep->size], head) < 0)
        abort();
    plot_begin(&plot, 380, 280, 46);
    fit(report, sweep, &plot);
    for (size_t l = 0; l < sweep->lines_drawn; l++)
        draw_line(report, sweep, l, titles, &plot);
    fputs("<div class=\"panel\"><h4>", page);
    html_format(page, "%s: %s", plot_sweep_names[sweep->size], head);
    fputs("</h4>\n", page);
    plot_end(&plot, renderer, title, "A line is one kernel and schedule; bars are 95 % intervals of the median.", page);
    fputs("</div>\n", page);
    free(head);
    free(title);
}

/* ---- words and figures ---- */

static void put_rows(const struct report *report, const struct plot_sweep *sweeps, const size_t *order, size_t count,
                     FILE *page)
{
    static const char *const titles[] = {"size",   "the rest", "kernel", "schedule", "source",
                                         "#value", "#GFLOP/s", "#low",   "#high"};
    size_t rows = 0, total = 0;
    html_table_begin(page, "GFLOP/s by swept size, with the 95 % interval", titles, sizeof titles / sizeof *titles);
    for (size_t s = 0; s < count; s++) {
        const struct plot_sweep *sweep = &sweeps[order[s]];
        char *head = plot_sweep_heading(report, sweep);
        total += sweep->records.count;
        for (size_t l = 0; l < sweep->line_count; l++)
            for (size_t i = 0; i < sweep->lines[l].count && rows < ROWS_MOST; i++, rows++) {
                const struct report_record *record = &report->records[sweep->lines[l].records[i]];
                const struct plot_value rate = plot_gflops(record);
                const double figures[] = {plot_sweep_value(sweep->size, record->json), rate.value, rate.low, rate.high};
                char figure[TEXT_FIGURE];
                html_row(page);
                html_cell(page, plot_sweep_names[sweep->size]);
                html_cell(page, head);
                html_cell(page, report->kernels[record->kernel]);
                html_cell(page, json_get_string(record->json, "schedule", "?"));
                html_cell(page, report->sources[record->source].label);
                snprintf(figure, sizeof figure, "%.0f", figures[0]);
                html_figure(page, figure);
                for (int f = 1; f < 4; f++) {
                    text_number(figures[f], 4, 8, figure);
                    html_figure(page, figure);
                }
            }
        free(head);
    }
    html_table_end(page);
    if (rows < total)
        html_format(page, "%zu more rows are left out here; the table of all records has them.", total - rows);
}

/* The kernel that is fastest at the largest value of the first sweep. */
static void put_seen(const struct report *report, const struct plot_sweep *sweep, FILE *page)
{
    const struct report_record *best[2] = {NULL, NULL};
    for (size_t i = 0; i < sweep->records.count; i++) {
        const struct report_record *record = &report->records[sweep->records.records[i]];
        const double value = plot_sweep_value(sweep->size, record->json);
        for (int end = 0; end < 2; end++)
            if (value == sweep->values[end ? sweep->value_count - 1 : 0] &&
                (!best[end] ||
                 json_get_number(record->json, "gflops", 0) > json_get_number(best[end]->json, "gflops", 0)))
                best[end] = record;
    }
    if (!best[0] || !best[1])
        return;
    char figures[2][TEXT_FIGURE];
    for (int end = 0; end < 2; end++)
        text_number(json_get_number(best[end]->json, "gflops", NAN), 3, 8, figures[end]);
    html_format(page, "In the first figure the fastest at %s %.0f is %s with %s GFLOP/s, at %.0f it is %s with %s. ",
                plot_sweep_names[sweep->size], sweep->values[0], report->kernels[best[0]->kernel], figures[0],
                sweep->values[sweep->value_count - 1], report->kernels[best[1]->kernel], figures[1]);
}

static void put_caption(const struct report *report, const struct plot_sweep *sweeps, size_t sweep_count,
                        const size_t *order, size_t count, FILE *page)
{
    size_t lines = 0, points = 0, barred = 0;
    for (size_t s = 0; s < count; s++) {
        const struct plot_sweep *sweep = &sweeps[order[s]];
        lines += sweep->line_count - sweep->lines_drawn;
        for (size_t l = 0; l < sweep->lines_drawn; l++)
            for (size_t i = 0; i < sweep->lines[l].count; i++, points++)
                barred += plot_gflops(&report->records[sweep->lines[l].records[i]]).high > 0;
    }
    fputs("<figcaption>", page);
    put_seen(report, &sweeps[order[0]], page);
    fputs(
        "Each figure is one size measured in three values or more with all the rest equal; a point is the useful FLOPs "
        "of a call over its median time, a bar the 95 % interval of that median by order statistics. ",
        page);
    if (barred < points)
        html_format(page, "%zu of the %zu points have no bar: they have too few samples for an interval. ",
                    points - barred, points);
    if (sweep_count > count)
        html_format(page, "%zu further sweep%s with fewer points %s not drawn; the table of all records holds %s. ",
                    sweep_count - count, sweep_count - count == 1 ? "" : "s", sweep_count - count == 1 ? "is" : "are",
                    sweep_count - count == 1 ? "it" : "them");
    if (lines)
        html_format(page, "%zu line%s of slower schedules or kernels %s left out for the sake of the others. ", lines,
                    lines == 1 ? "" : "s", lines == 1 ? "is" : "are");
    fputs("</figcaption>\n", page);
}

static void put_legend(const struct report *report, const struct plot_sweep *sweeps, const size_t *order, size_t count,
                       FILE *page)
{
    size_t total = 0, *all = NULL;
    int dashes = 0;
    for (size_t s = 0; s < count; s++) {
        const struct plot_sweep *sweep = &sweeps[order[s]];
        all = realloc(all, (total + sweep->records.count + 1) * sizeof *all);
        if (!all)
            abort();
        for (size_t l = 0; l < sweep->lines_drawn; l++) {
            memcpy(all + total, sweep->lines[l].records, sweep->lines[l].count * sizeof *all);
            total += sweep->lines[l].count;
            const int dash = plot_line_dash(report, sweep->lines, l);
            dashes = dash > dashes ? dash : dashes;
        }
    }
    plot_legend_begin(page);
    plot_legend_records(report, all, total, true, page);
    if (dashes && report->source_count == 1)
        plot_legend_item(page, GNUPLOT_FAINT, -1, false, 1, "dashed: a further schedule of the same kernel");
    plot_legend_end(page);
    free(all);
}

void report_plot_throughput(const struct report *report, FILE *page)
{
    struct plot_renderer renderer = {.gnuplot = report->gnuplot, .prefix = "throughput"};
    size_t sweep_count, order[PANELS], points = 0;
    struct plot_sweep *sweeps = plot_sweeps(report, LINES, &sweep_count);
    const size_t count = plot_sweeps_choose(sweeps, sweep_count, order, PANELS);
    for (size_t s = 0; s < count; s++)
        points += sweeps[order[s]].records.count;
    fputs("<h3>Throughput against S, D, B, H</h3>\n", page);
    if (!count) {
        fputs("<p class=\"note\">No size was measured in three values or more with all the rest equal, so there is no "
              "throughput against S, D, B or H to draw.</p>\n",
              page);
    } else {
        char *summary;
        if (asprintf(&summary, "The data behind these plots: %zu points", points) < 0)
            abort();
        fputs("<figure class=\"plot\"><div class=\"panels\">\n", page);
        for (size_t s = 0; s < count; s++)
            draw(report, &sweeps[order[s]], points <= REPORT_TITLES, &renderer, page);
        fputs("</div>\n", page);
        if (renderer.gnuplot && !renderer.failed)
            put_legend(report, sweeps, order, count, page);
        plot_renderer_end(&renderer, page);
        put_caption(report, sweeps, sweep_count, order, count, page);
        fputs("</figure>\n", page);
        html_data_begin(page, summary);
        put_rows(report, sweeps, order, count, page);
        html_data_end(page);
        free(summary);
    }
    plot_sweeps_release(sweeps, sweep_count);
}
