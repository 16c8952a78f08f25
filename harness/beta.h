/* SPDX-License-Identifier: Apache-2.0
 *
 * The regularized incomplete beta function, and the tails of distributions that rest on it.
 */
#ifndef HARNESS_BETA_H
#define HARNESS_BETA_H

/* I_x(a, b) for a, b > 0 and 0 <= x <= 1: P(X <= x) of a beta variable. Relative error about 1e-12, for parameters near
 * 1e7 about 1e-7 (their log gamma is a large number). NaN outside the domain. */
double beta_regularized(double a, double b, double x);

/* P(T > t) of Student's distribution with the given degrees of freedom > 0 (DLMF 8.17; accurate far into the tail).
 * t may be infinite; NaN for NaN. */
double student_upper_tail(double t, double degrees);

#endif
