/* SPDX-License-Identifier: Apache-2.0
 *
 * tiled: product of matrices in portable C, vectorised by the compiler (vectors of four floats, simd_portable.h).
 *
 * Algorithm. b is packed into panels of 16 columns, which are the lanes; 32 rows of a pass by each, two at a time
 * (product_portable.h: the micro-kernel that attention uses for its scores). bf16 and f16 are converted as b is packed,
 * and strip by strip of a; the output is rounded once.
 * Tiling: blocks of 256 columns x 256 of depth (gemm/nest.h), strips of 32 rows.
 * Registers: 2 rows x 4 vectors of sums, 2 broadcasts, an operand, a product: 16.
 * Memory: a is read once for every 256 columns, b once for every span of rows. Per thread 256 KiB of packed b, a part
 * of L2, of which a panel (16 KiB) stays in L1; 32 KiB for a strip of converted a, and, where bf16 or f16 sums of a
 * depth beyond 256 wait, 384 x 256 floats.
 * Measured as in avx512_matmul.c: 1024^3 f32 0.57 of the multiply+add peak of the compiler's baseline.
 */
#include "../attn.h"
#include "../elements_portable.h"
#include "../gemm/nest.h"
#include "../product_portable.h"

enum { ROWS = 32, PANEL = 16, DEPTH = 256 };

/* Lanes of the panel that holds `columns` columns: 1, 2 or 4 vectors. */
static int64_t panel_width(int64_t columns)
{
    return columns > 8 ? 16 : columns > 4 ? 8 : 4;
}

static const void *place_in(const struct gemm *g, const void *matrix, int64_t index)
{
    return (const char *)matrix + index * (int64_t)element_size(g->dtype);
}

static void pack_rows(const struct gemm *g, int64_t k, int64_t depth, int64_t n, int64_t columns, float *panels)
{
    float buffer[GEMM_COLUMNS];
    for (int64_t step = 0; step < depth; step++) {
        const float *row = read_elements(g->dtype, place_in(g, g->b, (k + step) * g->b_stride + n), columns, buffer);
        for (int64_t c = 0; c < columns; c += PANEL) {
            const int64_t left = gemm_least(columns - c, PANEL), width = panel_width(left);
            float *to = panels + c * depth + step * width;
            for (int64_t lane = 0; lane < left; lane++)
                to[lane] = row[c + lane];
            for (int64_t lane = left; lane < width; lane++)
                to[lane] = 0;
        }
    }
}

static void pack_columns(const struct gemm *g, int64_t k, int64_t depth, int64_t n, int64_t columns, float *panels)
{
    float buffer[DEPTH];
    for (int64_t c = 0; c < columns; c += PANEL) {
        const int64_t left = gemm_least(columns - c, PANEL), width = panel_width(left);
        float *to = panels + c * depth;
        for (int64_t lane = 0; lane < left; lane++) {
            const float *row =
                read_elements(g->dtype, place_in(g, g->b, (n + c + lane) * g->b_stride + k), depth, buffer);
            for (int64_t step = 0; step < depth; step++)
                to[step * width + lane] = row[step];
        }
        for (int64_t lane = left; lane < width; lane++)
            for (int64_t step = 0; step < depth; step++)
                to[step * width + lane] = 0;
    }
}

static void pack(const struct gemm *g, int64_t k, int64_t depth, int64_t n, int64_t columns, float *panels)
{
    if (g->transposed)
        pack_columns(g, k, depth, n, columns, panels);
    else
        pack_rows(g, k, depth, n, columns, panels);
}

/* Row r of the strip, the panel from column c on: what becomes of its sums. */
static void end_row(const struct gemm *g, const struct gemm_strip *s, int64_t r, int64_t c, const float *sum)
{
    const int64_t m = s->m + r, n = s->n + c, columns = gemm_least(s->columns - c, PANEL);
    float row[PANEL], buffer[PANEL];
    for (int64_t lane = 0; lane < columns; lane++)
        row[lane] = sum[lane];
    float *waiting = s->sums ? s->sums + r * s->sums_stride + c : NULL;
    if (waiting && !s->first)
        for (int64_t lane = 0; lane < columns; lane++)
            row[lane] += waiting[lane];
    if (g->bias && (waiting ? s->last : s->first))
        for (int64_t lane = 0; lane < columns; lane++)
            row[lane] += g->bias[m * g->bias_stride + n + lane];
    if (waiting && !s->last) {
        memcpy(waiting, row, sizeof *row * (size_t)columns);
        return;
    }
    char *out = (char *)g->out + (m * g->out_stride + n) * (int64_t)element_size(g->dtype);
    if (g->accumulate || (!waiting && !s->first)) {
        const float *old = read_elements(g->dtype, out, columns, buffer);
        for (int64_t lane = 0; lane < columns; lane++)
            row[lane] += old[lane];
    }
    for (int64_t lane = 0; lane < columns; lane++)
        write_element(g->dtype, out, lane, row[lane]);
}

static void strip(const struct gemm *g, const struct gemm_strip *s)
{
    _Alignas(16) float tile[ROWS * PANEL];
    const float *a = place_in(g, g->a, s->m * g->a_stride + s->k);
    int64_t a_stride = g->a_stride;
    if (g->dtype != ATTN_F32) {
        for (int64_t r = 0; r < s->rows; r++)
            read_elements(g->dtype, place_in(g, a, r * g->a_stride), s->depth, s->strip + r * s->depth);
        a = s->strip;
        a_stride = s->depth;
    }
    for (int64_t c = 0; c < s->columns; c += PANEL) {
        const float *panel = s->panels + c * s->depth;
        const int64_t width = panel_width(gemm_least(s->columns - c, PANEL));
        if (width == 16)
            score_tile(4, a, a_stride, panel, s->depth, s->rows, tile);
        else if (width == 8)
            score_tile(2, a, a_stride, panel, s->depth, s->rows, tile);
        else
            score_tile(1, a, a_stride, panel, s->depth, s->rows, tile);
        for (int64_t r = 0; r < s->rows; r++)
            end_row(g, s, r, c, tile + r * width);
    }
}

static const struct gemm_form form = {
    .rows = ROWS,
    .panel = PANEL,
    .depth = DEPTH,
    .per_float = 1,
    .pack = pack,
    .strip = strip,
};

static int plan(const struct attn_problem *problem, int32_t threads, void *state, struct attn_plan *plan)
{
    (void)threads;
    (void)state;
    const struct gemm_room room = gemm_room(problem, &form, problem->dtype != ATTN_F32);
    plan->q_grain = GEMM_LEAST_ROWS;
    plan->k_grain = GEMM_LEAST_COLUMNS;
    plan->thread_bytes = sizeof(float) * gemm_room_floats(&room);
    return 0;
}

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    (void)phase;
    (void)state;
    const struct gemm_room room = gemm_room(problem, &form, problem->dtype != ATTN_F32);
    for (int64_t b = span->b0; b < span->b1; b++)
        for (int64_t h = span->h0; h < span->h1; h++) {
            const struct gemm g = gemm_of(problem, args, span, b, h);
            gemm_multiply(&g, &form, &room, scratch);
        }
    return 0;
}

extern const struct attn_kernel attn_kernel_tiled_matmul;

const struct attn_kernel attn_kernel_tiled_matmul = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "tiled",
    .summary = "packed panels of b in portable C, 16 columns as lanes",
    .rules = ATTN_BIT(ATTN_MATMUL),
    .dtypes = ATTN_BIT(ATTN_F32) | ATTN_BIT(ATTN_BF16) | ATTN_BIT(ATTN_F16),
    .plan = plan,
    .run = run,
};
