/* SPDX-License-Identifier: Apache-2.0
 *
 * How much work a problem is, from the problem alone: FLOPs, bytes, allowed pairs. The formulas are the contract's.
 */
#ifndef HARNESS_WORK_H
#define HARNESS_WORK_H

#include "spec.h"

struct work {
    double pairs_useful; /* (query, key) pairs left by causal, window and kv-lengths, over all B and H */
    double pairs_dense;  /* B * H * S_q * S_kv */
    double flops_useful; /* 2 (D + D_v) a useful pair */
    double flops_dense;
    double tanh_count;    /* 0 where there is none (softcap's tanh do not count) */
    double bytes_read;    /* q; K and V rows that some query may see, once per key head (once if aliased); mask; bias */
    double bytes_written; /* out, weights */
    double bytes_min;     /* read + written */
    double working_set;   /* bytes of all operand buffers: what a cache would have to hold */
};

/* B, H, S >= 0. Exact: counted per row range, not by loops over pairs (S may be 10^6). */
void work_count(const struct problem_spec *spec, struct work *work);

#endif
