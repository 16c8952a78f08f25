/* SPDX-License-Identifier: Apache-2.0
 *
 * Sweeps among the records of a report: one size in at least three values with all the rest equal.
 */
#ifndef HARNESS_REPORT_PLOT_SWEEPS_H
#define HARNESS_REPORT_PLOT_SWEEPS_H

#include <stdint.h>

#include "report_plot.h"

/* A size that may be swept. Some fields move together: both lengths of a square problem, D with D_v, key heads with
 * heads. */
enum sweep_size { SWEEP_S, SWEEP_S_KV, SWEEP_S_Q, SWEEP_D, SWEEP_B, SWEEP_H, SWEEP_SIZES };

struct plot_sweep {
    enum sweep_size size;
    struct plot_group records; /* all of it */
    struct plot_group *lines;  /* its records by source, kernel and schedule; those that may be drawn first */
    size_t line_count, lines_drawn;
    double *values; /* distinct, ascending */
    size_t value_count;
    int64_t threads;
};

extern const char *const plot_sweep_names[SWEEP_SIZES]; /* "S", "S_kv" ... */

/* Sweeps of every size, those of one size together, with at most `lines` lines to draw each (the fastest). malloc'd
 * array of *count; release with plot_sweeps_release. */
struct plot_sweep *plot_sweeps(const struct report *report, size_t lines, size_t *count);
void plot_sweeps_release(struct plot_sweep *sweeps, size_t count);

/* The `most` to draw: of each size in turn the one with most points; on one thread, or on as many as any sweep has,
 * points count twice. Fills order with their indices; returns how many.
 */
size_t plot_sweeps_choose(const struct plot_sweep *sweeps, size_t count, size_t *order, size_t most);

double plot_sweep_value(enum sweep_size size, const json_t *record);

/* What all points of a sweep share: problem, threads, placement. malloc'd. */
char *plot_sweep_heading(const struct report *report, const struct plot_sweep *sweep);

#endif
