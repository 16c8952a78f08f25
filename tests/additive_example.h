/* SPDX-License-Identifier: Apache-2.0
 *
 * Seeded examples of the additive rule for unit tests: sizes around tile edges, masks, layouts, dtypes, garbage where
 * no row may look. Every tensor lies between inaccessible pages. One test program includes this, after cmocka.h.
 */
#ifndef TESTS_ADDITIVE_EXAMPLE_H
#define TESTS_ADDITIVE_EXAMPLE_H

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "harness/operands.h"
#include "kernels/elements_portable.h"

enum topic {
    TOPIC_PLAIN,
    TOPIC_CAUSAL, /* both alignments, windows, diagonals per batch entry */
    TOPIC_RAGGED, /* kv_len, NaN and infinities beyond */
    TOPIC_MASKED, /* boolean masks, bias with -inf, rows without a key */
    TOPIC_POISON, /* NaN in q and in keys and values that only some rows may see */
    TOPIC_DECODE, /* few queries, grouped heads, many keys */
    TOPIC_STEEP,  /* u so large that one key dominates; arguments of tanh far out, tiny and 0 */
    TOPIC_EMPTY,  /* no query, no key, no batch entry */
    TOPICS
};
enum { MOST_B = 3 };

enum { Q, K, V, U, BIAS, MASK, INPUTS, OUT = INPUTS, WEIGHTS, BLOCKS };

struct example {
    struct attn_problem problem;
    struct attn_args args;
    struct attn_tensor param;
    int64_t kv_len[MOST_B], diag[MOST_B];
    struct memory_block block[BLOCKS];
    unsigned char *copy[INPUTS];
    double *out, *out_bound, *weights, *weights_bound; /* what is expected; room for it is the test's to get */
    char text[200];
};

/* ---- drawing ------------------------------------------------------------------------- */

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

static bool one_in(int64_t n)
{
    return below(n) == 0;
}

static float uniform(float limit)
{
    return ((float)(random_bits() >> 40) * 0x1p-23f - 1.0f) * limit;
}

static void draw_sizes(struct attn_problem *p, enum topic topic)
{
    static const int64_t queries[] = {1, 2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 31, 33, 65};
    static const int64_t keys[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 127, 128, 129, 257, 511, 512, 513, 1031};
    static const int64_t features[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 67, 100, 128, 131};
#define PICK(list) list[below((int64_t)(sizeof(list) / sizeof *(list)))]
    do {
        p->B = 1 + below(MOST_B);
        p->H_kv = 1 + below(2);
        p->H = p->H_kv * (one_in(2) ? 1 : 1 + below(5));
        p->S_q = topic == TOPIC_DECODE ? 1 + below(3) : PICK(queries);
        p->S_kv = PICK(keys);
        p->D = PICK(features);
        p->D_v = one_in(3) ? p->D : PICK(features);
    } while (p->B * p->H * p->S_q * p->S_kv * p->D > 200000);
#undef PICK
    p->hidden = p->D;
    if (topic == TOPIC_EMPTY) {
        int64_t *const size[] = {&p->B, &p->S_q, &p->S_kv};
        *size[below(3)] = 0;
    }
}

static void draw_ranges(struct example *x, enum topic topic)
{
    struct attn_problem *p = &x->problem;
    p->left = p->right = INT64_MAX;
    if (topic == TOPIC_RAGGED || (topic == TOPIC_DECODE && one_in(2))) {
        for (int64_t b = 0; b < p->B; b++)
            x->kv_len[b] = below(p->S_kv + 1);
        p->kv_len = x->kv_len;
    }
    if (topic == TOPIC_CAUSAL || topic == TOPIC_POISON || (topic != TOPIC_PLAIN && one_in(4))) {
        p->right = one_in(4) ? below(20) - 3 : 0;
        p->left = one_in(2) ? INT64_MAX : below(one_in(2) ? 12 : p->S_kv + 3);
        for (int64_t b = 0; b < p->B; b++)
            x->diag[b] = (p->kv_len ? p->kv_len[b] : p->S_kv) - p->S_q + (one_in(3) ? below(9) - 4 : 0);
        p->diag = one_in(3) ? NULL : x->diag;
    }
}

static void allocate(struct example *x, int which, struct attn_tensor *tensor, size_t bytes)
{
    struct error error;
    assert_int_equal(memory_allocate(&x->block[which], bytes, MEMORY_GUARDED, &error), 0);
    tensor->data = x->block[which].data;
}

/* [b][h][s][d] in one of three orders, rows perhaps longer than they need to be; returns the elements it spans. */
static int64_t lay_out(struct attn_tensor *tensor, int64_t B, int64_t H, int64_t S, int64_t D, int order, int64_t gap)
{
    const int64_t size[4] = {B, H, S, D};
    static const int inner_first[3][3] = {{2, 1, 0}, {1, 2, 0}, {2, 0, 1}}; /* BHSD, BSHD, HBSD */
    memcpy(tensor->size, size, sizeof size);
    tensor->stride[3] = 1;
    int64_t stride = D + gap, span = D;
    for (int i = 0; i < 3; i++) {
        tensor->stride[inner_first[order][i]] = stride;
        span += (size[inner_first[order][i]] - 1) * stride;
        stride *= size[inner_first[order][i]];
    }
    return B * H * S * D == 0 ? 0 : span;
}

static void fill(const struct example *x, int which, const struct attn_tensor *tensor, uint32_t dtype, float limit)
{
    const size_t count = x->block[which].bytes / element_size(dtype);
    for (size_t i = 0; i < count; i++)
        write_element(dtype, tensor->data, (int64_t)i, uniform(limit));
}

static void draw_masks(struct example *x)
{
    struct attn_problem *p = &x->problem;
    const int kind = (int)below(3); /* bias, mask, both */
    struct attn_tensor *tensors[2] = {&x->args.bias, &x->args.mask};
    for (int which = 0; which < 2; which++) {
        if (kind == 1 - which)
            continue;
        const int64_t size[3] = {one_in(2) ? 1 : p->B, one_in(2) ? 1 : p->H, one_in(3) ? 1 : p->S_q};
        const int64_t count = lay_out(tensors[which], size[0], size[1], size[2], p->S_kv, 0, one_in(3) ? 3 : 0);
        for (int i = 0; i < 3; i++)
            if (size[i] == 1)
                tensors[which]->stride[i] = 0;
        allocate(x, BIAS + which, tensors[which], (size_t)count * (which == 0 ? sizeof(float) : 1));
        for (int64_t i = 0; i < count; i++) {
            if (which == 0)
                ((float *)tensors[0]->data)[i] = one_in(5) ? (one_in(3) ? -FLT_MAX : -INFINITY) : uniform(3.0f);
            else
                ((uint8_t *)tensors[1]->data)[i] = one_in(3) ? 0 : 1;
        }
        if (which == 1 && one_in(2)) /* a row that sees nothing */
            memset(tensors[1]->data, 0, (size_t)p->S_kv);
    }
}

/* By position: kv_len, causal line, window. */
static bool in_range(const struct attn_problem *p, int64_t b, int64_t i, int64_t j)
{
    const int64_t distance = j - (i + (p->diag ? p->diag[b] : 0));
    return j < (p->kv_len ? p->kv_len[b] : p->S_kv) && (p->left == INT64_MAX || distance > -p->left) &&
           (p->right == INT64_MAX || distance <= p->right);
}

static void set_row(const struct example *x, const struct attn_tensor *tensor, int64_t b, int64_t h, int64_t row,
                    float value)
{
    for (int64_t d = 0; d < tensor->size[3]; d++)
        write_element(x->problem.dtype, row_in(tensor, x->problem.dtype, b, h, row), d, value);
}

/* Keys and values that no row may see hold anything. */
static void hide_garbage(const struct example *x)
{
    const struct attn_problem *p = &x->problem;
    static const float garbage[3] = {NAN, INFINITY, -INFINITY};
    for (int64_t b = 0; b < p->B; b++)
        for (int64_t j = 0; j < p->S_kv; j++) {
            bool seen = false;
            for (int64_t i = 0; i < p->S_q && !seen; i++)
                seen = in_range(p, b, i, j);
            for (int64_t h = 0; h < p->H_kv && !seen; h++) {
                set_row(x, &x->args.k, b, h, j, garbage[below(3)]);
                set_row(x, &x->args.v, b, h, j, garbage[below(3)]);
            }
        }
}

static void draw_poison(const struct example *x)
{
    const struct attn_problem *p = &x->problem;
    for (int n = 0; n < 2; n++) {
        set_row(x, n ? &x->args.k : &x->args.v, below(p->B), below(p->H_kv), below(p->S_kv), NAN);
        if (one_in(3))
            write_element(p->dtype, row_in(&x->args.q, p->dtype, below(p->B), below(p->H), below(p->S_q)), below(p->D),
                          NAN);
    }
}

static inline void draw_example(struct example *x, enum topic topic, int seed)
{
    random_state = UINT64_C(0x4164646974697665) + (uint64_t)topic * 1000003 + (uint64_t)seed;
    memset(x, 0, sizeof *x);
    struct attn_problem *p = &x->problem;
    struct attn_args *a = &x->args;
    p->struct_size = sizeof *p;
    p->rule = ATTN_ADDITIVE;
    p->dtype = one_in(3) ? (one_in(2) ? ATTN_BF16 : ATTN_F16) : ATTN_F32;
    p->scale = 1.0f;
    draw_sizes(p, topic);
    draw_ranges(x, topic);
    const size_t size = element_size(p->dtype);
    const int order = (int)below(3);
    const int64_t gap = one_in(2) ? 0 : 1 + below(5);
    const float limit = topic != TOPIC_STEEP ? 2.0f : one_in(3) ? 40.0f : one_in(2) ? 1e-4f : 0.0f;
    allocate(x, Q, &a->q, size * (size_t)lay_out(&a->q, p->B, p->H, p->S_q, p->D, order, gap));
    allocate(x, K, &a->k, size * (size_t)lay_out(&a->k, p->B, p->H_kv, p->S_kv, p->D, order, gap));
    allocate(x, V, &a->v, size * (size_t)lay_out(&a->v, p->B, p->H_kv, p->S_kv, p->D_v, order, gap));
    allocate(x, OUT, &a->out, size * (size_t)lay_out(&a->out, p->B, p->H, p->S_q, p->D_v, order, gap));
    fill(x, Q, &a->q, p->dtype, limit);
    fill(x, K, &a->k, p->dtype, topic == TOPIC_STEEP && one_in(2) ? limit : 2.0f);
    fill(x, V, &a->v, p->dtype, 2.0f);
    if (!one_in(3)) {
        lay_out(&x->param, 1, 1, 1, p->D, 0, 0);
        allocate(x, U, &x->param, size * (size_t)p->D);
        fill(x, U, &x->param, p->dtype, topic == TOPIC_STEEP ? 30.0f : 1.0f);
    }
    if (x->param.data || one_in(2)) /* absent: no param at all, or one without data */
        a->param = &x->param;
    if (topic == TOPIC_MASKED || (topic == TOPIC_DECODE && one_in(3)))
        draw_masks(x);
    if (topic == TOPIC_POISON)
        draw_poison(x);
    hide_garbage(x);
    if (one_in(2)) {
        p->flags |= ATTN_FLAG_WEIGHTS;
        const int64_t count = lay_out(&a->weights, p->B, p->H, p->S_q, p->S_kv, (int)below(3), one_in(3) ? 2 : 0);
        allocate(x, WEIGHTS, &a->weights, sizeof(float) * (size_t)count);
    }
    for (int n = 0; n < INPUTS; n++)
        if (x->block[n].base) {
            x->copy[n] = malloc(x->block[n].bytes + 1);
            assert_non_null(x->copy[n]);
            memcpy(x->copy[n], x->block[n].data, x->block[n].bytes);
        }
    snprintf(x->text, sizeof x->text,
             "topic %d seed %d: dtype %d B %d H %d/%d S %d/%d hidden %d D_v %d left %g right %g u %d bias %d mask %d "
             "weights %d",
             (int)topic, seed, (int)p->dtype, (int)p->B, (int)p->H, (int)p->H_kv, (int)p->S_q, (int)p->S_kv, (int)p->D,
             (int)p->D_v, (double)p->left, (double)p->right, x->param.data != NULL, a->bias.data != NULL,
             a->mask.data != NULL, (p->flags & ATTN_FLAG_WEIGHTS) != 0);
}

static inline void release_example(struct example *x)
{
    for (int n = 0; n < BLOCKS; n++)
        if (x->block[n].base)
            memory_release(&x->block[n]);
    for (int n = 0; n < INPUTS; n++)
        free(x->copy[n]);
    free(x->out);
    free(x->out_bound);
    free(x->weights);
    free(x->weights_bound);
}

#endif
