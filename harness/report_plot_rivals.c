/* SPDX-License-Identifier: Apache-2.0
 *
 * The rivals section: the speed of each rival relative to our fastest kernel, first over all problems (a row a kernel,
 * a mark a problem, best first), then problem by problem with intervals.
 */
#include "report_plot_rivals.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json_util.h"
#include "report_html.h"
#include "text.h"

enum { KERNELS = 24, CONTESTS = 9, RIVALS = 12, MARKS_MOST = 2000, ROWS_MOST = 1000, ROW = 26 };

struct rivals {
    const struct report *report;
    bool peers;
    struct plot_contest *contests;
    size_t count;
    struct plot_standing *standings;
    size_t standing_count;
    size_t marks; /* ratios in all */
};

static char *rival_title(const struct rivals *rivals, const struct plot_contest *contest,
                         const struct plot_rival *rival)
{
    const struct report_record *base = &rivals->report->records[contest->base];
    char *record = plot_record_title(rivals->report, &rivals->report->records[rival->record]), *text;
    if (asprintf(&text, "%.3g x the speed of %s %s; %s", rival->ratio.value, rivals->report->kernels[base->kernel],
                 json_get_string(base->json, "schedule", "?"), record) < 0)
        abort();
    free(record);
    return text;
}

/* Ratios from least to most, and 1. */
static void fit_ratios(struct plot_axis *axis, double least, double most)
{
    least = fmin(least, 1);
    most = fmax(most, 1);
    if (most > 4 * least)
        plot_axis_log(axis, least, most);
    else
        plot_axis_linear(axis, 0, most);
}

static void begin_rows(struct plot *plot, size_t rows, double least, double most)
{
    plot_begin(plot, 420, (int)rows * ROW + 72, 136);
    plot->y = (struct plot_axis){.low = (double)rows + 0.5, .high = 0.5}; /* row 1 on top */
    plot->x.label = "times the speed of our fastest";
    fit_ratios(&plot->x, least, most);
    plot_line(plot, (struct plot_point[]){{1, plot->y.low}, {1, plot->y.high}}, 2, GNUPLOT_INK, 0, 1.2);
}

/* A row's name, cut to the margin. */
static void put_name(struct plot *plot, size_t row, const char *name, enum gnuplot_color color)
{
    char text[64];
    text_fit(name, 15, text, sizeof text);
    plot_text(plot, plot->left - 8, plot_y(plot, (double)row) + 4, PLOT_END, 0, color, text);
}

static void add_mark(const struct rivals *rivals, const struct plot_contest *contest, const struct plot_rival *rival,
                     double y, bool titles, struct plot *plot)
{
    const struct report_record *record = &rivals->report->records[rival->record];
    plot_mark(plot, (struct plot_mark){.x = rival->ratio.value,
                                       .y = y,
                                       .color = plot_kernel_color(record->kernel),
                                       .shape = plot_shape(rivals->report, record),
                                       .hollow = record->noisy || rivals->report->records[contest->base].noisy,
                                       .record = (long)rival->record,
                                       .title = titles ? rival_title(rivals, contest, rival) : NULL});
}

/* The marks of one kernel: of very many every step-th, and the outermost. Returns how many it drew. */
static size_t draw_row(const struct rivals *rivals, const struct plot_standing *standing, double y, struct plot *plot)
{
    const size_t step = rivals->marks / MARKS_MOST + 1;
    double least = INFINITY, most = 0;
    size_t seen = 0, drawn = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t c = 0; c < rivals->count; c++)
            for (size_t r = 0; r < rivals->contests[c].count; r++) {
                const struct plot_rival *rival = &rivals->contests[c].rivals[r];
                const double ratio = rival->ratio.value;
                if (rivals->report->records[rival->record].kernel != standing->kernel)
                    continue;
                if (pass == 0) {
                    least = fmin(least, ratio);
                    most = fmax(most, ratio);
                } else if (seen++ % step == 0 || ratio <= least || ratio >= most) {
                    add_mark(rivals, &rivals->contests[c], rival, y, rivals->marks <= REPORT_TITLES / 2, plot);
                    drawn++;
                }
            }
    return drawn;
}

/* A row a kernel. Returns how many marks were left out. */
static size_t draw_all(const struct rivals *rivals, size_t rows, struct plot_renderer *renderer, FILE *page)
{
    struct plot plot;
    double least = INFINITY, most = 0;
    size_t left_out = 0;
    for (size_t c = 0; c < rivals->count; c++)
        for (size_t r = 0; r < rivals->contests[c].count; r++) {
            least = fmin(least, rivals->contests[c].rivals[r].ratio.value);
            most = fmax(most, rivals->contests[c].rivals[r].ratio.value);
        }
    begin_rows(&plot, rows, least, most);
    for (size_t row = 0; row < rows; row++) {
        const struct plot_standing *standing = &rivals->standings[row];
        const double mean = standing->mean, y = (double)row + 1;
        put_name(&plot, row + 1, rivals->report->kernels[standing->kernel], GNUPLOT_INK);
        plot_line(&plot, (struct plot_point[]){{mean, y - 0.42}, {mean, y + 0.42}}, 2,
                  plot_kernel_color(standing->kernel), 0, 2.5);
        left_out += standing->contests - draw_row(rivals, standing, y, &plot);
    }
    fputs("<div class=\"panel\"><h4>All problems</h4>\n", page);
    plot_end(&plot, renderer, "Speed relative to our fastest kernel, all problems",
             "A row is a kernel, best first; a mark is a problem, a stroke the geometric mean.", page);
    fputs("</div>\n", page);
    return left_out;
}

static void draw_contest(const struct rivals *rivals, const struct plot_contest *contest,
                         struct plot_renderer *renderer, FILE *page)
{
    const struct report *report = rivals->report;
    const struct report_record *base = &report->records[contest->base];
    const size_t rows = contest->count < RIVALS ? contest->count : RIVALS;
    char *problem = plot_problem(report, base->json), *where = plot_where(base), *title;
    double least = INFINITY, most = 0;
    struct plot plot;
    for (size_t r = 0; r < rows; r++) {
        const struct plot_value *ratio = &contest->rivals[r].ratio;
        least = fmin(least, fmin(ratio->value, ratio->low));
        most = fmax(most, fmax(ratio->value, ratio->high));
    }
    if (asprintf(&title, "Speed relative to our %s: %s; %s", report->kernels[base->kernel], problem, where) < 0)
        abort();
    begin_rows(&plot, rows, least, most);
    for (size_t r = 0; r < rows; r++) {
        const struct plot_rival *rival = &contest->rivals[r];
        const struct report_record *record = &report->records[rival->record];
        const double y = (double)r + 1;
        put_name(&plot, r + 1, report->kernels[record->kernel], GNUPLOT_INK);
        plot_line(&plot, (struct plot_point[]){{rival->ratio.low, y}, {rival->ratio.high, y}}, 2,
                  plot_kernel_color(record->kernel), 0, 2);
        add_mark(rivals, contest, rival, y, true, &plot);
    }
    fputs("<div class=\"panel\"><h4>", page);
    html_format(page, "%s; %s: against %s %s%s%s", problem, where, report->kernels[base->kernel],
                json_get_string(base->json, "schedule", "?"), report->source_count > 1 ? ", " : "",
                report->source_count > 1 ? report->sources[base->source].label : "");
    fputs("</h4>\n", page);
    plot_end(&plot, renderer, title, "A row is a rival, best first; bars are intervals.", page);
    fputs("</div>\n", page);
    free(problem);
    free(where);
    free(title);
}

/* ---- words and figures ---- */

static void put_caption(const struct rivals *rivals, size_t rows, size_t thinned, size_t contests, FILE *page)
{
    const struct plot_standing *best = &rivals->standings[0];
    size_t won = 0, cut = 0;
    for (size_t c = 0; c < rivals->count; c++) {
        won += rivals->contests[c].rivals[0].ratio.value > 1;
        cut += c < contests && rivals->contests[c].count > RIVALS;
    }
    fputs("<figcaption>", page);
    html_format(page, "%s reaches %.3g times the speed of our fastest kernel in the geometric mean over %zu %s. ",
                rivals->report->kernels[best->kernel], best->mean, best->contests,
                best->contests == 1 ? "contest" : "contests");
    if (rivals->peers)
        html_format(page, "Right of 1 a peer is faster than we are: at %zu of %zu. ", won, rivals->count);
    else
        fputs("No peer library was measured: our own kernels are held against the fastest of them. ", page);
    fputs(
        "A contest is one problem, thread count and placement of one file; each kernel takes part with its fastest "
        "schedule. The ratio is that of the median times; bars are the widest that both 95 % intervals allow. The mean "
        "is over the problems that the kernel could do, so rows of other problems do not compare. ",
        page);
    if (rows < rivals->standing_count)
        html_format(page, "%zu slower kernels have no row. ", rivals->standing_count - rows);
    if (thinned)
        html_format(page, "%zu marks between the outermost are left out of the first figure. ", thinned);
    if (contests < rivals->count)
        html_format(page, "Of %zu contests the first %zu are drawn one by one; the table below has more. ",
                    rivals->count, contests);
    if (cut)
        html_format(page, "In %zu of them only the best %d rivals are drawn. ", cut, RIVALS);
    fputs("</figcaption>\n", page);
}

static void put_rows(const struct rivals *rivals, FILE *page)
{
    static const char *const titles[] = {"problem", "where",  "source", "our fastest",
                                         "rival",   "#ratio", "#low",   "#high"};
    const struct report *report = rivals->report;
    size_t rows = 0;
    html_table_begin(page, "Speed relative to our fastest, with the widest interval", titles,
                     sizeof titles / sizeof *titles);
    for (size_t c = 0; c < rivals->count; c++) {
        const struct report_record *base = &report->records[rivals->contests[c].base];
        char *problem = plot_problem(report, base->json), *where = plot_where(base);
        for (size_t r = 0; r < rivals->contests[c].count && rows < ROWS_MOST; r++, rows++) {
            const struct plot_rival *rival = &rivals->contests[c].rivals[r];
            const double figures[] = {rival->ratio.value, rival->ratio.low, rival->ratio.high};
            char figure[TEXT_FIGURE];
            html_row(page);
            html_cell(page, problem);
            html_cell(page, where);
            html_cell(page, report->sources[base->source].label);
            html_cell(page, report->kernels[base->kernel]);
            html_cell(page, report->kernels[report->records[rival->record].kernel]);
            for (int f = 0; f < 3; f++) {
                text_number(figures[f], 4, 8, figure);
                html_figure(page, figure);
            }
        }
        free(problem);
        free(where);
    }
    html_table_end(page);
    if (rows < rivals->marks)
        html_format(page, "%zu more ratios are left out here.", rivals->marks - rows);
}

static void put_figures(const struct rivals *rivals, FILE *page)
{
    struct plot_renderer renderer = {.gnuplot = rivals->report->gnuplot, .prefix = "rivals"};
    const size_t rows = rivals->standing_count < KERNELS ? rivals->standing_count : KERNELS;
    const size_t contests = rivals->count < CONTESTS ? rivals->count : CONTESTS;
    size_t *all = calloc(rivals->marks + 1, sizeof *all), total = 0;
    char *summary;
    if (!all || asprintf(&summary, "The data behind these plots: %zu ratios", rivals->marks) < 0)
        abort();
    fputs(rivals->peers ? "<h3>Peer libraries and plug-ins against our fastest kernel</h3>\n"
                        : "<h3>Our own kernels against the fastest of them</h3>\n",
          page);
    fputs("<figure class=\"plot\"><div class=\"panels\">\n", page);
    const size_t thinned = draw_all(rivals, rows, &renderer, page);
    for (size_t c = 0; c < contests; c++)
        draw_contest(rivals, &rivals->contests[c], &renderer, page);
    fputs("</div>\n", page);
    for (size_t c = 0; c < rivals->count; c++)
        for (size_t r = 0; r < rivals->contests[c].count; r++)
            all[total++] = rivals->contests[c].rivals[r].record;
    if (renderer.gnuplot && !renderer.failed) {
        plot_legend_begin(page);
        plot_legend_records(rivals->report, all, total, false, page);
        plot_legend_end(page);
    }
    plot_renderer_end(&renderer, page);
    put_caption(rivals, rows, thinned, contests, page);
    fputs("</figure>\n", page);
    html_data_begin(page, summary);
    put_rows(rivals, page);
    html_data_end(page);
    free(summary);
    free(all);
}

void report_plot_rivals(const struct report *report, FILE *page)
{
    struct rivals rivals = {.report = report, .peers = true};
    rivals.contests = plot_contests(report, true, &rivals.count);
    if (!rivals.count) {
        plot_contests_release(rivals.contests, rivals.count);
        rivals.peers = false;
        rivals.contests = plot_contests(report, false, &rivals.count);
    }
    for (size_t c = 0; c < rivals.count; c++)
        rivals.marks += rivals.contests[c].count;
    rivals.standings = plot_standings(report, rivals.contests, rivals.count, &rivals.standing_count);
    if (rivals.count)
        put_figures(&rivals, page);
    else
        fputs("<p class=\"note\">No problem was measured with two kernels, so there is nothing to compare.</p>\n",
              page);
    free(rivals.standings);
    plot_contests_release(rivals.contests, rivals.count);
}
