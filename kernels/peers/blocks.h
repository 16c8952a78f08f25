/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention as a user of a matrix library writes it: product, softmax, product, for a block of query rows at a time, so
 * that the scores of a block stay near. The library brings the products.
 *
 * Algorithm: a block's scores against all keys that some of its rows may see; softmax row by row, with zeros where a
 * row may not look; the product with the values; division by the row's sum. Keys that no row of the block may see are
 * never touched. With one query a head, the query heads of a key head are the rows of one block. Memory: rows x S_kv
 * scores for each thread.
 */
#ifndef KERNELS_PEERS_BLOCKS_H
#define KERNELS_PEERS_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../attn.h"

/* c = alpha a b + beta c, rows side by side: a is [m][k], b [k][n] ([n][k] if transposed), c [m][n]. With beta 0, c may
 * hold anything. Strides between rows are at least their lengths and fit an int, and so do the sizes. */
struct peer_product {
    int64_t m, n, k;
    float alpha, beta;
    const float *a, *b;
    float *c;
    int64_t a_stride, b_stride, c_stride;
    bool transposed;
};

/* Who multiplies. */
struct peer_multiplier {
    /* 0 or -errno. */
    int (*multiply)(void *context, const struct peer_product *product);
    void *context;
    int64_t rows;  /* query rows of a block, at least 1 */
    int64_t slack; /* rows behind a's last that multiply may read, to no effect: of scores, there are so many more */
};

/* Keys that query i of sequence b may see by position (kv_len, causal line, window): *first..*last, which may be empty.
 * Both rise with i. */
void peer_visible(const struct attn_problem *problem, int64_t b, int64_t i, int64_t *first, int64_t *last);

/* What blocks of f32 cannot do whoever multiplies (scaled dot product and matmul); NULL: nothing. */
const char *peer_blocks_refuse(const struct attn_problem *problem);

/* Grains and scratch. */
void peer_blocks_plan(const struct attn_problem *problem, int32_t threads, const struct peer_multiplier *multiplier,
                      struct attn_plan *plan);

/* One span of scaled dot product or matmul; scratch as planned. 0, -EINVAL if rows overlap, -EOVERFLOW if a stride does
 * not fit an int, or what multiply returned. */
int peer_blocks_run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
                    const struct peer_multiplier *multiplier, void *scratch);

#endif
