/* SPDX-License-Identifier: Apache-2.0
 *
 * The float64 reference for scaled dot-product attention and the error bounds that results are held against.
 * (The derivation of the bounds is stated here by whoever writes oracle.c.)
 */
#ifndef HARNESS_ORACLE_H
#define HARNESS_ORACLE_H

#include "error.h"
#include "operands.h"

/* Rows of the output that are held against the reference, and what the reference says of them. */
struct oracle {
    int64_t rows;          /* how many rows are checked */
    bool full;             /* every row of the problem is among them */
    int64_t D_v, S_kv;
    int64_t *b, *h, *i;    /* [rows] */
    double *out, *bound;   /* [rows][D_v]: value, and the largest error that a sound kernel can make */
    double *sigma;         /* [rows][D_v]: expected standard deviation of the rounding error (RMS test) */
    double *weights, *weight_bound; /* [rows][S_kv], or NULL */
    /* For the whole-output test: range of V's column per (b, kv head): [B][H_kv][D_v]. */
    double *v_min, *v_max, *v_tolerance;
    bool inputs_finite;    /* of what may matter; else only the sampled rows are judged */
};

/* Which rows: all if B*H*S_q*S_kv*(D+D_v) is at most budget_flops, else first and last row of every head and seeded rows
 * rotated over block edges until the budget is reached. Inputs: args of the problem, already rounded to its dtype. */
int oracle_create(const struct attn_problem *problem, const struct attn_args *inputs, uint64_t seed,
                  double budget_flops, int threads, struct oracle *oracle, struct error *error);
void oracle_destroy(struct oracle *oracle);

struct judgement {
    bool wrong;
    char reason[256];      /* "row b=0 h=1 i=7 column 3: got 0.5, expected 0.25, error 1.2e+03 x bound" */
    int64_t rows_checked;
    double max_abs_err, rms_err, err_over_bound; /* err_over_bound: largest error / bound, NaN counts as infinite */
};

/* Holds out (and weights if given) of a result against the oracle. NaN fails unless the reference is not finite. */
void oracle_judge(const struct oracle *oracle, const struct attn_problem *problem, const struct attn_tensor *out,
                  const struct attn_tensor *weights, struct judgement *judgement);

#endif
