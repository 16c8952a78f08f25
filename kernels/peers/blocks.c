/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention by blocks of query rows around a library's matrix product; see blocks.h.
 *
 * Where only some rows of a block may see a key, its scores are replaced, never computed with. Its value is multiplied
 * by a zero weight, which a NaN or an infinity would survive: where there is one among such values, the block is done
 * again row by row, with the keys that the row may see and no others.
 */
#include "blocks.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "soften.h"

/* Rows of scores begin at multiples of a cache line, and not all in the same set of the cache. */
enum { LINE = 16, PADDING = 16 };

/* Rows r of one key head: query (h + r * step_h, i + r * step_i). */
struct block {
    const struct attn_problem *problem;
    const struct attn_args *args;
    const struct peer_multiplier *multiplier;
    const struct peer_softmax *softmax;
    float *factor; /* [rows] what a row of out is to be multiplied by */
    float *score;  /* [rows + slack][score_stride] */
    int64_t score_stride;
    int64_t b, h, i, rows, step_h, step_i;
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t whole_lines(int64_t count)
{
    return (count + LINE - 1) / LINE * LINE;
}

static int64_t score_stride(int64_t keys)
{
    return whole_lines(keys) + PADDING;
}

static int64_t row_offset(const struct attn_tensor *t, int64_t b, int64_t h, int64_t row)
{
    return b * t->stride[0] + h * t->stride[1] + row * t->stride[2];
}

/* From one row of the block to the next. */
static int64_t row_step(const struct block *block, const struct attn_tensor *t)
{
    return block->step_h * t->stride[1] + block->step_i * t->stride[2];
}

void peer_visible(const struct attn_problem *problem, int64_t b, int64_t i, int64_t *first, int64_t *last)
{
    const int64_t end = problem->kv_len ? problem->kv_len[b] : problem->S_kv;
    const int64_t position = i + (problem->diag ? problem->diag[b] : 0);
    *first = 0;
    *last = end;
    if (problem->left < INT64_MAX / 2)
        *first = least(most(position - problem->left + 1, 0), end);
    if (problem->right < INT64_MAX / 2)
        *last = least(position + problem->right + 1, end);
    *last = most(*last, *first);
}

/* Not all of rows j0..j1 of the values are finite. */
static bool values_not_finite(const struct block *block, int64_t key_head, int64_t j0, int64_t j1)
{
    float sum = 0; /* of zeros: anything times zero is NaN but for finite numbers */
    for (int64_t j = j0; j < j1; j++) {
        const float *v = (const float *)block->args->v.data + row_offset(&block->args->v, block->b, key_head, j);
        for (int64_t d = 0; d < block->problem->D_v; d++)
            sum += v[d] * 0.0f;
    }
    return isnan(sum);
}

/* Adds bias to scores of keys j0..j1, -inf where bias or mask hide a key. Returns how many keys are left. */
static int64_t add_terms(const struct block *block, int64_t h, int64_t i, int64_t j0, int64_t j1, float *score)
{
    const struct attn_tensor *bias = &block->args->bias, *mask = &block->args->mask;
    const float *added = bias->data ? (const float *)bias->data + row_offset(bias, block->b, h, i) : NULL;
    const uint8_t *shown = mask->data ? (const uint8_t *)mask->data + row_offset(mask, block->b, h, i) : NULL;
    int64_t left = 0;
    for (int64_t j = j0; j < j1; j++) {
        const float more = added ? added[j * bias->stride[3]] : 0;
        const bool seen = more != -INFINITY && (!shown || shown[j * mask->stride[3]]);
        score[j - j0] = seen ? score[j - j0] + more : -INFINITY;
        left += seen;
    }
    return left;
}

static void return_weights(const struct block *block, int64_t h, int64_t i, int64_t j0, int64_t j1, const float *weight,
                           float factor)
{
    const struct attn_tensor *weights = &block->args->weights;
    float *returned = (float *)weights->data + row_offset(weights, block->b, h, i);
    memset(returned, 0, (size_t)j0 * sizeof *returned);
    for (int64_t j = j0; j < j1; j++)
        returned[j] = weight[j - j0] * factor;
    memset(returned + j1, 0, (size_t)(block->problem->S_kv - j1) * sizeof *returned);
}

/* Scores of keys begin..end become weights, zero where the row may not look. Returns what out is to be multiplied by.
 */
static float soften_row(const struct block *block, int64_t h, int64_t i, int64_t begin, int64_t end, float *score)
{
    const struct attn_problem *problem = block->problem;
    const bool added = block->args->bias.data || block->args->mask.data;
    int64_t first, last;
    peer_visible(problem, block->b, i, &first, &last);
    /* from a multiple of four floats, as soften wants it */
    const int64_t aligned = begin + (first - begin) / 4 * 4;
    float *seen = score + (aligned - begin);
    memset(score, 0, (size_t)(aligned - begin) * sizeof *score);
    memset(score + (last - begin), 0, (size_t)(end - last) * sizeof *score);
    int64_t left = last - first;
    if (left > 0 && problem->softcap > 0)
        block->softmax->cap(seen, last - aligned, problem->softcap);
    for (int64_t j = aligned; j < first; j++)
        score[j - begin] = -INFINITY;
    if (added)
        left = add_terms(block, h, i, first, last, score + (first - begin));
    float factor = 0;
    if (left > 0)
        factor = 1 / block->softmax->soften(seen, last - aligned);
    else
        memset(seen, 0, (size_t)(last - aligned) * sizeof *seen);
    if (problem->flags & ATTN_FLAG_WEIGHTS)
        return_weights(block, h, i, first, last, score + (first - begin), factor);
    return factor;
}

/* The strides of a product's operands fit its interface. */
static int check_strides(const struct peer_product *product)
{
    const int64_t b_length = product->transposed ? product->k : product->n;
    if (product->a_stride < product->k || product->b_stride < b_length || product->c_stride < product->n)
        return -EINVAL;
    return product->a_stride > INT_MAX || product->b_stride > INT_MAX || product->c_stride > INT_MAX ? -EOVERFLOW : 0;
}

static int multiply(const struct peer_multiplier *multiplier, struct peer_product *product)
{
    /* A single row has no stride: that of its tensor may be anything. */
    if (product->m == 1) {
        product->a_stride = product->k;
        product->c_stride = product->n;
    }
    if ((product->transposed ? product->n : product->k) == 1)
        product->b_stride = product->transposed ? product->k : product->n;
    const int rc = check_strides(product);
    return rc ? rc : multiplier->multiply(multiplier->context, product);
}

/* Keys that some row of the block may see, *begin..*end, and those that every row may see, *inner0..*inner1. */
static void block_range(const struct block *block, int64_t *begin, int64_t *end, int64_t *inner0, int64_t *inner1)
{
    const int64_t last_row = block->i + (block->rows - 1) * block->step_i;
    peer_visible(block->problem, block->b, block->i, begin, inner1); /* both ends rise with the row */
    peer_visible(block->problem, block->b, last_row, inner0, end);
    *inner0 = least(*inner0, *end);
    *inner1 = most(*inner0, *inner1);
}

static int attend_block(const struct block *block)
{
    const struct attn_problem *problem = block->problem;
    const struct attn_args *args = block->args;
    const int64_t key_head = block->h / (problem->H / problem->H_kv);
    int64_t begin, end, inner0, inner1;
    block_range(block, &begin, &end, &inner0, &inner1);
    if (block->rows > 1 &&
        (values_not_finite(block, key_head, begin, inner0) || values_not_finite(block, key_head, inner1, end))) {
        int rc = 0;
        for (int64_t r = 0; r < block->rows && !rc; r++) {
            struct block single = *block;
            single.h += r * block->step_h;
            single.i += r * block->step_i;
            single.rows = 1;
            rc = attend_block(&single);
        }
        return rc;
    }
    float *factor = block->factor;
    float *out = (float *)args->out.data + row_offset(&args->out, block->b, block->h, block->i);
    const int64_t out_step = row_step(block, &args->out);
    struct peer_product product = {
        .m = block->rows,
        .n = end - begin,
        .k = problem->D,
        .alpha = problem->scale,
        .a = (const float *)args->q.data + row_offset(&args->q, block->b, block->h, block->i),
        .b = (const float *)args->k.data + row_offset(&args->k, block->b, key_head, begin),
        .c = block->score,
        .a_stride = row_step(block, &args->q),
        .b_stride = args->k.stride[2],
        .c_stride = block->score_stride,
        .transposed = true,
    };
    int rc = product.n > 0 ? multiply(block->multiplier, &product) : 0;
    if (rc)
        return rc;
    for (int64_t r = 0; r < block->rows; r++)
        factor[r] = soften_row(block, block->h + r * block->step_h, block->i + r * block->step_i, begin, end,
                               block->score + r * block->score_stride);
    product = (struct peer_product){
        .m = block->rows,
        .n = problem->D_v,
        .k = end - begin,
        .alpha = 1,
        .a = block->score,
        .b = (const float *)args->v.data + row_offset(&args->v, block->b, key_head, begin),
        .c = out,
        .a_stride = block->score_stride,
        .b_stride = args->v.stride[2],
        .c_stride = out_step,
    };
    if (product.k > 0)
        rc = multiply(block->multiplier, &product);
    for (int64_t r = 0; r < block->rows; r++) {
        /* of a row without keys, 0 * NaN would not be zero */
        if (factor[r] == 0)
            memset(out + r * out_step, 0, (size_t)problem->D_v * sizeof *out);
        else
            block->softmax->scale(out + r * out_step, problem->D_v, factor[r]);
    }
    return rc;
}

/* With one query a head the heads of a group are the rows of a block: each key is then read once for all of them. */
static int attend_heads(struct block *block, int64_t h1)
{
    const int64_t group = block->problem->H / block->problem->H_kv;
    const int64_t group_end = (block->h / group + 1) * group;
    block->rows = least(least(block->multiplier->rows, h1 - block->h), group_end - block->h);
    block->step_h = 1;
    block->step_i = 0;
    const int rc = attend_block(block);
    block->h += block->rows;
    return rc;
}

static int attend(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
                  const struct peer_multiplier *multiplier, float *scratch)
{
    int rc = 0;
    struct block block = {
        .problem = problem,
        .args = args,
        .multiplier = multiplier,
        .softmax = peer_softmax_choose(),
        .factor = scratch,
        .score = scratch + whole_lines(multiplier->rows),
        .score_stride = score_stride(problem->S_kv),
    };
    for (block.b = span->b0; block.b < span->b1 && !rc; block.b++)
        for (block.h = span->h0; block.h < span->h1 && !rc;) {
            if (problem->S_q == 1 && span->q0 < span->q1) {
                block.i = 0;
                rc = attend_heads(&block, span->h1);
                continue;
            }
            block.step_h = 0;
            block.step_i = 1;
            for (block.i = span->q0; block.i < span->q1 && !rc; block.i += block.rows) {
                block.rows = least(multiplier->rows, span->q1 - block.i);
                rc = attend_block(&block);
            }
            block.h++;
        }
    return rc;
}

static int multiply_matrices(const struct attn_problem *problem, const struct attn_args *args,
                             const struct attn_span *span, const struct peer_multiplier *multiplier)
{
    const bool transposed = problem->flags & ATTN_FLAG_TRANSPOSED, accumulate = problem->flags & ATTN_FLAG_ACCUMULATE;
    int rc = 0;
    for (int64_t b = span->b0; b < span->b1 && !rc; b++)
        for (int64_t h = span->h0; h < span->h1 && !rc; h++) {
            float *out = (float *)args->out.data + row_offset(&args->out, b, h, span->q0) + span->k0;
            struct peer_product product = {
                .m = span->q1 - span->q0,
                .n = span->k1 - span->k0,
                .k = problem->D,
                .alpha = 1,
                .beta = accumulate || args->bias.data ? 1 : 0,
                .a = (const float *)args->q.data + row_offset(&args->q, b, h, span->q0),
                .b = (const float *)args->k.data + row_offset(&args->k, b, h, transposed ? span->k0 : 0) +
                     (transposed ? 0 : span->k0),
                .c = out,
                .a_stride = args->q.stride[2],
                .b_stride = args->k.stride[2],
                .c_stride = args->out.stride[2],
                .transposed = transposed,
            };
            if (product.m == 0 || product.n == 0)
                continue;
            for (int64_t m = 0; m < product.m && args->bias.data; m++) {
                const float *bias = (const float *)args->bias.data + row_offset(&args->bias, b, h, span->q0 + m);
                float *row = out + m * product.c_stride;
                for (int64_t n = 0; n < product.n; n++)
                    row[n] = (accumulate ? row[n] : 0) + bias[(span->k0 + n) * args->bias.stride[3]];
            }
            rc = multiply(multiplier, &product);
        }
    return rc;
}

const char *peer_blocks_refuse(const struct attn_problem *problem)
{
    const int64_t sizes[] = {problem->S_q, problem->S_kv, problem->D, problem->D_v};
    for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++)
        if (sizes[n] > INT_MAX - LINE - PADDING)
            return "a size does not fit the int of its interface";
    return NULL;
}

void peer_blocks_plan(const struct attn_problem *problem, int32_t threads, const struct peer_multiplier *multiplier,
                      struct attn_plan *plan)
{
    if (problem->rule == ATTN_MATMUL) {
        /* A library packs the right operand again for each product: no more of them than threads need. */
        const int64_t matrices = most(problem->B * problem->H, 1), pieces = (threads + matrices - 1) / matrices;
        const int64_t m = (problem->S_q + pieces - 1) / pieces;
        plan->q_grain = most(whole_lines(m), 1);
        plan->k_grain = most(problem->S_kv, 1);
        return;
    }
    const int64_t rows = multiplier->rows + multiplier->slack;
    plan->q_grain = multiplier->rows;
    plan->head_grain = problem->S_q == 1 && problem->H_kv > 0 ? problem->H / problem->H_kv : 1;
    plan->thread_bytes = (size_t)(whole_lines(multiplier->rows) + rows * score_stride(problem->S_kv)) * sizeof(float);
}

int peer_blocks_run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
                    const struct peer_multiplier *multiplier, void *scratch)
{
    if (problem->rule == ATTN_MATMUL)
        return multiply_matrices(problem, args, span, multiplier);
    return attend(problem, args, span, multiplier, scratch);
}
