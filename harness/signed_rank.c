/* SPDX-License-Identifier: Apache-2.0
 *
 * Signed-rank estimate, interval and tests; see signed_rank.h.
 */
#include "signed_rank.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { EXACT_AVERAGES = SIGNED_RANK_EXACT * (SIGNED_RANK_EXACT + 1) / 2 };

static int64_t average_count(size_t n)
{
    return (int64_t)n * ((int64_t)n + 1) / 2;
}

static int ascending(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* A sorted copy; *code tells why there is none. */
static double *sorted_copy(const double *values, size_t n, int *code)
{
    *code = -EINVAL;
    for (size_t i = 0; i < n; i++)
        if (!isfinite(values[i]))
            return NULL;
    if (n == 0)
        return NULL;
    double *copy = malloc(n * sizeof *copy);
    *code = copy ? 0 : -ENOMEM;
    if (copy) {
        memcpy(copy, values, n * sizeof *copy);
        qsort(copy, n, sizeof *copy, ascending);
    }
    return copy;
}

/* probability[v] = P(V = v): rank i is added or not, each with 1/2. */
static void null_distribution(size_t n, double probability[EXACT_AVERAGES + 1])
{
    probability[0] = 1;
    for (size_t i = 1; i <= n; i++) {
        size_t before = i * (i - 1) / 2;
        for (size_t v = before + 1; v <= before + i; v++)
            probability[v] = 0;
        for (size_t v = before + i; v >= i; v--)
            probability[v] = 0.5 * (probability[v] + probability[v - i]);
        for (size_t v = 0; v < i; v++)
            probability[v] *= 0.5;
    }
}

static double exact_lower_tail(size_t n, int64_t v)
{
    double probability[EXACT_AVERAGES + 1], tail = 0;
    null_distribution(n, probability);
    for (int64_t i = 0; i <= v; i++)
        tail += probability[i];
    return tail;
}

double signed_rank_lower_tail(size_t n, int64_t v)
{
    int64_t most = average_count(n);
    if (v < 0)
        return 0;
    if (v >= most)
        return 1;
    if (n <= SIGNED_RANK_EXACT)
        return exact_lower_tail(n, v);
    double mean = 0.5 * (double)most, deviation = sqrt(mean * (2 * (double)n + 1) / 6);
    return 0.5 * erfc((mean - (double)v - 0.5) / deviation * sqrt(0.5));
}

int64_t signed_rank_critical(size_t n, double tail)
{
    if (n <= SIGNED_RANK_EXACT) {
        double probability[EXACT_AVERAGES + 1], below = 0;
        null_distribution(n, probability);
        for (int64_t k = 0; k <= average_count(n); k++) {
            below += probability[k];
            if (!(below <= tail))
                return k;
        }
        return average_count(n);
    }
    int64_t fits = 0, too_many = average_count(n) + 1; /* P(V < 0) = 0 always fits */
    while (too_many - fits > 1) {
        int64_t k = fits + (too_many - fits) / 2;
        if (signed_rank_lower_tail(n, k - 1) <= tail)
            fits = k;
        else
            too_many = k;
    }
    return fits;
}

/* How many Walsh averages are <= limit. Halves are added, so nothing overflows; rounding keeps the order, which is all
 * that the walk along the staircase needs. */
static int64_t averages_up_to(const double *sorted, size_t n, double limit)
{
    int64_t count = 0;
    size_t end = n;
    for (size_t i = 0; i < end; i++) {
        while (end > i && 0.5 * sorted[i] + 0.5 * sorted[end - 1] > limit)
            end--;
        count += (int64_t)(end - i);
    }
    return count;
}

/* Doubles as whole numbers of the same order; both zeros are 0. */
static int64_t order_of(double x)
{
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits < 0 ? INT64_MIN - bits : bits;
}

static double from_order(int64_t order)
{
    int64_t bits = order < 0 ? INT64_MIN - order : order;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The rank-th smallest Walsh average, rank from 1: the least double with so many averages up to it. Bisection over all
 * doubles of the range ends within 64 steps at the average itself. */
static double average_of_rank(const double *sorted, size_t n, int64_t rank)
{
    int64_t low = order_of(sorted[0]), high = order_of(sorted[n - 1]);
    while (low < high) {
        int64_t middle = low + (int64_t)(((uint64_t)high - (uint64_t)low) / 2);
        if (averages_up_to(sorted, n, from_order(middle)) >= rank)
            high = middle;
        else
            low = middle + 1;
    }
    return from_order(low);
}

int signed_rank_estimate(const double *values, size_t n, double confidence, struct signed_rank_interval *interval)
{
    int code;
    if (!(confidence > 0 && confidence < 1))
        return -EINVAL;
    double *sorted = sorted_copy(values, n, &code);
    if (!sorted)
        return code;
    int64_t count = average_count(n), critical = signed_rank_critical(n, 0.5 * (1 - confidence));
    double upper = average_of_rank(sorted, n, count / 2 + 1);
    interval->estimate = count % 2 ? upper : 0.5 * average_of_rank(sorted, n, count / 2) + 0.5 * upper;
    interval->low = critical > 0 ? average_of_rank(sorted, n, critical) : -INFINITY;
    interval->high = critical > 0 ? average_of_rank(sorted, n, count + 1 - critical) : INFINITY;
    free(sorted);
    return 0;
}

int signed_rank_test(const double *values, size_t n, double margin, struct signed_rank_p *p)
{
    int code;
    if (!isfinite(margin))
        return -EINVAL;
    double *sorted = sorted_copy(values, n, &code);
    if (!sorted)
        return code;
    int64_t not_above = averages_up_to(sorted, n, margin);
    int64_t below = averages_up_to(sorted, n, nextafter(margin, -INFINITY));
    /* V is symmetric: P(V >= averages above) = P(V <= the others). */
    p->greater = signed_rank_lower_tail(n, not_above);
    p->less = signed_rank_lower_tail(n, average_count(n) - below);
    p->two_sided = fmin(1, 2 * fmin(p->greater, p->less));
    free(sorted);
    return 0;
}
