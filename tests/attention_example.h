/* SPDX-License-Identifier: Apache-2.0
 *
 * Seeded examples of scaled dot-product attention for unit tests: sizes around tile edges, masks, layouts, extreme
 * values, key splits. Inputs are read-only and end at an inaccessible page, and so does the output. One test program
 * includes this, after cmocka.h.
 */
#ifndef TESTS_ATTENTION_EXAMPLE_H
#define TESTS_ATTENTION_EXAMPLE_H

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
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "kernels/attn.h"

enum { MAX_SPLITS = 3 };

/* What a topic's cases are drawn from, besides sizes and layouts. */
enum topic {
    TOPIC_PLAIN,
    TOPIC_CAUSAL,   /* both alignments, windows, diagonals per batch entry */
    TOPIC_RAGGED,   /* kv_len with NaN beyond, combined with causal */
    TOPIC_MASKED,   /* boolean masks, bias with -inf, softcap */
    TOPIC_EXTREME,  /* scores thousands apart, equal scores, subnormal values, odd scales */
    TOPIC_POISONED, /* NaN and infinities in q, and in keys and values that only some rows may see */
    TOPIC_DECODE,   /* few queries, grouped heads, many keys */
    TOPIC_WIDE,     /* D and D_v up to 512 */
    TOPICS
};

struct guarded {
    char *base;
    size_t mapped;
    void *data;
};

struct example {
    struct attn_problem problem;
    struct attn_args args;
    int64_t kv_len[4], diag[4];
    struct guarded q, k, v, out, bias, mask;
    int splits;
    int64_t cut[MAX_SPLITS + 1];
    char text[256];
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

static bool one_in(int64_t n)
{
    return below(n) == 0;
}

static float uniform(float limit)
{
    return ((float)(random_bits() >> 40) * 0x1p-23f - 1.0f) * limit;
}

static int64_t pick(const int64_t *list, size_t n)
{
    return list[below((int64_t)n)];
}

static struct guarded guarded_allocate(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct guarded block = {.mapped = (bytes + page - 1) / page * page + 2 * page};
    block.base = mmap(NULL, block.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(block.base != MAP_FAILED);
    assert_int_equal(mprotect(block.base, page, PROT_NONE), 0);
    assert_int_equal(mprotect(block.base + block.mapped - page, page, PROT_NONE), 0);
    block.data = block.base + block.mapped - page - bytes;
    return block;
}

static void guarded_read_only(const struct guarded *block)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (block->base)
        assert_int_equal(mprotect(block->base + page, block->mapped - 2 * page, PROT_READ), 0);
}

static void guarded_release(struct guarded *block)
{
    if (block->base)
        munmap(block->base, block->mapped);
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
        const int dimension = inner_first[order][i];
        tensor->stride[dimension] = stride;
        span += (size[dimension] - 1) * stride;
        stride *= size[dimension];
    }
    return B * H * S * D == 0 ? 0 : span;
}

static float *row_of(const struct attn_tensor *t, int64_t b, int64_t h, int64_t i)
{
    return (float *)t->data + b * t->stride[0] + h * t->stride[1] + i * t->stride[2];
}

static void allocate_tensor(struct attn_tensor *tensor, struct guarded *block, int64_t elements, float limit)
{
    *block = guarded_allocate((size_t)elements * sizeof(float));
    tensor->data = block->data;
    for (int64_t i = 0; i < elements; i++)
        ((float *)block->data)[i] = uniform(limit);
}

static bool in_range(const struct attn_problem *p, int64_t b, int64_t i, int64_t j)
{
    const int64_t distance = j - (i + (p->diag ? p->diag[b] : 0));
    if (p->left != INT64_MAX && distance <= -p->left)
        return false;
    if (p->right != INT64_MAX && distance > p->right)
        return false;
    return j < (p->kv_len ? p->kv_len[b] : p->S_kv);
}

static void draw_sizes(struct attn_problem *p, enum topic topic)
{
    static const int64_t queries[] = {1, 2, 3, 5, 8, 9, 15, 16, 17, 31, 33, 47, 48, 49, 63, 64, 65, 80, 129};
    static const int64_t keys[] = {1, 2, 5, 6, 7, 13, 16, 17, 64, 65, 100, 191, 192, 193, 200, 385, 513};
    static const int64_t features[] = {1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 24, 31, 33, 40, 64, 65, 80, 96, 100, 128};
    static const int64_t wide[] = {127, 129, 160, 200, 256, 257, 320, 511, 512};
#define PICK(list) pick(list, sizeof(list) / sizeof *(list))
    p->B = 1 + below(2);
    p->H_kv = 1 + below(2);
    p->H = p->H_kv * (one_in(2) ? 1 : 1 + below(4));
    p->S_q = PICK(queries);
    p->S_kv = PICK(keys);
    p->D = PICK(features);
    p->D_v = one_in(2) ? p->D : PICK(features);
    if (topic == TOPIC_WIDE) {
        p->B = 1;
        p->D = PICK(wide);
        p->D_v = PICK(wide);
    }
    if (topic == TOPIC_DECODE || (topic == TOPIC_POISONED && one_in(2))) {
        p->H = p->H_kv * (1 + below(one_in(2) ? 3 : 12));
        p->S_q = 1 + below(one_in(2) ? 4 : 12);
        p->S_kv = 1 + below(one_in(2) ? 40 : 1500);
    }
#undef PICK
}

static void draw_ranges(struct example *x, enum topic topic)
{
    struct attn_problem *p = &x->problem;
    p->left = p->right = INT64_MAX;
    const bool ragged = topic == TOPIC_RAGGED || (topic == TOPIC_DECODE && one_in(2));
    if (ragged) {
        for (int64_t b = 0; b < p->B; b++)
            x->kv_len[b] = below(p->S_kv + 1);
        p->kv_len = x->kv_len;
    }
    if (topic == TOPIC_CAUSAL || topic == TOPIC_POISONED || (topic != TOPIC_PLAIN && one_in(3))) {
        p->right = one_in(4) ? below(20) - 3 : 0;
        if (one_in(2))
            p->left = below(one_in(2) ? 12 : p->S_kv + 3);
        if (one_in(8))
            p->right = INT64_MAX;
        for (int64_t b = 0; b < p->B; b++)
            x->diag[b] = (p->kv_len ? x->kv_len[b] : p->S_kv) - p->S_q + (one_in(3) ? below(9) - 4 : 0);
        p->diag = one_in(3) ? NULL : x->diag;
    }
}

static void draw_masks(struct example *x)
{
    struct attn_problem *p = &x->problem;
    const int kind = (int)below(4); /* bias, mask, both, neither but softcap */
    if (kind == 3 || one_in(3))
        p->softcap = one_in(4) ? 0.01f : 1.0f + (float)below(30);
    struct attn_tensor *tensors[2] = {&x->args.bias, &x->args.mask};
    struct guarded *blocks[2] = {&x->bias, &x->mask};
    for (int which = 0; which < 2; which++) {
        if (kind == 3 || kind == 1 - which)
            continue;
        const int64_t size[3] = {one_in(2) ? 1 : p->B, one_in(2) ? 1 : p->H, one_in(3) ? 1 : p->S_q};
        const int64_t elements = lay_out(tensors[which], size[0], size[1], size[2], p->S_kv, 0, one_in(3) ? 3 : 0);
        for (int i = 0; i < 3; i++)
            if (size[i] == 1)
                tensors[which]->stride[i] = 0;
        if (which == 0) {
            allocate_tensor(tensors[0], blocks[0], elements, 3.0f);
            for (int64_t i = 0; i < elements; i++)
                if (one_in(4))
                    ((float *)blocks[0]->data)[i] = one_in(3) ? -FLT_MAX : -INFINITY;
        } else {
            *blocks[1] = guarded_allocate((size_t)elements);
            tensors[1]->data = blocks[1]->data;
            for (int64_t i = 0; i < elements; i++)
                ((uint8_t *)blocks[1]->data)[i] = one_in(3) ? 0 : 1;
            /* at least one row that sees nothing */
            if (one_in(2))
                memset(blocks[1]->data, 0, (size_t)p->S_kv);
        }
    }
}

/* Values that no row may see become NaN: they must not be looked at. */
static void hide_garbage(struct example *x)
{
    const struct attn_problem *p = &x->problem;
    for (int64_t b = 0; b < p->B; b++)
        for (int64_t j = 0; j < p->S_kv; j++) {
            bool seen = false;
            for (int64_t i = 0; i < p->S_q && !seen; i++)
                seen = in_range(p, b, i, j);
            for (int64_t h = 0; h < p->H_kv && !seen; h++) {
                for (int64_t d = 0; d < p->D; d++)
                    row_of(&x->args.k, b, h, j)[d] = NAN;
                for (int64_t d = 0; d < p->D_v; d++)
                    row_of(&x->args.v, b, h, j)[d] = one_in(2) ? NAN : INFINITY;
            }
        }
}

static void draw_poison(struct example *x)
{
    const struct attn_problem *p = &x->problem;
    static const float poison[3] = {NAN, INFINITY, -INFINITY};
    for (int n = 0; n < 3; n++) {
        const int64_t b = below(p->B);
        int64_t j = below(p->S_kv);
        /* the edge of what the first row sees, beyond which a later row's window may begin */
        if (one_in(2))
            for (j = 0; j < p->S_kv - 1 && !in_range(p, b, 0, j);)
                j++;
        if (one_in(2))
            row_of(&x->args.v, b, below(p->H_kv), j)[below(p->D_v)] = poison[below(3)];
        if (one_in(2))
            row_of(&x->args.k, b, below(p->H_kv), j)[below(p->D)] = poison[below(3)];
        if (one_in(4))
            row_of(&x->args.q, b, below(p->H), below(p->S_q))[below(p->D)] = poison[below(3)];
    }
}

static inline void draw_example(struct example *x, enum topic topic, uint64_t seed)
{
    random_state = seed;
    memset(x, 0, sizeof *x);
    struct attn_problem *p = &x->problem;
    p->struct_size = sizeof *p;
    draw_sizes(p, topic);
    draw_ranges(x, topic);
    p->scale = 1.0f / sqrtf((float)p->D);
    float q_limit = 1.7f, v_limit = 1.7f;
    if (topic == TOPIC_EXTREME) {
        static const float scales[] = {0.0f, -0.5f, 3.0f, 1e-3f};
        const int kind = (int)below(4);
        q_limit = kind == 0 ? 3000.0f : kind == 1 ? 0.0f : 1.7f;
        v_limit = kind == 2 ? 1e-39f : 1.7f;
        if (one_in(2))
            p->scale = scales[below(4)];
    }
    const int order = (int)below(3);
    const int64_t gap = one_in(2) ? 0 : 1 + below(5);
    struct attn_args *a = &x->args;
    allocate_tensor(&a->q, &x->q, lay_out(&a->q, p->B, p->H, p->S_q, p->D, order, gap), q_limit);
    allocate_tensor(&a->k, &x->k, lay_out(&a->k, p->B, p->H_kv, p->S_kv, p->D, order, gap), 1.7f);
    if (p->D == p->D_v && one_in(4)) {
        a->v = a->k;
        p->flags |= ATTN_FLAG_ALIASED;
    } else {
        allocate_tensor(&a->v, &x->v, lay_out(&a->v, p->B, p->H_kv, p->S_kv, p->D_v, order, gap), v_limit);
    }
    allocate_tensor(&a->out, &x->out, lay_out(&a->out, p->B, p->H, p->S_q, p->D_v, order, gap), 1.0f);
    if (topic == TOPIC_MASKED || (topic == TOPIC_DECODE && one_in(3)))
        draw_masks(x);
    if (topic == TOPIC_POISONED)
        draw_poison(x);
    if (!(p->flags & ATTN_FLAG_ALIASED))
        hide_garbage(x);
    for (const struct guarded **block = (const struct guarded *[]){&x->q, &x->k, &x->v, &x->bias, &x->mask, NULL};
         *block; block++)
        guarded_read_only(*block);
    x->splits = one_in(3) ? 1 + (int)below(MAX_SPLITS) : 0;
    x->cut[x->splits] = p->S_kv;
    for (int s = 1; s < x->splits; s++)
        x->cut[s] = x->cut[s - 1] + below(p->S_kv - x->cut[s - 1] + 1);
    if (x->splits)
        p->flags |= ATTN_FLAG_PARTIAL;
    snprintf(x->text, sizeof x->text,
             "topic %d seed %#llx: B %d H %d/%d S %d/%d D %d/%d left %g right %g softcap %g scale %g bias %d mask %d "
             "splits %d",
             (int)topic, (unsigned long long)seed, (int)p->B, (int)p->H, (int)p->H_kv, (int)p->S_q, (int)p->S_kv,
             (int)p->D, (int)p->D_v, (double)p->left, (double)p->right, (double)p->softcap, (double)p->scale,
             a->bias.data != NULL, a->mask.data != NULL, x->splits);
}

static inline void release_example(struct example *x)
{
    for (struct guarded **block = (struct guarded *[]){&x->q, &x->k, &x->v, &x->out, &x->bias, &x->mask, NULL}; *block;
         block++)
        guarded_release(*block);
}

#endif
