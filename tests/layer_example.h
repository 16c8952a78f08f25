/* SPDX-License-Identifier: Apache-2.0
 *
 * Seeded examples of the layers for check_layers.c: sizes from 0 up, each tensor in a memory order of its own with gaps
 * behind rows and heads, masks, grouped heads, aliased inputs. The output is filled with bytes 0xff.
 */
#ifndef TESTS_LAYER_EXAMPLE_H
#define TESTS_LAYER_EXAMPLE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/elements_portable.h"
#include "kernels/layers/layer.h"

enum { MOST_BLOCKS = 40, MOST_B = 4 };

struct block {
    char *data, *copy; /* copy: as it was filled */
    size_t bytes;
};

struct example {
    struct attn_problem problem;
    struct attn_args args;
    struct attn_tensor param[ATTN_MOST_PARAMS];
    int64_t kv_len[MOST_B], diag[MOST_B];
    struct block blocks[MOST_BLOCKS];
    int block_count, out_block;
    char text[200];
};

static uint64_t random_state;

static uint64_t random_bits(void)
{
    uint64_t x = random_state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static int64_t below(int64_t n)
{
    return (int64_t)(random_bits() % (uint64_t)n);
}

static float uniform(double limit)
{
    return (float)(((double)(random_bits() >> 11) * 0x1p-52 - 1) * limit);
}

static char *add_block(struct example *x, size_t bytes)
{
    assert_true(x->block_count < MOST_BLOCKS);
    struct block *block = &x->blocks[x->block_count++];
    *block = (struct block){.data = malloc(bytes + 1), .copy = malloc(bytes + 1), .bytes = bytes};
    assert_non_null(block->data);
    assert_non_null(block->copy);
    return block->data;
}

/* A tensor in one of the three memory orders, with gaps behind rows and heads, so that batch and rows merge or not. */
static struct attn_tensor make_tensor(struct example *x, uint32_t dtype, int64_t B, int64_t H, int64_t S, int64_t D,
                                      double limit)
{
    static const int outer_first[3][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}};
    const int *order = outer_first[below(3)];
    struct attn_tensor t = {.size = {B, H, S, D}, .stride = {0, 0, 0, 1}};
    int64_t stride = D + (below(2) ? 0 : below(5));
    for (int n = 2; n >= 0; n--) {
        t.stride[order[n]] = stride;
        stride *= t.size[order[n]];
        stride += below(3) ? 0 : below(7);
    }
    t.data = add_block(x, (size_t)stride * element_size(dtype));
    for (int64_t n = 0; n < stride; n++)
        write_element(dtype, t.data, n, uniform(limit));
    return t;
}

static struct attn_tensor make_row(struct example *x, int64_t n)
{
    return make_tensor(x, ATTN_F32, 1, 1, 1, n, 1);
}

static struct attn_tensor make_matrix(struct example *x, int64_t rows, int64_t columns, int64_t fan_in)
{
    return make_tensor(x, x->problem.dtype, 1, 1, rows, columns, 2 / sqrt((double)fan_in));
}

static inline double get(const struct attn_tensor *t, uint32_t dtype, int64_t b, int64_t h, int64_t i, int64_t d)
{
    float buffer;
    const char *row = row_in(t, dtype, b, h, i);
    return (double)*read_elements(dtype, row + d * (int64_t)element_size(dtype), 1, &buffer);
}

static void draw_masks(struct example *x)
{
    struct attn_problem *p = &x->problem;
    const bool scores_have_bias = p->rule != ATTN_CONCAT;
    p->left = p->right = INT64_MAX;
    if (below(3) == 0) {
        for (int64_t b = 0; b < p->B; b++)
            x->kv_len[b] = below(p->S_kv + 1);
        p->kv_len = x->kv_len;
    }
    if (below(3) == 0) {
        p->right = 0;
        p->left = below(2) ? INT64_MAX : 1 + below(5);
        for (int64_t b = 0; b < p->B; b++)
            x->diag[b] = below(5) - 1;
        p->diag = below(2) ? x->diag : NULL;
    }
    if (below(3) == 0 && scores_have_bias)
        x->args.bias = make_tensor(x, ATTN_F32, p->B, p->H, p->S_q, p->S_kv, 1);
    if (below(3) == 0) {
        struct attn_tensor *mask = &x->args.mask;
        *mask =
            (struct attn_tensor){.size = {p->B, p->H, p->S_q, p->S_kv}, .stride = {p->S_q * p->S_kv, 0, p->S_kv, 1}};
        mask->data = add_block(x, (size_t)(p->B * p->S_q * p->S_kv));
        for (int64_t n = 0; n < p->B * p->S_q * p->S_kv; n++)
            ((uint8_t *)mask->data)[n] = below(4) > 0;
    }
    p->softcap = below(4) == 0 && scores_have_bias ? 3 : 0;
}

static void draw_multi_head_params(struct example *x, struct attn_tensor *param)
{
    const struct attn_problem *p = &x->problem;
    const int64_t rows[3] = {p->H * p->D, p->H_kv * p->D, p->H_kv * p->D_v};
    const int64_t columns[3] = {p->model_dim, p->model_dim, p->model_dim_v};
    for (int n = 0; n < 3; n++) {
        param[2 * n] = make_matrix(x, rows[n], columns[n], columns[n]);
        param[2 * n + 1] = make_row(x, rows[n]);
    }
    param[ATTN_LAYER_W_O] = make_matrix(x, p->out_dim, p->H * p->D_v, p->H * p->D_v);
    param[ATTN_LAYER_W_O_BIAS] = below(3) ? make_row(x, p->out_dim) : (struct attn_tensor){0};
}

static void draw_tensors(struct example *x)
{
    struct attn_problem *p = &x->problem;
    struct attn_args *a = &x->args;
    const uint32_t t = p->dtype;
    const bool heads = p->rule == ATTN_ADDITIVE || p->rule == ATTN_CONCAT, combined = p->flags & ATTN_FLAG_COMBINE;
    const bool single = p->flags & ATTN_FLAG_SINGLE;
    int64_t out_dim = p->out_dim;
    if (p->rule == ATTN_ADDITIVE) {
        a->q = make_tensor(x, t, p->B, p->H, p->S_q, p->D, 1);
        a->k = make_tensor(x, t, p->B, p->H_kv, p->S_kv, p->key_dim, 1);
        a->v = make_tensor(x, t, p->B, p->H_kv, p->S_kv, p->D_v, 1);
        x->param[ATTN_ADDITIVE_W] = make_matrix(x, p->hidden, p->D + p->key_dim, p->D + p->key_dim);
        x->param[ATTN_ADDITIVE_W_BIAS] = make_row(x, p->hidden);
        if (below(2))
            x->param[ATTN_ADDITIVE_U] = make_matrix(x, 1, p->hidden, 1);
    } else if (p->rule == ATTN_CONCAT) {
        const int64_t width = p->D + p->key_dim;
        a->q = make_tensor(x, t, p->B, p->H, p->S_q, p->D, 1);
        a->k = make_tensor(x, t, p->B, p->H, p->S_q, p->key_dim, 1);
        a->v = make_tensor(x, t, p->B, p->H, p->S_kv, p->D_v, 1);
        x->param[ATTN_CONCAT_W] = make_matrix(x, p->S_kv, width, width);
        x->param[ATTN_CONCAT_W_BIAS] = make_row(x, p->S_kv);
        if (combined) {
            x->param[ATTN_CONCAT_W_OUT] = make_matrix(x, p->out_dim, p->D + p->D_v, p->D + p->D_v);
            x->param[ATTN_CONCAT_W_OUT_BIAS] = make_row(x, p->out_dim);
        }
    } else if (p->rule == ATTN_MULTI_HEAD) {
        a->q = make_tensor(x, t, p->B, 1, p->S_q, p->model_dim, 1);
        a->k = below(3) || p->S_q != p->S_kv ? make_tensor(x, t, p->B, 1, p->S_kv, p->model_dim, 1) : a->q;
        a->v = make_tensor(x, t, p->B, 1, p->S_kv, p->model_dim_v, 1);
        draw_multi_head_params(x, x->param);
    } else {
        a->q = make_tensor(x, t, p->B, 1, p->S_q, p->input_dim, 1);
        for (int n = 0; n < ATTN_SELF_MATRICES; n++)
            x->param[n] =
                make_matrix(x, p->input_dim, n == ATTN_SELF_W_V ? p->model_dim_v : p->model_dim, p->input_dim);
        if (!single)
            draw_multi_head_params(x, x->param + ATTN_SELF_MATRICES);
    }
    if (single || (heads && !combined))
        out_dim = p->D_v;
    x->out_block = x->block_count;
    a->out = make_tensor(x, t, p->B, heads ? p->H : 1, p->S_q, out_dim, 1);
    memset(a->out.data, 0xff, x->blocks[x->out_block].bytes);
    if (p->flags & ATTN_FLAG_WEIGHTS)
        a->weights = make_tensor(x, ATTN_F32, p->B, p->H, p->S_q, p->S_kv, 1);
    a->param = x->param;
}

static inline void draw_example(struct example *x, uint32_t rule, uint32_t dtype, uint64_t seed)
{
    random_state = seed;
    memset(x, 0, sizeof *x);
    struct attn_problem *p = &x->problem;
    p->struct_size = sizeof *p;
    p->rule = rule;
    p->dtype = dtype;
    p->B = below(12) ? 1 + below(MOST_B) : 0;
    p->H_kv = 1 + below(3);
    p->H = rule == ATTN_CONCAT ? p->H_kv : p->H_kv * (1 + below(3));
    p->S_q = below(12) ? 1 + below(9) : 0;
    p->S_kv = rule == ATTN_SELF_ATTENTION || below(4) == 0 ? p->S_q : below(12) ? 1 + below(20) : 0;
    p->D = 1 + below(20);
    p->D_v = below(2) ? p->D : 1 + below(20);
    p->scale = 0.5f;
    p->flags = (below(2) ? ATTN_FLAG_WEIGHTS : 0) | (rule == ATTN_CONCAT && below(2) ? ATTN_FLAG_COMBINE : 0);
    if (rule == ATTN_ADDITIVE || rule == ATTN_CONCAT) {
        p->key_dim = 1 + below(20);
        p->hidden = rule == ATTN_ADDITIVE ? 1 + below(30) : 0;
    } else {
        p->model_dim = 1 + below(40);
        p->model_dim_v = 1 + below(40);
        p->input_dim = rule == ATTN_SELF_ATTENTION ? 1 + below(40) : 0;
    }
    p->out_dim = rule == ATTN_ADDITIVE || (rule == ATTN_CONCAT && !(p->flags & ATTN_FLAG_COMBINE)) ? 0 : 1 + below(30);
    if (rule == ATTN_SELF_ATTENTION && below(3) == 0) {
        p->flags |= ATTN_FLAG_SINGLE;
        p->H = p->H_kv = 1;
        p->D = p->model_dim;
        p->D_v = p->model_dim_v;
    }
    draw_masks(x);
    draw_tensors(x);
    for (int n = 0; n < x->block_count; n++)
        memcpy(x->blocks[n].copy, x->blocks[n].data, x->blocks[n].bytes);
    snprintf(x->text, sizeof x->text, "rule %u seed %llu: B %d H %d/%d S %d/%d D %d/%d model %d/%d key %d flags %u",
             rule, (unsigned long long)seed, (int)p->B, (int)p->H, (int)p->H_kv, (int)p->S_q, (int)p->S_kv, (int)p->D,
             (int)p->D_v, (int)p->model_dim, (int)p->model_dim_v, (int)p->key_dim, p->flags);
}

static inline void release_example(struct example *x)
{
    for (int n = 0; n < x->block_count; n++) {
        free(x->blocks[n].data);
        free(x->blocks[n].copy);
    }
}

#endif
