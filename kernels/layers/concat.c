/* SPDX-License-Identifier: Apache-2.0
 *
 * concat: w [q_i; k_i] + w_bias is the dot product of one row with every row of w: scaled_dot_product with w as the
 * keys of every head, and w_bias as the bias of every row. With COMBINE attention writes beside a copy of q, so that
 * one product does the linear layer: two, of which the second adds to the first, would round a 16-bit output twice.
 */
#include <assert.h>

#include "steps.h"

void layer_concat(const struct layer_build *build)
{
    const struct attn_problem *problem = build->problem;
    const struct attn_args *args = build->args;
    const bool combined = problem->flags & ATTN_FLAG_COMBINE;
    const int64_t B = problem->B, H = problem->H, S_q = problem->S_q, S_kv = problem->S_kv;
    const int64_t D = problem->D, key_dim = problem->key_dim, width = D + key_dim;
    const struct attn_tensor q = layer_operand(build, &args->q, B, H, S_q, D);
    const struct attn_tensor k = layer_operand(build, &args->k, B, H, S_q, key_dim);
    const struct attn_tensor v = layer_operand(build, &args->v, B, H, S_kv, problem->D_v);
    const struct attn_tensor out =
        layer_operand(build, &args->out, B, H, S_q, combined ? problem->out_dim : problem->D_v);
    const struct attn_tensor w = layer_param(build, ATTN_CONCAT_W, S_kv, width);
    const struct attn_tensor w_bias = layer_param(build, ATTN_CONCAT_W_BIAS, 1, S_kv);

    const struct attn_tensor rows = layer_rows(build, &q, width);
    const struct attn_tensor rows_q = layer_columns(build, &rows, 0, D);
    const struct attn_tensor rows_k = layer_columns(build, &rows, D, key_dim);
    layer_copy(build, &q, &rows_q);
    layer_copy(build, &k, &rows_k);

    const struct attn_tensor keys = {.data = w.data, .size = {B, H, S_kv, width}, .stride = {0, 0, w.stride[2], 1}};
    struct attn_tensor joined = {0}, applied = out;
    if (combined) {
        joined = layer_rows(build, &q, D + problem->D_v);
        const struct attn_tensor joined_q = layer_columns(build, &joined, 0, D);
        layer_copy(build, &q, &joined_q);
        applied = layer_columns(build, &joined, D, problem->D_v);
    }
    struct attn_step *step = layer_attention(build, ATTN_SCALED_DOT_PRODUCT, &rows, &keys, &v, &applied);
    assert(!step->args.bias.data && problem->softcap == 0); /* the rule has neither */
    if (w_bias.data)
        step->args.bias = (struct attn_tensor){.data = w_bias.data, .size = {B, H, S_q, S_kv}, .stride = {0, 0, 0, 1}};
    if (combined) {
        const struct attn_tensor w_out = layer_param(build, ATTN_CONCAT_W_OUT, problem->out_dim, D + problem->D_v);
        const struct attn_tensor w_out_bias = layer_param(build, ATTN_CONCAT_W_OUT_BIAS, 1, problem->out_dim);
        layer_matmul(build, ATTN_PHASE_OUTPUT, &joined, &w_out, &w_out_bias, ATTN_FLAG_TRANSPOSED, &out);
    }
}
