/* SPDX-License-Identifier: Apache-2.0
 *
 * multi_head: q, k and v are projected into rows of all heads side by side, which attention reads where they lie: a
 * head is a view of D columns. Or, as textbooks do it, heads are copied to [H][B][S][D] and back. The joined heads go
 * through the output projection.
 */
#include "steps.h"

/* x w^T + w_bias in the workspace: [B][1][S][columns]. */
static struct attn_tensor project(const struct layer_build *build, const struct attn_tensor *x, int param,
                                  int64_t columns)
{
    const struct attn_tensor w = layer_param(build, param, columns, x->size[3]);
    const struct attn_tensor w_bias = layer_param(build, param + 1, 1, columns); /* follows its matrix */
    const struct attn_tensor rows = layer_rows(build, x, columns);
    layer_matmul(build, ATTN_PHASE_PROJECTIONS, x, &w, &w_bias, ATTN_FLAG_TRANSPOSED, &rows);
    return rows;
}

static struct attn_tensor own_copy(const struct layer_build *build, const struct attn_tensor *heads)
{
    const struct attn_tensor copy = layer_heads(build, heads->size[0], heads->size[1], heads->size[2], heads->size[3]);
    layer_copy(build, heads, &copy);
    return copy;
}

void layer_multi_head_of(const struct layer_build *build, const struct attn_tensor *x_q, const struct attn_tensor *x_k,
                         const struct attn_tensor *x_v, int first_param, bool permute)
{
    const struct attn_problem *problem = build->problem;
    const int64_t H = problem->H, H_kv = problem->H_kv, D = problem->D, D_v = problem->D_v;
    const struct attn_tensor rows_q = project(build, x_q, first_param + ATTN_LAYER_W_Q, H * D);
    const struct attn_tensor rows_k = project(build, x_k, first_param + ATTN_LAYER_W_K, H_kv * D);
    const struct attn_tensor rows_v = project(build, x_v, first_param + ATTN_LAYER_W_V, H_kv * D_v);
    const struct attn_tensor joined = layer_rows(build, x_q, H * D_v);

    struct attn_tensor q = layer_split(&rows_q, H, D), k = layer_split(&rows_k, H_kv, D);
    struct attn_tensor v = layer_split(&rows_v, H_kv, D_v), applied = layer_split(&joined, H, D_v);
    const struct attn_tensor applied_columns = applied;
    if (permute) {
        q = own_copy(build, &q);
        k = own_copy(build, &k);
        v = own_copy(build, &v);
        applied = layer_heads(build, problem->B, H, problem->S_q, D_v);
    }
    struct attn_step *step = layer_attention(build, ATTN_SCALED_DOT_PRODUCT, &q, &k, &v, &applied);
    step->problem.scale = problem->scale;
    if (permute)
        layer_copy(build, &applied, &applied_columns);

    const struct attn_tensor w_o = layer_param(build, first_param + ATTN_LAYER_W_O, problem->out_dim, H * D_v);
    const struct attn_tensor w_o_bias = layer_param(build, first_param + ATTN_LAYER_W_O_BIAS, 1, problem->out_dim);
    const struct attn_tensor out =
        layer_operand(build, &build->args->out, problem->B, 1, problem->S_q, problem->out_dim);
    layer_matmul(build, ATTN_PHASE_OUTPUT, &joined, &w_o, &w_o_bias, ATTN_FLAG_TRANSPOSED, &out);
}

void layer_multi_head(const struct layer_build *build, bool permute)
{
    const struct attn_problem *problem = build->problem;
    const struct attn_args *args = build->args;
    const struct attn_tensor q = layer_operand(build, &args->q, problem->B, 1, problem->S_q, problem->model_dim);
    const struct attn_tensor k = layer_operand(build, &args->k, problem->B, 1, problem->S_kv, problem->model_dim);
    const struct attn_tensor v = layer_operand(build, &args->v, problem->B, 1, problem->S_kv, problem->model_dim_v);
    layer_multi_head_of(build, &q, &k, &v, 0, permute);
}
