/* SPDX-License-Identifier: Apache-2.0
 *
 * Linear stages of the reference: a blocked float64 matrix product that carries, beside each sum, its squared partial
 * sums in natural order and the variance that its terms bring along. The model is in oracle.h.
 *
 * Tiles of TILE_ROWS x TILE_COLUMNS sums stay in registers through a block of K; blocks of weights are turned to
 * doubles once for ROW_BLOCK rows.
 */
#include "oracle_linear.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "oracle_row.h"

enum { TILE_ROWS = 2, TILE_COLUMNS = 4, ROW_BLOCK = 64, COLUMN_BLOCK = 64, DEPTH = 256 };

int estimate_create(int64_t rows, int64_t columns, bool exact, struct estimate *estimate)
{
    *estimate = (struct estimate){.rows = rows, .columns = columns};
    estimate->value = oracle_doubles(rows, columns);
    if (!exact)
        estimate->variance = oracle_doubles(rows, columns);
    if (estimate->value && (exact || estimate->variance))
        return 0;
    estimate_destroy(estimate);
    return -ENOMEM;
}

void estimate_destroy(struct estimate *estimate)
{
    free(estimate->value);
    free(estimate->variance);
    *estimate = (struct estimate){0};
}

/* Sums of one tile: the product, its squared partial sums, the variance of its terms. */
struct tile {
    double sum[TILE_ROWS][TILE_COLUMNS], partial[TILE_ROWS][TILE_COLUMNS], spread[TILE_ROWS][TILE_COLUMNS];
};

/* x, g: [depth][TILE_ROWS]; w: [depth][TILE_COLUMNS]. */
static void add_products(const double *restrict x, const double *restrict g, const double *restrict w, int64_t depth,
                         struct tile *tile)
{
    struct tile t = *tile;
    for (int64_t k = 0; k < depth; k++) {
        for (int r = 0; r < TILE_ROWS; r++) {
            for (int c = 0; c < TILE_COLUMNS; c++) {
                double weight = w[k * TILE_COLUMNS + c];
                t.sum[r][c] += x[k * TILE_ROWS + r] * weight;
                t.partial[r][c] += t.sum[r][c] * t.sum[r][c];
                t.spread[r][c] += g[k * TILE_ROWS + r] * (weight * weight);
            }
        }
    }
    *tile = t;
}

double linear_weight(const struct linear *linear, int64_t n, int64_t k)
{
    const struct attn_tensor *w = linear->weights;
    int64_t row = linear->k_by_n ? k : n, column = linear->k_by_n ? n : linear->first + k;
    return (double)read_element(w, linear->dtype, linear->b, linear->h, row, column);
}

/* Weights of columns n .. n + TILE_COLUMNS, depths k0 .. k1, zeros behind the last column. */
static void pack_weights(const struct linear *linear, int64_t n, int64_t columns, int64_t k0, int64_t k1, double *to)
{
    for (int64_t c = 0; c < TILE_COLUMNS; c++)
        for (int64_t k = k0; k < k1; k++)
            to[(k - k0) * TILE_COLUMNS + c] = n + c < columns ? linear_weight(linear, n + c, k) : 0;
}

/* x, and with a factor w^2 the variance of each term: rounded product, partial sums in random order, error of x. */
static void pack_rows(const struct estimate *x, int64_t row0, int64_t rows, int64_t k0, int64_t k1, double *value,
                      double *spread)
{
    double units = VARIANCE * ((double)(x->columns + 1) / 6 + 1);
    for (int64_t r = 0; r < rows; r += TILE_ROWS)
        for (int64_t l = 0; l < TILE_ROWS; l++)
            for (int64_t k = k0; k < k1; k++) {
                int64_t from = (row0 + r + l) * x->columns + k, to = r * (k1 - k0) + (k - k0) * TILE_ROWS + l;
                bool inside = r + l < rows;
                double v = inside ? x->value[from] : 0, variance = inside && x->variance ? x->variance[from] : 0;
                value[to] = v;
                /* what is not finite shows in the product itself, or makes its whole row undetermined */
                spread[to] = isfinite(v) && isfinite(variance) ? units * v * v + variance : 0;
            }
}

/* Work space of one thread. */
struct scratch {
    double *value, *spread; /* [ROW_BLOCK][depth] */
    double *weights;        /* [depth][TILE_COLUMNS] */
    struct tile *tiles;     /* [ROW_BLOCK / TILE_ROWS][COLUMN_BLOCK / TILE_COLUMNS] */
    double *common;         /* [ROW_BLOCK][COLUMN_BLOCK]: variance by the common factors of parts */
};

static int scratch_create(struct scratch *scratch, int64_t depth)
{
    scratch->value = oracle_doubles(ROW_BLOCK, depth);
    scratch->spread = oracle_doubles(ROW_BLOCK, depth);
    scratch->weights = oracle_doubles(depth, TILE_COLUMNS);
    scratch->tiles = malloc(sizeof *scratch->tiles * (ROW_BLOCK / TILE_ROWS) * (COLUMN_BLOCK / TILE_COLUMNS));
    scratch->common = oracle_doubles(ROW_BLOCK, COLUMN_BLOCK);
    return scratch->value && scratch->spread && scratch->weights && scratch->tiles && scratch->common ? 0 : -ENOMEM;
}

static void scratch_destroy(struct scratch *scratch)
{
    free(scratch->value);
    free(scratch->spread);
    free(scratch->weights);
    free(scratch->tiles);
    free(scratch->common);
}

static int64_t block_end(const struct linear *linear, int64_t K, int64_t k0)
{
    int64_t end = k0 + DEPTH;
    if (linear->relative && k0 >= linear->lead)
        end = k0 + linear->part;
    else if (linear->relative && end > linear->lead)
        end = linear->lead;
    return end < K ? end : K;
}

/* Completes the variances of one block of y. Rows whose x is undetermined stay so. */
static void finish_block(const struct linear *linear, const struct estimate *x, int64_t row0, int64_t n0,
                         const struct scratch *scratch, struct estimate *y)
{
    double n = (double)x->columns + 1, tiny = dtype_model(linear->dtype).tiny;
    for (int64_t row = row0; row < row0 + ROW_BLOCK && row < x->rows; row++) {
        double largest = 0;
        bool open = false;
        for (int64_t k = 0; k < x->columns; k++) {
            double v = fabs(x->value[row * x->columns + k]);
            largest = v > largest && v < INFINITY ? v : largest;
            open = open || (x->variance && x->variance[row * x->columns + k] == INFINITY);
        }
        /* A flush of subnormals also changes the factors. */
        double absolute = n * tiny * (tiny >= 0x1p-126 ? 2 + largest : 1);
        for (int64_t c = n0; c < n0 + COLUMN_BLOCK && c < y->columns; c++) {
            int64_t r = row - row0, l = c - n0;
            const struct tile *tile = &scratch->tiles[r / TILE_ROWS * (COLUMN_BLOCK / TILE_COLUMNS) + l / TILE_COLUMNS];
            double sum = tile->sum[r % TILE_ROWS][l % TILE_COLUMNS];
            double partial = tile->partial[r % TILE_ROWS][l % TILE_COLUMNS];
            double spread = tile->spread[r % TILE_ROWS][l % TILE_COLUMNS];
            double bias = linear->bias ? (double)linear->bias[c] : 0, total = sum + bias;
            double variance = VARIANCE * (partial + (n / 3 + 1) * total * total + n / 6 * bias * bias) + spread +
                              scratch->common[r * COLUMN_BLOCK + l] + absolute * absolute;
            /* Any order of partial sums may overflow in f32 where this one nearly does. */
            if (open || partial >= (double)FLT_MAX * (double)FLT_MAX / 16)
                variance = INFINITY;
            y->value[row * y->columns + c] = total;
            y->variance[row * y->columns + c] = isnan(variance) ? 0 : variance;
        }
    }
}

/* Variance by a common relative error of one part of x: that of the part's sum. before: the sum without the part. */
static void add_common(const struct linear *linear, int64_t row, int64_t part, const struct tile *before,
                       const struct tile *after, int64_t rows, double *common)
{
    for (int64_t r = 0; r < TILE_ROWS && row + r < rows; r++)
        for (int64_t c = 0; c < TILE_COLUMNS; c++) {
            double sum = after->sum[r][c] - before->sum[r][c];
            common[r * COLUMN_BLOCK + c] += linear->relative[(row + r) * linear->parts + part] * sum * sum;
        }
}

static void do_block(const struct linear *linear, const struct estimate *x, int64_t row0, int64_t n0,
                     const struct scratch *scratch, struct estimate *y)
{
    int64_t rows = x->rows - row0 < ROW_BLOCK ? x->rows - row0 : ROW_BLOCK, K = x->columns;
    memset(scratch->tiles, 0, sizeof *scratch->tiles * (ROW_BLOCK / TILE_ROWS) * (COLUMN_BLOCK / TILE_COLUMNS));
    memset(scratch->common, 0, sizeof *scratch->common * ROW_BLOCK * COLUMN_BLOCK);
    for (int64_t k0 = 0, k1; k0 < K; k0 = k1) {
        k1 = block_end(linear, K, k0);
        pack_rows(x, row0, rows, k0, k1, scratch->value, scratch->spread);
        bool common = linear->relative && k0 >= linear->lead;
        for (int64_t c = 0; c < COLUMN_BLOCK && n0 + c < y->columns; c += TILE_COLUMNS) {
            pack_weights(linear, n0 + c, y->columns, k0, k1, scratch->weights);
            for (int64_t r = 0; r < rows; r += TILE_ROWS) {
                struct tile *tile = &scratch->tiles[r / TILE_ROWS * (COLUMN_BLOCK / TILE_COLUMNS) + c / TILE_COLUMNS];
                struct tile before = *tile;
                add_products(scratch->value + r * (k1 - k0), scratch->spread + r * (k1 - k0), scratch->weights, k1 - k0,
                             tile);
                if (common)
                    add_common(linear, row0 + r, (k0 - linear->lead) / linear->part, &before, tile, x->rows,
                               scratch->common + r * COLUMN_BLOCK + c);
            }
        }
    }
    finish_block(linear, x, row0, n0, scratch, y);
}

int linear_apply(const struct linear *linear, const struct estimate *x, int threads, struct estimate *y)
{
    int64_t row_blocks = (x->rows + ROW_BLOCK - 1) / ROW_BLOCK;
    int64_t column_blocks = (y->columns + COLUMN_BLOCK - 1) / COLUMN_BLOCK;
    int64_t depth = linear->relative && linear->part > DEPTH ? linear->part : DEPTH;
    int code = 0;
    bool parallel = threads > 1 && row_blocks * column_blocks > 1;
#pragma omp parallel num_threads(threads) if (parallel)
    {
        struct scratch scratch;
        int mine = scratch_create(&scratch, depth);
        if (mine < 0) {
#pragma omp atomic write
            code = mine;
        }
#pragma omp for schedule(dynamic)
        for (int64_t block = 0; block < row_blocks * column_blocks; block++)
            if (mine == 0)
                do_block(linear, x, block / column_blocks * ROW_BLOCK, block % column_blocks * COLUMN_BLOCK, &scratch,
                         y);
        scratch_destroy(&scratch);
    }
    return code < 0 ? code : linear_repeat(linear, x, threads, y);
}

void estimate_store(const struct linear *linear, struct estimate *y)
{
    struct dtype_model model = dtype_model(linear->dtype);
    for (int64_t e = 0; e < y->rows * y->columns; e++) {
        double value = y->value[e], variance = y->variance[e];
        if (!isfinite(value))
            continue;
        variance += model.unit * model.unit / 3 * value * value + model.tiny_out * model.tiny_out;
        if (fabs(value) + ORACLE_LAMBDA * sqrt(variance) >= model.largest)
            variance = INFINITY;
        y->variance[e] = linear->alike ? linear->alike[e % y->columns] * variance : variance;
    }
}

void estimate_finish(const struct estimate *y, enum attn_dtype dtype, double *out, double *bound, double *sigma)
{
    struct dtype_model model = dtype_model(dtype);
    for (int64_t e = 0; e < y->rows * y->columns; e++) {
        double value = y->value[e], coherent = 1.5 * model.unit * fabs(value) + 2.5 * model.tiny_out;
        out[e] = value;
        bound[e] = ORACLE_LAMBDA * sqrt(y->variance[e]) + coherent;
        sigma[e] = sqrt(y->variance[e] + coherent * coherent);
    }
}
