/* SPDX-License-Identifier: Apache-2.0
 *
 * Case folders: case.json plus .npy arrays, so that kernels can be checked on tensors dumped from a user's own model.
 *
 * Keys of case.json: rule; batch, q_len, kv_len; causal ("none"), window (L, [L,R] or null), kv_lengths (a list of
 * `batch` numbers or null), layout ("BHSD"; "BSD": arrays without heads), dtype ("f32": what inputs are rounded to),
 * name, note, and by rule (in brackets: what holds where it is not given):
 *
 *   scaled_dot_product  heads, kv_heads (heads), head_dim, value_dim (head_dim), scale (1/sqrt(head_dim)), softcap
 *   additive            query_dim, key_dim, value_dim, hidden_dim, heads (1), kv_heads (heads)
 *   concat              query_dim, key_dim, value_dim, heads (1); out_dim: with the linear layer behind it
 *   multi_head          those of scaled_dot_product, model_dim_k, model_dim_v (model_dim_k), out_dim
 *   self_attention      those of multi_head, input_dim; multi_head (true); false: head_dim and value_dim are model dims
 *   matmul              semantics ("matmul" or "dot") alone: the arrays tell the sizes
 *
 * `inputs` names the arrays: q, k, v (self_attention: x; matmul: a and b), the parameters of kernels/layers/layer.h by
 * their names there, maybe mask and bias; without u the hidden units of additive are added up. `expect` names maybe
 * out and weights. Each is {"file": ...}, or just the file's name. Operands and out have the shape of the layout, those
 * of the layers [B,S,D] always, where layout HBSD asks for heads copied together. Parameters are matrices, their biases
 * and u vectors. weights is [B,H,S_q,S_kv] (no heads: [B,S_q,S_kv]), mask and bias may have 1 for any of these. matmul:
 * any rank, broadcast as numpy does.
 */
#ifndef HARNESS_CASE_FOLDER_H
#define HARNESS_CASE_FOLDER_H

#include "operands.h"

struct case_folder {
    struct operands operands; /* inputs loaded, MEMORY_PLAIN; spec describes the case (seed 0) */
    double *expect_out;       /* [sizes of args.out], or NULL: hold against the oracle */
    double *expect_weights;   /* [B][H][S_q][S_kv], or NULL */
    const char *name;
};

/* Reads DIR/case.json and the arrays it names. Errors name the file and what is wrong with it. NaN inputs are legal. */
int case_folder_read(const char *directory, struct case_folder *folder, struct error *error);
void case_folder_release(struct case_folder *folder);

/* Writes a case in the same form: the inputs of operands, the oracle's (or expected) answer. Creates the directory. */
int case_folder_write(const char *directory, const struct operands *operands, const char *note, struct error *error);

#endif
