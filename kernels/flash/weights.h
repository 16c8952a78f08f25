/* SPDX-License-Identifier: Apache-2.0
 *
 * The weights of rows, where they are returned. The online softmax knows a row's maximum and sum only at the end. Until
 * then the row holds weights relative to the maximum at the end of their block of keys, which is kept as well, and is
 * then scaled in place; or it holds scores, with softcap, bias and masks, whose exp is then taken once more. A group of
 * rows is ended while what it wrote is still in L2 or L3, so that memory sees every line once.
 *
 * Extra time a pair of query and key, AVX-512, S 2048: 0.29 ns by maxima, 0.38 ns by scores. A second product of Q and
 * K, which would need neither, takes about 1 ns at D 64. Stores past the caches gain where all weights together exceed
 * L3 and lose below.
 */
#ifndef KERNELS_FLASH_WEIGHTS_H
#define KERNELS_FLASH_WEIGHTS_H

#include "product.h"
#include "rows.h"

/* Blocks of keys begin at multiples of this, so that vectors of scores are whole lines of aligned rows. */
enum { WEIGHTS_GRAIN = 48 /* whole rows of the product's tiles as well */ };

SIMD_INLINE void weights_store_tile(const float *score, int64_t lanes, const struct query_row *rows, int present,
                                    int64_t j, int64_t keys)
{
    simd_f32 tile[SIMD_LANES];
    SIMD_UNROLL
    for (int t = 0; t < SIMD_LANES; t++)
        tile[t] = t < keys ? simd_load(score + t * lanes) : simd_zero();
    simd_transpose(tile);
    SIMD_UNROLL
    for (int t = 0; t < SIMD_LANES; t++) {
        if (t >= present)
            continue;
        if (keys >= SIMD_LANES)
            simd_store(rows[t].weights + j, tile[t]);
        else
            simd_store_masked(rows[t].weights + j, simd_first(keys), tile[t]);
    }
}

/* score[key][lane] of n keys from j0 to the weights of the rows that are these lanes. */
SIMD_OUTLINE void weights_store(const float *score, int vectors, const struct query_row *rows, int count, int64_t j0,
                                int64_t n)
{
    const int64_t lanes = (int64_t)vectors * SIMD_LANES;
    for (int v = 0; v < vectors; v++) {
        const int present = count - v * SIMD_LANES;
        const struct query_row *group = rows + v * SIMD_LANES;
        for (int64_t j = 0; j < n; j += SIMD_LANES) {
            const float *from = score + j * lanes + v * SIMD_LANES;
            if (present >= SIMD_LANES && n - j >= SIMD_LANES)
                weights_store_tile(from, lanes, group, SIMD_LANES, j0 + j, SIMD_LANES);
            else
                weights_store_tile(from, lanes, group, present, j0 + j, n - j);
        }
    }
}

/* What the weights of a strip are relative to until its maxima are known: those at the end of each block of keys. */
struct weights_peaks {
    float *at;           /* [block][lanes] */
    int64_t begin, step; /* the first block's first key, keys of a block */
    int64_t blocks;      /* that are done */
};

/* The lines that n weights of each row from key j on go to. */
static inline struct product_ahead weights_ahead(const struct query_row *rows, int count, int64_t j, int64_t n)
{
    const uintptr_t stride = count > 1 ? (uintptr_t)rows[1].weights - (uintptr_t)rows[0].weights : 0;
    return (struct product_ahead){.address = (uintptr_t)rows[0].weights + (uintptr_t)j * sizeof(float),
                                  .stride = (int64_t)stride,
                                  .bytes = n * (int64_t)sizeof(float),
                                  .rows = count};
}

static inline void weights_note_peaks(struct weights_peaks *peaks, const float *max, int64_t lanes)
{
    memcpy(peaks->at + peaks->blocks++ * lanes, max, sizeof(float) * (size_t)lanes);
}

/* Zero where row, of which the factor is known, sees no key; where the factor is NaN every weight. Leaves first..last-1
 * to be done. */
static inline void weights_fill(const struct flash_form *form, const struct query_row *row, float factor,
                                int64_t *first, int64_t *last)
{
    const bool none = row->first >= row->last || factor == 0.0f;
    *first = none ? form->k0 : row->first;
    *last = none ? form->k0 : row->last;
    memset(row->weights + form->k0, 0, sizeof(float) * (size_t)(*first - form->k0));
    memset(row->weights + *last, 0, sizeof(float) * (size_t)(form->k1 - *last));
    if (isnan(factor)) { /* 0 times it would be NaN in hidden keys as well */
        for (int64_t j = *first; j < *last; j++)
            row->weights[j] = row_sees(row, j) ? NAN : 0.0f;
        *first = *last;
    }
}

/* Ends a row that holds scores: e^(score - max) times factor, by the unit of the scores. */
SIMD_OUTLINE void weights_finish_scores(const struct flash_form *form, const struct query_row *row, float max,
                                        float factor)
{
    int64_t first, last;
    weights_fill(form, row, factor, &first, &last);
    const simd_f32 top = simd_set(max), share = simd_set(factor);
    for (int64_t j = first; j < last; j += SIMD_LANES) {
        const simd_mask present = simd_first(last - j);
        const simd_f32 score = simd_load_masked(row->weights + j, present);
        simd_store_masked(row->weights + j, present, simd_mul(weight_of(form->natural, score, top), share));
    }
}

/* Weights first..last-1 times factor. */
SIMD_INLINE void weights_scale(float *weights, int64_t first, int64_t last, float factor)
{
    const simd_f32 share = simd_set(factor);
    int64_t j = first;
    for (; j + SIMD_LANES <= last; j += SIMD_LANES)
        simd_store(weights + j, simd_mul(simd_load(weights + j), share));
    if (j < last) {
        const simd_mask rest = simd_first(last - j);
        simd_store_masked(weights + j, rest, simd_mul(simd_load_masked(weights + j, rest), share));
    }
}

/* Ends `count` rows whose maxima (in the form's unit) and factors (as row_factor returns them) are known, whole vectors
 * of both. */
SIMD_OUTLINE void weights_finish_lanes(const struct flash_form *form, const struct query_row *rows, int count,
                                       const struct weights_peaks *peaks, const float *max, const float *factor)
{
    const int64_t lanes = (count + SIMD_LANES - 1) / SIMD_LANES * SIMD_LANES, step = peaks->step;
    for (int64_t block = 0; block < peaks->blocks; block++)
        for (int64_t r = 0; r < lanes; r += SIMD_LANES) {
            float *peak = peaks->at + block * lanes + r;
            const simd_f32 below = weight_of(form->natural, simd_load(peak), simd_load(max + r));
            simd_store(peak, simd_mul(below, simd_load(factor + r)));
        }
    for (int r = 0; r < count; r++) {
        int64_t first, last;
        weights_fill(form, &rows[r], factor[r], &first, &last);
        for (int64_t block = 0; block < peaks->blocks; block++) {
            const int64_t begin = peaks->begin + block * step, end = begin + step;
            weights_scale(rows[r].weights, first > begin ? first : begin, last < end ? last : end,
                          peaks->at[block * lanes + r]);
        }
    }
}

#endif
