/* SPDX-License-Identifier: Apache-2.0
 *
 * The formulas of the layers in float64, for the examples of layer_example.h: whole arrays, one loop a sum.
 */
#ifndef TESTS_LAYER_REFERENCE_H
#define TESTS_LAYER_REFERENCE_H

#include "layer_example.h"

enum { MOST_ARRAYS = 40 };

/* An array [B][H][S][D], or one seen as that. */
struct heads {
    double *at;
    int64_t b, h, i; /* strides */
};

static double *arrays[MOST_ARRAYS];
static int array_count;

static double *array(int64_t n)
{
    assert_true(array_count < MOST_ARRAYS);
    double *a = malloc(sizeof(double) * (size_t)(n + 1));
    assert_non_null(a);
    return arrays[array_count++] = a;
}

static inline void release_arrays(void)
{
    while (array_count > 0)
        free(arrays[--array_count]);
}

static struct heads gather(const struct attn_tensor *t, uint32_t dtype)
{
    const int64_t *size = t->size;
    struct heads heads = {array(size[0] * size[1] * size[2] * size[3]), size[1] * size[2] * size[3], size[2] * size[3],
                          size[3]};
    double *to = heads.at;
    for (int64_t b = 0; b < size[0]; b++)
        for (int64_t h = 0; h < size[1]; h++)
            for (int64_t i = 0; i < size[2]; i++)
                for (int64_t d = 0; d < size[3]; d++)
                    *to++ = get(t, dtype, b, h, i, d);
    return heads;
}

/* in [rows][K] times w, by rows of w (from column first on) or by its columns; N numbers a row. */
static double *linear(const double *in, int64_t rows, int64_t K, const struct attn_tensor *w, uint32_t dtype,
                      bool by_rows, int64_t first, const struct attn_tensor *bias, int64_t N)
{
    double *out = array(rows * N);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t n = 0; n < N; n++) {
            double sum = bias && bias->data ? get(bias, ATTN_F32, 0, 0, 0, n) : 0;
            for (int64_t k = 0; k < K; k++)
                sum += in[r * K + k] * (by_rows ? get(w, dtype, 0, 0, n, first + k) : get(w, dtype, 0, 0, k, n));
            out[r * N + n] = sum;
        }
    return out;
}

static bool allowed(const struct attn_problem *p, const struct attn_args *a, int64_t b, int64_t h, int64_t i, int64_t j)
{
    const int64_t position = i + (p->diag ? p->diag[b] : 0);
    const bool in_window = (p->left == INT64_MAX || j > position - p->left) &&
                           (p->right == INT64_MAX || j <= position + p->right) && (!p->kv_len || j < p->kv_len[b]);
    const struct attn_tensor *mask = &a->mask;
    return in_window &&
           (!mask->data ||
            ((const uint8_t *)mask->data)[b * mask->stride[0] + h * mask->stride[1] + i * mask->stride[2] + j]);
}

/* u: of additive, or NULL: ones. row_bias: of every row, or NULL. out [B][H][S_q][D_v], weights [B][H][S_q][S_kv]. */
static void attend(const struct attn_problem *p, const struct attn_args *a, struct heads q, struct heads k,
                   struct heads v, const struct attn_tensor *u, const struct attn_tensor *row_bias, double *out,
                   double *weights)
{
    const int64_t rows = p->B * p->H * p->S_q, group = p->H / p->H_kv;
    for (int64_t row = 0; row < rows; row++) {
        const int64_t i = row % p->S_q, h = row / p->S_q % p->H, b = row / p->S_q / p->H;
        double *weight = weights + row * p->S_kv, sum = 0;
        for (int64_t j = 0; j < p->S_kv; j++) {
            double score = 0;
            for (int64_t d = 0; d < p->D; d++) {
                const double x = q.at[b * q.b + h * q.h + i * q.i + d],
                             y = k.at[b * k.b + h / group * k.h + j * k.i + d];
                if (p->rule == ATTN_ADDITIVE)
                    score += (u && u->data ? get(u, p->dtype, 0, 0, 0, d) : 1) * tanh(x + y);
                else
                    score += p->scale * x * y;
            }
            if (p->softcap > 0)
                score = p->softcap * tanh(score / p->softcap);
            score += a->bias.data ? get(&a->bias, ATTN_F32, b, h, i, j) : 0;
            score += row_bias && row_bias->data ? get(row_bias, ATTN_F32, 0, 0, 0, j) : 0;
            weight[j] = allowed(p, a, b, h, i, j) ? exp(score) : 0;
            sum += weight[j];
        }
        memset(out + row * p->D_v, 0, sizeof(double) * (size_t)p->D_v);
        for (int64_t j = 0; j < p->S_kv; j++) {
            weight[j] = sum > 0 ? weight[j] / sum : 0;
            for (int64_t d = 0; d < p->D_v; d++)
                out[row * p->D_v + d] += weight[j] * v.at[b * v.b + h / group * v.h + j * v.i + d];
        }
    }
}

/* Answers of the whole problem: out as [B][H or 1][S_q][...], weights. */
static double *expect_additive(const struct example *x, double *weights)
{
    const struct attn_problem *p = &x->problem;
    const struct attn_tensor *w = &x->param[ATTN_ADDITIVE_W];
    struct heads q = gather(&x->args.q, p->dtype), k = gather(&x->args.k, p->dtype), v = gather(&x->args.v, p->dtype);
    q = (struct heads){
        linear(q.at, p->B * p->H * p->S_q, p->D, w, p->dtype, true, 0, &x->param[ATTN_ADDITIVE_W_BIAS], p->hidden),
        p->H * p->S_q * p->hidden, p->S_q * p->hidden, p->hidden};
    k = (struct heads){linear(k.at, p->B * p->H_kv * p->S_kv, p->key_dim, w, p->dtype, true, p->D, NULL, p->hidden),
                       p->H_kv * p->S_kv * p->hidden, p->S_kv * p->hidden, p->hidden};
    struct attn_problem core = *p;
    core.D = p->hidden;
    double *out = array(p->B * p->H * p->S_q * p->D_v);
    attend(&core, &x->args, q, k, v, &x->param[ATTN_ADDITIVE_U], NULL, out, weights);
    return out;
}

static double *expect_concat(const struct example *x, double *weights)
{
    const struct attn_problem *p = &x->problem;
    const struct heads q = gather(&x->args.q, p->dtype), k = gather(&x->args.k, p->dtype);
    const int64_t rows = p->B * p->H * p->S_q, width = p->D + p->key_dim, joined = p->D + p->D_v;
    double *both = array(rows * width), *applied = array(rows * p->D_v), *row = array(rows * joined);
    for (int64_t r = 0; r < rows; r++) {
        memcpy(both + r * width, q.at + r * p->D, sizeof(double) * (size_t)p->D);
        memcpy(both + r * width + p->D, k.at + r * p->key_dim, sizeof(double) * (size_t)p->key_dim);
    }
    struct attn_problem core = *p;
    core.D = width;
    core.scale = 1;
    const struct heads concatenated = {both, p->H * p->S_q * width, p->S_q * width, width};
    struct heads w = gather(&x->param[ATTN_CONCAT_W], p->dtype);
    w.b = w.h = 0;
    attend(&core, &x->args, concatenated, w, gather(&x->args.v, p->dtype), NULL, &x->param[ATTN_CONCAT_W_BIAS], applied,
           weights);
    if (!(p->flags & ATTN_FLAG_COMBINE))
        return applied;
    for (int64_t r = 0; r < rows; r++) {
        memcpy(row + r * joined, q.at + r * p->D, sizeof(double) * (size_t)p->D);
        memcpy(row + r * joined + p->D, applied + r * p->D_v, sizeof(double) * (size_t)p->D_v);
    }
    return linear(row, rows, joined, &x->param[ATTN_CONCAT_W_OUT], p->dtype, true, 0, &x->param[ATTN_CONCAT_W_OUT_BIAS],
                  p->out_dim);
}

static double *heads_of_rows(const struct example *x, const double *q, const double *k, const double *v,
                             const struct attn_tensor *w, double *weights)
{
    const struct attn_problem *p = &x->problem;
    const int64_t rows = p->B * p->S_q, keys = p->B * p->S_kv, H = p->H, H_kv = p->H_kv, D = p->D, D_v = p->D_v;
    const struct heads heads_q = {linear(q, rows, p->model_dim, w, p->dtype, true, 0, w + 1, H * D), p->S_q * H * D, D,
                                  H * D};
    const struct heads heads_k = {linear(k, keys, p->model_dim, w + 2, p->dtype, true, 0, w + 3, H_kv * D),
                                  p->S_kv * H_kv * D, D, H_kv * D};
    const struct heads heads_v = {linear(v, keys, p->model_dim_v, w + 4, p->dtype, true, 0, w + 5, H_kv * D_v),
                                  p->S_kv * H_kv * D_v, D_v, H_kv * D_v};
    double *applied = array(rows * H * D_v), *joined = array(rows * H * D_v);
    attend(p, &x->args, heads_q, heads_k, heads_v, NULL, NULL, applied, weights);
    for (int64_t n = 0; n < rows * H * D_v; n++) {
        const int64_t d = n % D_v, h = n / D_v % H, i = n / D_v / H % p->S_q, b = n / D_v / H / p->S_q;
        joined[n] = applied[((b * H + h) * p->S_q + i) * D_v + d];
    }
    return linear(joined, rows, H * D_v, w + 6, p->dtype, true, 0, w + 7, p->out_dim);
}

static double *expect_self_attention(const struct example *x, double *weights)
{
    const struct attn_problem *p = &x->problem;
    const double *in = gather(&x->args.q, p->dtype).at;
    double *qkv[3];
    for (int n = 0; n < 3; n++)
        qkv[n] = linear(in, p->B * p->S_q, p->input_dim, &x->param[n], p->dtype, false, 0, NULL,
                        n == ATTN_SELF_W_V ? p->model_dim_v : p->model_dim);
    if (!(p->flags & ATTN_FLAG_SINGLE))
        return heads_of_rows(x, qkv[0], qkv[1], qkv[2], x->param + ATTN_SELF_MATRICES, weights);
    const struct heads q = {qkv[0], p->S_q * p->D, 0, p->D}, k = {qkv[1], p->S_q * p->D, 0, p->D};
    const struct heads v = {qkv[2], p->S_q * p->D_v, 0, p->D_v};
    double *out = array(p->B * p->S_q * p->D_v);
    attend(p, &x->args, q, k, v, NULL, NULL, out, weights);
    return out;
}

static inline double *expect_out(const struct example *x, double *weights)
{
    const uint32_t dtype = x->problem.dtype;
    switch (x->problem.rule) {
    case ATTN_ADDITIVE:
        return expect_additive(x, weights);
    case ATTN_CONCAT:
        return expect_concat(x, weights);
    case ATTN_MULTI_HEAD:
        return heads_of_rows(x, gather(&x->args.q, dtype).at, gather(&x->args.k, dtype).at,
                             gather(&x->args.v, dtype).at, x->param, weights);
    default:
        return expect_self_attention(x, weights);
    }
}

#endif
