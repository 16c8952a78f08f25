/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the oracle: the attention stage of a rule, key head by key head, and the rules that are made of stages. Only
 * oracle*.c include this.
 */
#ifndef HARNESS_ORACLE_STAGE_H
#define HARNESS_ORACLE_STAGE_H

#include "oracle_linear.h"
#include "oracle_row.h"

/* Where rows of q, k or v come from: an input, or a stage before this one. */
struct source {
    const struct attn_tensor *tensor; /* an input; or NULL: */
    const struct estimate *estimate;  /* row s - row0, columns head_step * h .. */
    int64_t row0, head_step;
};

/* Checked rows first..end, which read one key head. */
struct row_group {
    int64_t b, kv_head, first, end;
};

struct stage {
    struct attention attention;
    struct source q, k, v; /* s of q's source is the number of the checked row where it is an estimate */
    bool projected;        /* q, k and v have variances */
    const uint8_t *k_tied; /* as in struct key_head, counted from the first visible key */
    const int64_t *v_twin;
    double largest_query; /* no element of q is larger */
    struct oracle *oracle;
    int64_t heads; /* that a checked row takes: 1, or all H */
    /* For a stage behind this one: [rows from row0][heads D_v] and [rows][heads]. NULL: straight to the oracle. */
    struct estimate *applied;
    double *relative;
    int64_t row0;
    double *v_min, *v_max, *v_tolerance; /* [b - b0][H_kv][D_v] */
    int64_t b0;
};

/* The checked rows by key head; rows are sorted, so those of one are adjacent. free() it; NULL: out of memory. */
struct row_group *split_by_key_head(const struct attn_problem *problem, const struct oracle *oracle, int64_t *count);

/* All groups. *finite: whether every row of these key heads has its place within V's range. -ENOMEM. */
int stage_run(const struct stage *stage, const struct row_group *groups, int64_t count, int threads, bool *finite);

/* Keys that some query of batch entry b may see, and whether some query sees none. */
bool visible_keys(const struct attn_problem *problem, int64_t b, int64_t *lo, int64_t *hi);

/* Of batch entries without a checked row nothing is known but that results are finite. */
void oracle_open_ranges(const struct oracle *oracle, int64_t B);

/* Which of the rows lo..hi of (b,h) are the same numbers; see struct key_head. tied or twin may be NULL. -ENOMEM. */
int find_twins(const struct attn_tensor *tensor, enum attn_dtype dtype, int64_t b, int64_t h, int64_t lo, int64_t hi,
               uint8_t *tied, int64_t *twin);

/* No NaN and no infinity (but -inf if masks). *largest becomes at least the largest finite |element|. */
bool tensor_finite(const struct attn_tensor *tensor, enum attn_dtype dtype, bool masks, double *largest);

/* An estimate of given rows of a tensor, exact. rows: NULL: first, first + 1 ... -ENOMEM. */
int estimate_read(const struct attn_tensor *tensor, enum attn_dtype dtype, int64_t b, int64_t h, const int64_t *rows,
                  int64_t first, int64_t count, struct estimate *estimate);

/* The rules. Rows are chosen and arrays allocated. -ENOMEM. */
int oracle_scaled_dot_product(const struct attn_problem *problem, const struct attn_args *inputs, int threads,
                              struct oracle *oracle);
int oracle_additive(const struct attn_problem *problem, const struct attn_args *inputs, int threads,
                    struct oracle *oracle);
int oracle_concat(const struct attn_problem *problem, const struct attn_args *inputs, int threads,
                  struct oracle *oracle);
int oracle_layer(const struct attn_problem *problem, const struct attn_args *inputs, int threads,
                 struct oracle *oracle); /* multi_head and self_attention */
int oracle_matmul(const struct attn_problem *problem, const struct attn_args *inputs, int threads,
                  struct oracle *oracle);

/* Where out can lie if the columns of x lie in low..high: per column of y = x w + c, with the tolerance that errors of
 * `slack` in x and of the sum itself need. */
void linear_range(const struct linear *linear, int64_t K, const double *low, const double *high, const double *slack,
                  int64_t N, int threads, double *least, double *most, double *tolerance);

/* The largest |element| of x w + c if no element of x is larger than `largest`. */
double linear_reach(const struct linear *linear, int64_t K, int64_t N, double largest);

#endif
