/* SPDX-License-Identifier: Apache-2.0
 *
 * additive (Bahdanau): w [q_i; k_j] + c is (w_q q_i + c) + w_k k_j, so w is applied once to every q and once to every
 * k, by its columns; the S_q x S_kv x hidden tanh are the attention step's.
 */
#include "steps.h"

void layer_additive(const struct layer_build *build)
{
    const struct attn_problem *problem = build->problem;
    const struct attn_args *args = build->args;
    const int64_t B = problem->B, H = problem->H, H_kv = problem->H_kv, hidden = problem->hidden;
    const int64_t D = problem->D, key_dim = problem->key_dim;
    const struct attn_tensor q = layer_operand(build, &args->q, B, H, problem->S_q, D);
    const struct attn_tensor k = layer_operand(build, &args->k, B, H_kv, problem->S_kv, key_dim);
    const struct attn_tensor v = layer_operand(build, &args->v, B, H_kv, problem->S_kv, problem->D_v);
    const struct attn_tensor out = layer_operand(build, &args->out, B, H, problem->S_q, problem->D_v);
    const struct attn_tensor w = layer_param(build, ATTN_ADDITIVE_W, hidden, D + key_dim);
    const struct attn_tensor w_bias = layer_param(build, ATTN_ADDITIVE_W_BIAS, 1, hidden);
    const struct attn_tensor w_q = layer_columns(build, &w, 0, D), w_k = layer_columns(build, &w, D, key_dim);
    const struct attn_tensor none = {0};

    const struct attn_tensor projected_q = layer_rows(build, &q, hidden), projected_k = layer_rows(build, &k, hidden);
    layer_matmul(build, ATTN_PHASE_PROJECTIONS, &q, &w_q, &w_bias, ATTN_FLAG_TRANSPOSED, &projected_q);
    layer_matmul(build, ATTN_PHASE_PROJECTIONS, &k, &w_k, &none, ATTN_FLAG_TRANSPOSED, &projected_k);
    struct attn_step *step = layer_attention(build, ATTN_ADDITIVE, &projected_q, &projected_k, &v, &out);
    step->problem.hidden = hidden;
    step->param[0] = layer_param(build, ATTN_ADDITIVE_U, 1, hidden);
    step->args.param = step->param;
}
