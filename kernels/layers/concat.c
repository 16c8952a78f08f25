/* SPDX-License-Identifier: Apache-2.0
 *
 * concat: w [q_i; k_i] + w_bias is the dot product of one row with every row of w: scaled_dot_product with w as the
 * keys of every head, and w_bias as the bias of every row. The linear layer of COMBINE takes its two inputs one after
 * the other, by the columns of w_out, so that [q; applied] is never put together.
 */
#include <assert.h>

#include "steps.h"

/* out = w_out [q; applied] + w_out_bias */
static void combine(const struct layer_build *build, const struct attn_tensor *q, const struct attn_tensor *applied,
                    const struct attn_tensor *out)
{
    const struct attn_problem *problem = build->problem;
    const struct attn_tensor w = layer_param(build, ATTN_CONCAT_W_OUT, problem->out_dim, problem->D + problem->D_v);
    const struct attn_tensor w_bias = layer_param(build, ATTN_CONCAT_W_OUT_BIAS, 1, problem->out_dim);
    const struct attn_tensor w_q = layer_columns(build, &w, 0, problem->D);
    const struct attn_tensor w_applied = layer_columns(build, &w, problem->D, problem->D_v);
    const struct attn_tensor none = {0};
    layer_matmul(build, ATTN_PHASE_OUTPUT, q, &w_q, &w_bias, ATTN_FLAG_TRANSPOSED, out);
    layer_matmul(build, ATTN_PHASE_OUTPUT, applied, &w_applied, &none, ATTN_FLAG_TRANSPOSED | ATTN_FLAG_ACCUMULATE,
                 out);
}

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
    const struct attn_tensor applied = combined ? layer_rows(build, &q, problem->D_v) : out;
    struct attn_step *step = layer_attention(build, ATTN_SCALED_DOT_PRODUCT, &rows, &keys, &v, &applied);
    assert(!step->args.bias.data && problem->softcap == 0); /* the rule has neither */
    if (w_bias.data)
        step->args.bias = (struct attn_tensor){.data = w_bias.data, .size = {B, H, S_q, S_kv}, .stride = {0, 0, 0, 1}};
    if (combined)
        combine(build, &q, &applied, &out);
}
