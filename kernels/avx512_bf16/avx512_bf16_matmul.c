/* SPDX-License-Identifier: Apache-2.0
 *
 * avx512_bf16: product of matrices of bf16 by vdpbf16ps, which multiplies pairs and adds up in f32.
 *
 * Algorithm. As in avx512_matmul.c with a pair of steps of k, 32 bits, in the place of a float: packing interleaves two
 * rows of [K][N]; of [N][K] pairs lie side by side and are transposed like floats. a is read in place where its rows
 * are whole pairs and whole pairs apart, else strip by strip from a copy. Up to 8 rows of a times [N][K] dot pairs as
 * they lie; times [K][N] they are converted to f32.
 *
 * Tiling. 6 rows x 4 vectors of pairs; blocks of 256 columns x 1024 of depth, 384 rows where sums wait.
 *
 * Registers. 24 accumulators, 4 vectors of b, 1 broadcast: 29 of 32.
 *
 * Memory. As in avx512_matmul.c, in half the bytes: a once for every 256 columns, b once for every span of rows. A
 * thread's workspace is a block: 512 KiB of packed b, 12 KiB for a strip, up to 384 KiB of sums for a depth beyond
 * 1024; O(K) for up to 8 rows.
 *
 * Measured as in avx512_matmul.c: 1024^3 0.89 ([K][N]) and 0.92 ([N][K]) of the vdpbf16ps peak; one row times
 * [16384][4096] draws 0.89 of the read bandwidth, 8 rows 0.31.
 */
#include <string.h>

#include "../gemm/few.h"

enum { DEPTH = 1024 };

static __m512i load_bf16(const uint16_t *from, int64_t n)
{
    return _mm512_maskz_loadu_epi16(n >= 32 ? 0xffffffffu : (1u << n) - 1u, from);
}

/* Rows k and k + 1 of [K][N] (or k and zeros) become one row of pairs. */
static void pack_rows(const struct gemm *g, int64_t k, int64_t depth, int64_t n, int64_t columns, float *panels)
{
    const int64_t pairs = (depth + 1) / 2;
    for (int64_t pair = 0; pair < pairs; pair++) {
        const uint16_t *even = (const uint16_t *)g->b + (k + 2 * pair) * g->b_stride + n;
        const bool alone = 2 * pair + 1 == depth;
        for (int64_t c = 0; c < columns; c += SIMD_LANES) {
            const int64_t panel = c / GEMM_PANEL * GEMM_PANEL, left = columns - c;
            const int64_t width = gemm_up(gemm_least(columns - panel, GEMM_PANEL), SIMD_LANES);
            __m512i x = simd_load_u16(even + c, left);
            if (!alone)
                x = _mm512_or_si512(x, _mm512_slli_epi32(simd_load_u16(even + g->b_stride + c, left), 16));
            _mm512_storeu_si512(panels + panel * pairs + pair * width + (c - panel), x);
        }
    }
}

/* [N][K]: pairs lie side by side, 16 x 16 of them are transposed at a time. */
static void pack_columns(const struct gemm *g, int64_t k, int64_t depth, int64_t n, int64_t columns, float *panels)
{
    const int64_t pairs = (depth + 1) / 2;
    for (int64_t c = 0; c < columns; c += SIMD_LANES) {
        const int64_t panel = c / GEMM_PANEL * GEMM_PANEL, left = columns - c;
        const int64_t width = gemm_up(gemm_least(columns - panel, GEMM_PANEL), SIMD_LANES);
        float *to = panels + panel * pairs + (c - panel);
        const uint16_t *from = (const uint16_t *)g->b + (n + c) * g->b_stride + k;
        for (int64_t pair = 0; pair < pairs; pair += SIMD_LANES) {
            const int64_t steps = gemm_least(pairs - pair, SIMD_LANES);
            simd_f32 square[SIMD_LANES];
            SIMD_UNROLL
            for (int t = 0; t < SIMD_LANES; t++)
                square[t] = t < left
                                ? _mm512_castsi512_ps(load_bf16(from + t * g->b_stride + 2 * pair, depth - 2 * pair))
                                : simd_zero();
            simd_transpose(square);
            SIMD_UNROLL
            for (int t = 0; t < SIMD_LANES; t++)
                if (t < steps)
                    simd_store(to + (pair + t) * width, square[t]);
        }
    }
}

static void pack(const struct gemm *g, int64_t k, int64_t depth, int64_t n, int64_t columns, float *panels)
{
    if (g->transposed)
        pack_columns(g, k, depth, n, columns, panels);
    else
        pack_rows(g, k, depth, n, columns, panels);
}

/* a is read in place where its rows are whole pairs and whole pairs apart, else from a copy that ends with a zero. */
static void strip(const struct gemm *g, const struct gemm_strip *s)
{
    const int64_t pairs = (s->depth + 1) / 2;
    const uint16_t *a = (const uint16_t *)g->a + s->m * g->a_stride + s->k;
    if (s->depth % 2 == 0 && g->a_stride % 2 == 0) {
        gemm_panels(true, g, s, (const product_word *)a, g->a_stride / 2, pairs);
        return;
    }
    uint16_t *copy = (uint16_t *)s->strip;
    for (int64_t r = 0; r < s->rows; r++) {
        memcpy(copy + 2 * pairs * r, a + r * g->a_stride, sizeof *a * (size_t)s->depth);
        if (s->depth % 2)
            copy[2 * pairs * r + s->depth] = 0;
    }
    gemm_panels(true, g, s, s->strip, pairs, pairs);
}

static const struct gemm_form form = {
    .rows = GEMM_ROWS,
    .panel = GEMM_PANEL,
    .depth = DEPTH,
    .per_float = 2,
    .pack = pack,
    .strip = strip,
};

static int plan(const struct attn_problem *problem, int32_t threads, void *state, struct attn_plan *plan)
{
    (void)threads;
    (void)state;
    const struct gemm_room room = gemm_room(problem, &form, true);
    plan->q_grain = GEMM_LEAST_ROWS;
    plan->k_grain = GEMM_LEAST_COLUMNS;
    plan->thread_bytes = sizeof(float) * gemm_scratch_floats(problem, &room);
    return 0;
}

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    (void)phase;
    (void)state;
    const struct gemm_room room = gemm_room(problem, &form, true);
    for (int64_t b = span->b0; b < span->b1; b++)
        for (int64_t h = span->h0; h < span->h1; h++) {
            const struct gemm g = gemm_of(problem, args, span, b, h);
            const int64_t rows = g.m1 - g.m0;
            if (rows > GEMM_FEW) {
                gemm_multiply(&g, &form, &room, scratch);
            } else if (g.transposed) {
                const struct gemm_few few = {
                    .g = &g, .a = (const uint16_t *)g.a + g.m0 * g.a_stride, .a_row = g.a_stride};
                gemm_few_as(true, ATTN_BF16, (int)rows, &few);
            } else {
                gemm_few(&g, scratch);
            }
        }
    return 0;
}

extern const struct attn_kernel attn_kernel_avx512_bf16_matmul;

const struct attn_kernel attn_kernel_avx512_bf16_matmul = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "avx512_bf16",
    .summary = "packed panels of pairs of bf16 by vdpbf16ps, columns as lanes",
    .isa = ATTN_ISA_AVX2 | ATTN_ISA_FMA | ATTN_ISA_F16C | ATTN_ISA_AVX512F | ATTN_ISA_AVX512BW | ATTN_ISA_AVX512DQ |
           ATTN_ISA_AVX512VL | ATTN_ISA_AVX512_BF16,
    .rules = ATTN_BIT(ATTN_MATMUL),
    .dtypes = ATTN_BIT(ATTN_BF16),
    .plan = plan,
    .run = run,
};
