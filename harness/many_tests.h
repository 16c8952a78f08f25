/* SPDX-License-Identifier: Apache-2.0
 *
 * Many tests at once, and several looks at one: the false discovery rate of Benjamini and Hochberg (1995), and error
 * probability spent over looks.
 */
#ifndef HARNESS_MANY_TESTS_H
#define HARNESS_MANY_TESTS_H

#include <stdbool.h>
#include <stddef.h>

/* adjusted[i] of the n p-values: the least q at which test i is rejected while the share of false rejections is held at
 * q, min over all p_(j) >= p_i of n p_(j) / j. Equal p-values have equal results, whatever their order; n may be 0. The
 * arrays may be one. 0, -EINVAL for a p-value outside [0, 1] (adjusted is then left alone) or -ENOMEM. */
int many_tests_adjust(const double *p, size_t n, double *adjusted);
/* The same, and which are rejected at q: returns how many, or -errno (also -EINVAL for q outside (0, 1)). */
long many_tests_reject(const double *p, size_t n, double q, bool *rejected);

/* How the error probability is spent over looks. EVENLY: the same at each. OBRIEN_FLEMING: by the function of Lan and
 * DeMets (1983) that follows O'Brien and Fleming, 2 - 2 Phi(z_(alpha / 2) / sqrt(t)) at the share t of all processes;
 * alpha is the whole. Early looks then count for little, the last for most. With few processes the exact signed-rank
 * p-value cannot be small (1/256 at 8), so that for a single point EVENLY stops earlier. */
enum many_tests_spending { MANY_TESTS_EVENLY, MANY_TESTS_OBRIEN_FLEMING };

/* share[i] > 0: the part of alpha spent at look i of count; the shares add up to 1. looks: ascending numbers of
 * processes. Only looks at which a test may reject need be named. 0, or -EINVAL. */
int many_tests_spend(enum many_tests_spending spending, double alpha, const size_t *looks, size_t count, double *share);

/* A p-value that is valid whatever made the series stop at its look: min(1, p / share). By the union bound over looks,
 * P(it is <= a) <= sum over looks of P(p_look <= share a) <= a, with no more asked of the p-values than each one's own
 * validity. share in (0, 1]; NaN outside the domain. */
double many_tests_spent_p(double p, double share);

#endif
