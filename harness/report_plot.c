/* SPDX-License-Identifier: Apache-2.0
 *
 * One figure of the report, and legends; see report_plot.h.
 */
#include "report_plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report_html.h"

enum { TIMEOUT_MS = 20000, TEXT_SIZE = 13 };

/* Closed paths around 0,0, all relative, so that each can be filled or hollow and begins with a place of its own. */
static const char *const shapes[PLOT_SHAPES] = {
    "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",                                                              /* circle */
    "m-3.6-3.6h7.2v7.2h-7.2z",                                                                         /* square */
    "m0-5l4.6 8h-9.2z",                                                                                /* up */
    "m0-5.2l5.2 5.2-5.2 5.2-5.2-5.2z",                                                                 /* diamond */
    "m0 5l4.6-8h-9.2z",                                                                                /* down */
    "m-1.6-4.7h3.2v3.1h3.1v3.2h-3.1v3.1h-3.2v-3.1h-3.1v-3.2h3.1z",                                     /* plus */
    "m0-2.3l2.4-2.4 2.3 2.3-2.4 2.4 2.4 2.4-2.3 2.3-2.4-2.4-2.4 2.4-2.3-2.3 2.4-2.4-2.4-2.4 2.3-2.3z", /* cross */
    "m0-5.8l1.6 4.2 4.2 1.6-4.2 1.6-1.6 4.2-1.6-4.2-4.2-1.6 4.2-1.6z",                                 /* star */
};
static const char *const dashes[PLOT_DASHES] = {"", "7,4", "2,3", "9,3,2,3", "12,5", "5,2,2,2,2,2"};

static FILE *stream(char **text, size_t *size)
{
    FILE *file = open_memstream(text, size);
    if (!file)
        abort(); /* memory is exhausted; a figure with gaps would be worse than none */
    return file;
}

void plot_begin(struct plot *plot, int width, int height, int left_margin)
{
    *plot = (struct plot){.width = width, .height = height};
    plot->left = left_margin;
    plot->right = width - 14;
    plot->top = 26;
    plot->bottom = height - 46;
    plot->lines = stream(&plot->lines_text, &plot->sizes[0]);
    plot->plots = stream(&plot->plots_text, &plot->sizes[1]);
    plot->texts = stream(&plot->texts_text, &plot->sizes[2]);
}

double plot_x(const struct plot *plot, double value)
{
    return plot->left + plot_axis_place(&plot->x, value) * (plot->right - plot->left);
}

double plot_y(const struct plot *plot, double value)
{
    return plot->bottom - plot_axis_place(&plot->y, value) * (plot->bottom - plot->top);
}

void plot_line(struct plot *plot, const struct plot_point *points, size_t count, enum gnuplot_color color, int dash,
               double width)
{
    size_t whole = 0;
    fprintf(plot->lines, "$d%d << EOD\n", plot->line_count);
    for (size_t i = 0; i < count; i++) {
        if (isfinite(points[i].x) && isfinite(points[i].y)) {
            fprintf(plot->lines, "%.9g %.9g\n", points[i].x, points[i].y);
            whole++;
        } else {
            fputc('\n', plot->lines);
        }
    }
    fputs("EOD\n", plot->lines);
    if (whole > 1) {
        fprintf(plot->plots, ", $d%d with lines lw %g lc rgb '%s'", plot->line_count, width, gnuplot_color(color));
        if (dash > 0)
            fprintf(plot->plots, " dt (%s)", dashes[dash % PLOT_DASHES]);
        fputs(" notitle", plot->plots);
    }
    plot->line_count++;
}

void plot_mark(struct plot *plot, struct plot_mark mark)
{
    if (plot->mark_count == plot->mark_room) {
        plot->mark_room = plot->mark_room ? 2 * plot->mark_room : 64;
        plot->marks = realloc(plot->marks, plot->mark_room * sizeof *plot->marks);
        if (!plot->marks)
            abort();
    }
    plot->marks[plot->mark_count++] = mark;
}

void plot_text(struct plot *plot, double x, double y, enum plot_anchor anchor, double degrees, enum gnuplot_color color,
               const char *text)
{
    static const char *const anchors[] = {"start", "middle", "end"};
    fprintf(plot->texts,
            "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"%s\" stroke=\"%s\" stroke-width=\"3\" "
            "paint-order=\"stroke\"",
            x, y, anchors[anchor], gnuplot_color_css(color), gnuplot_color_css(GNUPLOT_PAPER));
    if (degrees != 0)
        fprintf(plot->texts, " transform=\"rotate(%.1f %.1f %.1f)\"", degrees, x, y);
    fputc('>', plot->texts);
    html_text(plot->texts, text);
    fputs("</text>", plot->texts);
}

static void put_axis(FILE *script, const struct plot_axis *axis, char name)
{
    if (axis->log)
        fprintf(script, "set logscale %c\n", name);
    fprintf(script, "set %crange [%.9g:%.9g]\n", name, axis->low, axis->high);
    if (!axis->tick_count) {
        fprintf(script, "unset %ctics\n", name);
        return;
    }
    fprintf(script, "set %ctics %s (", name, name == 'x' ? "offset 0,0.4" : "");
    for (int i = 0; i < axis->tick_count; i++) {
        fputs(i ? ", " : "", script);
        gnuplot_quote(script, axis->ticks[i].text);
        fprintf(script, " %.9g", axis->ticks[i].at);
    }
    fputs(")\n", script);
}

static void put_label(FILE *script, const struct plot *plot, const char *label, double x, double y, const char *where)
{
    if (!label)
        return;
    fputs("set label ", script);
    gnuplot_quote(script, label);
    fprintf(script, " at screen %.5f, screen %.5f %s textcolor rgb '%s'\n", x / plot->width, 1 - y / plot->height,
            where, gnuplot_color(GNUPLOT_INK));
}

/* malloc'd */
static char *script_of(struct plot *plot)
{
    char *text;
    size_t size;
    FILE *script = stream(&text, &size);
    fprintf(script,
            "set encoding utf8\nset terminal svg size %d,%d dynamic noenhanced font ',%d'\n"
            "set lmargin at screen %.6f\nset rmargin at screen %.6f\nset tmargin at screen %.6f\n"
            "set bmargin at screen %.6f\nset border 3 lc rgb '%s'\nset tics nomirror out scale 0.5 textcolor rgb '%s'\n"
            "set grid xtics ytics lt 1 lw 0.7 lc rgb '%s'\nset key off\n",
            plot->width, plot->height, TEXT_SIZE, (double)plot->left / plot->width, (double)plot->right / plot->width,
            1 - (double)plot->top / plot->height, 1 - (double)plot->bottom / plot->height, gnuplot_color(GNUPLOT_FAINT),
            gnuplot_color(GNUPLOT_INK), gnuplot_color(GNUPLOT_LINE));
    put_axis(script, &plot->x, 'x');
    put_axis(script, &plot->y, 'y');
    put_label(script, plot, plot->x.label, (plot->left + plot->right) / 2.0, plot->height - 7, "center");
    put_label(script, plot, plot->y.label, 4, 11, "left");
    fclose(plot->lines);
    fclose(plot->plots);
    fputs(plot->lines_text, script);
    fprintf(script, "plot NaN notitle%s\n", plot->plots_text); /* the frame stands without a line too */
    fclose(script);
    return text;
}

static int compare_marks(const void *left, const void *right)
{
    const struct plot_mark *a = left, *b = right;
    if (a->color != b->color)
        return a->color < b->color ? -1 : 1;
    if (a->hollow != b->hollow)
        return a->hollow ? 1 : -1;
    return a->record < b->record ? -1 : a->record > b->record; /* qsort is not stable */
}

static void put_style(FILE *page, enum gnuplot_color color, bool hollow)
{
    fprintf(page, " fill=\"%s\" stroke=\"%s\"", gnuplot_color_css(hollow ? GNUPLOT_PAPER : color),
            gnuplot_color_css(hollow ? color : GNUPLOT_PAPER));
    fputs(hollow ? " stroke-width=\"1.6\"" : " stroke-width=\"0.6\"", page);
}

static void put_marks(const struct plot *plot, FILE *page)
{
    for (size_t i = 0; i < plot->mark_count; i++) {
        const struct plot_mark *mark = &plot->marks[i], *before = i ? mark - 1 : NULL;
        if (!before || before->color != mark->color || before->hollow != mark->hollow) {
            fputs(before ? "</g>\n<g" : "<g", page);
            put_style(page, mark->color, mark->hollow);
            fputc('>', page);
        }
        fprintf(page, "<path d=\"M%.1f %.1f%s\"", plot_x(plot, mark->x), plot_y(plot, mark->y),
                shapes[mark->shape % PLOT_SHAPES]);
        if (mark->title) {
            fputs("><title>", page);
            html_text(page, mark->title);
            fputs("</title></path>", page);
        } else if (mark->record != PLOT_NO_RECORD) {
            fprintf(page, " data-r=\"%ld\"/>", mark->record);
        } else {
            fputs("/>", page);
        }
    }
    if (plot->mark_count)
        fputs("</g>\n", page);
}

/* The figure with gnuplot's drawing in it. */
static void put_figure(struct plot *plot, const struct plot_renderer *renderer, const char *drawing, const char *title,
                       const char *description, FILE *page)
{
    const char *prefix = renderer->prefix;
    const int number = renderer->count;
    fprintf(page,
            "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-labelledby=\"%s%dt %s%dd\" "
            "font-size=\"%d\"><title id=\"%s%dt\">",
            plot->width, plot->height, prefix, number, prefix, number, TEXT_SIZE, prefix, number);
    html_text(page, title);
    fprintf(page, "</title><desc id=\"%s%dd\">", prefix, number);
    html_text(page, description);
    fputs("</desc>\n", page);
    fputs(drawing, page);
    if (plot->mark_count)
        qsort(plot->marks, plot->mark_count, sizeof *plot->marks, compare_marks);
    fputs(plot->texts_text, page); /* below the marks: a name may be hidden, a point may not */
    put_marks(plot, page);
    fputs("</svg>\n", page);
}

/* gnuplot's drawing, malloc'd; NULL where it failed. */
static char *draw(struct plot *plot, struct plot_renderer *renderer)
{
    char *script = script_of(plot), *svg = NULL, *drawing = NULL;
    size_t size;
    if (renderer->gnuplot && !renderer->failed) {
        renderer->failed = gnuplot_run(renderer->gnuplot, script, TIMEOUT_MS, &svg, &renderer->error);
        FILE *file = stream(&drawing, &size);
        if (!renderer->failed)
            renderer->failed = gnuplot_svg_drawing(svg, file, &renderer->error);
        fclose(file);
    }
    free(script);
    free(svg);
    if (!renderer->failed)
        return drawing;
    free(drawing);
    return NULL;
}

void plot_end(struct plot *plot, struct plot_renderer *renderer, const char *title, const char *description, FILE *page)
{
    char *drawing = draw(plot, renderer);
    fclose(plot->texts);
    if (drawing)
        put_figure(plot, renderer, drawing, title, description, page);
    renderer->count++;
    free(drawing);
    for (size_t i = 0; i < plot->mark_count; i++)
        free(plot->marks[i].title);
    free(plot->marks);
    free(plot->lines_text);
    free(plot->plots_text);
    free(plot->texts_text);
}

void plot_renderer_end(const struct plot_renderer *renderer, FILE *page)
{
    if (!renderer->gnuplot && renderer->count) {
        html_no_plot(page);
    } else if (renderer->failed) {
        fputs("<p class=\"note\">Plots are missing here: ", page);
        html_text(page, renderer->error.text);
        fputs(". The figures stand below.</p>\n", page);
    }
}

enum gnuplot_color plot_kernel_color(size_t kernel)
{
    return (enum gnuplot_color)(GNUPLOT_SERIES + kernel % REPORT_COLORS);
}

int plot_shape(const struct report *report, const struct report_record *record)
{
    /* After eight kernels colours begin again, with other shapes. */
    return (int)((report->source_count > 1 ? record->source : record->kernel + record->kernel / REPORT_COLORS) %
                 PLOT_SHAPES);
}

int plot_line_dash(const struct report *report, const struct plot_group *lines, size_t line)
{
    const struct report_record *own = &report->records[lines[line].records[0]];
    int dash = 0;
    if (report->source_count > 1)
        return (int)(own->source % PLOT_DASHES);
    for (size_t i = 0; i < line; i++)
        dash += report->records[lines[i].records[0]].kernel == own->kernel;
    return dash;
}

void plot_legend_begin(FILE *page)
{
    fputs("<ul class=\"marks\">", page);
}

void plot_legend_item(FILE *page, enum gnuplot_color color, int shape, bool hollow, int dash, const char *text)
{
    const int half = dash >= 0 ? 15 : 8;
    fprintf(page, "<li><svg viewBox=\"%d -8 %d 16\" width=\"%d\" height=\"16\" aria-hidden=\"true\">", -half, 2 * half,
            2 * half);
    if (dash >= 0) {
        fprintf(page, "<path d=\"M%d 0H%d\" stroke=\"%s\" stroke-width=\"2\"", -half, half, gnuplot_color_css(color));
        if (dash > 0)
            fprintf(page, " stroke-dasharray=\"%s\"", dashes[dash % PLOT_DASHES]);
        fputs("/>", page);
    }
    if (shape >= 0) {
        fprintf(page, "<path d=\"M0 0%s\"", shapes[shape % PLOT_SHAPES]);
        put_style(page, color, hollow);
        fputs("/>", page);
    }
    fputs("</svg> ", page);
    html_text(page, text);
    fputs("</li>", page);
}

void plot_legend_records(const struct report *report, const size_t *records, size_t count, bool lines, FILE *page)
{
    const bool several = report->source_count > 1;
    bool *kernels = calloc(report->kernel_count + report->source_count + 1, sizeof *kernels), noisy = false;
    if (!kernels)
        abort();
    bool *sources = kernels + report->kernel_count;
    for (size_t i = 0; i < count; i++) {
        const struct report_record *record = &report->records[records[i]];
        kernels[record->kernel] = sources[record->source] = true;
        noisy = noisy || record->noisy;
    }
    for (size_t k = 0; k < report->kernel_count; k++) {
        const struct report_record like = {.kernel = k};
        if (kernels[k])
            plot_legend_item(page, plot_kernel_color(k), several ? 0 : plot_shape(report, &like), false, -1,
                             report->kernels[k]);
    }
    for (size_t s = 0; several && s < report->source_count; s++)
        if (sources[s])
            plot_legend_item(page, GNUPLOT_FAINT, (int)(s % PLOT_SHAPES), false, lines ? (int)(s % PLOT_DASHES) : -1,
                             report->sources[s].label);
    if (noisy)
        plot_legend_item(page, GNUPLOT_FAINT, 0, true, -1, "hollow: noisy, not to be trusted");
    free(kernels);
}

void plot_legend_end(FILE *page)
{
    fputs("</ul>\n", page);
}
