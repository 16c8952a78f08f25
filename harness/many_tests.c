/* SPDX-License-Identifier: Apache-2.0
 *
 * False discovery rate and alpha spending; see many_tests.h.
 */
#include "many_tests.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

struct ranked {
    double p;
    size_t index;
};

static int ascending(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    if (a->p != b->p)
        return a->p < b->p ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

int many_tests_adjust(const double *p, size_t n, double *adjusted)
{
    for (size_t i = 0; i < n; i++)
        if (!(p[i] >= 0 && p[i] <= 1))
            return -EINVAL;
    if (n == 0)
        return 0;
    struct ranked *ranked = malloc(n * sizeof *ranked);
    if (!ranked)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        ranked[i] = (struct ranked){p[i], i};
    qsort(ranked, n, sizeof *ranked, ascending);
    double least = 1;
    for (size_t rank = n; rank > 0; rank--) {
        least = fmin(least, ranked[rank - 1].p * ((double)n / (double)rank));
        adjusted[ranked[rank - 1].index] = least;
    }
    free(ranked);
    return 0;
}

long many_tests_reject(const double *p, size_t n, double q, bool *rejected)
{
    if (!(q > 0 && q < 1))
        return -EINVAL;
    if (n == 0)
        return 0;
    double *adjusted = malloc(n * sizeof *adjusted);
    if (!adjusted)
        return -ENOMEM;
    long result = many_tests_adjust(p, n, adjusted);
    for (size_t i = 0; result >= 0 && i < n; i++) {
        rejected[i] = adjusted[i] <= q;
        result += rejected[i];
    }
    free(adjusted);
    return result;
}

static double normal_upper_tail(double z)
{
    return 0.5 * erfc(z * sqrt(0.5));
}

/* z with P(Z > z) = tail < 1/2, by bisection until no double lies between. */
static double normal_quantile(double tail)
{
    double low = 0, high = 40;
    for (;;) {
        double middle = 0.5 * (low + high);
        if (middle <= low || middle >= high)
            return middle;
        if (normal_upper_tail(middle) > tail)
            low = middle;
        else
            high = middle;
    }
}

int many_tests_spend(enum many_tests_spending spending, double alpha, const size_t *looks, size_t count, double *share)
{
    if (count == 0 || looks[0] == 0 || !(alpha > 0 && alpha < 1))
        return -EINVAL;
    for (size_t i = 1; i < count; i++)
        if (looks[i] <= looks[i - 1])
            return -EINVAL;
    const double z = normal_quantile(alpha / 2);
    double spent = 0;
    for (size_t i = 0; i < count; i++) {
        double t = (double)looks[i] / (double)looks[count - 1];
        double by_now = spending == MANY_TESTS_EVENLY ? (double)(i + 1) / (double)count
                                                      : 2 * normal_upper_tail(z / sqrt(t)) / alpha;
        share[i] = by_now - spent;
        spent = by_now;
    }
    return 0;
}

double many_tests_spent_p(double p, double share)
{
    if (!(p >= 0 && p <= 1 && share > 0 && share <= 1))
        return NAN;
    return fmin(1, p / share);
}
