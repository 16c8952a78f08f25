/* SPDX-License-Identifier: Apache-2.0
 *
 * What the layers of this folder are put together with: tensors in the workspace, and the three kinds of steps.
 * Internal to kernels/layers.
 */
#ifndef ATTN_LAYER_STEPS_H
#define ATTN_LAYER_STEPS_H

#include "layer.h"

struct layer_build {
    const struct attn_problem *problem; /* the whole one */
    const struct attn_args *args;       /* all absent where shapes alone are wanted */
    bool shapes_alone;
    char *workspace; /* NULL: the size alone is wanted */
    struct attn_layer *layer;
};

/* The whole problem's tensor where there are args, else one of that shape without gaps and without data. */
struct attn_tensor layer_operand(const struct layer_build *build, const struct attn_tensor *given, int64_t size0,
                                 int64_t size1, int64_t size2, int64_t size3);
/* Parameter n, [1][1][rows][columns]. */
struct attn_tensor layer_param(const struct layer_build *build, int n, int64_t rows, int64_t columns);

/* A tensor of the workspace with one row of `width` elements for each row of `like`, rows in the order of its memory;
 * every row begins a cache line. */
struct attn_tensor layer_rows(const struct layer_build *build, const struct attn_tensor *like, int64_t width);
/* A tensor of the workspace without gaps, [H][B][S][D] in memory. */
struct attn_tensor layer_heads(const struct layer_build *build, int64_t B, int64_t H, int64_t S, int64_t D);

/* Columns first..first+count-1, and the view [B][H][S][D] of [B][1][S][H D]. */
struct attn_tensor layer_columns(const struct layer_build *build, const struct attn_tensor *tensor, int64_t first,
                                 int64_t count);
struct attn_tensor layer_split(const struct attn_tensor *rows, int64_t H, int64_t D);

/* out = x w + bias for every row of x. bias: one row, without data: none. flags: TRANSPOSED. */
void layer_matmul(const struct layer_build *build, enum attn_phase phase, const struct attn_tensor *x,
                  const struct attn_tensor *w, const struct attn_tensor *bias, uint32_t flags,
                  const struct attn_tensor *out);
void layer_copy(const struct layer_build *build, const struct attn_tensor *from, const struct attn_tensor *to);
/* The attention step with the masks and weights of the whole problem; its sizes are those of q and v, its heads those
 * of q and k. The caller may change what differs from the whole problem. */
struct attn_step *layer_attention(const struct layer_build *build, enum attn_rule rule, const struct attn_tensor *q,
                                  const struct attn_tensor *k, const struct attn_tensor *v,
                                  const struct attn_tensor *out);

void layer_additive(const struct layer_build *build);
void layer_concat(const struct layer_build *build);
void layer_multi_head(const struct layer_build *build, bool permute);
void layer_self_attention(const struct layer_build *build, bool permute);
/* multi_head of these inputs, with the parameters from first_param on. */
void layer_multi_head_of(const struct layer_build *build, const struct attn_tensor *q, const struct attn_tensor *k,
                         const struct attn_tensor *v, int first_param, bool permute);

#endif
