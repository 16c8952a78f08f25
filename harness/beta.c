/* SPDX-License-Identifier: Apache-2.0
 *
 * Incomplete beta function by its continued fraction, NIST Digital Library of Mathematical Functions 8.17.22 with
 * 8.17.23, evaluated forwards by Lentz's method as modified by Thompson and Barnett (1986). It converges fast for
 * x < (a + 1) / (a + b + 2); beyond, 8.17.4 reflects.
 */
#include "beta.h"

#include <float.h>
#include <math.h>

/* Steps grow with the square root of the larger parameter: some 5000 at 1e7. */
enum { MOST_STEPS = 1000000 };

static double not_zero(double x)
{
    return fabs(x) < DBL_MIN ? DBL_MIN : x;
}

static double continued_fraction(double a, double b, double x)
{
    double c = 1, d = 1 / not_zero(1 - (a + b) * x / (a + 1)), value = d;
    for (int m = 1; m < MOST_STEPS; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        d = 1 / not_zero(1 + even * d);
        c = not_zero(1 + even / c);
        value *= d * c;
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / not_zero(1 + odd * d);
        c = not_zero(1 + odd / c);
        double factor = d * c;
        value *= factor;
        if (fabs(factor - 1) < 4 * DBL_EPSILON)
            break;
    }
    return value;
}

double beta_regularized(double a, double b, double x)
{
    int sign;
    if (!(a > 0 && b > 0 && x >= 0 && x <= 1) || isinf(a) || isinf(b))
        return NAN;
    if (x == 0 || x == 1)
        return x;
    double log_front = a * log(x) + b * log1p(-x) + lgamma_r(a + b, &sign) - lgamma_r(a, &sign) - lgamma_r(b, &sign);
    if (x < (a + 1) / (a + b + 2))
        return exp(log_front) * continued_fraction(a, b, x) / a;
    return 1 - exp(log_front) * continued_fraction(b, a, 1 - x) / b;
}

double student_upper_tail(double t, double degrees)
{
    if (isnan(t) || !(degrees > 0) || isinf(degrees))
        return NAN;
    if (isinf(t))
        return t > 0 ? 0 : 1;
    /* I_x of x = degrees / (degrees + t^2): near 0 in the tail, where it is accurate; the complement near the centre.
     */
    double x = degrees / (degrees + t * t);
    double beyond = 0.5 * beta_regularized(0.5 * degrees, 0.5, x);
    return t > 0 ? beyond : 1 - beyond;
}
