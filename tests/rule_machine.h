/* SPDX-License-Identifier: Apache-2.0
 *
 * Every rule by its definition, in plain loops, on a machine that rounds as it is told: not at all (the definition in
 * double), or after every operation to f32 and wherever something is stored to the dtype, in one of several orders of
 * summation, with or without one planted fault. Shared by the tests of the oracle; independent of it.
 */
#ifndef RULE_MACHINE_H
#define RULE_MACHINE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "harness/fill.h"
#include "harness/operands.h"
#include "kernels/layers/layer.h"

enum order { PLAIN, REVERSED, LANES, ORDERS };

enum fault {
    SOUND,
    DROP_Q_BIAS,
    DROP_V_BIAS,
    DROP_OUT_BIAS, /* w_o_bias, w_out_bias */
    DROP_W_BIAS,   /* of additive and concat */
    IGNORE_U,
    INTERLEAVE_HEADS,
    SOFTMAX_OVER_QUERIES,
    COARSE_TANH,
    IGNORE_PADDING,
    DROP_SCALE,
    TRANSPOSE_W_O,
    SWAP_HALVES, /* of w in additive and concat */
    BF16_SUMS,   /* of P times V, or of a product */
    DROP_LAST_TERM,
    SHARE_MATRIX /* self_attention: one matrix for keys and values */
};

struct machine {
    bool exact;
    enum order order;
    enum fault fault;
};

/* What one problem gives: [B][H_out][S_q][width] and [B][H][S_q][S_kv]. */
struct answer {
    double *out, *weights;
};

static inline double narrow(const struct machine *m, double x)
{
    return m->exact ? x : (double)(float)x;
}

static inline double stored(const struct machine *m, enum attn_dtype dtype, double x)
{
    if (m->exact)
        return x;
    if (dtype == ATTN_F32)
        return (double)(float)x;
    return (double)(dtype == ATTN_BF16 ? float_from_bf16(bf16_from_float((float)x))
                                       : float_from_f16(f16_from_float((float)x)));
}

static inline double element(const struct attn_tensor *t, enum attn_dtype dtype, int64_t b, int64_t h, int64_t s,
                             int64_t d)
{
    int64_t at = b * t->stride[0] + h * t->stride[1] + s * t->stride[2] + d;
    if (dtype == ATTN_F32)
        return (double)((const float *)t->data)[at];
    uint16_t bits = ((const uint16_t *)t->data)[at];
    return (double)(dtype == ATTN_BF16 ? float_from_bf16(bits) : float_from_f16(bits));
}

static inline void put_element(const struct attn_tensor *t, enum attn_dtype dtype, int64_t b, int64_t h, int64_t s,
                               int64_t d, double x)
{
    int64_t at = b * t->stride[0] + h * t->stride[1] + s * t->stride[2] + d;
    if (dtype == ATTN_F32)
        ((float *)t->data)[at] = (float)x;
    else
        ((uint16_t *)t->data)[at] = dtype == ATTN_BF16 ? bf16_from_float((float)x) : f16_from_float((float)x);
}

static inline double *numbers(int64_t count)
{
    return calloc((size_t)count + 1, sizeof(double));
}

static inline double add(const struct machine *m, double sum, double term)
{
    sum = narrow(m, sum + term);
    return m->fault == BF16_SUMS ? (double)float_from_bf16(bf16_from_float((float)sum)) : sum;
}

/* Sum of n products in the machine's order: products rounded, or fused in LANES. */
static inline double product_sum(const struct machine *m, int64_t n, const double *a, const double *b, int64_t step)
{
    enum { WIDTH = 8 };
    double lane[WIDTH] = {0}, sum = 0;
    n -= m->fault == DROP_LAST_TERM;
    for (int64_t k = 0; k < n; k++) {
        int64_t at = m->order == REVERSED ? n - 1 - k : k;
        if (m->order == LANES)
            lane[k % WIDTH] = add(m, lane[k % WIDTH], a[at] * b[at * step]);
        else
            sum = add(m, sum, narrow(m, a[at] * b[at * step]));
    }
    for (int l = 0; l < WIDTH && m->order == LANES; l++)
        sum = add(m, sum, lane[l]);
    return sum;
}

/* A weight matrix as [N][K] doubles, read from [N][first + K] or [K][N]. */
static inline double *matrix(const struct attn_tensor *t, enum attn_dtype dtype, int64_t N, int64_t K, int64_t first,
                             bool k_by_n)
{
    double *w = numbers(N * K);
    for (int64_t n = 0; n < N; n++)
        for (int64_t k = 0; k < K; k++)
            w[n * K + k] = k_by_n ? element(t, dtype, 0, 0, k, n) : element(t, dtype, 0, 0, n, first + k);
    return w;
}

/* y = x w + bias, stored. Frees x and w. */
static inline double *apply(const struct machine *m, enum attn_dtype dtype, int64_t rows, int64_t K, int64_t N,
                            double *x, double *w, const float *bias)
{
    double *y = numbers(rows * N);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t n = 0; n < N; n++) {
            double sum = product_sum(m, K, x + r * K, w + n * K, 1);
            y[r * N + n] = stored(m, dtype, bias ? narrow(m, sum + (double)bias[n]) : sum);
        }
    free(x);
    free(w);
    return y;
}

static inline double *rows_of(const struct attn_tensor *t, enum attn_dtype dtype, int64_t b, int64_t h)
{
    double *x = numbers(t->size[2] * t->size[3]);
    for (int64_t s = 0; s < t->size[2]; s++)
        for (int64_t d = 0; d < t->size[3]; d++)
            x[s * t->size[3] + d] = element(t, dtype, b, h, s, d);
    return x;
}

/* One head's attention: q [S_q] and k [S_kv] rows of D at their steps, v [S_kv] of D_v, out at its step. */
struct head {
    int64_t b, h, D, D_v, q_step, k_step, v_step, out_step;
    const double *q, *k, *v, *u; /* u: additive */
    const float *key_bias;       /* concat */
    double scale, softcap;
    double *out, *weights;
};

static inline double coarse_tanh(double x)
{
    double y = x * (15 + x * x) / (15 + 6 * x * x);
    return y > 1 ? 1 : y < -1 ? -1 : y;
}

static inline double score_of(const struct machine *m, const struct head *head, int64_t i, int64_t j)
{
    const double *q = head->q + i * head->q_step, *k = head->k + j * head->k_step;
    if (!head->u) {
        double s = narrow(m, product_sum(m, head->D, q, k, 1) * head->scale);
        return head->softcap > 0 ? narrow(m, head->softcap * narrow(m, tanh(narrow(m, s / head->softcap)))) : s;
    }
    double *t = numbers(head->D);
    for (int64_t d = 0; d < head->D; d++) {
        double x = narrow(m, q[d] + k[d]);
        t[d] = narrow(m, m->fault == COARSE_TANH ? coarse_tanh(x) : tanh(x));
    }
    double s = product_sum(m, head->D, t, head->u, 1);
    free(t);
    return s;
}

static inline bool may_attend(const struct machine *m, const struct attn_problem *p, const struct attn_args *args,
                              const struct head *head, int64_t i, int64_t j)
{
    int64_t place = j - (i + (p->diag ? p->diag[head->b] : 0));
    bool allowed = place <= p->right && (p->left == INT64_MAX || place > -p->left);
    if (p->kv_len && m->fault != IGNORE_PADDING)
        allowed = allowed && j < p->kv_len[head->b];
    const struct attn_tensor *mask = &args->mask;
    if (mask->data)
        allowed = allowed &&
                  ((const uint8_t *)
                       mask->data)[head->b * mask->stride[0] + head->h * mask->stride[1] + i * mask->stride[2] + j];
    return allowed;
}

/* Softmax of score[0], score[step] ... in place; -inf is no key. sum: what the numerators are to be divided by. */
static inline void softmax(const struct machine *m, int64_t n, int64_t step, double *score, double *sum)
{
    double maximum = -INFINITY, total = 0;
    for (int64_t j = 0; j < n; j++)
        maximum = fmax(maximum, score[j * step]);
    for (int64_t j = 0; j < n; j++) {
        int64_t at = (m->order == REVERSED ? n - 1 - j : j) * step;
        score[at] = maximum == -INFINITY ? 0 : narrow(m, exp(narrow(m, score[at] - maximum)));
        total = narrow(m, total + score[at]);
    }
    *sum = total;
}

static inline void attend(const struct machine *m, const struct attn_problem *p, const struct attn_args *args,
                          const struct head *head)
{
    int64_t S_q = p->S_q, S_kv = p->S_kv;
    double *e = numbers(S_q * S_kv), *sum = numbers(S_q > S_kv ? S_q : S_kv);
    const struct attn_tensor *bias = &args->bias;
    bool columns = m->fault == SOFTMAX_OVER_QUERIES;
    for (int64_t i = 0; i < S_q; i++)
        for (int64_t j = 0; j < S_kv; j++) {
            double s = score_of(m, head, i, j);
            if (head->key_bias)
                s = narrow(m, s + (double)head->key_bias[j]);
            else if (bias->data)
                s = narrow(m, s + element(bias, ATTN_F32, head->b, head->h, i, j));
            e[i * S_kv + j] = may_attend(m, p, args, head, i, j) ? s : -INFINITY;
        }
    for (int64_t r = 0; r < (columns ? S_kv : S_q); r++)
        softmax(m, columns ? S_q : S_kv, columns ? S_kv : 1, columns ? e + r : e + r * S_kv, &sum[r]);
    double *p_row = numbers(S_kv);
    for (int64_t i = 0; i < S_q; i++) {
        for (int64_t j = 0; j < S_kv; j++) {
            double divisor = columns ? sum[j] : sum[i], weight = e[i * S_kv + j];
            head->weights[i * S_kv + j] = weight > 0 ? narrow(m, weight / divisor) : 0;
            p_row[j] = stored(m, p->dtype, columns ? head->weights[i * S_kv + j] : weight);
        }
        for (int64_t d = 0; d < head->D_v; d++) {
            double o = product_sum(m, S_kv, p_row, head->v + d, head->v_step);
            head->out[i * head->out_step + d] = stored(m, p->dtype,
                                                       columns      ? o
                                                       : sum[i] > 0 ? narrow(m, o / sum[i])
                                                                    : 0);
        }
    }
    free(p_row);
    free(e);
    free(sum);
}

static inline const float *bias_of(const struct machine *m, const struct attn_tensor *t, enum fault drop)
{
    return m->fault == drop ? NULL : t->data;
}

static inline void run_matmul(const struct machine *m, const struct operands *o, struct answer *answer)
{
    const struct attn_problem *p = &o->problem;
    int64_t K = p->D, N = p->D_v;
    bool transposed = p->flags & ATTN_FLAG_TRANSPOSED;
    for (int64_t b = 0; b < p->B; b++)
        for (int64_t h = 0; h < p->H; h++) {
            double *x = rows_of(&o->args.q, p->dtype, b, h), *w = numbers(N * K);
            const struct attn_tensor *bias = &o->args.bias;
            for (int64_t n = 0; n < N; n++)
                for (int64_t k = 0; k < K; k++)
                    w[n * K + k] = element(&o->args.k, p->dtype, b, h, transposed ? n : k, transposed ? k : n);
            const float *c = bias->data ? (const float *)bias->data + b * bias->stride[0] + h * bias->stride[1] : NULL;
            double *y = apply(m, p->dtype, p->S_q, K, N, x, w, m->fault == DROP_OUT_BIAS ? NULL : c);
            memcpy(answer->out + (b * p->H + h) * p->S_q * N, y, (size_t)(p->S_q * N) * sizeof *y);
            free(y);
        }
}

static inline void run_additive(const struct machine *m, const struct operands *o, struct answer *answer)
{
    const struct attn_problem *p = &o->problem;
    const struct attn_tensor *param = o->args.param;
    int64_t D = p->hidden, swap = m->fault == SWAP_HALVES;
    double *u = numbers(D);
    for (int64_t d = 0; d < D; d++)
        u[d] = param[ATTN_ADDITIVE_U].data && m->fault != IGNORE_U
                   ? element(&param[ATTN_ADDITIVE_U], p->dtype, 0, 0, 0, d)
                   : 1;
    for (int64_t b = 0; b < p->B; b++)
        for (int64_t h = 0; h < p->H; h++) {
            int64_t kv_head = h / (p->H / p->H_kv), row = (b * p->H + h) * p->S_q;
            double *w_q = matrix(&param[ATTN_ADDITIVE_W], p->dtype, D, p->D, swap ? p->key_dim : 0, false);
            double *w_k = matrix(&param[ATTN_ADDITIVE_W], p->dtype, D, p->key_dim, swap ? 0 : p->D, false);
            double *q = apply(m, p->dtype, p->S_q, p->D, D, rows_of(&o->args.q, p->dtype, b, h), w_q,
                              bias_of(m, &param[ATTN_ADDITIVE_W_BIAS], DROP_W_BIAS));
            double *k =
                apply(m, p->dtype, p->S_kv, p->key_dim, D, rows_of(&o->args.k, p->dtype, b, kv_head), w_k, NULL);
            double *v = rows_of(&o->args.v, p->dtype, b, kv_head);
            struct head head = {.b = b, .h = h, .D = D, .D_v = p->D_v, .q_step = D, .k_step = D, .v_step = p->D_v};
            head.q = q;
            head.k = k;
            head.v = v;
            head.u = u;
            head.out_step = p->D_v;
            head.out = answer->out + row * p->D_v;
            head.weights = answer->weights + row * p->S_kv;
            attend(m, p, &o->args, &head);
            free(q);
            free(k);
            free(v);
        }
    free(u);
}

/* [a; b] row by row, the other way round if swapped. Frees both. */
static inline double *side_by_side(int64_t rows, int64_t wa, double *a, int64_t wb, double *b, bool swap)
{
    double *x = numbers(rows * (wa + wb));
    for (int64_t r = 0; r < rows; r++) {
        memcpy(x + r * (wa + wb) + (swap ? wb : 0), a + r * wa, (size_t)wa * sizeof *x);
        memcpy(x + r * (wa + wb) + (swap ? 0 : wa), b + r * wb, (size_t)wb * sizeof *x);
    }
    free(a);
    free(b);
    return x;
}

static inline void run_concat(const struct machine *m, const struct operands *o, struct answer *answer)
{
    const struct attn_problem *p = &o->problem;
    const struct attn_tensor *param = o->args.param;
    int64_t D = p->D + p->key_dim;
    bool combine = p->flags & ATTN_FLAG_COMBINE;
    for (int64_t b = 0; b < p->B; b++)
        for (int64_t h = 0; h < p->H; h++) {
            int64_t row = (b * p->H + h) * p->S_q;
            double *x = side_by_side(p->S_q, p->D, rows_of(&o->args.q, p->dtype, b, h), p->key_dim,
                                     rows_of(&o->args.k, p->dtype, b, h), m->fault == SWAP_HALVES);
            double *w = matrix(&param[ATTN_CONCAT_W], p->dtype, p->S_kv, D, 0, false);
            double *v = rows_of(&o->args.v, p->dtype, b, h), *applied = numbers(p->S_q * p->D_v);
            struct head head = {.b = b, .h = h, .D = D, .D_v = p->D_v, .q_step = D, .k_step = D, .v_step = p->D_v};
            head.q = x;
            head.k = w;
            head.v = v;
            head.key_bias = bias_of(m, &param[ATTN_CONCAT_W_BIAS], DROP_W_BIAS);
            head.scale = 1;
            head.out_step = p->D_v;
            head.out = applied;
            head.weights = answer->weights + row * p->S_kv;
            attend(m, p, &o->args, &head);
            int64_t width = combine ? p->out_dim : p->D_v;
            if (combine) {
                double *joined =
                    side_by_side(p->S_q, p->D, rows_of(&o->args.q, p->dtype, b, h), p->D_v, applied, false);
                applied = apply(m, p->dtype, p->S_q, p->D + p->D_v, p->out_dim, joined,
                                matrix(&param[ATTN_CONCAT_W_OUT], p->dtype, p->out_dim, p->D + p->D_v, 0, false),
                                bias_of(m, &param[ATTN_CONCAT_W_OUT_BIAS], DROP_OUT_BIAS));
            }
            memcpy(answer->out + row * width, applied, (size_t)(p->S_q * width) * sizeof *applied);
            free(applied);
            free(x);
            free(w);
            free(v);
        }
}

/* q, k or v of a layer, projected: which 0, 1, 2. */
static inline double *projected(const struct machine *m, const struct operands *o, int64_t b, int which)
{
    static const enum fault drops[] = {DROP_Q_BIAS, SOUND, DROP_V_BIAS};
    const struct attn_problem *p = &o->problem;
    const struct attn_tensor *param = o->args.param, *inputs[] = {&o->args.q, &o->args.k, &o->args.v};
    bool self = p->rule == ATTN_SELF_ATTENTION;
    int64_t rows = which == 0 ? p->S_q : p->S_kv, model = which == 2 ? p->model_dim_v : p->model_dim;
    double *x = rows_of(self ? inputs[0] : inputs[which], p->dtype, b, 0);
    if (self) {
        int matrix_of = m->fault == SHARE_MATRIX && which == 2 && p->model_dim == p->model_dim_v ? 1 : which;
        x = apply(m, p->dtype, rows, p->input_dim, model, x,
                  matrix(&param[matrix_of], p->dtype, model, p->input_dim, 0, true), NULL);
        param += ATTN_SELF_MATRICES;
    }
    if (p->flags & ATTN_FLAG_SINGLE)
        return x;
    const struct attn_tensor *w = &param[2 * which];
    int64_t N = which == 0 ? p->H * p->D : p->H_kv * (which == 1 ? p->D : p->D_v);
    return apply(m, p->dtype, rows, model, N, x, matrix(w, p->dtype, N, model, 0, false),
                 which == 1 ? w[1].data : bias_of(m, &w[1], drops[which]));
}

static inline void run_layer(const struct machine *m, const struct operands *o, struct answer *answer)
{
    const struct attn_problem *p = &o->problem;
    bool single = p->flags & ATTN_FLAG_SINGLE;
    const struct attn_tensor *param = o->args.param + (p->rule == ATTN_SELF_ATTENTION ? ATTN_SELF_MATRICES : 0);
    int64_t D = p->D, D_v = p->D_v, joined = p->H * D_v, group = p->H / p->H_kv;
    for (int64_t b = 0; b < p->B; b++) {
        double *q = projected(m, o, b, 0), *k = projected(m, o, b, 1), *v = projected(m, o, b, 2);
        double *applied = numbers(p->S_q * joined), *swapped = numbers(p->S_q * joined);
        for (int64_t h = 0; h < p->H; h++) {
            struct head head = {.b = b, .h = h, .D = D, .D_v = D_v, .q_step = p->H * D, .k_step = p->H_kv * D};
            head.q = q + h * D;
            head.k = k + h / group * D;
            head.v = v + h / group * D_v;
            head.v_step = p->H_kv * D_v;
            head.scale = m->fault == DROP_SCALE ? 1 : (double)p->scale;
            head.softcap = p->softcap;
            head.out_step = joined;
            head.out = applied + h * D_v;
            head.weights = answer->weights + (b * p->H + h) * p->S_q * p->S_kv;
            attend(m, p, &o->args, &head);
        }
        for (int64_t e = 0; e < p->S_q * joined; e++)
            swapped[e / joined * joined + e % D_v * p->H + e % joined / D_v] = applied[e];
        if (m->fault == INTERLEAVE_HEADS)
            memcpy(applied, swapped, (size_t)(p->S_q * joined) * sizeof *applied);
        int64_t width = single ? D_v : p->out_dim;
        if (!single) {
            double *w = matrix(&param[ATTN_LAYER_W_O], p->dtype, width, joined, 0,
                               m->fault == TRANSPOSE_W_O && width == joined);
            applied = apply(m, p->dtype, p->S_q, joined, width, applied, w,
                            bias_of(m, &param[ATTN_LAYER_W_O_BIAS], DROP_OUT_BIAS));
        }
        memcpy(answer->out + b * p->S_q * width, applied, (size_t)(p->S_q * width) * sizeof *applied);
        free(applied);
        free(swapped);
        free(q);
        free(k);
        free(v);
    }
}

/* The whole problem. free() out and weights. */
static inline struct answer run_rule(const struct machine *m, const struct operands *o)
{
    const struct attn_problem *p = &o->problem;
    struct answer answer = {numbers(o->args.out.size[0] * o->args.out.size[1] * p->S_q * o->args.out.size[3]),
                            numbers(p->B * p->H * p->S_q * p->S_kv)};
    if (p->rule == ATTN_MATMUL)
        run_matmul(m, o, &answer);
    else if (p->rule == ATTN_ADDITIVE)
        run_additive(m, o, &answer);
    else if (p->rule == ATTN_CONCAT)
        run_concat(m, o, &answer);
    else
        run_layer(m, o, &answer);
    return answer;
}

#endif
