/* SPDX-License-Identifier: Apache-2.0
 *
 * avx512_bf16: flash attention in bf16 with vdpbf16ps, which adds the products of two pairs of bf16 to an f32.
 *
 * Algorithm. As avx512 (flash/lanes.h): up to 64 queries are lanes, online softmax with vertical operations, f32
 * accumulators, one micro-kernel for both products (flash/product.h). What differs is that the operands are pairs along
 * the reduction. Scores reduce over features: Q^T holds pairs of them, and K is made of such pairs as it lies. The
 * output reduces over keys: V is packed once per block of keys as pairs of adjacent keys, and the weights are rounded
 * and written as such pairs over the scores they came from. Their sum is taken before they are rounded, and weights
 * that are returned are stored before, in a pass of their own (1.26 times the time at S 2048, D 64). The scale would
 * round in bf16: it is part of the subtraction before exp, only its sign goes into Q.
 * Few rows (decode) go through the keys as a stream, converted to f32 in registers (flash/stream.h).
 *
 * Tiling. 6 keys (or features of V) x 4 vectors of queries, blocks of up to 192 keys. An odd D, or rows an odd number
 * of elements apart, cost a copy of the block's keys: pairs would straddle rows.
 *
 * Registers. 24 accumulators, 4 vectors of Q^T or weights, 1 broadcast pair: 29 of 32.
 *
 * Memory. Each K and V row is read once per 64 queries. Per thread 4 (64 (D/2 + D_v) + 192 (64 + D_v/2 + D/2)) bytes:
 * 120 KiB at D = 64, a part of L2.
 */
#include "../flash/flash.h"

_Static_assert(LANES_STRIPS == 1 && LANES_KEYS % 2 == 0, "one strip of rows, whole pairs of keys");

enum { PAIRED = 2 * SIMD_LANES /* bf16 of a vector */ };

static int64_t pairs_of(int64_t n)
{
    return (n + 1) / 2;
}

/* n elements as pairs, at most a vector of them; reads no more, the others are 0. */
SIMD_INLINE __m512i load_pairs(const uint16_t *p, int64_t n)
{
    return n >= PAIRED ? _mm512_loadu_si512(p) : _mm512_maskz_loadu_epi16(n > 0 ? (1u << n) - 1u : 0u, p);
}

SIMD_INLINE void store_words(float *p, int64_t n, __m512i x)
{
    _mm512_mask_storeu_epi32(p, simd_first(n), x);
}

/* Q^T in pairs: query[d / 2][lane]; negative: with the other sign. */
static void load_query_pairs(struct lane_block *block, bool negative)
{
    const int64_t D = block->form->D, lanes = block->lanes;
    const __m512i sign = _mm512_set1_epi16(negative ? INT16_MIN : 0);
    for (int v = 0; v < block->vectors; v++)
        for (int64_t d = 0; d < D; d += PAIRED) {
            simd_f32 tile[SIMD_LANES];
            SIMD_UNROLL
            for (int t = 0; t < SIMD_LANES; t++) {
                const int r = v * SIMD_LANES + t;
                tile[t] = simd_zero();
                if (r < block->count) {
                    const uint16_t *q = block->rows[r].q;
                    tile[t] = _mm512_castsi512_ps(_mm512_xor_si512(load_pairs(q + d, D - d), sign));
                }
            }
            simd_transpose(tile);
            const int64_t pairs = pairs_of(D - d);
            SIMD_UNROLL
            for (int t = 0; t < SIMD_LANES; t++)
                if (t < pairs)
                    simd_store(block->query + (d / 2 + t) * lanes + v * SIMD_LANES, tile[t]);
        }
}

/* Rows of K one after the other, each filled up to whole pairs. */
static void copy_keys(const uint16_t *k, int64_t stride, int64_t keys, int64_t D, float *to)
{
    for (int64_t j = 0; j < keys; j++)
        for (int64_t d = 0; d < D; d += PAIRED)
            store_words(to + j * pairs_of(D) + d / 2, pairs_of(D - d), load_pairs(k + j * stride + d, D - d));
}

/* to[j / 2][d] = (v[j][d], v[j + 1][d]); beyond an odd number of keys stands 0. */
static void pack_values(const uint16_t *v, int64_t stride, int64_t keys, int64_t D_v, float *to)
{
    for (int64_t j = 0; j < keys; j += 2) {
        for (int64_t d = 0; d < D_v; d += SIMD_LANES) {
            const uint16_t *even = v + j * stride + d, *odd = even + stride;
            __m512i pair = simd_load_u16(even, D_v - d);
            if (j + 1 < keys)
                pair = _mm512_or_si512(pair, _mm512_slli_epi32(simd_load_u16(odd, D_v - d), 16));
            store_words(to + d, D_v - d, pair);
        }
        to += D_v;
    }
}

/* Rounded to pairs of bf16, lane by lane. */
SIMD_INLINE void store_pairs(float *to, simd_f32 even, simd_f32 odd)
{
    static const uint16_t interleaved[PAIRED] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    const __m512i rounded = (__m512i)_mm512_cvtne2ps_pbh(odd, even);
    _mm512_storeu_si512(to, _mm512_permutexvar_epi16(_mm512_loadu_si512(interleaved), rounded));
}

/* Weights in pairs of keys over the scores of n keys, and their sums. scale: of scores that are not natural. */
SIMD_INLINE void write_weights_as(struct lane_block *block, int64_t n, float scale, bool natural, int vectors)
{
    const simd_f32 factor = simd_set(scale);
    const int64_t lanes = (int64_t)vectors * SIMD_LANES;
    simd_f32 max[SIMD_TILE_VECTORS], sum[SIMD_TILE_VECTORS];
    SIMD_UNROLL
    for (int v = 0; v < vectors; v++) {
        max[v] = finite_maximum(simd_load(block->max + v * SIMD_LANES));
        sum[v] = simd_load(block->sum + v * SIMD_LANES);
    }
    const float *score = block->score;
    float *weights = block->score;
    for (int64_t j = 0; j < n; j += 2) {
        SIMD_UNROLL
        for (int v = 0; v < vectors; v++) {
            simd_f32 weight[2];
            SIMD_UNROLL
            for (int t = 0; t < 2; t++) {
                if (t == 1 && j + 1 == n) {
                    weight[t] = simd_zero();
                    continue;
                }
                const simd_f32 x = simd_load(score + t * lanes + v * SIMD_LANES);
                /* rounded before the difference, as the maximum is: the largest score's exponent is then 0, however
                 * large both are */
                weight[t] = natural ? weight_of(true, x, max[v]) : simd_exp2(simd_sub(simd_mul(x, factor), max[v]));
            }
            sum[v] = simd_add(sum[v], simd_add(weight[0], weight[1]));
            store_pairs(weights + v * SIMD_LANES, weight[0], weight[1]);
        }
        score += 2 * lanes;
        weights += lanes;
    }
    SIMD_UNROLL
    for (int v = 0; v < vectors; v++)
        simd_store(block->sum + v * SIMD_LANES, sum[v]);
}

SIMD_OUTLINE void write_weights(struct lane_block *block, int64_t n, float scale)
{
    const bool natural = block->form->natural;
    switch (block->vectors) {
    case 1:
        write_weights_as(block, n, scale, natural, 1);
        break;
    case 2:
        write_weights_as(block, n, scale, natural, 2);
        break;
    case 3:
        write_weights_as(block, n, scale, natural, 3);
        break;
    default:
        write_weights_as(block, n, scale, natural, 4);
    }
}

static void scale_scores(struct lane_block *block, int64_t n, float scale)
{
    const simd_f32 factor = simd_set(scale);
    if (scale != 1.0f)
        for (int64_t at = 0; at < n * block->lanes; at += SIMD_LANES)
            simd_store(block->score + at, simd_mul(simd_load(block->score + at), factor));
}

/* Weights of n keys as pairs over themselves, where write_weights is not what made them. */
static void pair_weights(struct lane_block *block, int64_t n)
{
    const int64_t lanes = block->lanes;
    for (int64_t j = 0; j < n; j += 2)
        for (int64_t v = 0; v < lanes; v += SIMD_LANES) {
            const simd_f32 even = simd_load(block->score + j * lanes + v);
            const simd_f32 odd = j + 1 < n ? simd_load(block->score + (j + 1) * lanes + v) : simd_zero();
            store_pairs(block->score + j / 2 * lanes + v, even, odd);
        }
}

/* Whether every value of keys from..to-1 is finite. */
static bool values_finite(const uint16_t *v, int64_t stride, int64_t from, int64_t to, int64_t D_v)
{
    const __m512i exponent = _mm512_set1_epi16(0x7f80);
    __mmask32 found = 0;
    for (int64_t j = from; j < to; j++)
        for (int64_t d = 0; d < D_v; d += PAIRED) {
            const __m512i x = load_pairs(v + j * stride + d, D_v - d);
            found |= _mm512_cmpeq_epi16_mask(_mm512_and_si512(x, exponent), exponent);
        }
    return found == 0;
}

/* The value product key by key, each added to the rows that may see it only: 0 times what lies there may be NaN. */
static void add_visible_values(struct lane_block *block, const uint16_t *value, int64_t stride, int64_t n)
{
    const int64_t D_v = block->form->D_v;
    if (!block->begun)
        memset(block->output, 0, sizeof(float) * (size_t)(D_v * block->lanes));
    for (int64_t j = 0; j < n; j++) {
        const simd_f32 key = simd_set((float)j);
        for (int v = 0; v < block->vectors; v++) {
            const simd_mask visible = simd_and(simd_less_equal(simd_load(block->first + v * SIMD_LANES), key),
                                               simd_less(key, simd_load(block->last + v * SIMD_LANES)));
            const __m512i pair = _mm512_loadu_si512(block->score + j / 2 * block->lanes + v * SIMD_LANES);
            const __m512i even = _mm512_slli_epi32(pair, 16), odd = _mm512_slli_epi32(_mm512_srli_epi32(pair, 16), 16);
            const simd_f32 weight = _mm512_castsi512_ps(j % 2 ? odd : even);
            for (int64_t d = 0; d < D_v; d++) {
                float *place = block->output + d * block->lanes + v * SIMD_LANES;
                const simd_f32 element =
                    _mm512_castsi512_ps(_mm512_set1_epi32((int)((uint32_t)value[j * stride + d] << 16)));
                const simd_f32 output = simd_load(place);
                simd_store(place, simd_select(visible, simd_fma(element, weight, output), output));
            }
        }
    }
}

/* What the keys of one head need besides: room for those of a block in pairs. */
struct pair_room {
    float *keys, *values; /* [LANES_KEYS][D / 2], [LANES_KEYS / 2][D_v] */
};

/* n <= LANES_KEYS keys from j0, some of which some row may see. scale: of the scores, 1 if they are natural. */
static void add_keys(struct lane_block *block, const struct key_head *head, const struct pair_room *room, int64_t j0,
                     int64_t n, float scale)
{
    const struct flash_form *form = block->form;
    const uint16_t *k = (const uint16_t *)head->k + j0 * head->k_stride;
    const uint16_t *v = (const uint16_t *)head->v + j0 * head->v_stride;
    const bool whole = j0 >= block->full_first && j0 + n <= block->full_last;
    for (int r = 0; r < block->lanes; r++)
        block->top[r] = -INFINITY;

    struct product scores = {.depth = pairs_of(form->D), .b = block->query, .c = block->score, .top = block->top};
    int64_t row = head->k_stride / 2;
    scores.a = (const product_word *)k;
    if (form->D % 2 || head->k_stride % 2) {
        copy_keys(k, head->k_stride, n, form->D, room->keys);
        scores.a = room->keys;
        row = pairs_of(form->D);
    }
    scores.pairs = true;
    product_any(&scores, n, block->vectors, row, 1);
    if (!whole || form->natural || form->has_tile) {
        lanes_set_ranges(block, j0, n);
        lanes_adjust_scores(block, j0, n);
    }
    for (int r = 0; r < block->lanes; r++)
        block->top[r] *= scale;
    lanes_raise_maximum(block);
    if (form->weights) {
        scale_scores(block, n, scale);
        lanes_exponentiate(block, n);
        weights_store(block->score, block->vectors, block->rows, block->count, j0, n);
        weights_note_peaks(&block->peaks, block->max, block->lanes);
        pair_weights(block, n);
    } else {
        write_weights(block, n, scale);
    }

    const int64_t inner0 = block->full_first - j0, inner1 = block->full_last - j0;
    if (whole || (values_finite(v, head->v_stride, 0, inner0 < n && inner0 < inner1 ? inner0 : n, form->D_v) &&
                  values_finite(v, head->v_stride, inner1 > 0 ? inner1 : 0, n, form->D_v))) {
        pack_values(v, head->v_stride, n, form->D_v, room->values);
        struct product values = {.a = room->values, .depth = pairs_of(n), .b = block->score, .c = block->output};
        values.accumulate = block->begun;
        values.pairs = true;
        const struct product_ahead ahead[PRODUCT_AHEAD] = {weights_ahead(block->rows, block->count, j0 + n, n)};
        if (form->weights && j0 + n < block->end)
            values.ahead = ahead;
        product_any(&values, form->D_v, block->vectors, 1, form->D_v);
    } else {
        add_visible_values(block, v, head->v_stride, n);
    }
    block->begun = true;
}

static size_t scratch_floats(const struct attn_problem *problem)
{
    const int64_t D = problem->D, D_v = problem->D_v;
    const size_t lanes = (size_t)(pairs_of(D) + D_v + LANES_KEYS) * LANES_ROWS;
    return lanes + (size_t)(pairs_of(D) + D_v / 2 + 1) * LANES_KEYS + lanes_peaks_floats(problem);
}

static void attend(const struct flash_form *given, const struct key_head *head, const struct query_row *rows, int count,
                   float *scratch)
{
    /* -inf times a scale of 0 would be NaN: natural units, in which the scale comes before the masks */
    struct flash_form form = *given;
    form.natural = given->natural || given->query_scale == 0.0f;
    form.score_scale = form.natural ? fabsf(given->query_scale) : 1.0f;
    const float scale = form.natural ? 1.0f : fabsf(given->query_scale);

    struct lane_block block = {.form = &form, .rows = rows, .count = count};
    float *output = scratch + pairs_of(form.D) * LANES_ROWS, *score = output + form.D_v * LANES_ROWS;
    const struct pair_room room = {.values = score + LANES_KEYS * LANES_ROWS,
                                   .keys = score + LANES_KEYS * LANES_ROWS + LANES_KEYS / 2 * form.D_v};
    float *peaks = room.keys + LANES_KEYS * pairs_of(form.D);
    lanes_begin(&block, scratch, output, score);
    if (block.begin < block.end) {
        load_query_pairs(&block, given->query_scale < 0.0f);
        const int64_t step = lanes_step(&form, block.end - block.begin);
        block.peaks = (struct weights_peaks){.at = peaks, .begin = block.begin, .step = step};
        for (int64_t j = block.begin; j < block.end; j += step)
            add_keys(&block, head, &room, j, block.end - j < step ? block.end - j : step, scale);
    }
    lanes_end(&block);
}

static int plan(const struct attn_problem *problem, int32_t threads, void *state, struct attn_plan *plan)
{
    flash_plan(problem, threads, state, plan);
    const size_t lanes = scratch_floats(problem);
    const size_t stream = stream_scratch_floats(problem->D, problem->D_v);
    plan->thread_bytes = sizeof(float) * (lanes > stream ? lanes : stream);
    return 0;
}

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    (void)phase;
    (void)state;
    return flash_span(problem, args, span, attend, scratch);
}

extern const struct attn_kernel attn_kernel_avx512_bf16;

const struct attn_kernel attn_kernel_avx512_bf16 = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "avx512_bf16",
    .summary = "flash attention in bf16 by vdpbf16ps, queries as lanes; decode as a stream",
    .isa = ATTN_ISA_AVX2 | ATTN_ISA_FMA | ATTN_ISA_F16C | ATTN_ISA_AVX512F | ATTN_ISA_AVX512BW | ATTN_ISA_AVX512DQ |
           ATTN_ISA_AVX512VL | ATTN_ISA_AVX512_BF16,
    .rules = ATTN_BIT(ATTN_SCALED_DOT_PRODUCT),
    .dtypes = ATTN_BIT(ATTN_BF16),
    .caps = ATTN_CAP_PARTIAL | ATTN_CAP_WEIGHTS | ATTN_CAP_SPLIT_KEYS,
    .plan = plan,
    .run = run,
};
