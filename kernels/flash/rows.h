/* SPDX-License-Identifier: Apache-2.0
 *
 * Query rows as the flash kernels see them: pointers, the interval of keys each may see, and what a finished row
 * writes besides its output. Plain C; shared by every ISA and by both ways of going through the keys.
 */
#ifndef KERNELS_FLASH_ROWS_H
#define KERNELS_FLASH_ROWS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "../attn.h"
#include "../simd_math.h"
#include "elements.h"

/* One query row of one head. */
struct query_row {
    const void *q;       /* in the form's dtype */
    void *out;           /* in its out_dtype */
    const float *bias;   /* of this row, by key; NULL: none */
    const uint8_t *mask; /* likewise */
    int64_t first, last; /* the keys it may see before mask and bias: first..last-1; none if first >= last */
    int64_t state;       /* its place in row_max and row_sum */
    float *weights;      /* returned, by key; NULL: not wanted */
};

/* The keys and values that a group of rows shares. */
struct key_head {
    const void *k, *v;          /* in the form's dtype, from key 0 on */
    int64_t k_stride, v_stride; /* elements between keys */
};

/* What is common to every row of a problem. Scores are kept in log2 units where nothing is added to the dot product,
 * so that exp needs no multiplication; in natural ones with softcap or bias (a bias of -FLT_MAX must not overflow). */
struct flash_form {
    int64_t D, D_v;
    uint32_t dtype, out_dtype;
    float query_scale; /* folded into q */
    float score_scale; /* of the dot products where it is not, in natural units; else 1 */
    float softcap;     /* 0: none */
    bool natural;      /* unit of the scores */
    bool has_tile;     /* a mask or a bias is to be read */
    bool partial;
    float *row_max, *row_sum; /* PARTIAL only */
    bool weights;             /* are returned, for keys k0..k1-1 */
    int64_t k0, k1;
};

/* Limits beyond this are as good as open, and sums with positions cannot overflow within it. */
#define FLASH_FAR (INT64_MAX / 4)

/* The keys of k0..k1-1 that query i of batch entry b may see. */
static inline void row_key_range(const struct attn_problem *problem, int64_t b, int64_t i, int64_t k0, int64_t k1,
                                 int64_t *first, int64_t *last)
{
    int64_t position = i + (problem->diag ? problem->diag[b] : 0);
    int64_t length = problem->kv_len ? problem->kv_len[b] : problem->S_kv;
    *first = k0;
    *last = k1 < length ? k1 : length;
    if (problem->left < FLASH_FAR && position - problem->left + 1 > *first)
        *first = position - problem->left + 1;
    if (problem->right < FLASH_FAR && position + problem->right + 1 < *last)
        *last = position + problem->right + 1;
}

/* Smallest interval that holds every row's keys; *begin >= *end where no row sees a key. */
static inline void rows_key_hull(const struct query_row *rows, int count, int64_t *begin, int64_t *end)
{
    *begin = INT64_MAX;
    *end = INT64_MIN;
    for (int r = 0; r < count; r++) {
        if (rows[r].first >= rows[r].last)
            continue;
        *begin = rows[r].first < *begin ? rows[r].first : *begin;
        *end = rows[r].last > *end ? rows[r].last : *end;
    }
}

/* Key j of first..last-1 */
static inline bool row_sees(const struct query_row *row, int64_t j)
{
    return !(row->mask && row->mask[j] == 0) && !(row->bias && row->bias[j] == -INFINITY);
}

static inline bool row_sees_a_key(const struct query_row *row)
{
    for (int64_t j = row->first; j < row->last; j++)
        if (row_sees(row, j))
            return true;
    return false;
}

/*
 * Ends a row whose running maximum and sum are known (maximum in the form's unit): writes row_max and row_sum where
 * partial results are wanted, and returns what its output is to be multiplied by; 0 means that the output is 0.
 */
static inline float row_factor(const struct flash_form *form, const struct query_row *row, float max, float sum)
{
    /* A NaN score never becomes the maximum; a maximum of -inf would let a merge drop the row's NaN. */
    if (isnan(sum))
        max = NAN;
    /* Every score that may be seen was -inf: the weights are 0/0. A row without such a score is all zero instead. */
    if (sum == 0.0f && row_sees_a_key(row))
        sum = NAN;
    if (!form->partial)
        return sum == 0.0f ? 0.0f : 1.0f / sum;
    form->row_max[row->state] = form->natural ? max : max * SIMD_LN_2;
    form->row_sum[row->state] = sum;
    return isnan(sum) ? NAN : sum == 0.0f ? 0.0f : 1.0f;
}

static inline void row_write_zero(const struct flash_form *form, const struct query_row *row)
{
    memset(row->out, 0, (size_t)form->D_v * element_size(form->out_dtype));
    if (form->weights)
        memset(row->weights + form->k0, 0, sizeof(float) * (size_t)(form->k1 - form->k0));
    row_factor(form, row, -INFINITY, 0.0f);
}

/* Scores after the dot products: scale and softcap only; bias and masks follow. */
SIMD_INLINE simd_f32 cap_score(const struct flash_form *form, simd_f32 score)
{
    if (form->score_scale != 1.0f)
        score = simd_mul(score, simd_set(form->score_scale));
    if (form->softcap <= 0.0f)
        return score;
    simd_f32 cap = simd_set(form->softcap);
    return simd_mul(cap, simd_tanh(simd_div(score, cap)));
}

/* What is added to n scores of a row from key j on: its bias, -inf where its mask is 0; 0 beyond n. */
SIMD_INLINE simd_f32 row_addend(const struct query_row *row, int64_t j, int64_t n)
{
    simd_f32 addend = row->bias ? simd_load_masked(row->bias + j, simd_first(n)) : simd_zero();
    if (row->mask)
        addend = simd_select(simd_bytes_nonzero(row->mask + j, n), addend, simd_set(-INFINITY));
    return addend;
}

/* -inf masks even a NaN score. */
SIMD_INLINE simd_f32 add_or_mask(simd_f32 score, simd_f32 addend)
{
    simd_f32 never = simd_set(-INFINITY);
    return simd_select(simd_equal(addend, never), never, simd_add(score, addend));
}

/* What exp subtracts: the maximum, or 0 where there is none yet (-inf minus -inf would be NaN). */
SIMD_INLINE simd_f32 finite_maximum(simd_f32 max)
{
    return simd_select(simd_equal(max, simd_set(-INFINITY)), simd_zero(), max);
}

/* e^(score - max), or 2^ of it, by the unit of the scores. */
SIMD_INLINE simd_f32 weight_of(bool natural, simd_f32 score, simd_f32 max)
{
    simd_f32 below = simd_sub(score, max);
    return simd_exp2(natural ? simd_mul(below, simd_set(SIMD_LOG2_E)) : below);
}

#endif
