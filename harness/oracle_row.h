/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the oracle: one row of attention with its error model, whether its operands are inputs, and exact, or come
 * from a linear stage. Only oracle*.c and judge.c include this.
 */
#ifndef HARNESS_ORACLE_ROW_H
#define HARNESS_ORACLE_ROW_H

#include "oracle.h"

#define UNIT 0x1p-24               /* f32 unit roundoff */
#define VARIANCE (UNIT * UNIT / 3) /* of one rounding error, relative */

enum {
    PANEL = 4,    /* keys whose scores are computed side by side */
    SKETCH = 32,  /* most groups of features whose errors in q are followed through softmax */
    ROW_SUMS = 9, /* sums over keys, by column; see sum_values and sum_errors */
};

/* What all rows of one attention stage have in common. */
struct attention {
    const struct attn_problem *problem; /* D: features of its q and k; scale, masks */
    const struct attn_args *inputs;     /* bias and mask */
    bool additive;                      /* score_ij = sum_d u_d tanh(q_id + k_jd) instead of scale q.k */
    const double *u;                    /* [D] */
    bool bias_finite;                   /* no NaN and no infinity but -inf */
};

/* The keys and values of one (b, kv head): keys lo..hi that some query may see. */
struct key_head {
    int64_t b, kv_head, lo, hi;
    double *panels;         /* [(hi-lo+PANEL-1)/PANEL][D][PANEL], zeros behind the last key */
    double *values;         /* [hi-lo][D_v] */
    double *panel_variance; /* like panels: variance of the errors of K; NULL: K, V and q are exact */
    double *value_variance; /* like values */
    /* [hi-lo] Whether another key is computed from the same numbers, so that both err alike; and the first key whose
     * value is. */
    const uint8_t *k_tied;
    const int64_t *v_twin;
    double largest_key;          /* largest |element| of K */
    bool finite;                 /* K and V; together with q and bias this decides whether non-finite rules apply */
    bool undetermined;           /* a projection may have overflowed: anything is right */
    const double *v_min, *v_max; /* [D_v] over the finite values */
};

/* One row of q. */
struct query {
    const double *value, *variance; /* [D]; variance NULL with exact keys */
};

/* Where one row's results go. */
struct row_result {
    double *out, *bound, *sigma;    /* [D_v] */
    double *weights, *weight_bound; /* [S_kv], or NULL */
    /* For a stage behind this one, or NULL: the variance of each column's own error, storing it included, and the
     * variance of the relative error that all columns share. */
    double *variance; /* [D_v] */
    double *relative; /* [1] */
};

/* Work space of one thread. */
struct row_scratch {
    double *q_square, *q_lean;         /* [D] q^2 and variance; +- standard deviation, for the sketch */
    double *score, *variance, *weight; /* [keys] score, variance of its error, softmax weight */
    double *shared;                    /* [keys] variance of the score's error that keys have in common */
    double *extra, *tied;              /* [keys] by errors of K: independent, and of tied keys */
    double *lean;                      /* [keys][SKETCH] score error of a typical error in each group of q */
    double *twins;                     /* [keys] weight of all that share a value */
    uint8_t *allowed;                  /* [keys] */
    uint8_t *repeated;                 /* [keys] an earlier key has the same score */
    uint32_t *seen;                    /* [seen_size] hash table of scores, a power of 2 */
    size_t seen_size;
    double *sums; /* [ROW_SUMS][D_v] */
};

/* projected: for operands that are not exact. */
int row_scratch_create(struct row_scratch *scratch, const struct attn_problem *problem, int64_t keys, bool projected);
void row_scratch_destroy(struct row_scratch *scratch);

/* What the scores of one row have in common, and what came of them. */
struct row {
    const struct attention *attention;
    const struct attn_problem *problem;
    const struct key_head *keys;
    const struct query *query;
    const float *bias;   /* of this row, or NULL */
    const uint8_t *mask; /* likewise */
    int64_t lo, hi;      /* by causal line, window and kv-length */
    int64_t count;       /* allowed keys */
    double maximum, sum; /* of the allowed scores; of exp(score - maximum) */
    double worst;        /* largest standard deviation of a score that matters */
    double mean;         /* weighted mean of score - maximum */
    double shared_mean;  /* of the standard deviation that keys have in common */
    double weight_square, prefix_square, variance_sum, rescale_square,
        repeated_prefix; /* sums over keys, see finish_columns */
    int64_t underflows;
    bool undetermined; /* anything is right */
    bool not_a_number; /* the result is not finite */
    bool finite;
    double absolute; /* absolute error of a score */
};

/* Scores and the variances of their errors but for the parts that need the maximum. Slot k is key lo + k. */
void score_keys(struct row *row, struct row_scratch *scratch);

/* The features of one group of the sketch. */
int64_t sketch_group(int64_t D);

/* Elements of a tensor as floats, exact for every dtype: one, and the size[3] of (b,h,s,.). */
float read_element(const struct attn_tensor *tensor, enum attn_dtype dtype, int64_t b, int64_t h, int64_t s, int64_t d);
void read_row(const struct attn_tensor *tensor, enum attn_dtype dtype, int64_t b, int64_t h, int64_t s, float *row);

/* Allowed keys of query i by causal line, window and kv-length: *lo..*hi, empty if *lo >= *hi. */
void row_key_range(const struct attn_problem *problem, int64_t b, int64_t i, int64_t *lo, int64_t *hi);

/* Row i of query head h. */
void oracle_row(const struct attention *attention, const struct key_head *keys, const struct query *query, int64_t h,
                int64_t i, struct row_scratch *scratch, const struct row_result *result);

/* count * width zeros, or NULL. */
double *oracle_doubles(int64_t count, int64_t width);

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
