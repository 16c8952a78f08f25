/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of rules; see rules.h.
 */
#include "rules.h"

#define TOKENS "B S_q a call"
#define PAIR_SUM "2 (D + D_v) pairs"
#define KEYS_READ "K and V rows that some query may see (once per key head; once if aliased)"
#define MULTI_HEAD_FLOPS                                                                                               \
    "2 B (S_q model_dim H D + S_kv H_kv (model_dim D + model_dim_v D_v) + S_q H D_v out_dim) + 2 (D + D_v) "

const struct rule_info rules_built[] = {
    {
        .rule = ATTN_SCALED_DOT_PRODUCT,
        .summary = "softmax(scale Q K^T) V, with softcap, bias, masks, window, grouped heads",
        .definition = "s = scale q.k; s = c tanh(s/c) with a softcap c; s = s + bias; masked; out = softmax(s) v",
        .flops_useful = PAIR_SUM "; pairs: (query, key) of every head left by causal, window and kv-lengths",
        .flops_dense = "2 (D + D_v) B H S_q S_kv",
        .bytes_min = KEYS_READ " + q + out + weights + mask + bias",
        .tokens = TOKENS,
    },
    {
        .rule = ATTN_ADDITIVE,
        .summary = "softmax(sum of u tanh(W [q; k] + c)) V (Bahdanau), with bias, masks, window, grouped heads",
        .definition = "s = sum over hidden of u tanh(W_q q + W_k k + c), plain-sum: u = 1; s = s + bias; masked; "
                      "out = softmax(s) v",
        .flops_useful = "2 hidden B (H S_q query_dim + H_kv S_kv key_dim) + (3 hidden + 2 D_v) pairs; tanh_count: "
                        "hidden pairs",
        .flops_dense = "the same with all B H S_q S_kv pairs",
        .bytes_min = KEYS_READ " + q + out + W + c + u + weights + mask + bias",
        .tokens = TOKENS,
    },
    {
        .rule = ATTN_CONCAT,
        .summary = "softmax(W [q; k] + c) over the S_kv value positions, times V; combine: [q; that] through a linear "
                   "layer; with masks, window",
        .definition = "s_i = W [q_i; k_i] + c, a score for each value position; masked; out = softmax(s) v; combine: "
                      "out = W_out [q; softmax(s) v] + c_out",
        .flops_useful = "2 (query_dim + key_dim + D_v) pairs; combine: + 2 (query_dim + D_v) out_dim B H S_q",
        .flops_dense = "the same with all B H S_q S_kv pairs",
        .bytes_min = "V rows that some query may see + q + k + out + W + c + W_out + c_out + weights + mask",
        .tokens = TOKENS,
    },
    {
        .rule = ATTN_MULTI_HEAD,
        .summary = "q, k, v through linear layers into heads, scaled dot product in each, joined heads through a "
                   "linear layer",
        .definition = "head h: q = W_q x_q + c_q, k = W_k x_k + c_k, v = W_v x_v + c_v (rows h D .. of each W), "
                      "scaled_dot_product; out = W_o [heads] + c_o",
        .flops_useful = MULTI_HEAD_FLOPS "pairs",
        .flops_dense = MULTI_HEAD_FLOPS "B H S_q S_kv",
        .bytes_min = "x_q + x_k + x_v (once where aliased) + out + every W and c + weights + mask + bias",
        .tokens = TOKENS,
    },
    {
        .rule = ATTN_SELF_ATTENTION,
        .summary = "q, k, v from one x by three matrices, then multi_head; no-mha: then scaled dot product of one head",
        .definition = "x_q = x M_q, x_k = x M_k, x_v = x M_v; then multi_head of these; no-mha: scaled_dot_product of "
                      "these (D = model_dim, D_v = model_dim_v)",
        .flops_useful = "2 B S input_dim (2 model_dim + model_dim_v) + those of multi_head; no-mha: + " PAIR_SUM,
        .flops_dense = "the same with all B H S S pairs",
        .bytes_min = "x + out + every M, W and c + weights + mask + bias",
        .tokens = TOKENS,
    },
    {
        .rule = ATTN_MATMUL,
        .summary = "products of a batch of matrices: bmm; one operand broadcast; numpy.dot over three dimensions",
        .definition = "out = a b for each of the B H batch entries, [M][K] by [K][N]; broadcast: all share a, or b; "
                      "semantics dot: each of the B a by each of the B b, out [B][M][B][N]",
        .flops_useful = "2 M N K B H; semantics dot: 2 M N K B B",
        .flops_dense = "the same",
        .bytes_min = "a + b (once where broadcast) + out",
        .tokens = "none",
    },
};
const int rules_built_count = sizeof rules_built / sizeof rules_built[0];
