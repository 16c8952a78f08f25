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

static uint64_t add_digest(uint64_t digest, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    digest = (digest ^ bits) * UINT64_C(0x9fb21c651e98df25);
    return digest ^ digest >> 29;
}

/* The slot of k's digest: empty slots are -1, the others hold the first number with their digest. */
static size_t find_slot(int64_t *slot, size_t slots, const uint64_t *digest, int64_t k)
{
    size_t at = digest[k] & (slots - 1);
    while (slot[at] >= 0 && digest[slot[at]] != digest[k])
        at = (at + 1) & (slots - 1);
    if (slot[at] < 0)
        slot[at] = k;
    return at;
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
        digest[k] = 0;
        for (int64_t d = 0; d < tensor->size[3]; d++)
            digest[k] = add_digest(digest[k], row[d]);
        int64_t first = slot[find_slot(slot, slots, digest, k)];
        if (twin)
            twin[k] = first;
        if (tied) {
            tied[k] = first != k;
            tied[first] = tied[first] || first != k;
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

void linear_range(const struct linear *linear, int64_t K, const double *low, const double *high, const double *slack,
                  int64_t N, int threads, double *least, double *most, double *tolerance)
{
    struct dtype_model model = dtype_model(linear->dtype);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int64_t n = 0; n < N; n++) {
        double bias = linear->bias ? (double)linear->bias[n] : 0;
        double bottom = bias, top = bias, size = fabs(bias), room = 0;
        for (int64_t k = 0; k < K; k++) {
            double w = linear_weight(linear, n, k), x = w * low[k], y = w * high[k];
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

void linear_alike(const struct linear *linear, int64_t K, int64_t N, double *alike)
{
    size_t slots = 16;
    while (slots < 2 * (size_t)N)
        slots *= 2;
    uint64_t *digest = calloc((size_t)N + 1, sizeof *digest);
    int64_t *slot = malloc(slots * sizeof *slot);
    for (size_t s = 0; s < slots && slot; s++)
        slot[s] = -1;
    for (int64_t n = 0; n < N; n++)
        alike[n] = digest && slot ? 0 : (double)N; /* out of memory: all may */
    /* in the order of memory */
    for (int64_t o = 0; o < (linear->k_by_n ? K : N) && digest && slot; o++)
        for (int64_t i = 0; i < (linear->k_by_n ? N : K); i++) {
            int64_t n = linear->k_by_n ? i : o;
            digest[n] = add_digest(digest[n], (float)linear_weight(linear, n, linear->k_by_n ? o : i));
        }
    for (int pass = 0; pass < 2 && digest && slot; pass++)
        for (int64_t n = 0; n < N; n++) {
            if (pass == 0 && linear->bias)
                digest[n] = add_digest(digest[n], linear->bias[n]);
            size_t at = find_slot(slot, slots, digest, n);
            if (pass == 0)
                alike[slot[at]] += 1;
            else
                alike[n] = alike[slot[at]];
        }
    free(digest);
    free(slot);
}

double linear_reach(const struct linear *linear, int64_t K, int64_t N, double largest)
{
    double reach = 0;
    for (int64_t n = 0; n < N; n++) {
        double sum = linear->bias ? fabs((double)linear->bias[n]) : 0;
        for (int64_t k = 0; k < K; k++)
            sum += fabs(linear_weight(linear, n, k)) * largest;
        reach = sum > reach || isnan(sum) ? sum : reach;
    }
    return isnan(reach) ? INFINITY : reach;
}
