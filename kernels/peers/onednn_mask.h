/* SPDX-License-Identifier: Apache-2.0
 *
 * What oneDNN gets for keys that a row may not see: a tensor of 0 and -inf that is added to the scores.
 */
#ifndef KERNELS_PEERS_ONEDNN_MASK_H
#define KERNELS_PEERS_ONEDNN_MASK_H

#include <stdbool.h>
#include <stdint.h>

#include "../attn.h"

/* Keys that some row of sequence b may see by position, *begin..*end; at least one query. */
void onednn_range(const struct attn_problem *problem, int64_t b, int64_t *begin, int64_t *end);

/* Bias, mask and position of one row into add[end - begin], -inf where a key is hidden. All hidden: zeros, and true. */
bool onednn_mask_row(const struct attn_problem *problem, const struct attn_args *args, int64_t b, int64_t h, int64_t i,
                     int64_t begin, int64_t end, float *add);

/* The tensor to be added for positions of sequence b, [S_q][end - begin], zeros in rows that see nothing. The caller
 * frees *add; it stays NULL where every row sees all keys of the range. 0 or -ENOMEM. */
int onednn_mask_position(const struct attn_problem *problem, int64_t b, float **add);

#endif
