/* SPDX-License-Identifier: Apache-2.0
 *
 * Change points of a series of estimates with standard errors: where its level moved for good or for a while. Nothing
 * is drawn at random; the same series gives the same answer.
 *
 * Search: circular binary segmentation (Olshen, Venkatraman, Lucito and Wigler 2004): of all arcs [i, j) of a segment,
 * the one whose mean differs most from the mean of the rest; if the difference is significant, its ends are change
 * points, and each part is searched again. (Splitting in two alone does not see a regression that was mended soon.)
 * Then each change point is moved to the best place between its neighbours and tested against them, and the weakest is
 * dropped until all are significant. Each level lasts at least 3 points, and at least half of a change must be in the
 * medians too, so that a single outlier makes none. A level of 3 points that would be better off shorter has borrowed
 * from its neighbour: the one or two points of its own are left out, and the rest is searched anew. So a change is
 * told once 3 points stand at its new level, and at the first of them.
 *
 * Test: means are weighted by 1 / SE^2; t = difference / sqrt(phi (1 / sum of weights left + 1 / sum right)), Student's
 * distribution with n - 2 degrees of freedom, two-sided. The statistic is the greatest of many: p is multiplied by the
 * number of arcs of the whole series (Bonferroni), in the search as in the second test.
 *
 * phi >= 1 is how far the standard errors fall short of the spread from point to point: the mean of the four fifths
 * smallest squared differences of neighbours over their variances, divided by its value for normal noise. Where the
 * standard errors are right (phi = 1), a series without a change gives one with probability at most the level. Where
 * they are two to four times too small, up to 1.6 in 1,000 such series did at level 0.001 (normal noise, 6 to 40
 * points).
 *
 * Standard errors below a quarter of their median count as that, and at least as 1e-6: a zero is no certainty.
 */
#ifndef HARNESS_CHANGE_POINTS_H
#define HARNESS_CHANGE_POINTS_H

#include <stddef.h>

#define CHANGE_POINTS_LEVEL 0.001

enum { CHANGE_POINTS_SHORTEST = 3 }; /* points a level lasts at least */

struct change_point {
    size_t first; /* index of the first point of the new level */
    double size;  /* new level minus old level; of log ratios: above 0 is slower */
    double p;     /* corrected, at most the level */
};

/* The most change points that n points can have: what `found` must have room for. */
size_t change_points_most(size_t n);

/* Finds the change points of n values with their standard errors, in order. Returns how many, or -EINVAL (a value or
 * standard error that is not finite, a negative standard error, level outside (0, 1)) or -ENOMEM. Fewer than 6 points
 * have none. Time O(n^2) a level. */
long change_points_find(const double *values, const double *standard_errors, size_t n, double level,
                        struct change_point *found);

#endif
