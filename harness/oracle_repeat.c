/* SPDX-License-Identifier: Apache-2.0
 *
 * Linear stages whose terms repeat, as those of constant matrices do: equal terms are rounded equally, so that their
 * errors add up where independent ones would average out. For f32; beside the rounding of storing bf16 and f16 this
 * cannot be seen. See oracle.h.
 */
#include <errno.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "oracle_linear.h"
#include "oracle_row.h"

static size_t table_size(int64_t K)
{
    size_t slots = 16;
    while (slots < 2 * (size_t)K)
        slots *= 2;
    return slots;
}

/* Share of the numbers whose magnitude, as a float, an earlier one has too; zeros don't count. 0 where the repetitions
 * are no more than sqrt(K): so much the variance of K independent errors has room for. seen: table_size(K) slots. */
static double repeated_share(const double *x, int64_t K, uint32_t *seen)
{
    size_t mask = table_size(K) - 1;
    int64_t repeated = 0;
    memset(seen, 0, (mask + 1) * sizeof *seen);
    for (int64_t k = 0; k < K; k++) {
        float magnitude = (float)fabs(x[k]);
        uint32_t bits;
        memcpy(&bits, &magnitude, sizeof bits);
        if (bits == 0)
            continue;
        size_t slot = (bits * 0x9e3779b1u >> 7) & mask;
        while (seen[slot] != 0 && seen[slot] != bits)
            slot = (slot + 1) & mask;
        repeated += seen[slot] == bits;
        seen[slot] = bits;
    }
    return (double)repeated > sqrt((double)K) ? (double)repeated / (double)K : 0;
}

/* Column n of the weights; adds its repetitions to all rows that have some. */
static void add_column(const struct linear *linear, const struct estimate *x, int64_t n, const double *share,
                       double *column, uint32_t *seen, struct estimate *y)
{
    int64_t K = x->columns;
    for (int64_t k = 0; k < K; k++)
        column[k] = linear_weight(linear, n, k);
    double mine = repeated_share(column, K, seen);
    for (int64_t r = 0; r < x->rows && mine > 0; r++) {
        double sum = 0, both = fmin(mine, share[r]);
        for (int64_t k = 0; k < K && both > 0; k++)
            sum += fabs(x->value[r * K + k] * column[k]);
        /* Products, and partial sums that grow evenly: at most this, whatever the order. */
        double most = both * UNIT * ((double)K / 2 + 2) * sum;
        if (isfinite(most))
            y->variance[r * y->columns + n] += most * most / 3;
    }
}

int linear_repeat(const struct linear *linear, const struct estimate *x, int threads, struct estimate *y)
{
    int64_t K = x->columns;
    size_t slots = table_size(K);
    if (linear->dtype != ATTN_F32 || x->rows == 0)
        return 0;
    double *share = oracle_doubles(x->rows, 1), *columns = oracle_doubles(threads, K), largest = 0;
    uint32_t *seen = malloc((size_t)threads * slots * sizeof *seen);
    int code = share && columns && seen ? 0 : -ENOMEM;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1) reduction(max : largest)
    for (int64_t r = 0; r < (code == 0 ? x->rows : 0); r++) {
        share[r] = repeated_share(x->value + r * K, K, seen + (size_t)omp_get_thread_num() * slots);
        largest = fmax(largest, share[r]);
    }
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t n = 0; n < (largest > 0 ? y->columns : 0); n++)
        add_column(linear, x, n, share, columns + omp_get_thread_num() * K, seen + (size_t)omp_get_thread_num() * slots,
                   y);
    free(share);
    free(columns);
    free(seen);
    return code;
}
