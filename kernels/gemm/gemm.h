/* SPDX-License-Identifier: Apache-2.0
 *
 * The table entry's functions of a matmul kernel in f32 arithmetic, for f32, bf16 and f16: bf16 and f16 are converted
 * as b is packed, and strip by strip of a.
 */
#ifndef KERNELS_GEMM_GEMM_H
#define KERNELS_GEMM_GEMM_H

#include "few.h"

enum { GEMM_DEPTH = 512 };

static inline void gemm_strip_floats(const struct gemm *g, const struct gemm_strip *s)
{
    const void *a = element_at(g->dtype, g->a, s->m * g->a_stride + s->k);
    int64_t a_row = g->a_stride;
    if (g->dtype != ATTN_F32) {
        elements_to_floats(g->dtype, a, a_row, s->rows, s->depth, s->strip);
        a = s->strip;
        a_row = s->depth;
    }
    gemm_panels(false, g, s, a, a_row, s->depth);
}

static const struct gemm_form gemm_form_floats = {
    .rows = GEMM_ROWS,
    .panel = GEMM_PANEL,
    .depth = GEMM_DEPTH,
    .per_float = 1,
    .pack = gemm_pack_floats,
    .strip = gemm_strip_floats,
};

SIMD_OUTLINE int gemm_plan(const struct attn_problem *problem, int32_t threads, void *state, struct attn_plan *plan)
{
    (void)threads;
    (void)state;
    const struct gemm_room room = gemm_room(problem, &gemm_form_floats, problem->dtype != ATTN_F32);
    plan->q_grain = GEMM_LEAST_ROWS;
    plan->k_grain = GEMM_LEAST_COLUMNS;
    plan->thread_bytes = sizeof(float) * gemm_scratch_floats(problem, &room);
    return 0;
}

SIMD_OUTLINE int gemm_run(const struct attn_problem *problem, const struct attn_args *args,
                          const struct attn_span *span, int32_t phase, void *state, void *scratch)
{
    (void)phase;
    (void)state;
    const struct gemm_room room = gemm_room(problem, &gemm_form_floats, problem->dtype != ATTN_F32);
    for (int64_t b = span->b0; b < span->b1; b++)
        for (int64_t h = span->h0; h < span->h1; h++) {
            const struct gemm g = gemm_of(problem, args, span, b, h);
            if (g.m1 - g.m0 <= GEMM_FEW)
                gemm_few(&g, scratch);
            else
                gemm_multiply(&g, &gemm_form_floats, &room, scratch);
        }
    return 0;
}

#endif
