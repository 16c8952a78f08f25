/* SPDX-License-Identifier: Apache-2.0
 *
 * Robust statistics of small samples.
 */
#ifndef HARNESS_STATISTICS_H
#define HARNESS_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>

/* Median of n >= 1 values (mean of the middle two if n is even). values is left as it was. NaN for n = 0. */
double statistics_median(const double *values, size_t n);
/* Median absolute deviation from the median, unscaled. */
double statistics_mad(const double *values, size_t n);
double statistics_min(const double *values, size_t n);
/* Rank r >= 1 of the tightest symmetric interval, r-th smallest to r-th largest of n values, that holds the median with
 * probability >= 0.95: the largest r with P(X < r) <= 0.025, X binomial(n, 1/2) (David and Nagaraja, Order Statistics,
 * 7.1). 0 for n < 6: no such interval. */
size_t statistics_ci95_rank(size_t n);
/* 95 % interval of the median by order statistics (binomial, two-sided, conservative). False for n < 6: no interval. */
bool statistics_median_ci95(const double *values, size_t n, double *low, double *high);

#endif
