/* SPDX-License-Identifier: Apache-2.0
 *
 * Robust statistics of small samples; see statistics.h.
 */
#include "statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int ascending(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* A sorted copy, or NULL for n = 0 and where memory is exhausted. */
static double *sorted_copy(const double *values, size_t n)
{
    double *copy = n > 0 ? malloc(n * sizeof *copy) : NULL;
    if (copy) {
        memcpy(copy, values, n * sizeof *copy);
        qsort(copy, n, sizeof *copy, ascending);
    }
    return copy;
}

static double median_of_sorted(const double *sorted, size_t n)
{
    double upper = sorted[n / 2];
    return n % 2 ? upper : 0.5 * sorted[n / 2 - 1] + 0.5 * upper;
}

double statistics_median(const double *values, size_t n)
{
    double *sorted = sorted_copy(values, n);
    double median = sorted ? median_of_sorted(sorted, n) : NAN;
    free(sorted);
    return median;
}

double statistics_mad(const double *values, size_t n)
{
    double *copy = sorted_copy(values, n);
    if (!copy)
        return NAN;
    double median = median_of_sorted(copy, n);
    for (size_t i = 0; i < n; i++)
        copy[i] = fabs(copy[i] - median);
    qsort(copy, n, sizeof *copy, ascending);
    double mad = median_of_sorted(copy, n);
    free(copy);
    return mad;
}

double statistics_min(const double *values, size_t n)
{
    double least = n > 0 ? values[0] : NAN;
    for (size_t i = 1; i < n; i++)
        least = values[i] < least ? values[i] : least;
    return least;
}

size_t statistics_ci95_rank(size_t n)
{
    /* The interval from the r-th smallest to the r-th largest misses the median if at most r - 1 values fall on one
     * side of it: each side with probability P(X < r), X binomial(n, 1/2). Term by term through logarithms, since 2^-n
     * leaves the range of a double long before n does anything unusual. */
    int sign;
    double log_term = -(double)n * log(2.0);
    double log_factorial = lgamma_r((double)n + 1, &sign);
    double tail = 0;
    for (size_t below = 0; below < n; below++) {
        double log_choose =
            log_factorial - lgamma_r((double)below + 1, &sign) - lgamma_r((double)(n - below) + 1, &sign);
        tail += exp(log_choose + log_term);
        if (tail > 0.025)
            return below;
    }
    return 0;
}

bool statistics_median_ci95(const double *values, size_t n, double *low, double *high)
{
    size_t rank = statistics_ci95_rank(n);
    double *sorted = rank > 0 ? sorted_copy(values, n) : NULL;
    if (!sorted)
        return false;
    *low = sorted[rank - 1];
    *high = sorted[n - rank];
    free(sorted);
    return true;
}
