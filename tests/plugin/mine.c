/* SPDX-License-Identifier: Apache-2.0
 *
 * mine: attention in a shared object of its own, to copy and change: online softmax, one key after the other.
 */
#include "attn.h"
#include <math.h>

static float *row(const struct attn_tensor *t, int64_t b, int64_t h, int64_t i)
{
    return (float *)t->data + b * t->stride[0] + h * t->stride[1] + i * t->stride[2];
}

/* Whether query i may see key j. What it may not see is never read: it can hold anything. */
static int allowed(const struct attn_problem *p, const struct attn_args *a, int64_t b, int64_t h, int64_t i, int64_t j)
{
    const int64_t distance = j - i - (p->diag ? p->diag[b] : 0);
    const struct attn_tensor *m = &a->mask; /* bytes, not floats; like the bias it may repeat rows or columns */
    const uint8_t *mask = m->data;
    return distance <= p->right && distance > -p->left && j < (p->kv_len ? p->kv_len[b] : p->S_kv) &&
           (!mask || mask[b * m->stride[0] + h * m->stride[1] + i * m->stride[2] + j * m->stride[3]]) &&
           (!a->bias.data || row(&a->bias, b, h, i)[j * a->bias.stride[3]] > -INFINITY);
}

static void attend(const struct attn_problem *p, const struct attn_args *a, int64_t b, int64_t h, int64_t i)
{
    const int64_t key_head = h / (p->H / p->H_kv); /* several query heads may share one */
    const float *q = row(&a->q, b, h, i);
    float *out = row(&a->out, b, h, i), max = -INFINITY, sum = 0;
    for (int64_t d = 0; d < p->D_v; d++)
        out[d] = 0; /* and it stays so where no key is allowed */
    for (int64_t j = 0; j < p->S_kv; j++) {
        if (!allowed(p, a, b, h, i, j))
            continue;
        const float *k = row(&a->k, b, key_head, j), *v = row(&a->v, b, key_head, j);
        float score = 0;
        for (int64_t d = 0; d < p->D; d++)
            score += q[d] * k[d];
        score = p->scale * score + (a->bias.data ? row(&a->bias, b, h, i)[j * a->bias.stride[3]] : 0);
        const float old = max;
        max = fmaxf(max, score);
        const float shrink = old == max ? 1 : expf(old - max), weight = expf(score - max);
        sum = sum * shrink + weight;
        for (int64_t d = 0; d < p->D_v; d++)
            out[d] = out[d] * shrink + weight * v[d];
    }
    for (int64_t d = 0; d < p->D_v && sum != 0; d++)
        out[d] /= sum;
}

static int run(const struct attn_problem *p, const struct attn_args *a, const struct attn_span *s, int32_t phase,
               void *state, void *scratch)
{
    (void)phase, (void)state, (void)scratch;
    for (int64_t b = s->b0; b < s->b1; b++)
        for (int64_t h = s->h0; h < s->h1; h++)
            for (int64_t i = s->q0; i < s->q1; i++)
                attend(p, a, b, h, i);
    return 0;
}

static const char *refuse(const struct attn_problem *p)
{
    return p->softcap > 0 ? "mine has no softcap" : 0; /* what is refused is skipped, with this reason */
}

static const struct attn_kernel mine = {
    .abi = ATTN_ABI,
    .struct_size = sizeof mine,
    .name = "mine",
    .summary = "online softmax, one key after the other",
    .rules = ATTN_BIT(ATTN_SCALED_DOT_PRODUCT),
    .dtypes = ATTN_BIT(ATTN_F32),
    .refuse = refuse,
    .run = run,
};

attn_kernels_function attn_kernels;
const struct attn_kernel *const *attn_kernels(uint32_t *abi)
{
    static const struct attn_kernel *const table[] = {&mine, 0};
    *abi = ATTN_ABI;
    return table;
}
