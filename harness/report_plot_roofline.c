/* SPDX-License-Identifier: Apache-2.0
 *
 * The roofline section: arithmetic intensity against GFLOP/s, both logarithmic, below the measured ceilings. One figure
 * for each dtype, thread count and placement, since ceilings depend on them.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json_util.h"
#include "report_html.h"
#include "report_plot.h"
#include "report_plot_ceilings.h"
#include "statistics.h"
#include "text.h"

enum { PANELS = 4, MARKS_MOST = 1000, ROWS_MOST = 1000 };
static const double least_gap = 13; /* pixels between the names of two ceilings */
static const double letter = 6.5;   /* pixels */

static void panel_key(const struct report *report, const struct report_record *record, const void *context, FILE *key)
{
    static const char *const fields[] = {"dtype", "threads", "placement", NULL};
    (void)report;
    (void)context;
    if (plot_measured(record) && plot_intensity(record->json) > 0)
        plot_key_fields(record->json, fields, key);
}

static struct plot_point place(const struct report_record *record)
{
    return (struct plot_point){plot_intensity(record->json), json_get_number(record->json, "gflops", NAN)};
}

/* ---- one figure ---- */

struct panel {
    const struct plot_group *group;
    struct plot_ceiling *ceilings;
    size_t ceiling_count;
    double compute; /* highest of the horizontal ceilings; NaN: none */
};

/* The highest compute ceiling of a source; NaN: none. */
static double roof_of(const struct panel *panel, size_t source)
{
    double roof = NAN;
    for (size_t i = 0; i < panel->ceiling_count; i++)
        if (panel->ceilings[i].source == source && panel->ceilings[i].kind == CEILING_COMPUTE)
            roof = fmax(roof, panel->ceilings[i].value);
    return roof;
}

/* The fastest (or slowest) level of a source; NaN: none. */
static double extreme_level(const struct panel *panel, size_t source, bool fastest)
{
    double rate = NAN;
    for (size_t i = 0; i < panel->ceiling_count; i++)
        if (panel->ceilings[i].source == source && panel->ceilings[i].kind == CEILING_MEMORY)
            rate = (fastest ? fmax : fmin)(rate, panel->ceilings[i].value);
    return rate;
}

static void fit(const struct report *report, const struct panel *panel, struct plot *plot)
{
    double least_x = INFINITY, most_x = 0, least_y = INFINITY, most_y = 0, ridge = INFINITY;
    for (size_t i = 0; i < panel->group->count; i++) {
        const struct plot_point at = place(&report->records[panel->group->records[i]]);
        least_x = fmin(least_x, at.x);
        most_x = fmax(most_x, at.x);
        least_y = fmin(least_y, at.y);
        most_y = fmax(most_y, at.y);
    }
    for (size_t i = 0; i < panel->ceiling_count; i++) {
        const size_t source = panel->ceilings[i].source;
        ridge = fmin(ridge, roof_of(panel, source) / extreme_level(panel, source, true));
        if (panel->ceilings[i].kind != CEILING_MEMORY)
            most_y = fmax(most_y, panel->ceilings[i].value);
        if (panel->ceilings[i].kind == CEILING_COMPUTE)
            least_y = fmin(least_y, panel->ceilings[i].value);
    }
    /* Room for the slopes and their names, as long as the points are not pushed into a corner. */
    least_x = fmax(fmin(least_x / 1.6, ridge / 4), least_x / 16);
    plot_axis_log(&plot->x, least_x, fmax(most_x * 1.6, least_x * 10));
    plot_axis_log(&plot->y, least_y / 1.2, fmax(most_y * 1.5, least_y * 10));
    plot->x.label = "useful FLOPs per byte of least traffic";
    plot->y.label = "GFLOP/s";
}

struct names {
    double heights[32]; /* where names stand already, in pixels at the frame's edge */
    int count;
};

static bool has_room(struct names *names, double height)
{
    for (int i = 0; i < names->count; i++)
        if (fabs(names->heights[i] - height) < least_gap)
            return false;
    if (names->count < (int)(sizeof names->heights / sizeof *names->heights))
        names->heights[names->count++] = height;
    return true;
}

static void draw_slope(const struct panel *panel, const struct plot_ceiling *ceiling, struct plot *plot,
                       struct names *names)
{
    const double roof = roof_of(panel, ceiling->source), from = plot->x.low;
    const double ridge = roof > 0 ? fmin(roof / ceiling->value, plot->x.high) : plot->x.high;
    char text[160], figure[TEXT_FIGURE];
    if (ridge <= from)
        return;
    plot_line(plot, (struct plot_point[]){{from, from * ceiling->value}, {ridge, ridge * ceiling->value}}, 2,
              GNUPLOT_FAINT, (int)(ceiling->source % PLOT_DASHES), 1.6);
    /* The name stands along the line, above it, from where the line enters the frame. */
    const double enters = fmax(from, plot->y.low / ceiling->value), x = plot_x(plot, enters) + 8;
    const double x0 = plot_x(plot, from), x1 = plot_x(plot, ridge), y0 = plot_y(plot, from * ceiling->value);
    const double slope = (plot_y(plot, ridge * ceiling->value) - y0) / (x1 - x0);
    text_number(ceiling->value, 3, 8, figure);
    snprintf(text, sizeof text, "%s %s GB/s", ceiling->name, figure);
    if (hypot(x1 - x, slope * (x1 - x)) > letter * (double)strlen(text) && has_room(names, y0 / hypot(1, slope)))
        plot_text(plot, x, y0 + slope * (x - x0) - 5, PLOT_START, atan(slope) * 180 / acos(-1), GNUPLOT_INK, text);
}

static void draw_flat(const struct panel *panel, const struct plot_ceiling *ceiling, struct plot *plot,
                      struct names *names)
{
    const double level = extreme_level(panel, ceiling->source, true);
    const double slowest = extreme_level(panel, ceiling->source, false);
    const double from = level > 0 ? fmax(plot->x.low, ceiling->value / level) : plot->x.low;
    const bool compute = ceiling->kind == CEILING_COMPUTE;
    const double height = plot_y(plot, ceiling->value);
    char text[160], cut[160], figure[TEXT_FIGURE];
    if (from < plot->x.high)
        plot_line(plot, (struct plot_point[]){{from, ceiling->value}, {plot->x.high, ceiling->value}}, 2, GNUPLOT_FAINT,
                  (int)(ceiling->source % PLOT_DASHES), compute ? 1.6 : 0.8);
    text_number(ceiling->value, 3, 8, figure);
    if (compute)
        snprintf(text, sizeof text, "compute %s GFLOP/s", figure);
    else
        snprintf(text, sizeof text, "%s with the instructions of %s", figure, ceiling->name);
    if (!has_room(names, height))
        return;
    if (compute) {
        plot_text(plot, plot->right - 2, height - 4, PLOT_END, 0, GNUPLOT_INK, text);
        return;
    }
    /* Behind the last slope, where dots are fewer than at the right end. */
    const double x = plot_x(plot, slowest > 0 ? fmax(plot->x.low, ceiling->value / slowest) : from) + 18;
    if (plot->right - x > 10 * letter) {
        text_fit(text, (size_t)((plot->right - x) / letter), cut, sizeof cut);
        plot_text(plot, x, height - 4, PLOT_START, 0, GNUPLOT_FAINT, cut);
    }
}

static void draw_ceilings(const struct panel *panel, struct plot *plot)
{
    struct names flat = {.count = 0}, slopes = {.count = 0};
    for (size_t i = 0; i < panel->ceiling_count; i++) {
        if (panel->ceilings[i].kind == CEILING_MEMORY)
            draw_slope(panel, &panel->ceilings[i], plot, &slopes);
        else
            draw_flat(panel, &panel->ceilings[i], plot, &flat);
    }
}

/* Returns how many marks it drew. */
static size_t draw_panel(const struct report *report, const struct panel *panel, bool titles,
                         struct plot_renderer *renderer, FILE *page)
{
    struct plot plot;
    const struct report_record *first = &report->records[panel->group->records[0]];
    char *where = plot_where(first), *title;
    size_t *marks = calloc(panel->group->count, sizeof *marks), count = panel->group->count;
    struct plot_point *places = calloc(count, sizeof *places);
    plot_begin(&plot, 460, 360, 48);
    fit(report, panel, &plot);
    draw_ceilings(panel, &plot);
    if (!marks || !places ||
        asprintf(&title, "Roofline, %s, %s", json_get_string(first->json, "dtype", "?"), where) < 0)
        abort();
    memcpy(marks, panel->group->records, count * sizeof *marks);
    for (size_t i = 0; i < count; i++)
        places[i] = place(&report->records[marks[i]]);
    count = plot_thin(report, &plot, marks, places, count, MARKS_MOST);
    for (size_t i = 0; i < count; i++) {
        const struct report_record *record = &report->records[marks[i]];
        plot_mark(&plot, (struct plot_mark){.x = places[i].x,
                                            .y = places[i].y,
                                            .color = plot_kernel_color(record->kernel),
                                            .shape = plot_shape(report, record),
                                            .hollow = record->noisy,
                                            .record = (long)marks[i],
                                            .title = titles ? plot_record_title(report, record) : NULL});
    }
    fputs("<div class=\"panel\"><h4>", page);
    html_format(page, "%s, %s", json_get_string(first->json, "dtype", "?"), where);
    fputs("</h4>\n", page);
    plot_end(&plot, renderer, title, "Dots are measured points, lines are measured ceilings.", page);
    fputs("</div>\n", page);
    free(places);
    free(marks);
    free(where);
    free(title);
    return count;
}

/* ---- words and figures ---- */

static void put_seen(const struct report *report, const struct plot_group *group, FILE *page)
{
    double *shares = calloc(group->count + 1, sizeof *shares), best = 0;
    const struct report_record *leader = NULL;
    size_t count = 0;
    if (!shares)
        abort();
    for (size_t i = 0; i < group->count; i++) {
        const struct report_record *record = &report->records[group->records[i]];
        const double share = record->noisy ? NAN : json_get_number(record->json, "roof_fraction", NAN);
        if (!(share >= 0))
            continue;
        shares[count++] = share;
        if (share > best) {
            best = share;
            leader = record;
        }
    }
    if (leader) {
        char *where = plot_where(leader), *problem = plot_problem(report, leader->json);
        html_format(page,
                    "Nearest to its roof is %s with %.0f %% (%s, %s); half of the %zu points without noise reach "
                    "%.0f %% or more. ",
                    report->kernels[leader->kernel], 100 * best, problem, where, count,
                    100 * statistics_median(shares, count));
        free(where);
        free(problem);
    }
    free(shares);
}

static void put_ceiling_rows(const struct report *report, const struct panel *panel, FILE *page)
{
    static const char *const kinds[] = {"compute", "own instructions", "memory"};
    char *where = plot_where(&report->records[panel->group->records[0]]), text[64];
    for (size_t i = 0; i < panel->ceiling_count; i++) {
        const struct plot_ceiling *ceiling = &panel->ceilings[i];
        char figure[TEXT_FIGURE];
        html_row(page);
        html_cell(page, report->sources[ceiling->source].label);
        html_cell(page, json_get_string(report->records[panel->group->records[0]].json, "dtype", "?"));
        html_cell(page, where);
        html_cell(page, kinds[ceiling->kind]);
        html_cell(page, ceiling->kind == CEILING_COMPUTE ? "" : ceiling->name);
        const double values[] = {ceiling->value, ceiling->least, ceiling->most};
        for (int v = 0; v < 3; v++) {
            text_number(values[v], 4, 8, figure);
            html_figure(page, figure);
        }
        html_cell(page, ceiling->kind == CEILING_MEMORY ? "GB/s" : "GFLOP/s");
        snprintf(text, sizeof text, "%s, %zu", ceiling->from_peak ? "attnbench peak" : "beside the points",
                 ceiling->count);
        html_cell(page, text);
    }
    free(where);
}

static void put_rows(const struct report *report, const struct plot_group *groups, size_t count, FILE *page)
{
    static const char *const titles[] = {"kernel", "schedule", "where", "problem", "#FLOP/byte", "#GFLOP/s", "#roof"};
    html_table_begin(page, "Points", titles, sizeof titles / sizeof *titles);
    for (size_t g = 0; g < count; g++)
        for (size_t i = 0; i < groups[g].count; i++) {
            const struct report_record *record = &report->records[groups[g].records[i]];
            char *where = plot_where(record), *problem = plot_problem(report, record->json), figure[TEXT_FIGURE];
            html_row(page);
            html_cell(page, report->kernels[record->kernel]);
            html_cell(page, json_get_string(record->json, "schedule", "?"));
            html_cell(page, where);
            html_cell(page, problem);
            text_number(plot_intensity(record->json), 4, 8, figure);
            html_figure(page, figure);
            text_number(json_get_number(record->json, "gflops", NAN), 4, 8, figure);
            html_figure(page, figure);
            text_percent(json_get_number(record->json, "roof_fraction", NAN), figure);
            html_figure(page, figure);
            free(where);
            free(problem);
        }
    html_table_end(page);
}

static void put_data(const struct report *report, const struct panel *panels, size_t panel_count,
                     const struct plot_group *groups, size_t count, FILE *page)
{
    static const char *const titles[] = {"source",  "dtype",  "where",     "kind", "of",
                                         "#median", "#least", "#greatest", "unit", "measured"};
    size_t points = 0;
    char *summary;
    for (size_t g = 0; g < count; g++)
        points += groups[g].count;
    if (asprintf(&summary, "The data behind this plot: ceilings and %zu points", points) < 0)
        abort();
    html_data_begin(page, summary);
    html_table_begin(page, "Ceilings", titles, sizeof titles / sizeof *titles);
    for (size_t p = 0; p < panel_count; p++)
        put_ceiling_rows(report, &panels[p], page);
    html_table_end(page);
    if (points <= ROWS_MOST)
        put_rows(report, groups, count, page);
    else
        html_format(page, "The %zu points stand in the table of all records.", points);
    html_data_end(page);
    free(summary);
}

static void put_caption(const struct report *report, const struct panel *panels, size_t panel_count, size_t drawn,
                        size_t points, size_t left_out, FILE *page)
{
    bool memory = false, compute = false, peak = false;
    for (size_t p = 0; p < panel_count; p++)
        for (size_t i = 0; i < panels[p].ceiling_count; i++) {
            memory = memory || panels[p].ceilings[i].kind == CEILING_MEMORY;
            compute = compute || panels[p].ceilings[i].kind == CEILING_COMPUTE;
            peak = peak || panels[p].ceilings[i].from_peak;
        }
    fputs("<figcaption>", page);
    for (size_t p = 0; p < panel_count && p < 1; p++)
        put_seen(report, panels[p].group, page);
    fputs("A dot is a measured point: useful FLOPs over the median time of a call, against useful FLOPs over the least "
          "bytes that the problem must move. Lines are ceilings that were measured, none is from a data sheet: probes "
          "ran between the samples of each point, on its CPUs and a buffer of its size; a line is the median of what "
          "they told at the points that it bounds, at noisy ones only for want of others",
          page);
    fputs(peak ? ", or what attnbench peak found where no point tells. " : ". ", page);
    if (!compute)
        fputs("No point here was bound by computing, so no such ceiling is known. ", page);
    if (!memory)
        fputs("No point here was bound by a cache or by memory, so no such ceiling is known. ", page);
    if (drawn < points)
        html_format(page,
                    "Of %zu dots %zu are drawn: where several of a kernel fall on one spot one stands for them; "
                    "the outermost are all there. ",
                    points, drawn);
    if (left_out)
        html_format(page,
                    "%zu further combination%s of dtype, threads and placement with fewer points or threads %s "
                    "not drawn. ",
                    left_out, left_out == 1 ? "" : "s", left_out == 1 ? "is" : "are");
    fputs("</figcaption>\n", page);
}

static void put_legend(const struct report *report, const struct plot_group *groups, size_t count, FILE *page)
{
    size_t *all = calloc(report->record_count + 1, sizeof *all), total = 0;
    if (!all)
        abort();
    for (size_t g = 0; g < count; g++)
        for (size_t i = 0; i < groups[g].count; i++)
            all[total++] = groups[g].records[i];
    plot_legend_records(report, all, total, false, page);
    free(all);
}

/* More points first; the widest and one thread, between which all others lie, count twice. */
static double weight(const struct report *report, const struct plot_group *group)
{
    const int64_t threads = json_get_int(report->records[group->records[0]].json, "threads", 0);
    int64_t most = 0;
    for (size_t i = 0; i < report->record_count; i++) {
        const int64_t other = json_get_int(report->records[i].json, "threads", 0);
        most = plot_measured(&report->records[i]) && other > most ? other : most;
    }
    return (double)group->count * (threads == 1 || threads == most ? 2 : 1) + 1e-6 * (double)threads;
}

void report_plot_roofline(const struct report *report, FILE *page)
{
    struct plot_renderer renderer = {.gnuplot = report->gnuplot, .prefix = "roofline"};
    struct panel panels[PANELS];
    size_t count, points = 0, drawn = 0;
    struct plot_group *groups = plot_groups(report, NULL, 0, panel_key, NULL, &count);
    const size_t chosen = plot_groups_choose(report, groups, count, PANELS, weight);
    if (!count) {
        fputs("<p class=\"note\">No roofline: no point has both a rate and a known least traffic.</p>\n", page);
        return;
    }
    for (size_t g = 0; g < chosen; g++) {
        panels[g] = (struct panel){.group = &groups[g]};
        panels[g].ceilings = plot_ceilings(report, groups[g].records, groups[g].count, &panels[g].ceiling_count);
        points += groups[g].count;
    }
    fputs("<figure class=\"plot\"><div class=\"panels wide\">\n", page);
    for (size_t g = 0; g < chosen; g++)
        drawn += draw_panel(report, &panels[g], points <= REPORT_TITLES, &renderer, page);
    fputs("</div>\n", page);
    if (renderer.gnuplot && !renderer.failed) {
        plot_legend_begin(page);
        put_legend(report, groups, chosen, page);
        plot_legend_end(page);
    }
    plot_renderer_end(&renderer, page);
    put_caption(report, panels, chosen, drawn, points, count - chosen, page);
    fputs("</figure>\n", page);
    put_data(report, panels, chosen, groups, count, page);
    for (size_t g = 0; g < chosen; g++)
        free(panels[g].ceilings);
    plot_groups_release(groups, count);
}
