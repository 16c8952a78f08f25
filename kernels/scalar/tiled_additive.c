/* SPDX-License-Identifier: Apache-2.0
 *
 * tiled, additive rule: portable C, vectors of four floats (simd_portable.h).
 *
 * Algorithm: online softmax. Lanes are features: four of q_i + k_j go through tanh together and are added, times u, to
 * the sum of their pair; four keys are under way at once, and a 4 x 4 transpose sums their lanes. q and u are copied
 * once, with zeros up to whole vectors, so that what a key's last vector holds beyond its features does not count.
 * Tiling: 16 queries x 128 keys; the queries take turns on the keys, which stay in the cache.
 * Registers: 4 sums, q and u, and what one tanh needs; with the 16 of SSE2 its constants come from L1.
 * Memory: k and v are read in place (bf16 and f16: a block converted at a time), once for every 16 queries; nothing of
 * size S_q x S_kv is stored but the weights where they are asked for: then the scores go to args.weights and become
 * weights when the row's sum is known.
 *
 * Measured on a Zen 4 core: 0.70 of the rate of f32x4_tanh alone (6.7e8/s) at hidden = D_v = 64 and 128, 0.76 at hidden
 * 512, D_v 64.
 */
#include <assert.h>

#include "../attn.h"
#include "../elements_portable.h"
#include "../simd_portable.h"

enum { LANES = 4, QUERY_BLOCK = 16, KEY_BLOCK = 128 };

#define LOG2_E 0x1.715476p+0f

/* Some keys of one head as floats: key first + n is at k + n k_stride. */
struct keys {
    const float *k, *v;
    int64_t k_stride, v_stride, first;
};

struct row {
    const float *bias;   /* by key; NULL: none */
    const uint8_t *mask; /* likewise */
    float *weights;      /* NULL: not wanted */
    void *to;            /* its output */
    int64_t first, last; /* keys that it may see by position (kv_len, causal line, window) */
    int64_t state;       /* its place in row_max and row_sum */
    float *q, *out;      /* [hidden], [D_v], whole vectors */
    float max, sum;
    bool seen; /* it has an allowed key */
};

/* What the rows of a span have in common. */
struct common {
    const struct attn_problem *problem;
    const struct attn_args *args;
    const struct attn_span *span;
    float *u, *score, *rows; /* [hidden], [KEY_BLOCK], [QUERY_BLOCK][hidden + D_v], whole vectors */
    float *k, *v;            /* converted: [KEY_BLOCK][hidden], [KEY_BLOCK][D_v]; not for f32 */
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t whole(int64_t n)
{
    return (n + LANES - 1) / LANES * LANES;
}

/* Up to four floats from here, 0 beyond n. */
SIMD_INLINE f32x4 load_some(const float *from, int64_t n)
{
    f32x4 x = f32x4_all(0);
    if (n >= LANES)
        return f32x4_load_unaligned(from);
    memcpy(&x, from, sizeof *from * (size_t)n);
    return x;
}

SIMD_INLINE f32x4 exp_of(f32x4 x)
{
    return f32x4_exp2(x * f32x4_all(LOG2_E));
}

/* What is added to the score of key j; -inf where bias or mask hide it. */
static float added_to(const struct row *row, int64_t j)
{
    if (row->mask && !row->mask[j])
        return -INFINITY;
    return row->bias ? row->bias[j] : 0;
}

/* ---- a block of keys ----------------------------------------------------------------- */

/* score[0..3] of one query against `count` keys; the last one stands in for those beyond. */
static void score_keys(const struct common *common, const float *q, const float *k, int64_t stride, int64_t count,
                       float *score)
{
    const int64_t hidden = common->problem->D;
    const float *key[LANES];
    f32x4 sum[LANES];
    for (int t = 0; t < LANES; t++) {
        key[t] = k + least(t, count - 1) * stride;
        sum[t] = f32x4_all(0);
    }
    for (int64_t h = 0; h < hidden; h += LANES) {
        const f32x4 query = f32x4_load(q + h), factor = f32x4_load(common->u + h);
        for (int t = 0; t < LANES; t++)
            sum[t] += factor * f32x4_tanh(query + load_some(key[t] + h, hidden - h));
    }
    f32x4_transpose(sum);
    f32x4_store(score, (sum[0] + sum[1]) + (sum[2] + sum[3]));
}

/* Scores j0..j1-1 of one row become weights relative to the new maximum; sum and output follow. */
static void add_keys(const struct common *common, const struct keys *keys, struct row *row, int64_t j0, int64_t j1)
{
    const int64_t D_v = common->problem->D_v;
    float *score = common->score, max = row->max;
    for (int64_t j = j0; j < j1; j += LANES)
        score_keys(common, row->q, keys->k + (j - keys->first) * keys->k_stride, keys->k_stride, least(j1 - j, LANES),
                   score + j - j0);
    for (int64_t j = j0; j < j1; j++) {
        const float added = added_to(row, j);
        score[j - j0] = added == -INFINITY ? -INFINITY : score[j - j0] + added;
        row->seen |= added != -INFINITY;
        max = score[j - j0] > max ? score[j - j0] : max;
    }
    if (row->weights)
        memcpy(row->weights + j0, score, sizeof *score * (size_t)(j1 - j0));

    if (max > row->max) {
        const f32x4 factor = exp_of(f32x4_all(row->max - max));
        for (int64_t d = 0; d < D_v; d += LANES)
            f32x4_store(row->out + d, f32x4_load(row->out + d) * factor);
        row->sum *= factor[0];
        row->max = max;
    }
    const float base = max == -INFINITY ? 0 : max; /* -inf - -inf would be NaN */
    for (int64_t j = 0; j < j1 - j0; j += LANES)
        f32x4_store(score + j, exp_of(f32x4_load(score + j) - f32x4_all(base)));
    for (int64_t j = j0; j < j1; j++) {
        const float weight = score[j - j0], *v = keys->v + (j - keys->first) * keys->v_stride;
        row->sum += weight;
        for (int64_t d = 0; d < D_v; d += LANES)
            f32x4_store(row->out + d, f32x4_load(row->out + d) + f32x4_all(weight) * load_some(v + d, D_v - d));
    }
}

/* ---- begin and end of a row ---------------------------------------------------------- */

static void begin_row(const struct common *common, int64_t b, int64_t h, int64_t i, float *scratch, struct row *row)
{
    const struct attn_problem *problem = common->problem;
    const struct attn_args *args = common->args;
    const uint32_t out_dtype = problem->flags & ATTN_FLAG_PARTIAL ? ATTN_F32 : problem->dtype;
    const int64_t hidden = problem->D, position = i + (problem->diag ? problem->diag[b] : 0);
    *row = (struct row){.to = row_in(&args->out, out_dtype, b, h, i), .max = -INFINITY};
    if (args->bias.data)
        row->bias = row_in(&args->bias, ATTN_F32, b, h, i);
    if (args->mask.data)
        row->mask = (const uint8_t *)args->mask.data + b * args->mask.stride[0] + h * args->mask.stride[1] +
                    i * args->mask.stride[2];
    if (problem->flags & ATTN_FLAG_WEIGHTS)
        row->weights = row_in(&args->weights, ATTN_F32, b, h, i);
    row->state = ((common->span->split * problem->B + b) * problem->H + h) * problem->S_q + i;

    row->first = common->span->k0;
    row->last = least(common->span->k1, problem->kv_len ? problem->kv_len[b] : problem->S_kv);
    if (problem->left < INT64_MAX / 2 && position - problem->left + 1 > row->first)
        row->first = position - problem->left + 1;
    if (problem->right < INT64_MAX / 2)
        row->last = least(row->last, position + problem->right + 1);
    if (row->last < row->first)
        row->first = row->last = common->span->k0;

    row->q = scratch;
    row->out = scratch + whole(hidden);
    const float *q = read_elements(problem->dtype, row_in(&args->q, problem->dtype, b, h, i), hidden, row->q);
    memmove(row->q, q, sizeof *q * (size_t)hidden);
    memset(row->q + hidden, 0, sizeof *q * (size_t)(whole(hidden) - hidden));
    memset(row->out, 0, sizeof *row->out * (size_t)whole(problem->D_v));
}

/* The scores of a row, in place, to its weights; zero where a key is hidden. */
static void finish_weights(const struct common *common, const struct row *row, float inverse)
{
    const int64_t k0 = common->span->k0, k1 = common->span->k1;
    float *weights = row->weights;
    const int64_t last = row->seen ? row->last : row->first;
    memset(weights + k0, 0, sizeof *weights * (size_t)(row->first - k0));
    memset(weights + last, 0, sizeof *weights * (size_t)(k1 - last));
    for (int64_t j = row->first; j < last; j += LANES) {
        const int64_t n = least(last - j, LANES);
        const f32x4 weight = exp_of(load_some(weights + j, n) - f32x4_all(row->max)) * f32x4_all(inverse);
        memcpy(weights + j, &weight, sizeof *weights * (size_t)n);
    }
    if (isnan(inverse)) /* 0 * NaN shows in hidden keys as well */
        for (int64_t j = row->first; j < last; j++)
            if (added_to(row, j) == -INFINITY)
                weights[j] = 0;
}

/* Divides by the row's sum (unless PARTIAL) and stores. */
static void end_row(const struct common *common, const struct row *row)
{
    const bool partial = common->problem->flags & ATTN_FLAG_PARTIAL;
    const uint32_t dtype = partial ? ATTN_F32 : common->problem->dtype;
    /* Every allowed score is -inf: the quotient is 0 / 0, whatever the sum says. */
    const float sum = row->seen && row->max == -INFINITY ? NAN : row->sum;
    const float inverse = partial && !isnan(sum) ? 1 : 1 / sum;
    for (int64_t d = 0; d < common->problem->D_v; d++)
        write_element(dtype, row->to, d, row->seen ? row->out[d] * inverse : 0);
    if (partial) {
        /* A NaN score never becomes the maximum; a maximum of -inf would let a merge drop the row's NaN. */
        common->args->row_max[row->state] = row->seen && isnan(sum) ? NAN : row->max;
        common->args->row_sum[row->state] = row->seen ? sum : 0;
    }
    if (row->weights)
        finish_weights(common, row, inverse);
}

/* ---- a span -------------------------------------------------------------------------- */

/* Keys j0..j1 of a head in bf16 or f16, as floats. */
static void convert_keys(const struct common *common, int64_t b, int64_t key_head, int64_t j0, int64_t j1,
                         struct keys *keys)
{
    const struct attn_problem *problem = common->problem;
    const uint32_t dtype = problem->dtype;
    for (int64_t j = j0; j < j1; j++) {
        read_elements(dtype, row_in(&common->args->k, dtype, b, key_head, j), problem->D,
                      common->k + (j - j0) * problem->D);
        read_elements(dtype, row_in(&common->args->v, dtype, b, key_head, j), problem->D_v,
                      common->v + (j - j0) * problem->D_v);
    }
    *keys = (struct keys){common->k, common->v, problem->D, problem->D_v, j0};
}

static void attend_block(const struct common *common, int64_t b, int64_t h, int64_t i0, int64_t i1)
{
    const struct attn_problem *problem = common->problem;
    const struct attn_args *args = common->args;
    const int64_t key_head = h / (problem->H / problem->H_kv), size = whole(problem->D) + whole(problem->D_v);
    struct row rows[QUERY_BLOCK];
    int64_t begin = INT64_MAX, end = INT64_MIN;
    assert(i0 < i1);
    for (int64_t i = i0; i < i1; i++) {
        struct row *row = &rows[i - i0];
        begin_row(common, b, h, i, common->rows + (i - i0) * size, row);
        if (row->first < row->last) {
            begin = least(begin, row->first);
            end = row->last > end ? row->last : end;
        }
    }
    struct keys keys = {.k_stride = args->k.stride[2], .v_stride = args->v.stride[2]};
    if (problem->dtype == ATTN_F32 && begin < end) {
        keys.k = row_in(&args->k, ATTN_F32, b, key_head, 0);
        keys.v = row_in(&args->v, ATTN_F32, b, key_head, 0);
    }
    for (int64_t j = begin; j < end; j += KEY_BLOCK) {
        if (problem->dtype != ATTN_F32)
            convert_keys(common, b, key_head, j, least(j + KEY_BLOCK, end), &keys);
        for (int64_t n = 0; n < i1 - i0; n++) {
            const int64_t j0 = j > rows[n].first ? j : rows[n].first, j1 = least(j + KEY_BLOCK, rows[n].last);
            if (j0 < j1)
                add_keys(common, &keys, &rows[n], j0, j1);
        }
    }
    for (int64_t n = 0; n < i1 - i0; n++)
        end_row(common, &rows[n]);
}

static int plan(const struct attn_problem *problem, int32_t threads, void *state, struct attn_plan *plan)
{
    (void)threads;
    (void)state;
    plan->q_grain = QUERY_BLOCK;
    plan->k_grain = LANES;
    const int64_t hidden = whole(problem->D), rows = QUERY_BLOCK * (hidden + whole(problem->D_v));
    const int64_t converted = problem->dtype == ATTN_F32 ? 0 : KEY_BLOCK * (problem->D + problem->D_v);
    plan->thread_bytes = (size_t)(hidden + KEY_BLOCK + rows + converted) * sizeof(float);
    return 0;
}

/* With PARTIAL and WEIGHTS both, the weights are as the output is: not yet divided by row_sum. */
static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    (void)phase;
    (void)state;
    assert(problem->D > 0 && problem->H % problem->H_kv == 0);
    const int64_t hidden = problem->D;
    struct common common = {.problem = problem, .args = args, .span = span, .u = scratch};
    common.score = common.u + whole(hidden);
    common.rows = common.score + KEY_BLOCK;
    common.k = common.rows + QUERY_BLOCK * (whole(hidden) + whole(problem->D_v));
    common.v = common.k + KEY_BLOCK * hidden;
    const void *u = args->param ? args->param[0].data : NULL;
    for (int64_t d = 0; d < whole(hidden); d++)
        common.u[d] = d < hidden ? 1 : 0;
    if (u)
        memmove(common.u, read_elements(problem->dtype, u, hidden, common.u), sizeof(float) * (size_t)hidden);
    for (int64_t b = span->b0; b < span->b1; b++)
        for (int64_t h = span->h0; h < span->h1; h++)
            for (int64_t i = span->q0; i < span->q1; i += QUERY_BLOCK)
                attend_block(&common, b, h, i, least(i + QUERY_BLOCK, span->q1));
    return 0;
}

const struct attn_kernel attn_kernel_tiled_additive = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "tiled",
    .summary = "additive scores in portable C, fused with online softmax, vectorised by the compiler",
    .rules = ATTN_BIT(ATTN_ADDITIVE),
    .dtypes = ATTN_BIT(ATTN_F32) | ATTN_BIT(ATTN_BF16) | ATTN_BIT(ATTN_F16),
    .caps = ATTN_CAP_PARTIAL | ATTN_CAP_WEIGHTS | ATTN_CAP_SPLIT_KEYS,
    .plan = plan,
    .run = run,
};
