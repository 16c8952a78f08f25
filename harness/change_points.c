/* SPDX-License-Identifier: Apache-2.0
 *
 * Change points by circular binary segmentation; see change_points.h.
 */
#include "change_points.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "beta.h"
#include "statistics.h"

enum { SHORTEST = CHANGE_POINTS_SHORTEST };

/* The mean of the lower four fifths of chi-square numbers with 1 degree of freedom: P(X3 <= c) / 0.8 with P(X1 <= c) =
 * 0.8, X3 of 3 degrees (scipy.stats.chi2). */
#define TRIMMED_MEAN 0.4377245949036396

struct series {
    size_t n;
    double *values, *errors;
    size_t *index; /* [n] where each point stands in what was asked about */
    double level, phi;
    double *weight, *sum; /* [n + 1]: of the points before; sum is of weight times value */
    bool *cut;            /* [n + 1]: a new level begins here; 0 and n are cuts too */
};

size_t change_points_most(size_t n)
{
    return n < 2 * SHORTEST ? 0 : n / SHORTEST - 1;
}

/* Splits in two, and arcs with enough points on both sides, of the whole series. */
static double arcs(size_t n)
{
    double splits = (double)n - 2 * SHORTEST + 1, inner = n > 3 * SHORTEST - 2 ? (double)n - 3 * SHORTEST + 1 : 0;
    return splits + inner * (inner + 1) / 2;
}

/* Mean of [i, j) minus mean of the rest of [from, to); *t receives its ratio to its standard error. */
static double difference(const struct series *series, size_t from, size_t to, size_t i, size_t j, double *t)
{
    double inside = series->weight[j] - series->weight[i], inside_sum = series->sum[j] - series->sum[i];
    double outside = series->weight[to] - series->weight[from] - inside;
    double outside_sum = series->sum[to] - series->sum[from] - inside_sum;
    double size = inside_sum / inside - outside_sum / outside;
    *t = size / sqrt(series->phi * (1 / inside + 1 / outside));
    return size;
}

static double corrected_p(const struct series *series, double t)
{
    return fmin(1, 2 * arcs(series->n) * student_upper_tail(fabs(t), (double)series->n - 2));
}

/* Cuts the most different arc out of [from, to) if it is significant, and searches the parts. */
static void search(const struct series *series, size_t from, size_t to)
{
    double best = 0, t;
    size_t first = 0, end = 0;
    for (size_t i = from + SHORTEST; i + SHORTEST <= to; i++)
        for (size_t j = i + SHORTEST; j <= to; j++) {
            if (j < to && j + SHORTEST > to)
                continue;
            difference(series, from, to, i, j, &t);
            if (fabs(t) > best) {
                best = fabs(t);
                first = i;
                end = j;
            }
        }
    if (end == 0 || corrected_p(series, best) > series->level)
        return;
    series->cut[first] = series->cut[end] = true;
    search(series, from, first);
    search(series, first, end);
    if (end < to)
        search(series, end, to);
}

static size_t cut_before(const struct series *series, size_t at)
{
    do
        at--;
    while (!series->cut[at]);
    return at;
}

static size_t cut_after(const struct series *series, size_t at)
{
    do
        at++;
    while (!series->cut[at]);
    return at;
}

/* Where in [first, last] to cut [before, next) in two so that the means differ most; `at` unless another is better. */
static size_t best_place(const struct series *series, size_t before, size_t next, size_t at, size_t first, size_t last)
{
    double best, t;
    difference(series, before, next, at, next, &t);
    best = fabs(t);
    for (size_t i = first; i <= last; i++) {
        difference(series, before, next, i, next, &t);
        if (fabs(t) > best) {
            best = fabs(t);
            at = i;
        }
    }
    return at;
}

/* Each cut to the best place between its neighbours, until all are there. Each move explains more of the spread, so
 * there is an end; the count only guards against rounding. */
static void move_to_best_places(const struct series *series)
{
    bool moved = true;
    for (size_t pass = 0; moved && pass < series->n; pass++) {
        moved = false;
        for (size_t at = cut_after(series, 0), next; at < series->n; at = next) {
            size_t before = cut_before(series, at);
            next = cut_after(series, at);
            size_t best = best_place(series, before, next, at, before + SHORTEST, next - SHORTEST);
            moved |= best != at;
            series->cut[at] = false;
            series->cut[best] = true;
        }
    }
}

/* A level of the least length that would be better off shorter: its other points belong to a neighbour and only make
 * up the number. *from and *to receive what it has of its own, at least one point. Returns whether there is one. */
static bool find_fragment(const struct series *series, size_t *from, size_t *to)
{
    for (size_t at = 0, next; at < series->n; at = next) {
        next = cut_after(series, at);
        if (next - at > SHORTEST || next - at == series->n)
            continue;
        *from = at;
        *to = next;
        if (at > 0)
            *from = best_place(series, cut_before(series, at), next, at, at + 1, next - 1);
        if (next < series->n)
            *to = best_place(series, at, cut_after(series, next), next, at + 1, next - 1);
        if (*to <= *from)
            *to = next;
        if (*from > at || *to < next)
            return true;
    }
    return false;
}

static void leave_out(struct series *series, size_t from, size_t to)
{
    const size_t behind = series->n - to;
    memmove(series->values + from, series->values + to, behind * sizeof *series->values);
    memmove(series->errors + from, series->errors + to, behind * sizeof *series->errors);
    memmove(series->index + from, series->index + to, behind * sizeof *series->index);
    series->n -= to - from;
}

/* One outlier moves the mean of a short level, but not its median. 0, or -ENOMEM. */
static int medians_follow(const struct series *series, size_t before, size_t at, size_t next, double size, bool *follow)
{
    double old_level = statistics_median(series->values + before, at - before);
    double new_level = statistics_median(series->values + at, next - at);
    if (isnan(old_level) || isnan(new_level))
        return -ENOMEM;
    *follow = (new_level - old_level) / size >= 0.5;
    return 0;
}

/* Lists the cuts with their tests against their neighbours; the weakest one that fails is no longer a cut. Returns
 * whether one failed (1 or 0), or -ENOMEM. */
static int list_or_drop(const struct series *series, struct change_point *found, size_t *count)
{
    size_t weakest = 0;
    double worst = series->level;
    *count = 0;
    for (size_t at = cut_after(series, 0); at < series->n; at = cut_after(series, at)) {
        size_t before = cut_before(series, at), next = cut_after(series, at);
        double t, size = difference(series, before, next, at, next, &t);
        bool follow;
        int code = medians_follow(series, before, at, next, size, &follow);
        if (code < 0)
            return code;
        double p = follow ? corrected_p(series, t) : 1;
        if (p > worst) {
            worst = p;
            weakest = at;
        }
        found[(*count)++] = (struct change_point){series->index[at], size, p};
    }
    if (weakest > 0)
        series->cut[weakest] = false;
    return weakest > 0;
}

static int ascending(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Fills weights and sums, about the first value so that nothing cancels; and phi, in `squares` of n. */
static int weigh(struct series *series, double *squares)
{
    const size_t n = series->n, differences = n - 1, kept = differences - (differences + 4) / 5;
    const double *values = series->values, *errors = series->errors, median = statistics_median(errors, n);
    const double least = fmax(median / 4, 1e-6);
    double mean = 0, before = 0;
    if (isnan(median))
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        double error = fmax(errors[i], least), weight = 1 / (error * error);
        if (i > 0) {
            double step = values[i] - values[i - 1];
            squares[i - 1] = step * step / (error * error + before * before);
        }
        before = error;
        series->weight[i + 1] = series->weight[i] + weight;
        series->sum[i + 1] = series->sum[i] + weight * (values[i] - values[0]);
    }
    qsort(squares, differences, sizeof *squares, ascending);
    for (size_t i = 0; i < kept; i++)
        mean += squares[i] / (double)kept;
    series->phi = fmax(1, mean / TRIMMED_MEAN);
    return isfinite(series->sum[n]) && isfinite(series->phi) ? 0 : -EINVAL;
}

/* The significant cuts of the points that are left. How many, or -errno. */
static long find_cuts(struct series *series, double *squares, struct change_point *found)
{
    size_t count = 0;
    int code = weigh(series, squares);
    if (code < 0)
        return code;
    memset(series->cut, 0, (series->n + 1) * sizeof *series->cut);
    series->cut[0] = series->cut[series->n] = true;
    search(series, 0, series->n);
    do {
        move_to_best_places(series);
        code = list_or_drop(series, found, &count);
    } while (code > 0);
    return code < 0 ? code : (long)count;
}

long change_points_find(const double *values, const double *standard_errors, size_t n, double level,
                        struct change_point *found)
{
    if (!(level > 0 && level < 1))
        return -EINVAL;
    for (size_t i = 0; i < n; i++)
        if (!isfinite(values[i]) || !isfinite(standard_errors[i]) || standard_errors[i] < 0)
            return -EINVAL;
    if (change_points_most(n) == 0)
        return 0;
    struct series series = {.n = n, .level = level};
    double *numbers = calloc(5 * n + 2, sizeof *numbers), *squares = numbers;
    series.index = calloc(n, sizeof *series.index);
    series.cut = calloc(n + 1, sizeof *series.cut);
    long result = -ENOMEM;
    if (!numbers || !series.index || !series.cut)
        goto done;
    series.values = squares + n;
    series.errors = series.values + n;
    series.weight = series.errors + n;
    series.sum = series.weight + n + 1;
    memcpy(series.values, values, n * sizeof *values);
    memcpy(series.errors, standard_errors, n * sizeof *standard_errors);
    for (size_t i = 0; i < n; i++)
        series.index[i] = i;
    for (size_t from, to;;) {
        result = change_points_most(series.n) == 0 ? 0 : find_cuts(&series, squares, found);
        if (result <= 0 || !find_fragment(&series, &from, &to))
            break;
        leave_out(&series, from, to);
    }
done:
    free(numbers);
    free(series.index);
    free(series.cut);
    return result;
}
