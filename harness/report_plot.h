/* SPDX-License-Identifier: Apache-2.0
 *
 * Figures of the report. gnuplot draws frames, grids, ticks, lines and intervals; marks and names are placed into its
 * coordinates here, because each mark carries a <title> of its own and names come from files.
 *
 *   report_plot_axis.c   ranges and ticks
 *   report_plot.c        one figure: from figures to SVG; legends
 *   report_plot_thin.c   which marks to draw of too many
 *   report_plot_data.c   what the sections read from records: groups, intervals, ratios, hover texts
 */
#ifndef HARNESS_REPORT_PLOT_H
#define HARNESS_REPORT_PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "gnuplot.h"
#include "report.h"

/* Records with the same key, file order. */
struct plot_group {
    char *key;
    size_t *records; /* [count] indices of report.records */
    size_t count;
};

/* ---- axes ---- */

enum { PLOT_TICKS = 12, PLOT_TICK_TEXT = 16 };

struct plot_axis {
    const char *label; /* borrowed */
    bool log;
    double low, high;
    struct {
        double at;
        char text[PLOT_TICK_TEXT];
    } ticks[PLOT_TICKS];
    int tick_count;
};

/* A range around least .. most (both > 0, or anything finite where linear) that ends at round figures, and its ticks.
 * Linear ones hold 0 or begin there. */
void plot_axis_log(struct plot_axis *axis, double least, double most);
void plot_axis_linear(struct plot_axis *axis, double least, double most);
/* Ticks at these ascending values of an axis `pixels` long, as many as have room, first and last among them; the range
 * with some room around them. log where they span a factor of 4 or more. */
void plot_axis_values(struct plot_axis *axis, const double *values, size_t count, double pixels);
/* 0 .. 1 along the axis. */
double plot_axis_place(const struct plot_axis *axis, double value);

/* ---- one figure ---- */

/* What the figures of a section share. */
struct plot_renderer {
    const char *gnuplot; /* NULL: nothing is drawn */
    const char *prefix;  /* of ids: another one in each section */
    int count;           /* figures so far */
    struct error error;
    int failed; /* 0, or what gnuplot ended with: no further figure is tried */
};
/* Where figures are missing, tells why. */
void plot_renderer_end(const struct plot_renderer *renderer, FILE *page);

enum { PLOT_SHAPES = 8, PLOT_DASHES = 6, PLOT_NO_RECORD = -1 };
enum plot_anchor { PLOT_START, PLOT_MIDDLE, PLOT_END };

struct plot_point {
    double x, y;
};
struct plot_mark {
    double x, y;
    enum gnuplot_color color;
    int shape; /* 0 .. PLOT_SHAPES - 1 */
    bool hollow;
    long record; /* index of report.records for data-r, or PLOT_NO_RECORD */
    char *title; /* hover text where there is no record; malloc'd, the plot frees it; NULL: none */
};

struct plot {
    int width, height;            /* of the figure, in pixels at its natural size */
    int left, right, top, bottom; /* the frame's edges, from the left and the top */
    struct plot_axis x, y;
    /* what was added */
    struct plot_mark *marks;
    size_t mark_count, mark_room;
    FILE *lines, *plots, *texts; /* data blocks, plot clauses, SVG texts */
    char *lines_text, *plots_text, *texts_text;
    size_t sizes[3];
    int line_count;
};

/* An empty figure; the frame leaves room for tick texts and labels. Then set x and y. */
void plot_begin(struct plot *plot, int width, int height, int left_margin);
/* A line through points; where x or y is NaN it is interrupted. dash: 0 is solid. */
void plot_line(struct plot *plot, const struct plot_point *points, size_t count, enum gnuplot_color color, int dash,
               double width);
void plot_mark(struct plot *plot, struct plot_mark mark);
/* A text at a place in pixels, turned clockwise by degrees. */
void plot_text(struct plot *plot, double x, double y, enum plot_anchor anchor, double degrees, enum gnuplot_color color,
               const char *text);
double plot_x(const struct plot *plot, double value); /* in pixels */
double plot_y(const struct plot *plot, double value);
/* Draws it to page (nothing without gnuplot, or once it has failed) and releases it. title names the figure,
 * description tells in words what is to be seen. */
void plot_end(struct plot *plot, struct plot_renderer *renderer, const char *title, const char *description,
              FILE *page);

/* Leaves out marks that would hide each other where there are more than `most`: of those of one kernel, source and
 * quality that fall on one spot one stays, and the outermost ones of each kernel all do. Spots grow until there are no
 * more than `most`, as far as that can be had. plot has its axes; records and places are cut together. Returns how many
 * stay. */
size_t plot_thin(const struct report *report, const struct plot *plot, size_t *records, struct plot_point *places,
                 size_t count, size_t most);

/* ---- legends ---- */

enum gnuplot_color plot_kernel_color(size_t kernel);
/* By kernel where there is one source, else by source. */
int plot_shape(const struct report *report, const struct report_record *record);

/* By source where there are several, else by how many lines of the same kernel stand before this one. */
int plot_line_dash(const struct report *report, const struct plot_group *lines, size_t line);

void plot_legend_begin(FILE *page);
/* dash: -1: the mark alone; shape: -1: the line alone. */
void plot_legend_item(FILE *page, enum gnuplot_color color, int shape, bool hollow, int dash, const char *text);
/* Kernels and, of several, sources of these records (with their dashes where there are lines), and hollow ones if any
 * is noisy. */
void plot_legend_records(const struct report *report, const size_t *records, size_t count, bool lines, FILE *page);
void plot_legend_end(FILE *page);

/* ---- records ---- */

/* Measured: ok, with a time and a rate. */
bool plot_measured(const struct report_record *record);

struct plot_value {
    double value, low, high; /* 95 % interval; NaN: unknown */
};
struct plot_value plot_gflops(const struct report_record *record);
/* How many times as fast as `base` a record is. The interval is the widest that both intervals allow. */
struct plot_value plot_speed(const struct report_record *record, const struct report_record *base);

/* "avx2 bhq, 2 threads compact: B 8 ...: 62.7 GFLOP/s ±1.2 %, 54 % of the roof (compute), noisy". malloc'd. */
char *plot_record_title(const struct report *report, const struct report_record *record);
/* "2 threads, compact" */
char *plot_where(const struct report_record *record);
/* The problem as the page tells it: without rule and dtype where all records share them. malloc'd. */
char *plot_problem(const struct report *report, const json_t *record);

/* Groups in the order of their first record. key writes a record's key; writing nothing leaves it out. within: NULL, or
 * the [within_count] records to look at. Release with plot_groups_release. */
typedef void plot_key(const struct report *report, const struct report_record *record, const void *context, FILE *key);
struct plot_group *plot_groups(const struct report *report, const size_t *within, size_t within_count, plot_key *key,
                               const void *context, size_t *count);
/* Puts the `most` groups of greatest weight above 0 (equal ones: the first) to the front, in their old order, the
 * others behind. Returns how many stand in front. */
typedef double plot_weight(const struct report *report, const struct plot_group *group);
size_t plot_groups_choose(const struct report *report, struct plot_group *groups, size_t count, size_t most,
                          plot_weight *weight);
/* The same for lines of one figure, each of one source and kernel: the fastest of them. Where they are more than
 * `most`, only the fastest of each source and kernel has a chance. */
size_t plot_lines_choose(const struct report *report, struct plot_group *lines, size_t count, size_t most);
void plot_groups_release(struct plot_group *groups, size_t count);
/* Fields of a record for a key, as JSON, in order. */
void plot_key_fields(const json_t *record, const char *const *names, FILE *key);

#endif
