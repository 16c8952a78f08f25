/* SPDX-License-Identifier: Apache-2.0
 *
 * tiled: flash attention in portable C, vectorised by the compiler (vectors of four floats, simd_portable.h).
 *
 * Algorithm: online softmax. Lanes are queries: a block of 64 queries is transposed once, in strips of 16, to
 * q[d][lane]; a tile of scores is keys x lanes, so that running maximum, sum and rescale are plain vertical vector
 * operations, and the tile is just the layout that out[d][lane] += v[j][d] * p[j][lane] wants. Scale and log2(e) are
 * folded into q, and all exponentials are powers of two.
 * Tiling: 128 keys x 64 queries. The strips of a block take turns on one block of keys, which stays in the cache.
 * Registers: product_portable.h.
 * Memory: k and v are read in place (bf16 and f16: a block converted at a time), once for every 64 queries; nothing of
 * size S_q x S_kv is stored but the weights where they are asked for: a tile goes to args.weights as it stands,
 * relative to the running maximum of its time, which is kept too, and is scaled when the row's maximum and sum are
 * known.
 *
 * Keys that only some rows of a strip may see (diagonal, window edges): their scores are replaced, never computed
 * with; and their values are looked at first, since 0 * NaN would reach rows that must not see them.
 */
#include <assert.h>

#include "../attn.h"
#include "../elements_portable.h"
#include "../product_portable.h"

enum { STRIP = 16, QUERY_BLOCK = 64, STRIPS = QUERY_BLOCK / STRIP, KEY_BLOCK = 128 };

#define LOG2_E 0x1.715476p+0f
#define LN_2 0x1.62e43p-1f
#define FAR 0x1.6p127f /* times log2(e) still finite: a row whose keys all have the least float as bias has keys */

/* One head's work. */
struct view {
    const struct attn_problem *problem;
    const struct attn_args *args;
    const float *k, *v; /* key first + n is at k + n k_stride, and so on */
    int64_t k_stride, v_stride, first;
    const float *bias; /* of this head; bias, mask: NULL where absent */
    const uint8_t *mask;
    float *weights;
    float *tile;                      /* [KEY_BLOCK][lanes]: scores, then unnormalised weights */
    float *converted_q;               /* [LANES][D] */
    float *converted_k, *converted_v; /* [KEY_BLOCK][D], [KEY_BLOCK][D_v]; not for f32 */
    int64_t b, h, k0, k1;
};

/* Up to 16 queries, and what is known of them so far. */
struct strip {
    int64_t i0;             /* first query */
    int rows, vectors;      /* queries; vectors of lanes that hold them: 1, 2 or 4 */
    int64_t first, last;    /* keys that some row may see by position (kv_len, causal line, window) */
    int64_t inner0, inner1; /* keys that every row may see by position */
    float *q, *out;         /* [D][lanes], [D_v][lanes] */
    float *max, *sum;       /* [lanes]; max in units of log2 */
    float *peaks;           /* WEIGHTS: max after each tile, [tiles][STRIP] */
    int64_t tile0, tiles;   /* where the first begins, those that are done */
    bool seen[STRIP];       /* the row has an allowed key */
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : least(x, high);
}

static int64_t of_head(const struct attn_tensor *t, int64_t b, int64_t h)
{
    return b * t->stride[0] + h * t->stride[1];
}

/* Keys that query i may see by position (kv_len, causal line, window): *first..*last, within the view's keys. */
static void visible(const struct view *view, int64_t i, int64_t *first, int64_t *last)
{
    const struct attn_problem *problem = view->problem;
    int64_t end = least(view->k1, problem->kv_len ? problem->kv_len[view->b] : problem->S_kv);
    int64_t position = i + (problem->diag ? problem->diag[view->b] : 0);
    *first = view->k0;
    *last = end;
    if (problem->left < INT64_MAX / 2)
        *first = clamp(position - problem->left + 1, view->k0, end > view->k0 ? end : view->k0);
    if (problem->right < INT64_MAX / 2)
        *last = clamp(position + problem->right + 1, view->k0, end);
    if (*last < *first)
        *last = *first;
}

/* Softcap, after which scores are in units of log2. */
static void cap_scores(float softcap, float *tile, int64_t count)
{
    const f32x4 cap = f32x4_all(softcap * LOG2_E);
    for (int64_t n = 0; n < count; n += LANES)
        f32x4_store(tile + n, cap * f32x4_tanh(f32x4_load(tile + n)));
}

/* -inf where a row may not see a key by position. */
static void hide_by_position(const struct view *view, const struct strip *strip, int64_t j0, int64_t j1)
{
    const int lanes = strip->vectors * LANES;
    for (int row = 0; row < strip->rows; row++) {
        int64_t first, last;
        visible(view, strip->i0 + row, &first, &last);
        for (int64_t j = j0; j < least(first, j1); j++)
            view->tile[(j - j0) * lanes + row] = -INFINITY;
        for (int64_t j = last > j0 ? last : j0; j < j1; j++)
            view->tile[(j - j0) * lanes + row] = -INFINITY;
    }
}

/* What is added to the score of query i and key j, in natural units; -inf where bias or mask hide the key. */
SIMD_INLINE float added_to(const struct view *view, int64_t i, int64_t j)
{
    const struct attn_tensor *bias = &view->args->bias, *mask = &view->args->mask;
    if (view->mask && !view->mask[i * mask->stride[2] + j * mask->stride[3]])
        return -INFINITY;
    return view->bias ? view->bias[i * bias->stride[2] + j * bias->stride[3]] : 0;
}

/* Bias and mask; notes which rows have a key left. */
static void hide_by_element(const struct view *view, struct strip *strip, int64_t j0, int64_t j1)
{
    const int lanes = strip->vectors * LANES;
    for (int row = 0; row < strip->rows; row++) {
        int64_t first, last;
        visible(view, strip->i0 + row, &first, &last);
        for (int64_t j = first > j0 ? first : j0; j < least(last, j1); j++) {
            float *score = &view->tile[(j - j0) * lanes + row];
            float added = added_to(view, strip->i0 + row, j);
            added = fabsf(added) > FAR && isfinite(added) ? copysignf(FAR, added) : added;
            *score = added == -INFINITY ? -INFINITY : *score + added * LOG2_E;
            strip->seen[row] |= added != -INFINITY;
        }
    }
}

/* Scores of a tile become unnormalised weights relative to the new maximum; sum and out follow. */
SIMD_INLINE void soften(const int vectors, const struct strip *strip, float *tile, int64_t keys, int64_t D_v)
{
    const int lanes = vectors * LANES;
    f32x4 max[4], base[4], sum[4];
    i32x4 moved = {0, 0, 0, 0};
    for (int c = 0; c < vectors; c++)
        max[c] = f32x4_load(strip->max + c * LANES);
    for (int64_t key = 0; key < keys; key++)
        for (int c = 0; c < vectors; c++)
            max[c] = f32x4_maximum(f32x4_load(tile + key * lanes + c * LANES), max[c]); /* NaN: exp2 keeps it */
    for (int c = 0; c < vectors; c++) {
        /* A row without a key so far: -inf - -inf would be NaN. */
        base[c] = f32x4_select(max[c] == f32x4_all(-INFINITY), f32x4_all(0), max[c]);
        moved |= max[c] > f32x4_load(strip->max + c * LANES);
        sum[c] = f32x4_all(0);
    }
    if (i32x4_any(moved)) {
        f32x4 factor[4];
        for (int c = 0; c < vectors; c++) {
            factor[c] = f32x4_exp2(f32x4_load(strip->max + c * LANES) - base[c]);
            f32x4_store(strip->sum + c * LANES, f32x4_load(strip->sum + c * LANES) * factor[c]);
            f32x4_store(strip->max + c * LANES, max[c]);
        }
        for (int64_t d = 0; d < D_v; d++)
            for (int c = 0; c < vectors; c++) {
                float *out = strip->out + d * lanes + c * LANES;
                f32x4_store(out, f32x4_load(out) * factor[c]);
            }
    }
    for (int64_t key = 0; key < keys; key++) {
        f32x4 weight[4];
        for (int c = 0; c < vectors; c++)
            weight[c] = f32x4_load(tile + key * lanes + c * LANES) - base[c];
        f32x4_exp2_each(vectors, weight);
        for (int c = 0; c < vectors; c++) {
            f32x4_store(tile + key * lanes + c * LANES, weight[c]);
            sum[c] += weight[c];
        }
    }
    for (int c = 0; c < vectors; c++)
        f32x4_store(strip->sum + c * LANES, f32x4_load(strip->sum + c * LANES) + sum[c]);
}

/* A tile's weights to their rows, and the maxima that they are relative to. */
static void store_weights(const struct view *view, struct strip *strip, int64_t j0, int64_t j1)
{
    const int64_t lanes = strip->vectors * LANES, stride = view->args->weights.stride[2];
    for (int64_t lane0 = 0; lane0 < strip->rows; lane0 += LANES) {
        float *to = view->weights + (strip->i0 + lane0) * stride, *from = view->tile + lane0;
        const int64_t rows = least(LANES, strip->rows - lane0);
        int64_t j = j0;
        for (; j + 4 <= j1; j += 4) {
            f32x4 key[4];
            for (int step = 0; step < 4; step++)
                key[step] = f32x4_load(from + (j - j0 + step) * lanes);
            f32x4_transpose(key);
            for (int64_t row = 0; row < rows; row++)
                f32x4_store_unaligned(to + row * stride + j, key[row]);
        }
        for (; j < j1; j++)
            for (int64_t row = 0; row < rows; row++)
                to[row * stride + j] = from[(j - j0) * lanes + row];
    }
    memcpy(strip->peaks + strip->tiles++ * STRIP, strip->max, (size_t)lanes * sizeof(float));
}

/* Whether the values of keys j0..j1 are all finite. */
static bool finite_values(const struct view *view, int64_t j0, int64_t j1)
{
    bool finite = true;
    for (int64_t j = j0; j < j1; j++)
        for (int64_t d = 0; d < view->problem->D_v; d++)
            finite &= isfinite(view->v[(j - view->first) * view->v_stride + d]);
    return finite;
}

/* Values of keys j0..j1 for the rows that may see them by position, and for no other. */
static void add_values_by_row(const struct view *view, const struct strip *strip, const float *tile, int64_t j0,
                              int64_t j1)
{
    const int lanes = strip->vectors * LANES;
    for (int row = 0; row < strip->rows; row++) {
        int64_t first, last;
        visible(view, strip->i0 + row, &first, &last);
        for (int64_t j = first > j0 ? first : j0; j < least(last, j1); j++)
            for (int64_t d = 0; d < view->problem->D_v; d++)
                strip->out[d * lanes + row] +=
                    tile[(j - j0) * lanes + row] * view->v[(j - view->first) * view->v_stride + d];
    }
}

SIMD_INLINE void attend_tile(const int vectors, const struct view *view, struct strip *strip, int64_t j0, int64_t j1)
{
    const struct attn_problem *problem = view->problem;
    const int64_t k_stride = view->k_stride, v_stride = view->v_stride, D_v = problem->D_v;
    const float *k = view->k + (j0 - view->first) * k_stride, *v = view->v + (j0 - view->first) * v_stride;
    const int lanes = vectors * LANES;
    /* Keys j0..inner0 and inner1..j1 are hidden from some row. */
    const int64_t inner0 = clamp(strip->inner0, j0, j1), inner1 = clamp(strip->inner1, inner0, j1);
    float *tile = view->tile;

    score_tile(vectors, k, k_stride, strip->q, problem->D, j1 - j0, tile);
    if (problem->softcap > 0)
        cap_scores(problem->softcap, tile, (j1 - j0) * lanes);
    if (inner0 > j0 || inner1 < j1)
        hide_by_position(view, strip, j0, j1);
    if (view->bias || view->mask)
        hide_by_element(view, strip, j0, j1);
    soften(vectors, strip, tile, j1 - j0, D_v);
    if (view->weights)
        store_weights(view, strip, j0, j1);
    if ((inner0 == j0 || finite_values(view, j0, inner0)) && (inner1 == j1 || finite_values(view, inner1, j1))) {
        add_values(vectors, v, v_stride, tile, j1 - j0, D_v, strip->out);
    } else {
        add_values_by_row(view, strip, tile, j0, inner0);
        add_values(vectors, v + (inner0 - j0) * v_stride, v_stride, tile + (inner0 - j0) * lanes, inner1 - inner0, D_v,
                   strip->out);
        add_values_by_row(view, strip, tile + (inner1 - j0) * lanes, inner1, j1);
    }
}

/* Transposes the queries to q[d][lane], scaled so that scores come out in units of log2 (or as softcap's argument). */
static void load_queries(const struct view *view, struct strip *strip)
{
    const struct attn_problem *problem = view->problem;
    const uint32_t dtype = problem->dtype;
    const float scale = problem->softcap > 0 ? problem->scale / problem->softcap : problem->scale * LOG2_E;
    const int lanes = strip->vectors * LANES;
    for (int lane0 = 0; lane0 < lanes; lane0 += LANES) {
        const float *from[LANES];
        for (int lane = 0; lane < LANES; lane++) { /* lanes without a query repeat the last one; never stored */
            const int64_t i = strip->i0 + least(lane0 + lane, strip->rows - 1);
            from[lane] = read_elements(dtype, row_in(&view->args->q, dtype, view->b, view->h, i), problem->D,
                                       view->converted_q + lane * problem->D);
        }
        int64_t d = 0;
        for (; d + 4 <= problem->D; d += 4) {
            f32x4 row[4];
            for (int lane = 0; lane < LANES; lane++)
                row[lane] = f32x4_load_unaligned(from[lane] + d) * f32x4_all(scale);
            f32x4_transpose(row);
            for (int step = 0; step < 4; step++)
                f32x4_store(strip->q + (d + step) * lanes + lane0, row[step]);
        }
        for (; d < problem->D; d++)
            for (int lane = 0; lane < LANES; lane++)
                strip->q[d * lanes + lane0 + lane] = from[lane][d] * scale;
    }
}

static void begin_strip(const struct view *view, struct strip *strip, int64_t i0, int64_t i1)
{
    strip->i0 = i0;
    strip->rows = (int)(i1 - i0);
    strip->vectors = strip->rows <= LANES ? 1 : strip->rows <= 2 * LANES ? 2 : STRIP / LANES;
    visible(view, i0, &strip->first, &strip->inner1);
    visible(view, i1 - 1, &strip->inner0, &strip->last);
    if (view->bias || view->mask) {
        memset(strip->seen, 0, sizeof strip->seen);
    } else {
        for (int row = 0; row < strip->rows; row++) {
            int64_t first, last;
            visible(view, i0 + row, &first, &last);
            strip->seen[row] = first < last;
        }
    }
    load_queries(view, strip);
    for (int lane = 0; lane < strip->vectors * LANES; lane++) {
        strip->max[lane] = -INFINITY;
        strip->sum[lane] = 0;
    }
    memset(strip->out, 0, (size_t)(view->problem->D_v * strip->vectors * LANES) * sizeof(float));
}

/* One row's weights in place, from their tiles' maxima to the row's, times inverse; zero where a key is hidden. */
static void finish_weights(const struct view *view, const struct strip *strip, int row, float inverse)
{
    const int64_t i = strip->i0 + row;
    float *weights = view->weights + i * view->args->weights.stride[2];
    int64_t first, last, j;
    visible(view, i, &first, &last);
    if (!strip->seen[row])
        last = first;
    memset(weights + view->k0, 0, (size_t)(first - view->k0) * sizeof(float));
    memset(weights + last, 0, (size_t)(view->k1 - last) * sizeof(float));
    if (isnan(inverse)) { /* 0 * NaN would show in hidden keys as well */
        for (j = first; j < last; j++)
            weights[j] = added_to(view, i, j) == -INFINITY ? 0 : NAN;
        return;
    }
    j = first;
    for (int64_t tile = 0; tile < strip->tiles; tile++) {
        const int64_t end = least(last, strip->tile0 + (tile + 1) * KEY_BLOCK);
        const f32x4 moved = f32x4_all(strip->peaks[tile * STRIP + row] - strip->max[row]);
        const f32x4 factor = f32x4_exp2(moved) * f32x4_all(inverse);
        for (; j + LANES <= end; j += LANES)
            f32x4_store_unaligned(weights + j, f32x4_load_unaligned(weights + j) * factor);
        for (; j < end; j++)
            weights[j] *= factor[0];
    }
}

/* Divides by the row sums (unless PARTIAL) and stores the rows. */
static void end_strip(const struct view *view, const struct strip *strip, int64_t split)
{
    const struct attn_problem *problem = view->problem;
    const bool partial = problem->flags & ATTN_FLAG_PARTIAL;
    const uint32_t dtype = partial ? ATTN_F32 : problem->dtype;
    const int lanes = strip->vectors * LANES;
    for (int row = 0; row < strip->rows; row++) {
        void *to = row_in(&view->args->out, dtype, view->b, view->h, strip->i0 + row);
        const bool seen = strip->seen[row];
        /* Every allowed score is -inf: the quotient is 0 / 0, whatever the sum says. */
        const float sum = seen && strip->max[row] == -INFINITY ? NAN : strip->sum[row];
        const float inverse = partial && !isnan(sum) ? 1 : 1 / sum;
        for (int64_t d = 0; d < problem->D_v; d++)
            write_element(dtype, to, d, seen ? strip->out[d * lanes + row] * inverse : 0);
        if (partial) {
            int64_t index = ((split * problem->B + view->b) * problem->H + view->h) * problem->S_q + strip->i0 + row;
            /* A NaN score never becomes the maximum; a maximum of -inf would let a merge drop the row's NaN. */
            const float max = isnan(strip->sum[row]) ? NAN : strip->max[row] * LN_2;
            view->args->row_max[index] = seen ? max : -INFINITY;
            view->args->row_sum[index] = seen ? sum : 0;
        }
        if (view->weights)
            finish_weights(view, strip, row, inverse);
    }
}

/* Keys j0..j1 of a head in bf16 or f16, as floats. */
static void convert_keys(struct view *view, int64_t j0, int64_t j1)
{
    const struct attn_problem *problem = view->problem;
    const int64_t key_head = view->h / (problem->H / problem->H_kv);
    for (int64_t j = j0; j < j1; j++) {
        const uint32_t dtype = problem->dtype;
        read_elements(dtype, row_in(&view->args->k, dtype, view->b, key_head, j), problem->D,
                      view->converted_k + (j - j0) * problem->D);
        read_elements(dtype, row_in(&view->args->v, dtype, view->b, key_head, j), problem->D_v,
                      view->converted_v + (j - j0) * problem->D_v);
    }
    view->first = j0;
}

static int64_t peak_tiles(const struct attn_problem *problem)
{
    return problem->flags & ATTN_FLAG_WEIGHTS ? (problem->S_kv + KEY_BLOCK - 1) / KEY_BLOCK : 0;
}

static void attend_block(struct view *view, int64_t i0, int64_t i1, int64_t split, float *scratch)
{
    const struct attn_problem *problem = view->problem;
    struct strip strips[STRIPS];
    int count = 0;
    assert(i0 < i1);
    for (int64_t i = i0; i < i1; i += STRIP, count++) {
        struct strip *strip = &strips[count];
        strip->max = scratch;
        strip->sum = strip->max + STRIP;
        strip->q = strip->sum + STRIP;
        strip->out = strip->q + problem->D * STRIP;
        strip->peaks = strip->out + problem->D_v * STRIP;
        strip->tiles = 0;
        scratch = strip->peaks + peak_tiles(problem) * STRIP;
        begin_strip(view, strip, i, least(i + STRIP, i1));
    }
    int64_t begin, end, other; /* of the first and the last row, both rise with the row */
    visible(view, i0, &begin, &other);
    visible(view, i1 - 1, &other, &end);
    for (int64_t j = begin; j < end; j += KEY_BLOCK) {
        if (problem->dtype != ATTN_F32)
            convert_keys(view, j, least(j + KEY_BLOCK, end));
        for (int n = 0; n < count; n++) {
            struct strip *strip = &strips[n];
            const int64_t j0 = j > strip->first ? j : strip->first, j1 = least(j + KEY_BLOCK, strip->last);
            if (j0 >= j1)
                continue;
            if (strip->tiles == 0)
                strip->tile0 = j;
            if (strip->vectors == 4)
                attend_tile(4, view, strip, j0, j1);
            else if (strip->vectors == 2)
                attend_tile(2, view, strip, j0, j1);
            else
                attend_tile(1, view, strip, j0, j1);
        }
    }
    for (int n = 0; n < count; n++)
        end_strip(view, &strips[n], split);
}

static int plan(const struct attn_problem *problem, int32_t threads, void *state, struct attn_plan *plan)
{
    (void)threads;
    (void)state;
    plan->q_grain = QUERY_BLOCK;
    plan->k_grain = KEY_BLOCK;
    const int64_t columns = problem->D + problem->D_v;
    const int64_t converted = problem->dtype == ATTN_F32 ? 0 : KEY_BLOCK * columns;
    plan->thread_bytes = (size_t)((columns + 2 + peak_tiles(problem)) * QUERY_BLOCK + KEY_BLOCK * STRIP +
                                  LANES * problem->D + converted) *
                         sizeof(float);
    return 0;
}

/* With PARTIAL and WEIGHTS both, the weights are as the output is: not yet divided by row_sum. */
static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    (void)phase;
    (void)state;
    assert(problem->H % problem->H_kv == 0);
    const int64_t group = problem->H / problem->H_kv;
    for (int64_t b = span->b0; b < span->b1; b++)
        for (int64_t h = span->h0; h < span->h1; h++) {
            const struct attn_tensor *bias = &args->bias, *mask = &args->mask, *weights = &args->weights;
            const bool wanted = problem->flags & ATTN_FLAG_WEIGHTS;
            struct view view = {
                .problem = problem,
                .args = args,
                .k_stride = args->k.stride[2],
                .v_stride = args->v.stride[2],
                .bias = bias->data ? (const float *)bias->data + of_head(bias, b, h) : NULL,
                .mask = mask->data ? (const uint8_t *)mask->data + of_head(mask, b, h) : NULL,
                .weights = wanted ? (float *)weights->data + of_head(weights, b, h) : NULL,
                .tile = scratch,
                .b = b,
                .h = h,
                .k0 = span->k0,
                .k1 = span->k1,
            };
            view.converted_q = view.tile + KEY_BLOCK * STRIP;
            float *free = view.converted_q + LANES * problem->D;
            if (problem->dtype == ATTN_F32) {
                view.k = row_in(&args->k, ATTN_F32, b, h / group, 0);
                view.v = row_in(&args->v, ATTN_F32, b, h / group, 0);
            } else {
                view.converted_k = free;
                view.converted_v = view.converted_k + KEY_BLOCK * problem->D;
                free = view.converted_v + KEY_BLOCK * problem->D_v;
                view.k = view.converted_k;
                view.v = view.converted_v;
                view.k_stride = problem->D;
                view.v_stride = problem->D_v;
            }
            for (int64_t i = span->q0; i < span->q1; i += QUERY_BLOCK)
                attend_block(&view, i, least(i + QUERY_BLOCK, span->q1), span->split, free);
        }
    return 0;
}

const struct attn_kernel attn_kernel_tiled = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "tiled",
    .summary = "flash attention in portable C: online softmax over blocks, vectorised by the compiler",
    .rules = ATTN_BIT(ATTN_SCALED_DOT_PRODUCT),
    .dtypes = ATTN_BIT(ATTN_F32) | ATTN_BIT(ATTN_BF16) | ATTN_BIT(ATTN_F16),
    .caps = ATTN_CAP_PARTIAL | ATTN_CAP_WEIGHTS | ATTN_CAP_SPLIT_KEYS,
    .plan = plan,
    .run = run,
};
