/* SPDX-License-Identifier: Apache-2.0
 *
 * Case folders: case.json plus .npy arrays, so that kernels can be checked on tensors dumped from a user's own model.
 *
 * Keys of case.json: rule, batch, heads, q_len, kv_len, head_dim (needed); kv_heads (heads), value_dim (head_dim),
 * scale (1/sqrt(head_dim)), causal ("none"), window (L, [L,R] or null), kv_lengths (a list of `batch` numbers or null),
 * softcap (null), layout ("BHSD"), dtype ("f32": what inputs are rounded to), name, note. `inputs` names q, k, v and
 * maybe mask and bias, `expect` maybe out and weights: each {"file": ...}, or just the file's name. q, k, v and out
 * have the shape of the layout, weights is [B,H,S_q,S_kv], mask and bias may have 1 for any of these.
 */
#ifndef HARNESS_CASE_FOLDER_H
#define HARNESS_CASE_FOLDER_H

#include "operands.h"

struct case_folder {
    struct operands operands; /* inputs loaded, MEMORY_PLAIN; spec describes the case (seed 0) */
    double *expect_out;       /* [B][H][S_q][D_v], or NULL: hold against the oracle */
    double *expect_weights;   /* [B][H][S_q][S_kv], or NULL */
    const char *name;
};

/* Reads DIR/case.json and the arrays it names. Errors name the file and what is wrong with it. NaN inputs are legal. */
int case_folder_read(const char *directory, struct case_folder *folder, struct error *error);
void case_folder_release(struct case_folder *folder);

/* Writes a case in the same form: the inputs of operands, the oracle's (or expected) answer. Creates the directory. */
int case_folder_write(const char *directory, const struct operands *operands, const char *note, struct error *error);

#endif
