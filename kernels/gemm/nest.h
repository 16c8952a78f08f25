/* SPDX-License-Identifier: Apache-2.0
 *
 * The product of two matrices as blocks: the loops that do not depend on vectors. A kernel says by a struct gemm_form
 * what its micro-kernel likes.
 *
 *   for blocks of columns (up to 256), of rows, of depth (up to form.depth):
 *       pack b[depth][columns] into panels of form.panel columns, in which one step of k lies behind the other
 *       for strips of form.rows rows of a: all panels, each a sum over the block's depth in registers
 *
 * A strip of a (rows x depth) stays in L1 while the panels, which are a part of L2, pass by. Sums over a depth of
 * several blocks wait in the output, if it is f32, else in scratch, for which rows then come in blocks as well.
 */
#ifndef KERNELS_GEMM_NEST_H
#define KERNELS_GEMM_NEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../attn.h"

enum {
    GEMM_COLUMNS = 256,     /* of a block: packed b is up to GEMM_COLUMNS x depth */
    GEMM_NARROW_ROWS = 384, /* of a block where sums wait in scratch */
    GEMM_LEAST_ROWS = 96,   /* of a span: fewer would not repay packing b anew */
    GEMM_LEAST_COLUMNS = 64 /* likewise: whole panels, whole cache lines of any dtype */
};

/* Rows m0..m1-1 and columns n0..n1-1 of one product: out (+)= a b + bias. Strides are from one row to the next, in
 * elements. */
struct gemm {
    uint32_t dtype;
    bool transposed, accumulate; /* b is [N][K]; out is added to */
    const void *a, *b;
    void *out;
    const float *bias; /* NULL: none */
    int64_t a_stride, b_stride, out_stride, bias_stride;
    int64_t depth, m0, m1, n0, n1;
};

/* How a problem is blocked, and the room for it, in floats. */
struct gemm_room {
    int64_t depth, columns, rows; /* of a block; columns in whole panels */
    size_t panels, strip, sums;   /* packed b, a strip of a that can't be read in place, sums that wait */
};

/* Up to form.rows rows of a over one block of b. */
struct gemm_strip {
    int64_t m, rows, n, columns, k, depth;
    const float *panels;
    float *strip, *sums; /* sums: [rows][columns of the room], NULL: they wait in the output, or need not wait */
    int64_t sums_stride;
    bool first, last; /* block of the depth */
};

struct gemm_form {
    int64_t rows, panel; /* of a strip of a, columns of a panel of b; the panel divides GEMM_LEAST_COLUMNS */
    int64_t depth;       /* most of a block, a multiple of 4 */
    int64_t per_float;   /* steps of k that lie in the place of a float in a panel, 1 or 2 */
    /* b rows k..k+depth-1, columns n..n+columns-1, into panels; columns beyond the last become zeros. */
    void (*pack)(const struct gemm *g, int64_t k, int64_t depth, int64_t n, int64_t columns, float *panels);
    void (*strip)(const struct gemm *g, const struct gemm_strip *s);
};

static inline int64_t gemm_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t gemm_up(int64_t x, int64_t grain)
{
    return (x + grain - 1) / grain * grain;
}

/* strip_copied: form.strip may want room for a strip of a. */
static inline struct gemm_room gemm_room(const struct attn_problem *problem, const struct gemm_form *form,
                                         bool strip_copied)
{
    struct gemm_room room = {.rows = INT64_MAX};
    const int64_t blocks = problem->D > 0 ? (problem->D + form->depth - 1) / form->depth : 1;
    room.depth = gemm_up((problem->D + blocks - 1) / blocks, 4);
    room.columns = gemm_up(gemm_least(problem->S_kv, GEMM_COLUMNS), form->panel);
    room.panels = (size_t)(room.depth / form->per_float * room.columns);
    room.strip = strip_copied ? (size_t)(form->rows * room.depth / form->per_float) : 0;
    if (problem->dtype != ATTN_F32 && blocks > 1) {
        room.rows = gemm_up(gemm_least(problem->S_q, GEMM_NARROW_ROWS), form->rows);
        room.sums = (size_t)(room.rows * room.columns);
    }
    return room;
}

static inline size_t gemm_room_floats(const struct gemm_room *room)
{
    return room->panels + room->strip + room->sums;
}

/* One block of rows and columns, over all of the depth. */
static inline void gemm_block(const struct gemm *g, const struct gemm_form *form, const struct gemm_room *room,
                              int64_t m0, int64_t m1, int64_t n, float *scratch)
{
    struct gemm_strip s = {.n = n, .panels = scratch, .strip = scratch + room->panels};
    float *sums = scratch + room->panels + room->strip;
    s.columns = gemm_least(g->n1 - n, room->columns);
    s.sums_stride = room->columns;
    do {
        s.depth = gemm_least(g->depth - s.k, room->depth);
        s.first = s.k == 0;
        s.last = s.k + s.depth == g->depth;
        form->pack(g, s.k, s.depth, n, s.columns, scratch);
        for (s.m = m0; s.m < m1; s.m += s.rows) {
            s.rows = gemm_least(m1 - s.m, form->rows);
            s.sums = room->sums ? sums + (s.m - m0) * room->columns : NULL;
            form->strip(g, &s);
        }
        s.k += s.depth;
    } while (s.k < g->depth);
}

static inline void gemm_multiply(const struct gemm *g, const struct gemm_form *form, const struct gemm_room *room,
                                 float *scratch)
{
    for (int64_t n = g->n0; n < g->n1; n += room->columns)
        for (int64_t m = g->m0, rows; m < g->m1; m += rows) {
            rows = gemm_least(g->m1 - m, room->rows);
            gemm_block(g, form, room, m, m + rows, n, scratch);
        }
}

/* The product of batch entry b and head h, as far as the span goes. */
static inline struct gemm gemm_of(const struct attn_problem *problem, const struct attn_args *args,
                                  const struct attn_span *span, int64_t b, int64_t h)
{
    const int64_t element = problem->dtype == ATTN_F32 ? sizeof(float) : sizeof(uint16_t);
    struct gemm g = {
        .dtype = problem->dtype,
        .transposed = (problem->flags & ATTN_FLAG_TRANSPOSED) != 0,
        .accumulate = (problem->flags & ATTN_FLAG_ACCUMULATE) != 0,
        .a = (const char *)args->q.data + (b * args->q.stride[0] + h * args->q.stride[1]) * element,
        .b = (const char *)args->k.data + (b * args->k.stride[0] + h * args->k.stride[1]) * element,
        .out = (char *)args->out.data + (b * args->out.stride[0] + h * args->out.stride[1]) * element,
        .a_stride = args->q.stride[2],
        .b_stride = args->k.stride[2],
        .out_stride = args->out.stride[2],
        .depth = problem->D,
        .m0 = span->q0,
        .m1 = span->q1,
        .n0 = span->k0,
        .n1 = span->k1,
    };
    if (args->bias.data) {
        g.bias = (const float *)args->bias.data + b * args->bias.stride[0] + h * args->bias.stride[1];
        g.bias_stride = args->bias.stride[2];
    }
    return g;
}

#endif
