/* SPDX-License-Identifier: Apache-2.0
 *
 * The scaling section: speed-up over the fastest one-thread point of the same kernel, and parallel efficiency, against
 * threads, a line for each kernel, schedule and kind of placement; then the machine with the placements' CPUs marked.
 */
#include "report_plot_scaling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_list.h"
#include "json_util.h"
#include "report_html.h"
#include "text.h"

enum { PROBLEMS = 4, LINES = 10, ROWS_MOST = 1000 };

static int64_t threads_of(const struct report_record *record)
{
    return json_get_int(record->json, "threads", 0);
}

static const char *placement_of(const struct report_record *record)
{
    return json_get_string(record->json, "placement", "?");
}

static void contestant_key(const struct report *report, const struct report_record *record, const void *context,
                           FILE *key)
{
    (void)report;
    (void)context;
    if (!plot_measured(record) || threads_of(record) < 1)
        return;
    fprintf(key, "%zu,%zu,%zu,%s,", record->problem, record->source, record->kernel,
            json_get_string(record->json, "source", ""));
    plot_key_fields(record->json, (const char *const[]){"mem", NULL}, key);
}

const struct report_record **plot_scaling_bases(const struct report *report)
{
    size_t count;
    struct plot_group *groups = plot_groups(report, NULL, 0, contestant_key, NULL, &count);
    const struct report_record **bases = calloc(report->record_count + 1, sizeof *bases);
    if (!bases)
        abort();
    for (size_t g = 0; g < count; g++) {
        const struct report_record *base = NULL;
        for (size_t i = 0; i < groups[g].count; i++) {
            const struct report_record *record = &report->records[groups[g].records[i]];
            if (threads_of(record) == 1 && (!base || json_get_number(record->json, "median_ns", NAN) <
                                                         json_get_number(base->json, "median_ns", NAN)))
                base = record;
        }
        for (size_t i = 0; i < groups[g].count; i++)
            bases[groups[g].records[i]] = base;
    }
    plot_groups_release(groups, count);
    return bases;
}

struct plot_value plot_efficiency(const struct report_record *record, const struct report_record *base)
{
    const struct plot_value speed = plot_speed(record, base);
    const double threads = (double)threads_of(record);
    return (struct plot_value){speed.value / threads, speed.low / threads, speed.high / threads};
}

static int ascending(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

/* What a record scales from; bases: by plot_scaling_bases. */
static const struct report_record *base_of(const struct report *report, const struct report_record *const *bases,
                                           const struct report_record *record)
{
    return bases[record - report->records];
}

/* Problems hold only records with a base. */
static void problem_key(const struct report *report, const struct report_record *record, const void *context, FILE *key)
{
    if (base_of(report, context, record)) {
        fprintf(key, "%zu,", record->problem);
        plot_key_fields(record->json, (const char *const[]){"mem", NULL}, key);
    }
}

/* Distinct thread counts, ascending, into values [count of the group]. */
static size_t thread_counts(const struct report *report, const struct plot_group *problem, double *values)
{
    size_t count = 0;
    for (size_t i = 0; i < problem->count; i++)
        values[i] = (double)threads_of(&report->records[problem->records[i]]);
    qsort(values, problem->count, sizeof *values, ascending);
    for (size_t i = 0; i < problem->count; i++)
        if (count == 0 || values[i] != values[count - 1])
            values[count++] = values[i];
    return count;
}

/* Those that scale over most thread counts come first. 0: there is one only. */
static double weight(const struct report *report, const struct plot_group *problem)
{
    double *values = calloc(problem->count, sizeof *values);
    if (!values)
        abort();
    const size_t count = thread_counts(report, problem, values);
    free(values);
    return count > 1 ? (double)count + 1e-6 * (double)problem->count : 0;
}

/* A placement that was measured with several thread counts makes a line of its own; those that come with one (the
 * entries of the ladder) make one together. Returns those of the first kind, as "SOURCE,PLACEMENT". */
static json_t *find_families(const struct report *report, const struct plot_group *problem)
{
    json_t *threads = json_object(), *families = json_object();
    char name[256];
    for (size_t i = 0; i < problem->count; i++) {
        const struct report_record *record = &report->records[problem->records[i]];
        snprintf(name, sizeof name, "%zu,%.200s", record->source, placement_of(record));
        const int64_t other = json_get_int(threads, name, -1);
        if (other < 0)
            json_object_set_new(threads, name, json_integer(threads_of(record)));
        else if (other != threads_of(record))
            json_object_set_new(families, name, json_true());
    }
    json_decref(threads);
    return families;
}

static void line_key(const struct report *report, const struct report_record *record, const void *context, FILE *key)
{
    char name[256];
    (void)report;
    snprintf(name, sizeof name, "%zu,%.200s", record->source, placement_of(record));
    fprintf(key, "%zu,%zu,%s,%s,%s", record->source, record->kernel, json_get_string(record->json, "source", ""),
            json_get_string(record->json, "schedule_requested", json_get_string(record->json, "schedule", "?")),
            json_object_get((json_t *)context, name) ? placement_of(record) : "ladder");
}

/* ---- drawing ---- */

struct scaling {
    const struct report *report;
    const struct report_record *const *bases;
    const struct plot_group *problem;
    struct plot_group *lines;
    size_t line_count, drawn;
    double *threads;
    size_t thread_count;
    bool efficiency; /* else speed-up */
};

static struct plot_value value_of(const struct scaling *scaling, const struct report_record *record)
{
    const struct report_record *base = base_of(scaling->report, scaling->bases, record);
    return scaling->efficiency ? plot_efficiency(record, base) : plot_speed(record, base);
}

static char *mark_title(const struct scaling *scaling, const struct report_record *record)
{
    const struct report_record *base = base_of(scaling->report, scaling->bases, record);
    char *title = plot_record_title(scaling->report, record), *text;
    if (asprintf(&text, "%s; %.3g x one thread, efficiency %.0f %%", title, plot_speed(record, base).value,
                 100 * plot_efficiency(record, base).value) < 0)
        abort();
    free(title);
    return text;
}

/* At each thread count the line goes through the fastest point. */
static void draw_line(const struct scaling *scaling, size_t index, bool titles, struct plot *plot)
{
    const struct plot_group *line = &scaling->lines[index];
    struct plot_point *through = calloc(scaling->thread_count, sizeof *through);
    struct plot_point *bars = calloc(3 * line->count, sizeof *bars);
    const enum gnuplot_color color = plot_kernel_color(scaling->report->records[line->records[0]].kernel);
    size_t count = 0;
    if (!through || !bars)
        abort();
    for (size_t i = 0; i < line->count; i++) {
        const struct report_record *record = &scaling->report->records[line->records[i]];
        const struct plot_value value = value_of(scaling, record);
        const double threads = (double)threads_of(record);
        bars[3 * i] = (struct plot_point){threads, value.low};
        bars[3 * i + 1] = (struct plot_point){threads, value.high};
        bars[3 * i + 2] = (struct plot_point){NAN, NAN};
        plot_mark(plot, (struct plot_mark){.x = threads,
                                           .y = value.value,
                                           .color = color,
                                           .shape = plot_shape(scaling->report, record),
                                           .hollow = record->noisy,
                                           .record = (long)line->records[i],
                                           .title = titles ? mark_title(scaling, record) : NULL});
    }
    for (size_t t = 0; t < scaling->thread_count; t++) {
        struct plot_point best = {scaling->threads[t], NAN};
        for (size_t i = 0; i < line->count; i++) {
            const struct report_record *record = &scaling->report->records[line->records[i]];
            if ((double)threads_of(record) == best.x)
                best.y = fmax(best.y, value_of(scaling, record).value); /* NaN passes over */
        }
        if (!isnan(best.y))
            through[count++] = best;
    }
    plot_line(plot, through, count, color, plot_line_dash(scaling->report, scaling->lines, index), 1.4);
    plot_line(plot, bars, 3 * line->count, color, 0, 1.6);
    free(through);
    free(bars);
}

static void fit(const struct scaling *scaling, struct plot *plot)
{
    double least = INFINITY, most = 0;
    for (size_t l = 0; l < scaling->drawn; l++)
        for (size_t i = 0; i < scaling->lines[l].count; i++) {
            const struct plot_value value = value_of(scaling, &scaling->report->records[scaling->lines[l].records[i]]);
            least = fmin(least, fmin(value.value, value.low));
            most = fmax(most, fmax(value.value, value.high));
        }
    plot_axis_values(&plot->x, scaling->threads, scaling->thread_count, plot->right - plot->left);
    plot->x.label = "threads";
    if (scaling->efficiency) {
        plot_axis_linear(&plot->y, 0, fmax(most, 1));
        plot->y.label = "speed-up over threads";
    } else {
        most = fmax(most, scaling->threads[scaling->thread_count - 1]);
        if (plot->x.log)
            plot_axis_log(&plot->y, fmin(least, 1), most);
        else
            plot_axis_linear(&plot->y, 0, most);
        plot->y.label = "times as fast as one thread";
    }
}

static void draw(const struct scaling *scaling, bool titles, struct plot_renderer *renderer, FILE *page)
{
    static const char *const names[] = {"speed-up", "parallel efficiency"};
    const struct report_record *first = &scaling->report->records[scaling->problem->records[0]];
    char *problem = plot_problem(scaling->report, first->json), *title;
    struct plot plot;
    if (asprintf(&title, "%s against threads: %s", names[scaling->efficiency], problem) < 0)
        abort();
    plot_begin(&plot, 380, 280, 46);
    fit(scaling, &plot);
    const double low = plot.x.low, high = plot.x.high;
    struct plot_point ideal[2] = {{low, scaling->efficiency ? 1 : low}, {high, scaling->efficiency ? 1 : high}};
    plot_line(&plot, ideal, 2, GNUPLOT_FAINT, 2, 1.2);
    for (size_t l = 0; l < scaling->drawn; l++)
        draw_line(scaling, l, titles, &plot);
    fputs("<div class=\"panel\"><h4>", page);
    html_format(page, "%s: %s", scaling->efficiency ? "Efficiency" : "Speed-up", problem);
    fputs("</h4>\n", page);
    plot_end(&plot, renderer, title, "A line is one kernel, schedule and kind of placement; dotted is the ideal.",
             page);
    fputs("</div>\n", page);
    free(title);
    free(problem);
}

/* ---- words and figures ---- */

static char *cpus_of(const json_t *record)
{
    const json_t *list = json_object_get(record, "cpus");
    const size_t count = json_array_size(list);
    int32_t *cpus = calloc(count + 1, sizeof *cpus);
    if (!cpus)
        abort();
    for (size_t i = 0; i < count; i++)
        cpus[i] = (int32_t)json_integer_value(json_array_get(list, i));
    char *text = cpu_list_format(cpus, (int)count);
    free(cpus);
    return text;
}

static size_t put_rows(const struct report *report, const struct report_record *const *bases,
                       const struct plot_group *problem, size_t room, FILE *page)
{
    size_t rows = 0;
    for (size_t i = 0; i < problem->count && rows < room; i++) {
        const struct report_record *record = &report->records[problem->records[i]];
        const struct report_record *base = base_of(report, bases, record);
        const struct plot_value speed = plot_speed(record, base), efficiency = plot_efficiency(record, base);
        const double figures[] = {(double)threads_of(record), speed.value, speed.low, speed.high, efficiency.value};
        char *text = plot_problem(report, record->json), *cpus = cpus_of(record->json), figure[TEXT_FIGURE];
        html_row(page);
        html_cell(page, text);
        html_cell(page, report->kernels[record->kernel]);
        html_cell(page, json_get_string(record->json, "schedule", "?"));
        html_cell(page, report->sources[record->source].label);
        html_cell(page, placement_of(record));
        html_cell(page, cpus ? cpus : "");
        for (size_t f = 0; f < sizeof figures / sizeof *figures; f++) {
            text_number(figures[f], 3, 8, figure);
            html_figure(page, figure);
        }
        free(text);
        free(cpus);
        rows++;
    }
    return rows;
}

/* The fastest on most threads. */
static void put_seen(const struct report *report, const struct report_record *const *bases,
                     const struct plot_group *problem, FILE *page)
{
    const struct report_record *best = NULL, *base;
    for (size_t i = 0; i < problem->count; i++) {
        const struct report_record *record = &report->records[problem->records[i]];
        if (best && threads_of(record) < threads_of(best))
            continue;
        if (!best || threads_of(record) > threads_of(best) ||
            json_get_number(record->json, "gflops", 0) > json_get_number(best->json, "gflops", 0))
            best = record;
    }
    if (!best)
        return;
    base = base_of(report, bases, best);
    char *where = plot_where(best);
    html_format(page,
                "In the first figure the fastest on %s is %s: %.3g times as fast as on one thread, an efficiency of "
                "%.0f %%. ",
                where, report->kernels[best->kernel], plot_speed(best, base).value,
                100 * plot_efficiency(best, base).value);
    free(where);
}

static void put_caption(const struct report *report, const struct report_record *const *bases,
                        const struct plot_group *problems, size_t left_out, size_t lines, FILE *page)
{
    fputs("<figcaption>", page);
    put_seen(report, bases, &problems[0], page);
    fputs(
        "Speed-up is the median time on one thread (the fastest one-thread point of the same kernel and problem) over "
        "the median time here; efficiency is that over the threads. Bars are the widest that both 95 % intervals "
        "allow. A line goes through the fastest placement at each thread count; dotted is the ideal. ",
        page);
    if (left_out)
        html_format(page, "%zu further problem%s with fewer thread counts or points %s not drawn. ", left_out,
                    left_out == 1 ? "" : "s", left_out == 1 ? "is" : "are");
    if (lines)
        html_format(page, "%zu line%s of slower schedules or kernels %s left out for the sake of the others. ", lines,
                    lines == 1 ? "" : "s", lines == 1 ? "is" : "are");
    fputs("</figcaption>\n", page);
}

static void scaling_begin(const struct report *report, const struct report_record *const *bases,
                          const struct plot_group *problem, struct scaling *scaling)
{
    *scaling = (struct scaling){.report = report, .bases = bases, .problem = problem};
    json_t *families = find_families(report, problem);
    scaling->threads = calloc(problem->count, sizeof *scaling->threads);
    if (!scaling->threads)
        abort();
    scaling->thread_count = thread_counts(report, problem, scaling->threads);
    scaling->lines = plot_groups(report, problem->records, problem->count, line_key, families, &scaling->line_count);
    json_decref(families);
    scaling->drawn = plot_lines_choose(report, scaling->lines, scaling->line_count, LINES);
}

static void scaling_end(struct scaling *scaling)
{
    plot_groups_release(scaling->lines, scaling->line_count);
    free(scaling->threads);
}

static void put_data(const struct report *report, const struct report_record *const *bases,
                     const struct plot_group *problems, size_t count, FILE *page)
{
    static const char *const titles[] = {"problem",  "kernel",    "schedule", "source", "placement",  "CPUs",
                                         "#threads", "#speed-up", "#low",     "#high",  "#efficiency"};
    size_t rows = 0;
    html_data_begin(page, "The data behind these plots");
    html_table_begin(page, "Speed-up over one thread, with the widest interval, and efficiency", titles,
                     sizeof titles / sizeof *titles);
    for (size_t p = 0; p < count; p++)
        rows += put_rows(report, bases, &problems[p], ROWS_MOST - rows, page);
    html_table_end(page);
    if (rows == ROWS_MOST)
        html_format(page, "Only the first %d rows stand here; the table of all records has every point.", ROWS_MOST);
    html_data_end(page);
}

static void put_figures(const struct report *report, const struct report_record *const *bases,
                        struct plot_group *problems, size_t chosen, size_t scaled, FILE *page)
{
    struct plot_renderer renderer = {.gnuplot = report->gnuplot, .prefix = "scaling"};
    size_t total = 0, left_out = 0, *all = calloc(report->record_count + 1, sizeof *all);
    int dashes = 0;
    if (!all)
        abort();
    for (size_t p = 0; p < chosen; p++)
        total += problems[p].count;
    const bool titles = 2 * total <= REPORT_TITLES;
    total = 0;
    fputs("<figure class=\"plot\"><div class=\"panels\">\n", page);
    for (size_t p = 0; p < chosen; p++) {
        struct scaling scaling;
        scaling_begin(report, bases, &problems[p], &scaling);
        for (int efficiency = 0; efficiency < 2; efficiency++) {
            scaling.efficiency = efficiency;
            draw(&scaling, titles, &renderer, page);
        }
        for (size_t l = 0; l < scaling.drawn; l++) {
            memcpy(all + total, scaling.lines[l].records, scaling.lines[l].count * sizeof *all);
            total += scaling.lines[l].count;
            dashes |= plot_line_dash(report, scaling.lines, l);
        }
        left_out += scaling.line_count - scaling.drawn;
        scaling_end(&scaling);
    }
    fputs("</div>\n", page);
    if (renderer.gnuplot && !renderer.failed) {
        plot_legend_begin(page);
        plot_legend_records(report, all, total, true, page);
        if (dashes && report->source_count == 1)
            plot_legend_item(page, GNUPLOT_FAINT, -1, false, 1,
                             "dashed: a further schedule or placement of the same kernel");
        plot_legend_end(page);
    }
    plot_renderer_end(&renderer, page);
    put_caption(report, bases, problems, scaled - chosen, left_out, page);
    fputs("</figure>\n", page);
    put_data(report, bases, problems, scaled, page);
    free(all);
}

void report_plot_scaling(const struct report *report, FILE *page)
{
    size_t count, scaled = 0;
    const struct report_record **bases = plot_scaling_bases(report);
    struct plot_group *problems = plot_groups(report, NULL, 0, problem_key, bases, &count);
    for (size_t p = 0; p < count; p++)
        scaled += weight(report, &problems[p]) > 0;
    plot_groups_choose(report, problems, count, scaled, weight);
    const size_t chosen = plot_groups_choose(report, problems, scaled, PROBLEMS, weight);
    if (chosen)
        put_figures(report, bases, problems, chosen, scaled, page);
    else
        fputs("<p class=\"note\">No kernel was measured on one thread and on more of them with the same problem, so "
              "there "
              "is no scaling to draw.</p>\n",
              page);
    plot_groups_release(problems, count);
    free(bases);
    report_plot_topology(report, page);
}
