/* SPDX-License-Identifier: Apache-2.0
 *
 * concat_wrong_axis: the softmax runs over the queries of a value position instead of the value positions of a query.
 */
#include "base_layer.h"

#include <math.h>

static const float *row_of(const struct attn_tensor *t, int64_t b, int64_t h, int64_t row)
{
    return (const float *)t->data + b * t->stride[0] + h * t->stride[1] + row * t->stride[2];
}

static float score(const struct attn_step *step, int64_t b, int64_t h, int64_t i, int64_t j)
{
    const float *q = row_of(&step->args.q, b, h, i), *k = row_of(&step->args.k, b, h, j);
    float sum = row_of(&step->args.bias, b, h, i)[j];
    for (int64_t d = 0; d < step->problem.D; d++)
        sum += q[d] * k[d];
    return sum;
}

static bool spoil(const struct attn_problem *problem, const struct attn_args *args, struct attn_step *step)
{
    const struct attn_problem *p = &step->problem;
    (void)problem;
    (void)args;
    if (step->phase != ATTN_PHASE_ATTENTION)
        return false;
    for (int64_t row = 0; row < p->B * p->H * p->S_q; row++) {
        const int64_t b = row / (p->H * p->S_q), h = row / p->S_q % p->H, i = row % p->S_q;
        float *out = (float *)row_of(&step->args.out, b, h, i);
        for (int64_t d = 0; d < p->D_v; d++)
            out[d] = 0;
        for (int64_t j = 0; j < p->S_kv; j++) {
            float sum = 0;
            for (int64_t other = 0; other < p->S_q; other++)
                sum += expf(score(step, b, h, other, j));
            for (int64_t d = 0; d < p->D_v; d++)
                out[d] += expf(score(step, b, h, i, j)) / sum * row_of(&step->args.v, b, h, j)[d];
        }
    }
    return true;
}

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    (void)span;
    (void)state;
    (void)scratch;
    return base_layer_run(problem, args, phase, spoil);
}

const struct attn_kernel attn_kernel_concat_wrong_axis = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "concat_wrong_axis",
    .summary = "planted fault: softmax over the queries",
    .rules = ATTN_BIT(ATTN_CONCAT),
    .dtypes = ATTN_BIT(ATTN_F32),
    .plan = base_layer_plan,
    .run = run,
};
