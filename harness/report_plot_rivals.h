/* SPDX-License-Identifier: Apache-2.0
 *
 * Rivals: who stands how far from whom at each problem.
 */
#ifndef HARNESS_REPORT_PLOT_RIVALS_H
#define HARNESS_REPORT_PLOT_RIVALS_H

#include "report_plot.h"

/* A peer library or a user's plug-in, as against a kernel of this project. */
bool plot_is_peer(const struct report_record *record);

/* A kernel's fastest record at one problem, thread count, placement and source. */
struct plot_rival {
    size_t record;
    struct plot_value ratio; /* its speed over that of base */
};
struct plot_contest {
    size_t base;               /* the fastest record of our own kernels */
    struct plot_rival *rivals; /* fastest first */
    size_t count;
};

/* Contests of at least two. peers: the rivals are peers alone; else all of our own kernels, the base among them with a
 * ratio of 1. malloc'd array of *count; release with plot_contests_release. */
struct plot_contest *plot_contests(const struct report *report, bool peers, size_t *count);
void plot_contests_release(struct plot_contest *contests, size_t count);

/* One kernel over all contests. */
struct plot_standing {
    size_t kernel, contests;
    double mean; /* geometric, of its ratios */
};
/* Best first. malloc'd array of *count. */
struct plot_standing *plot_standings(const struct report *report, const struct plot_contest *contests, size_t count,
                                     size_t *standing_count);

#endif
