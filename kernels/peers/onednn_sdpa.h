/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention by oneDNN's graph SDPA, as far as the library forms a single partition of it.
 */
#ifndef KERNELS_PEERS_ONEDNN_SDPA_H
#define KERNELS_PEERS_ONEDNN_SDPA_H

#include "onednn_api.h"

#include "../attn.h"

struct onednn_sdpa;

/* Why the graph is not for this problem, NULL: it is. Valid until the next call. The library is open. */
const char *onednn_sdpa_refuse(const struct attn_problem *problem);

/* 0 or -ENOMEM, then there is nothing to be closed. */
int onednn_sdpa_open(const struct attn_problem *problem, struct onednn_sdpa **sdpa);
void onednn_sdpa_close(struct onednn_sdpa *sdpa);

/* The whole problem on the calling thread's number of threads. -ENOTSUP before anything is computed: the library does
 * not compile the graph for these strides, or a bias would be rounded to 16 bits. Else 0, -ENOMEM or -EIO. */
int onednn_sdpa_run(struct onednn_sdpa *sdpa, const struct attn_problem *problem, const struct attn_args *args);

#endif
