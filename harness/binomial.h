/* SPDX-License-Identifier: Apache-2.0
 *
 * Exact bounds of a share from k successes in n trials (Clopper and Pearson 1934), through quantiles of the beta
 * distribution: the lower bound at level a is the a-quantile of beta(k, n - k + 1), the upper one the (1 - a)-quantile
 * of beta(k + 1, n - k). Good for n up to 1e7 and beyond. All return 0, or -EINVAL for k outside 0..n and confidence
 * outside (0, 1), and leave the results alone then. No trials tell nothing: 0 and 1.
 */
#ifndef HARNESS_BINOMIAL_H
#define HARNESS_BINOMIAL_H

#include <stdint.h>

/* Two-sided: each bound fails with probability at most (1 - confidence) / 2. */
int binomial_interval(int64_t k, int64_t n, double confidence, double *low, double *high);
/* One-sided: the share is at least *low; at most *high. */
int binomial_lower(int64_t k, int64_t n, double confidence, double *low);
int binomial_upper(int64_t k, int64_t n, double confidence, double *high);

#endif
