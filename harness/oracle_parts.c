/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the oracle: what rules need to know of whole tensors: rows as estimates, equal rows, finiteness, and where a
 * linear stage's results can lie.
 */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fill.h"
#include "oracle_stage.h"

int estimate_read(const struct attn_tensor *tensor, enum attn_dtype dtype, int64_t b, int64_t h, const int64_t *rows,
                  int64_t first, int64_t count, struct estimate *estimate)
{
    int64_t width = tensor->size[3];
    float *narrow = calloc((size_t)width + 1, sizeof *narrow);
    int code = estimate_create(count, width, true, estimate);
    if (code < 0 || !narrow) {
        free(narrow);
        estimate_destroy(estimate);
        return -ENOMEM;
    }
    for (int64_t r = 0; r < count; r++) {
        read_row(tensor, dtype, b, h, rows ? rows[r] : first + r, narrow);
        for (int64_t d = 0; d < width; d++)
            estimate->value[r * width + d] = (double)narrow[d];
    }
    free(narrow);
    return 0;
}

static uint64_t digest_row(const float *row, int64_t width)
{
    uint64_t digest = 0;
    for (int64_t d = 0; d < width; d++) {
        uint32_t bits;
        memcpy(&bits, &row[d], sizeof bits);
        digest = fill_bits(digest, 0, FILL_K, bits);
    }
    return digest;
}

/* Rows with equal digests are taken for equal: of 2^20 rows two collide with probability 2^-25. */
int find_twins(const struct attn_tensor *tensor, enum attn_dtype dtype, int64_t b, int64_t h, int64_t lo, int64_t hi,
               uint8_t *tied, int64_t *twin)
{
    size_t slots = 16, count = (size_t)(hi - lo);
    while (slots < 2 * count)
        slots *= 2;
    uint64_t *digest = malloc((count + 1) * sizeof *digest);
    int64_t *slot = malloc(slots * sizeof *slot);
    float *row = malloc((size_t)(tensor->size[3] + 1) * sizeof *row);
    int code = digest && slot && row ? 0 : -ENOMEM;
    for (size_t s = 0; s < slots && code == 0; s++)
        slot[s] = -1;
    for (int64_t k = 0; k < hi - lo && code == 0; k++) {
        read_row(tensor, dtype, b, h, lo + k, row);
        digest[k] = digest_row(row, tensor->size[3]);
        size_t at = digest[k] & (slots - 1);
        while (slot[at] >= 0 && digest[slot[at]] != digest[k])
            at = (at + 1) & (slots - 1);
        bool first = slot[at] < 0;
        if (first)
            slot[at] = k;
        if (twin)
            twin[k] = slot[at];
        if (tied) {
            tied[k] = !first;
            tied[slot[at]] = tied[slot[at]] || !first;
        }
    }
    free(digest);
    free(slot);
    free(row);
    return code;
}

bool tensor_finite(const struct attn_tensor *tensor, enum attn_dtype dtype, bool masks, double *largest)
{
    const int64_t *size = tensor->size, *stride = tensor->stride;
    bool finite = true;
    if (!tensor->data)
        return true;
    float *row = malloc((size_t)(size[3] + 1) * sizeof *row);
    if (!row)
        return false; /* the careful path is right for finite inputs too */
    for (int64_t b = 0; b < (stride[0] || size[0] < 1 ? size[0] : 1); b++)
        for (int64_t h = 0; h < (stride[1] || size[1] < 1 ? size[1] : 1); h++)
            for (int64_t s = 0; s < (stride[2] || size[2] < 1 ? size[2] : 1); s++) {
                read_row(tensor, dtype, b, h, s, row);
                for (int64_t d = 0; d < size[3]; d++) {
                    double x = (double)row[d];
                    finite = finite && (isfinite(x) || (masks && x == -INFINITY));
                    if (isfinite(x) && fabs(x) > *largest)
                        *largest = fabs(x);
                }
            }
    free(row);
    return finite;
}

static double weight_at(const struct linear *linear, int64_t n, int64_t k)
{
    return (double)read_element(linear->weights, linear->dtype, linear->b, linear->h, linear->k_by_n ? k : n,
                                linear->k_by_n ? n : linear->first + k);
}

void linear_range(const struct linear *linear, int64_t K, const double *low, const double *high, const double *slack,
                  int64_t N, int threads, double *least, double *most, double *tolerance)
{
    struct dtype_model model = dtype_model(linear->dtype);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t n = 0; n < N; n++) {
        double bias = linear->bias ? (double)linear->bias[n] : 0;
        double bottom = bias, top = bias, size = fabs(bias), room = 0;
        for (int64_t k = 0; k < K; k++) {
            double w = weight_at(linear, n, k), x = w * low[k], y = w * high[k];
            bottom += fmin(x, y);
            top += fmax(x, y);
            size += fmax(fabs(x), fabs(y));
            room += fabs(w) * slack[k];
        }
        least[n] = bottom;
        most[n] = top;
        double magnitude = fmax(fabs(bottom), fabs(top));
        tolerance[n] = room + size * ((double)K + 2) * UNIT + magnitude * 2 * model.unit +
                       ((double)K + 2) * model.tiny + 2 * model.tiny_out;
        /* an overflow on the way may end as anything */
        if (!(size + room < FLT_MAX / 4 && magnitude + tolerance[n] < model.largest))
            tolerance[n] = INFINITY;
    }
}

double linear_reach(const struct linear *linear, int64_t K, int64_t N, double largest)
{
    double reach = 0;
    for (int64_t n = 0; n < N; n++) {
        double sum = linear->bias ? fabs((double)linear->bias[n]) : 0;
        for (int64_t k = 0; k < K; k++)
            sum += fabs(weight_at(linear, n, k)) * largest;
        reach = sum > reach || isnan(sum) ? sum : reach;
    }
    return isnan(reach) ? INFINITY : reach;
}
