/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the oracle: linear stages y = x w + c in float64 with the variances of the errors that kernels make in them.
 * The model is in oracle.h. Only oracle*.c include this.
 */
#ifndef HARNESS_ORACLE_LINEAR_H
#define HARNESS_ORACLE_LINEAR_H

#include <stdbool.h>
#include <stdint.h>

#include "../kernels/attn.h"

/* Rows of numbers and what is known of their errors. An infinite variance: anything is right. */
struct estimate {
    int64_t rows, columns;
    double *value;    /* [rows][columns] */
    double *variance; /* likewise, or NULL: exact */
};

int estimate_create(int64_t rows, int64_t columns, bool exact, struct estimate *estimate); /* -ENOMEM */
void estimate_destroy(struct estimate *estimate);

struct linear {
    const struct attn_tensor *weights; /* [b][h][N][K], or [b][h][K][N] if k_by_n */
    int64_t b, h;
    bool k_by_n;
    int64_t first;     /* of N x K weights: the column that meets the first of x */
    const float *bias; /* [N], or NULL */
    enum attn_dtype dtype;
    /* Columns of x behind the first `lead` come in parts of `part` columns whose errors have a common factor: its
     * variance is relative[row * parts + part]. NULL: none. */
    int64_t lead, part, parts;
    const double *relative;
    const double *alike; /* [N] linear_alike's, or NULL: nothing of y is summed by a stage behind this one */
};

/* y = x w + c and the variance of its error before it is stored. y: created, with variances. -ENOMEM. */
int linear_apply(const struct linear *linear, const struct estimate *x, int threads, struct estimate *y);

/* Weight k of column n. */
double linear_weight(const struct linear *linear, int64_t n, int64_t k);

/* Adds to y's variances what terms that repeat bring about; linear_apply does it. -ENOMEM. */
int linear_repeat(const struct linear *linear, const struct estimate *x, int threads, struct estimate *y);

/* How many columns of y have the weights and bias of column n: they err alike. */
void linear_alike(const struct linear *linear, int64_t K, int64_t N, double *alike);

/* What storing in the dtype adds to the variance of y; and since (sum of m terms)^2 <= m times the sum of squares, m
 * columns that err alike count as independent with m times their variance. */
void estimate_store(const struct linear *linear, struct estimate *y);

/* y as a result: its bound and sigma by the common rule. out, bound, sigma: [rows][columns]. */
void estimate_finish(const struct estimate *y, enum attn_dtype dtype, double *out, double *bound, double *sigma);

#endif
