/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the oracle: one row of the reference with its error model. Only oracle*.c include this.
 */
#ifndef HARNESS_ORACLE_ROW_H
#define HARNESS_ORACLE_ROW_H

#include "oracle.h"

enum { PANEL = 4 }; /* keys whose scores are computed side by side */

/* The keys and values of one (b, kv head) as floats (exact for every dtype), keys lo..hi that some query may see. */
struct key_head {
    int64_t b, kv_head, lo, hi;
    float *panels;               /* [(hi-lo+PANEL-1)/PANEL][D][PANEL], zeros behind the last key */
    float *values;               /* [hi-lo][D_v] */
    double largest_key;          /* largest |element| of K */
    bool finite;                 /* K and V; together with q and bias this decides whether non-finite rules apply */
    const double *v_min, *v_max; /* [D_v] over the finite values */
};

/* Where one row's results go; the weight arrays may be NULL. */
struct row_result {
    double *out, *bound, *sigma;    /* [D_v] */
    double *weights, *weight_bound; /* [S_kv] */
};

/* Work space of one thread. */
struct row_scratch {
    double *q;                         /* [D] */
    float *narrow;                     /* [D] */
    double *score, *variance, *weight; /* [keys] score, variance of its error, softmax weight */
    uint8_t *allowed;                  /* [keys] */
    uint8_t *repeated;                 /* [keys] an earlier key has the same score */
    uint32_t *seen;                    /* [seen_size] hash table of scores, a power of 2 */
    size_t seen_size;
    double *sums; /* [ROW_SUMS][D_v] */
};
enum { ROW_SUMS = 7 };

int row_scratch_create(struct row_scratch *scratch, const struct attn_problem *problem, int64_t keys);
void row_scratch_destroy(struct row_scratch *scratch);

/* Element (b,h,s,.) of a q, k or v tensor as floats, size[3] of them. */
void read_row(const struct attn_tensor *tensor, enum attn_dtype dtype, int64_t b, int64_t h, int64_t s, float *row);

/* Allowed keys of query i by causal line, window and kv-length: *lo..*hi, empty if *lo >= *hi. */
void row_key_range(const struct attn_problem *problem, int64_t b, int64_t i, int64_t *lo, int64_t *hi);

void oracle_row(const struct attn_problem *problem, const struct attn_args *inputs, const struct key_head *keys,
                int64_t h, int64_t i, bool all_finite, struct row_scratch *scratch, const struct row_result *result);

/* Properties of a dtype that bounds and judging need. */
struct dtype_model {
    double unit;     /* unit roundoff of storing out */
    double unit_p;   /* of P, 0 where P stays f32 */
    double tiny_p;   /* absolute error of a P that is too small for the dtype's normal numbers */
    double tiny;     /* absolute error of one accumulation: half a subnormal step, or a flush */
    double tiny_out; /* of storing out */
    double largest;  /* from here on a value may be stored as infinity */
};
struct dtype_model dtype_model(enum attn_dtype dtype);

#endif
