/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of a flash kernel's table entry that do not depend on the ISA: how a problem is cut, and how a span becomes
 * groups of query rows that share their keys.
 */
#ifndef KERNELS_FLASH_FLASH_H
#define KERNELS_FLASH_FLASH_H

#include <assert.h>

#include "lanes.h"
#include "stream.h"

/* Attention of 1..LANES_ROWS rows over the keys that they may see, such as lanes_attend. */
typedef void flash_attend(const struct flash_form *form, const struct key_head *head, const struct query_row *rows,
                          int count, float *scratch);

static inline void *flash_row(const struct attn_tensor *tensor, uint32_t dtype, int64_t b, int64_t h, int64_t i)
{
    const int64_t index = b * tensor->stride[0] + h * tensor->stride[1] + i * tensor->stride[2];
    return (char *)tensor->data + index * (int64_t)element_size(dtype);
}

SIMD_OUTLINE int flash_plan(const struct attn_problem *problem, int32_t threads, void *state, struct attn_plan *plan)
{
    (void)threads;
    (void)state;
    plan->q_grain = LANES_ROWS;
    plan->k_grain = SIMD_LANES; /* blocks of keys are counted from where a span begins: a part may begin anywhere */
    /* short query blocks of a grouped key head are done together: as lanes, or while a key is close */
    if (problem->S_q < LANES_ROWS)
        plan->head_grain = problem->H / problem->H_kv;
    const size_t lanes = lanes_scratch_floats(problem);
    const size_t stream = stream_scratch_floats(problem->D, problem->D_v);
    plan->thread_bytes = sizeof(float) * (lanes > stream ? lanes : stream);
    return 0;
}

static inline struct flash_form flash_form(const struct attn_problem *problem, const struct attn_args *args)
{
    struct flash_form form = {.D = problem->D, .D_v = problem->D_v, .softcap = problem->softcap};
    form.dtype = problem->dtype;
    form.out_dtype = problem->flags & ATTN_FLAG_PARTIAL ? ATTN_F32 : problem->dtype;
    form.natural = args->bias.data || problem->softcap > 0.0f;
    form.has_tile = args->bias.data || args->mask.data;
    form.query_scale = form.natural ? problem->scale : problem->scale * SIMD_LOG2_E;
    form.score_scale = 1.0f;
    form.partial = (problem->flags & ATTN_FLAG_PARTIAL) != 0;
    form.row_max = args->row_max;
    form.row_sum = args->row_sum;
    return form;
}

static inline struct query_row flash_query_row(const struct attn_problem *problem, const struct attn_args *args,
                                               const struct attn_span *span, const struct flash_form *form, int64_t b,
                                               int64_t h, int64_t i)
{
    struct query_row row = {.q = flash_row(&args->q, form->dtype, b, h, i),
                            .out = flash_row(&args->out, form->out_dtype, b, h, i)};
    if (args->bias.data)
        row.bias = flash_row(&args->bias, ATTN_F32, b, h, i);
    if (args->mask.data)
        row.mask = (const uint8_t *)args->mask.data + b * args->mask.stride[0] + h * args->mask.stride[1] +
                   i * args->mask.stride[2];
    if (form->weights)
        row.weights = flash_row(&args->weights, ATTN_F32, b, h, i);
    row_key_range(problem, b, i, span->k0, span->k1, &row.first, &row.last);
    row.state = ((span->split * problem->B + b) * problem->H + h) * problem->S_q + i;
    return row;
}

/* heads of one key head from h0 on, all query rows of the span: rows in order of their query, so that neighbours see
 * nearly the same keys. */
static inline void flash_heads(const struct attn_problem *problem, const struct attn_args *args,
                               const struct attn_span *span, const struct flash_form *form, int64_t b, int64_t h0,
                               int64_t heads, flash_attend *attend, float *scratch)
{
    const int64_t key_head = h0 / (problem->H / problem->H_kv);
    struct key_head head = {.k_stride = args->k.stride[2], .v_stride = args->v.stride[2]};
    if (problem->S_kv > 0) {
        head.k = flash_row(&args->k, form->dtype, b, key_head, 0);
        head.v = flash_row(&args->v, form->dtype, b, key_head, 0);
    }
    const int64_t total = (span->q1 - span->q0) * heads;
    int64_t i = span->q0, h = h0;
    for (int64_t start = 0; start < total; start += LANES_ROWS) {
        struct query_row rows[LANES_ROWS];
        const int count = total - start < LANES_ROWS ? (int)(total - start) : LANES_ROWS;
        for (int r = 0; r < count; r++) {
            rows[r] = flash_query_row(problem, args, span, form, b, h, i);
            if (++h == h0 + heads) {
                h = h0;
                i++;
            }
        }
        if (count <= STREAM_ROWS)
            stream_attend(form, &head, rows, count, scratch);
        else
            attend(form, &head, rows, count, scratch);
    }
}

/* One span; attend does what is not done as a stream. */
static inline int flash_span(const struct attn_problem *problem, const struct attn_args *args,
                             const struct attn_span *span, flash_attend *attend, void *scratch)
{
    assert(problem->D > 0 && problem->H_kv > 0 && problem->H % problem->H_kv == 0);
    struct flash_form form = flash_form(problem, args);
    form.weights = (problem->flags & ATTN_FLAG_WEIGHTS) != 0;
    form.k0 = span->k0;
    form.k1 = span->k1;
    const int64_t group = problem->H / problem->H_kv;
    const bool together = span->q1 - span->q0 < LANES_ROWS;
    for (int64_t b = span->b0; b < span->b1; b++) {
        int64_t heads;
        for (int64_t h = span->h0; h < span->h1; h += heads) {
            const int64_t group_end = (h / group + 1) * group;
            heads = !together ? 1 : (group_end < span->h1 ? group_end : span->h1) - h;
            flash_heads(problem, args, span, &form, b, h, heads, attend, scratch);
        }
    }
    return 0;
}

SIMD_OUTLINE int flash_run(const struct attn_problem *problem, const struct attn_args *args,
                           const struct attn_span *span, int32_t phase, void *state, void *scratch)
{
    (void)phase;
    (void)state;
    return flash_span(problem, args, span, lanes_attend, scratch);
}

#endif
