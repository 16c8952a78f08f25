/* SPDX-License-Identifier: Apache-2.0
 *
 * self_attention: q, k and v are x times a matrix each, without bias; then multi_head of them, or with SINGLE plain
 * scaled dot product of one head.
 */
#include <assert.h>

#include "steps.h"

/* x w in the workspace: [B][1][S][columns]. */
static struct attn_tensor times(const struct layer_build *build, const struct attn_tensor *x, int param,
                                int64_t columns)
{
    const struct attn_tensor w = layer_param(build, param, x->size[3], columns), none = {0};
    const struct attn_tensor rows = layer_rows(build, x, columns);
    layer_matmul(build, ATTN_PHASE_PROJECTIONS, x, &w, &none, 0, &rows);
    return rows;
}

void layer_self_attention(const struct layer_build *build, bool permute)
{
    const struct attn_problem *problem = build->problem;
    const struct attn_args *args = build->args;
    assert(problem->S_kv == problem->S_q);
    const struct attn_tensor x = layer_operand(build, &args->q, problem->B, 1, problem->S_q, problem->input_dim);
    const struct attn_tensor q = times(build, &x, ATTN_SELF_W_Q, problem->model_dim);
    const struct attn_tensor k = times(build, &x, ATTN_SELF_W_K, problem->model_dim);
    const struct attn_tensor v = times(build, &x, ATTN_SELF_W_V, problem->model_dim_v);
    if (!(problem->flags & ATTN_FLAG_SINGLE)) {
        layer_multi_head_of(build, &q, &k, &v, ATTN_SELF_MATRICES, permute);
        return;
    }
    assert(problem->H == 1 && problem->D == problem->model_dim && problem->D_v == problem->model_dim_v);
    const struct attn_tensor out = layer_operand(build, &args->out, problem->B, 1, problem->S_q, problem->D_v);
    struct attn_step *step = layer_attention(build, ATTN_SCALED_DOT_PRODUCT, &q, &k, &v, &out);
    step->problem.scale = problem->scale;
}
