/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules that are put together from others: additive, concat, multi_head, self_attention. A layer is a list of steps,
 * each a problem of its own for the kernel under test (scaled_dot_product, additive), for its matmul, or for the copy
 * kernel of this folder; the caller runs them one after the other, each under a schedule of its own.
 *
 * What the whole problem's args are, by rule (all contiguous in their last dimension, sizes as named; f32 biases,
 * everything else in the problem's dtype; a tensor of one row is [1][1][1][n]):
 *
 * additive        q [B][H][S_q][D]  k [B][H_kv][S_kv][key_dim]  v [B][H_kv][S_kv][D_v]  out [B][H][S_q][D_v]
 *                 param: w [1][1][hidden][D + key_dim] (its first D columns act on q), w_bias [hidden], u [hidden] or
 *                 absent (ones). score(i,j) = sum_h u_h tanh(w [q_i; k_j] + w_bias)_h + bias(i,j)
 * concat          q [B][H][S_q][D]  k [B][H][S_q][key_dim]  v [B][H][S_kv][D_v]; out [B][H][S_q][D_v], or with COMBINE
 *                 [B][H][S_q][out_dim]; param: w [1][1][S_kv][D + key_dim], w_bias [S_kv], and with COMBINE w_out
 *                 [1][1][out_dim][D + D_v], w_out_bias [out_dim]. score(i,.) = w [q_i; k_i] + w_bias;
 *                 applied_i = softmax(score(i,.)) v;  COMBINE: out_i = w_out [q_i; applied_i] + w_out_bias
 * multi_head      q [B][1][S_q][model_dim]  k [B][1][S_kv][model_dim]  v [B][1][S_kv][model_dim_v]
 *                 out [B][1][S_q][out_dim]; param: w_q [1][1][H D][model_dim], w_q_bias, w_k [H_kv D][model_dim],
 *                 w_k_bias, w_v [H_kv D_v][model_dim_v], w_v_bias, w_o [out_dim][H D_v], w_o_bias. Head h is rows
 *                 h D .. (h+1) D of w_q x + w_q_bias; heads are joined in order before w_o.
 * self_attention  q [B][1][S_q][input_dim] (k and v are not looked at; S_kv = S_q); param: w_self_q
 *                 [1][1][input_dim][model_dim], w_self_k likewise, w_self_v [input_dim][model_dim_v] (x w, no bias),
 *                 then those of multi_head; with SINGLE no more: scaled dot product of one head of D = model_dim and
 *                 D_v = model_dim_v, out [B][1][S_q][D_v].
 *
 * weights are [B][H][S_q][S_kv] everywhere.
 */
#ifndef ATTN_LAYER_H
#define ATTN_LAYER_H

#include <stdbool.h>

#include "../attn.h"

/* Order of param by rule. */
enum { ATTN_ADDITIVE_W, ATTN_ADDITIVE_W_BIAS, ATTN_ADDITIVE_U, ATTN_ADDITIVE_PARAMS };
enum { ATTN_CONCAT_W, ATTN_CONCAT_W_BIAS, ATTN_CONCAT_W_OUT, ATTN_CONCAT_W_OUT_BIAS, ATTN_CONCAT_PARAMS };
enum {
    ATTN_LAYER_W_Q,
    ATTN_LAYER_W_Q_BIAS,
    ATTN_LAYER_W_K,
    ATTN_LAYER_W_K_BIAS,
    ATTN_LAYER_W_V,
    ATTN_LAYER_W_V_BIAS,
    ATTN_LAYER_W_O,
    ATTN_LAYER_W_O_BIAS,
    ATTN_LAYER_PARAMS
};
/* self_attention: its three matrices stand before those of multi_head. */
enum { ATTN_SELF_W_Q, ATTN_SELF_W_K, ATTN_SELF_W_V, ATTN_SELF_MATRICES };
enum { ATTN_MOST_PARAMS = ATTN_SELF_MATRICES + ATTN_LAYER_PARAMS };

/* What a step's time counts as, in the record's phases_ns. */
enum attn_phase { ATTN_PHASE_PROJECTIONS, ATTN_PHASE_PERMUTE, ATTN_PHASE_ATTENTION, ATTN_PHASE_OUTPUT, ATTN_PHASES };
extern const char *const attn_phase_names[ATTN_PHASES]; /* "projections", "permute", "attention", "output" */

/* Who does a step: the kernel under test, its matmul, or attn_kernel_copy. */
enum attn_step_kind { ATTN_STEP_ATTENTION, ATTN_STEP_MATMUL, ATTN_STEP_COPY };

struct attn_step {
    enum attn_phase phase;
    enum attn_step_kind kind;
    struct attn_problem problem;
    struct attn_args args; /* param points into this struct or to the whole problem's */
    struct attn_tensor param[1];
};

enum { ATTN_MOST_STEPS = 16 };
struct attn_layer {
    int count;
    struct attn_step steps[ATTN_MOST_STEPS];
    size_t workspace_bytes;
};

/* Is this rule put together from steps? */
bool attn_rule_is_layered(uint32_t rule);

/*
 * The steps of a problem of a layered rule. args: the whole problem's, or NULL, when shapes alone are wanted and all
 * data pointers of the steps are NULL or offsets. permute: heads are copied to [H][B][S][D] before the attention and
 * back behind it (multi_head and self_attention with heads; others ignore it). workspace: layer->workspace_bytes,
 * 64-byte aligned, contents undefined, or NULL to learn the size. The layer points into itself and must not be moved.
 */
void attn_layer_make(const struct attn_problem *problem, const struct attn_args *args, bool permute, void *workspace,
                     struct attn_layer *layer);

/* Copies q to out, both [B][H][S_q][D] with D = D_v, whatever their strides: rule scaled_dot_product by name only, not
 * in the registry. */
extern const struct attn_kernel attn_kernel_copy;

#endif
