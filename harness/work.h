/* SPDX-License-Identifier: Apache-2.0
 *
 * How much work a problem is, from the problem alone: FLOPs, tanh, bytes, allowed pairs. The formulas are the
 * contract's.
 */
#ifndef HARNESS_WORK_H
#define HARNESS_WORK_H

#include "../kernels/layers/layer.h"
#include "spec.h"

/* Work of one phase, each with a roof time of its own. What one phase hands on to the next is not counted as bytes: a
 * better kernel could keep it in registers. */
struct work_phase {
    double flops, tanh_count, bytes_read, bytes_written;
};

struct work {
    double pairs_useful; /* (query, key) pairs left by causal, window and kv-lengths, over all B and H; 0 for matmul */
    double pairs_dense;  /* B * H * S_q * S_kv */
    double flops_useful; /* of all phases; `list rules` has the formulas */
    double flops_dense;
    double tanh_count;    /* 0 where there is none (softcap's tanh do not count) */
    double bytes_read;    /* q; K and V rows that some query may see, once per key head (once if aliased); mask; bias;
                             parameters. Layers read all rows: each is projected */
    double bytes_written; /* out, weights */
    double bytes_min;     /* read + written */
    double working_set;   /* bytes of all operand buffers: what a cache would have to hold */
    struct work_phase phase[ATTN_PHASES]; /* a rule without phases does everything as attention */
};

/* B, H, S >= 0. Exact: counted per row range, not by loops over pairs (S may be 10^6). */
void work_count(const struct problem_spec *spec, struct work *work);

#endif
