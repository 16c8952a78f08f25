/* SPDX-License-Identifier: Apache-2.0
 *
 * Wilcoxon's signed-rank statistics of one sample: the Hodges-Lehmann estimate of the centre of symmetry, its interval,
 * and tests of a centre against a margin. All rest on the Walsh averages (x_i + x_j) / 2, i <= j, of which n values
 * have M = n (n + 1) / 2; without ties, the signed-rank statistic V at margin m is the number of averages above m
 * (Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, 3rd ed., 3.1 to 3.3; Hodges and Lehmann 1963).
 *
 * Ties and zeros: averages equal to the margin count against rejecting, and intervals are closed. Both are valid for
 * tied values, at the price of some power: a jitter too small to reorder unequal averages makes the values continuous
 * and can only add to the averages beyond the margin. So a test at level a rejects exactly where the interval of
 * confidence 1 - 2 a lies beyond the margin, and a p-value never rises when the margin moves away.
 *
 * Time O(n log n), memory O(n), for any n: ranks among the averages are counted, the averages are never stored.
 * Functions return 0, -EINVAL (n = 0, a value that is not finite, confidence outside (0, 1)) or -ENOMEM, and leave the
 * result alone unless 0.
 */
#ifndef HARNESS_SIGNED_RANK_H
#define HARNESS_SIGNED_RANK_H

#include <stddef.h>
#include <stdint.h>

/* Up to this n the null distribution is exact (its counts are whole numbers below 2^53); above, it is the normal one
 * with continuity correction. */
enum { SIGNED_RANK_EXACT = 50 };

struct signed_rank_interval {
    double estimate;  /* Hodges-Lehmann: the median of the Walsh averages */
    double low, high; /* -INFINITY, INFINITY where n is too small for the confidence (below 8 at 99 %) */
};

struct signed_rank_p {
    double greater;   /* of "the centre is <= margin": small if the values lie above */
    double less;      /* of "the centre is >= margin" */
    double two_sided; /* twice the smaller one, at most 1 */
};

/* P(V <= v) of n signs thrown by a fair coin. */
double signed_rank_lower_tail(size_t n, int64_t v);
/* The interval reaches from the k-th smallest to the k-th largest average: the largest k with P(V < k) <= tail; 0 if
 * there is none. tail is (1 - confidence) / 2. */
int64_t signed_rank_critical(size_t n, double tail);
/* Estimate and two-sided interval. */
int signed_rank_estimate(const double *values, size_t n, double confidence, struct signed_rank_interval *interval);
/* p-values of the values against a finite margin. */
int signed_rank_test(const double *values, size_t n, double margin, struct signed_rank_p *p);

#endif
