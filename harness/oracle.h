/* SPDX-License-Identifier: Apache-2.0
 *
 * The float64 reference for all rules and the error bounds that results are held against.
 *
 * The error model of scaled dot product; the other rules are below. u = 2^-24 is the unit roundoff of f32, which
 * kernels accumulate in; the oracle sees the inputs as rounded to the dtype, so their rounding is no error. A rounding
 * error is modelled as independent, zero-mean and uniform within u relative to the value rounded: variance u^2/3
 * (Higham and Mary, "A new approach to probabilistic rounding error analysis", SISC 2019). A sum of n terms errs by
 * what its partial sums are rounded by, not by sqrt(n) times the sum of magnitudes (Higham and Mary, "Sharper
 * probabilistic backward error analysis ... with random data", SISC 2020). The order of summation is the kernel's own,
 * so both are counted: the partial sums S_k in natural order, and their expectation if the terms t_k were summed in
 * random order, E S_k^2 <= (k/n)^2 (sum t)^2 + (k/n)(1 - k/n) sum t^2, hence sum_k E S_k^2 <= n/3 (sum t)^2 + n/6 sum
 * t^2. Blocks, lanes and trees have fewer and smaller partial sums.
 *
 * Score s_j = bias + cap tanh(scale q.k_j / cap), with x_j = scale q.k_j, m the row's maximum:
 *   Var ds_j = u^2/3 [ scale^2 (sum_k S_k^2 + D/3 (q.k)^2 + (D/6 + 2) sum_d (q_d k_d)^2)   product, folded scale
 *                      + 3 x^2 + 3 s^2 (+ (4 cap)^2 + 3 (s-bias)^2 with a softcap, whose derivative is at most 1)
 *                      + 3 (s-m)^2 ]                                                     subtraction, conversion to 2^x
 * Exp errs by up to 4u (2 ulp): rho_j = ds_j + exp error, Var rho_j = Var ds_j + u^2/3 4^2, independent between keys;
 * equal scores are no exception, since a common error cancels in what follows.
 *
 * Softmax and the sum over V. o = sum_j p_j v_j with p = softmax(s). To first order
 *   do = sum_j p_j rho_j (v_j - o)                                                        scores and exp
 *      + errors of the partial sums of p v (each: accumulate, rescale), products          2 sum S_k^2 + ...
 *      + o * (errors of the partial sums P_k of the row sum, division, a few more)        2 sum P_k^2 + n/3 + ... + 8
 *      + at each new running maximum, in natural order, an inexact factor on what was summed so far
 * and, for bf16 and f16, P rounded to the dtype for the numerator alone (unit u_p, or 2^-25 absolute where f16 runs
 * subnormal; twice that, since the rounded values may repeat from block to block). For errors that are not small the
 * first term is multiplied by exp(2 r), r = lambda max_j sd(rho_j), and never taken larger than the range of v, where
 * every weighted mean lies.
 *
 * Coherent parts do not average out and are added as magnitudes: the relative error of the constants scale and log2(e)
 * (4u |sum p (s-m)(v-o)|), the final rounding and P rounded after normalising (1.5-fold: a bound should not be met by
 * them alone), subnormal steps (n+2) 2^-149 of the sums and that of out, weights that underflow (2^-125 max|v| each).
 * Equal scores make equal terms, whose rounding errors repeat too: each key whose score an earlier one has adds
 * u |partial sum|. vdpbf16ps flushes subnormals, so for bf16 the steps are 2^-126.
 *
 *   bound = lambda sqrt(variance) + coherent,   sigma = sqrt(variance + coherent^2),   lambda = 10
 *
 * By Hoeffding's inequality lambda standard deviations (of the uniform model) are exceeded with probability below
 * 2 exp(-lambda^2/6) in the worst case and 2e-23 if normal: lambda leaves room for what is not independent after all.
 *
 * Beside the maximum, the root mean square of error/sigma over all judged elements must stay below
 * ORACLE_RMS_LIMIT + ORACLE_LAMBDA / sqrt(rows): sigma is an upper estimate, so a clean kernel has an RMS below 1, and
 * the elements of one row may share their error. A coarse exp or a narrow accumulator stands out there at once.
 *
 * Where f32 may overflow on the way to a finite result, or a NaN behind an explicit mask may leak, the bound is
 * infinite.
 *
 * Linear stage y_n = sum_k x_k w_nk + c_n (matmul, projections, output; the c are f32 and exact). Its own rounding is
 * that of a sum of n = K + 1 terms as above: u^2/3 [ sum_k S_k^2 + (n/3 + 1) y^2 + n/6 (sum_k (x_k w_k)^2 + c^2) +
 * sum_k (x_k w_k)^2 ], c first, last or between. Errors of x are independent between its columns and add sum_k w_nk^2
 * Var x_k. What is kept between stages (projected q, k, v; applied) is stored in the problem's dtype, unit u_d: +
 * u_d^2/3 y^2. A result takes 1.5 u_d |y| as coherent instead. Two kinds of dependence are looked for: columns of y
 * with equal weights and bias err alike: m of them count as independent with m times their variance, which is enough
 * for any weighted sum of them, since (sum_i a_i)^2 <= m sum_i a_i^2; equal terms |x_k w_nk| are rounded alike (f32
 * only): where more than sqrt(K) of both x and w_n repeat, a share f, up to f u (K/2 + 2) sum_k |x_k w_nk|, the bound
 * for any order of equal terms, as uniformly distributed.
 *
 * Attention of projected q, k, v with variances Var q_d, Var k_jd, Var v_jd (g_jd = scale k_jd, or for additive g_jd =
 * u_d (1 - tanh^2), the derivative of the score):
 *   Var ds_j += scale^2 sum_d (q_d^2 + Var q_d) Var k_jd                                   independent between keys
 *   q's error moves all scores of the row together: ds_j = sum_d g_jd dq_d, so do = sum_d dq_d sum_j p_j g_jd (v_j -
 * o): sum_d Var q_d (sum_j p_j g_jd (v_j - o))^2 joins the first term of do before it is capped by V's range. Features
 *     are taken together in SKETCH groups with random signs, which keeps the expectation of the square
 *   V's: + sum_j p_j^2 Var v_j
 * Keys with equal inputs have equal errors: those of their scores are added as magnitudes, sum_j p_j sd(ds_j) |v_j -
 * o|, those of their values with the sum of their p. Weights take q's part as magnitudes: sd_j + sum_i p_i sd_i.
 *
 * Additive score s_j = sum_d u_d tanh(q_d + k_jd): the sum as a dot product's, tanh with an absolute error of up to 4u
 * (4 ulp of results above 1/2), the argument rounded once:
 *   Var ds_j = u^2/3 [ sum_d S_d^2 + D/3 s^2 + (D/6 + 2) sum_d (u_d tanh)^2 + 4^2 sum_d u_d^2 + sum_d g_jd^2 (q_d +
 * k_jd)^2
 *                      + 3 s^2 + 3 (s-m)^2 ] + sum_d g_jd^2 Var k_jd
 *
 * Concat is scaled dot product of exact operands (keys: rows of w, bias: w_bias). Behind attention, a linear stage
 * takes `applied` column by column with the variance of do, coherent parts squared into it, but for the relative error
 * that a head's columns share (row sum, division, P rounded alike): Var rel_h times (the head's part of y)^2.
 */
#ifndef HARNESS_ORACLE_H
#define HARNESS_ORACLE_H

#include "error.h"
#include "operands.h"

#define ORACLE_LAMBDA 10.0
#define ORACLE_RMS_LIMIT 1.6

/* Rows of the output that are held against the reference, and what the reference says of them. */
struct oracle {
    int64_t rows;                   /* how many rows are checked */
    bool full;                      /* every row of the problem is among them */
    int64_t D_v, S_kv;              /* columns of out (layers: out_dim; matmul: N) and of weights */
    int64_t out_heads;              /* heads of out: H; 1 for multi_head and self_attention */
    int64_t weight_heads;           /* rows of weights to a row of out: 1; H where out has one head */
    int64_t *b, *h, *i;             /* [rows] */
    double *out, *bound;            /* [rows][D_v]: value, and the largest error that a sound kernel can make */
    double *sigma;                  /* [rows][D_v]: expected standard deviation of the rounding error (RMS test) */
    double *weights, *weight_bound; /* [rows][weight_heads][S_kv], or NULL */
    /* For the whole-output test: where elements of a column can lie, [B][range_heads][D_v]: within V's range where they
     * are means of V, else within what follows from the ranges of operands. Infinite tolerance: anywhere. */
    int64_t range_heads;
    double *v_min, *v_max, *v_tolerance;
    bool inputs_finite; /* of what may matter; else only the sampled rows are judged */
};

/* Which rows: all if their multiplications (S_kv*(D+D_v) a row of scaled dot product) are at most budget_flops, else
 * first and last row of every head and seeded rows rotated over block edges (multiples of 16 and 64, and their
 * neighbours) until the budget is reached. Projections of K and V are needed for any row of a batch entry: where they
 * would take more than half the budget, rows come from some of the batch entries only, first and last among them, and
 * have half the budget to themselves. Inputs: args of the problem, already rounded to its dtype, params as
 * kernels/layers/layer.h orders them; nothing of them is kept. threads: how many OpenMP threads may be used. -ENOMEM
 * with message. */
int oracle_create(const struct attn_problem *problem, const struct attn_args *inputs, uint64_t seed,
                  double budget_flops, int threads, struct oracle *oracle, struct error *error);
void oracle_destroy(struct oracle *oracle);

struct judgement {
    bool wrong;
    char reason[256]; /* "row b=0 h=1 i=7 column 3: got 0.5, expected 0.25, error 1.2e+03 x bound" */
    int64_t rows_checked;
    double max_abs_err, rms_err; /* over the finite elements of the checked rows of out */
    double err_over_bound; /* largest of error / bound, RMS / its limit, way out of V's range / tolerance; NaN counts as
                              infinite. Above 1 is wrong */
};

/* Holds out (and weights if given) of a result against the oracle. NaN fails unless the reference is not finite. */
void oracle_judge(const struct oracle *oracle, const struct attn_problem *problem, const struct attn_tensor *out,
                  const struct attn_tensor *weights, struct judgement *judgement);

#endif
