/* SPDX-License-Identifier: Apache-2.0
 *
 * Clopper-Pearson bounds; see binomial.h.
 */
#include "binomial.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>

#include "beta.h"

/* The share p at which P(X >= k) = tail, for 1 <= k <= n. Bisection until no double lies between; P rises with p. */
static double lower_bound(int64_t k, int64_t n, double tail)
{
    double low = 0, high = (double)k / (double)n;
    if (k == n)
        return exp(log(tail) / (double)n);
    for (;;) {
        double middle = 0.5 * (low + high);
        if (middle <= low || middle >= high)
            return middle;
        if (beta_regularized((double)k, (double)(n - k + 1), middle) < tail)
            low = middle;
        else
            high = middle;
    }
}

/* The share p at which P(X <= k) = tail, for 0 <= k < n. Not through the failures: 1 - p would lose the digits of a
 * small p. */
static double upper_bound(int64_t k, int64_t n, double tail)
{
    double low = (double)k / (double)n, high = 1;
    if (k == 0)
        return -expm1(log(tail) / (double)n);
    for (;;) {
        double middle = 0.5 * (low + high);
        if (middle <= low || middle >= high)
            return middle;
        if (beta_regularized((double)(n - k), (double)(k + 1), 1 - middle) > tail)
            low = middle;
        else
            high = middle;
    }
}

static bool valid(int64_t k, int64_t n, double confidence)
{
    return k >= 0 && n >= k && confidence > 0 && confidence < 1;
}

int binomial_lower(int64_t k, int64_t n, double confidence, double *low)
{
    if (!valid(k, n, confidence))
        return -EINVAL;
    *low = k == 0 ? 0 : lower_bound(k, n, 1 - confidence);
    return 0;
}

int binomial_upper(int64_t k, int64_t n, double confidence, double *high)
{
    if (!valid(k, n, confidence))
        return -EINVAL;
    *high = k == n ? 1 : upper_bound(k, n, 1 - confidence);
    return 0;
}

int binomial_interval(int64_t k, int64_t n, double confidence, double *low, double *high)
{
    if (!valid(k, n, confidence))
        return -EINVAL;
    double tail = 0.5 * (1 - confidence);
    *low = k == 0 ? 0 : lower_bound(k, n, tail);
    *high = k == n ? 1 : upper_bound(k, n, tail);
    return 0;
}
