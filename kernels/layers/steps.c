/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors in the workspace of a layer, and its steps; see steps.h.
 *
 * Heads are columns of the rows of a workspace tensor. Where these rows are a multiple of 8 KiB long (H D of large
 * models), the rows of a head would fall into a few sets of the caches, so they stand a line further apart: attention
 * (avx512, f32, rows of 16 KiB, 32 heads of 128) takes 0.974 of the time at S 512, 0.995 at S 2048. Rows of 4 KiB are
 * better off without: there the line costs 0.5 % at S 1024 and 1.5 % at S 2048.
 */
#include "steps.h"

#include <assert.h>

#include "../elements_portable.h"

enum { LINE = 64, ALIASED = 8192, ROW_DIMENSIONS = 3 };

struct attn_tensor layer_operand(const struct layer_build *build, const struct attn_tensor *given, int64_t size0,
                                 int64_t size1, int64_t size2, int64_t size3)
{
    if (!build->shapes_alone)
        return *given;
    return (struct attn_tensor){.size = {size0, size1, size2, size3},
                                .stride = {size1 * size2 * size3, size2 * size3, size3, 1}};
}

struct attn_tensor layer_param(const struct layer_build *build, int n, int64_t rows, int64_t columns)
{
    return layer_operand(build, build->shapes_alone ? NULL : &build->args->param[n], 1, 1, rows, columns);
}

/* The next `elements` of the workspace; where there is none yet, their offset. */
static void *take(const struct layer_build *build, int64_t elements)
{
    size_t *used = &build->layer->workspace_bytes;
    const size_t begin = (*used + LINE - 1) / LINE * LINE;
    *used = begin + (size_t)elements * element_size(build->problem->dtype);
    return build->workspace ? build->workspace + begin : (void *)begin;
}

/* The dimensions of rows, the one with the longest stride first. */
static void order_dimensions(const struct attn_tensor *tensor, int order[ROW_DIMENSIONS])
{
    for (int n = 0; n < ROW_DIMENSIONS; n++) {
        int place = n;
        for (; place > 0 && tensor->stride[order[place - 1]] < tensor->stride[n]; place--)
            order[place] = order[place - 1];
        order[place] = n;
    }
}

struct attn_tensor layer_rows(const struct layer_build *build, const struct attn_tensor *like, int64_t width)
{
    const int64_t line = LINE / (int64_t)element_size(build->problem->dtype);
    int64_t lines = (width + line - 1) / line;
    if (lines % (ALIASED / LINE) == 0)
        lines++;
    int64_t stride = lines * line;
    struct attn_tensor rows = {.size = {like->size[0], like->size[1], like->size[2], width}, .stride = {0, 0, 0, 1}};
    int order[ROW_DIMENSIONS];
    order_dimensions(like, order);
    for (int n = ROW_DIMENSIONS - 1; n >= 0; n--) {
        rows.stride[order[n]] = stride;
        stride *= rows.size[order[n]];
    }
    rows.data = take(build, stride);
    return rows;
}

struct attn_tensor layer_heads(const struct layer_build *build, int64_t B, int64_t H, int64_t S, int64_t D)
{
    return (struct attn_tensor){
        .data = take(build, B * H * S * D), .size = {B, H, S, D}, .stride = {S * D, B * S * D, D, 1}};
}

struct attn_tensor layer_columns(const struct layer_build *build, const struct attn_tensor *tensor, int64_t first,
                                 int64_t count)
{
    assert(first + count <= tensor->size[3]);
    struct attn_tensor columns = *tensor;
    columns.size[3] = count;
    if (columns.data)
        columns.data = (char *)columns.data + first * (int64_t)element_size(build->problem->dtype);
    return columns;
}

struct attn_tensor layer_split(const struct attn_tensor *rows, int64_t H, int64_t D)
{
    assert(rows->size[1] == 1 && rows->size[3] == H * D);
    struct attn_tensor heads = *rows;
    heads.size[1] = H;
    heads.stride[1] = D;
    heads.size[3] = D;
    return heads;
}

static struct attn_step *next_step(const struct layer_build *build, enum attn_phase phase, enum attn_step_kind kind)
{
    struct attn_layer *layer = build->layer;
    assert(layer->count < ATTN_MOST_STEPS);
    struct attn_step *step = &layer->steps[layer->count++];
    *step = (struct attn_step){.phase = phase, .kind = kind};
    step->problem.struct_size = sizeof step->problem;
    step->problem.dtype = build->problem->dtype;
    step->problem.left = step->problem.right = INT64_MAX;
    step->problem.scale = 1;
    return step;
}

/* Dimensions of rows that x and out run through in the same way. */
struct row_dimension {
    int64_t size, x, out;
};

/* As few dimensions as the strides of both allow, the one with the most rows last; returns their number. */
static int merge_dimensions(const struct attn_tensor *x, const struct attn_tensor *out,
                            struct row_dimension merged[ROW_DIMENSIONS])
{
    int order[ROW_DIMENSIONS], count = 0;
    order_dimensions(x, order);
    for (int n = 0; n < ROW_DIMENSIONS; n++) {
        const int d = order[n];
        const struct row_dimension next = {x->size[d], x->stride[d], out->stride[d]};
        assert(x->size[d] == out->size[d]);
        if (next.size == 0) { /* no rows at all */
            merged[0] = next;
            return 1;
        }
        if (next.size == 1)
            continue;
        struct row_dimension *outer = count > 0 ? &merged[count - 1] : NULL;
        if (outer && outer->x == next.size * next.x && outer->out == next.size * next.out)
            *outer = (struct row_dimension){outer->size * next.size, next.x, next.out};
        else
            merged[count++] = next;
    }
    for (int n = 0; n + 1 < count; n++) {
        if (merged[n].size > merged[count - 1].size) {
            const struct row_dimension most = merged[n];
            merged[n] = merged[count - 1];
            merged[count - 1] = most;
        }
    }
    return count;
}

void layer_matmul(const struct layer_build *build, enum attn_phase phase, const struct attn_tensor *x,
                  const struct attn_tensor *w, const struct attn_tensor *bias, uint32_t flags,
                  const struct attn_tensor *out)
{
    const int64_t K = x->size[3], N = out->size[3];
    const bool transposed = flags & ATTN_FLAG_TRANSPOSED;
    struct row_dimension dimensions[ROW_DIMENSIONS], by_problem[ROW_DIMENSIONS];
    const int count = merge_dimensions(x, out, dimensions);
    for (int n = 0; n < ROW_DIMENSIONS; n++) {
        const int from = n - (ROW_DIMENSIONS - count);
        by_problem[n] = from >= 0 ? dimensions[from] : (struct row_dimension){.size = 1};
    }

    struct attn_step *step = next_step(build, phase, ATTN_STEP_MATMUL);
    struct attn_problem *problem = &step->problem;
    problem->rule = ATTN_MATMUL;
    problem->flags = flags;
    problem->B = by_problem[0].size;
    problem->H = problem->H_kv = by_problem[1].size;
    problem->S_q = by_problem[2].size;
    problem->D = K;
    problem->S_kv = problem->D_v = N;

    const int64_t B = problem->B, H = problem->H, M = problem->S_q;
    struct attn_args *args = &step->args;
    args->q = (struct attn_tensor){.data = x->data, .size = {B, H, M, K}, .stride = {0, 0, 0, 1}};
    args->out = (struct attn_tensor){.data = out->data, .size = {B, H, M, N}, .stride = {0, 0, 0, 1}};
    for (int n = 0; n < ROW_DIMENSIONS; n++) {
        args->q.stride[n] = by_problem[n].x;
        args->out.stride[n] = by_problem[n].out;
    }
    args->k = (struct attn_tensor){
        .data = w->data, .size = {B, H, transposed ? N : K, transposed ? K : N}, .stride = {0, 0, w->stride[2], 1}};
    assert(w->size[2] == args->k.size[2] && w->size[3] == args->k.size[3]);
    if (bias->data)
        args->bias = (struct attn_tensor){.data = bias->data, .size = {B, H, M, N}, .stride = {0, 0, 0, 1}};
}

void layer_copy(const struct layer_build *build, const struct attn_tensor *from, const struct attn_tensor *to)
{
    struct attn_step *step = next_step(build, ATTN_PHASE_PERMUTE, ATTN_STEP_COPY);
    step->problem.rule = ATTN_SCALED_DOT_PRODUCT;
    step->problem.B = from->size[0];
    step->problem.H = step->problem.H_kv = from->size[1];
    step->problem.S_q = from->size[2];
    step->problem.D = step->problem.D_v = from->size[3];
    step->args.q = *from;
    step->args.out = *to;
}

struct attn_step *layer_attention(const struct layer_build *build, enum attn_rule rule, const struct attn_tensor *q,
                                  const struct attn_tensor *k, const struct attn_tensor *v,
                                  const struct attn_tensor *out)
{
    const struct attn_problem *whole = build->problem;
    struct attn_step *step = next_step(build, ATTN_PHASE_ATTENTION, ATTN_STEP_ATTENTION);
    struct attn_problem *problem = &step->problem;
    problem->rule = rule;
    problem->flags = whole->flags & ATTN_FLAG_WEIGHTS;
    problem->B = q->size[0];
    problem->H = q->size[1];
    problem->H_kv = k->size[1];
    problem->S_q = q->size[2];
    problem->S_kv = v->size[2];
    problem->D = q->size[3];
    problem->D_v = v->size[3];
    problem->left = whole->left;
    problem->right = whole->right;
    problem->softcap = whole->softcap;
    problem->kv_len = whole->kv_len;
    problem->diag = whole->diag;
    step->args.q = *q;
    step->args.k = *k;
    step->args.v = *v;
    step->args.out = *out;
    step->args.weights = build->args->weights;
    step->args.bias = build->args->bias;
    step->args.mask = build->args->mask;
    return step;
}
