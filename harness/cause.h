/* SPDX-License-Identifier: Apache-2.0
 *
 * What holds a measured point back, and how it scales against one thread of its own kind.
 */
#ifndef HARNESS_CAUSE_H
#define HARNESS_CAUSE_H

#include <jansson.h>

#include "spec.h"
#include "topology.h"

/*
 * Sets, for an ok record:
 *   cause               what is missing to the roof, the first that applies of: noisy; throttled (the cgroup's quota
 *                       stopped it); starved (fewer tasks than threads: some thread had next to nothing to do);
 *                       imbalance (busy time of the slowest thread over the mean, beyond IMBALANCE_MOST); smt-shared
 *                       (two threads on one core); compute-bound, tanh-bound, dram-bound, cache-bound, mixed-bound (at
 *                       least NEAR_ROOF of that roof is reached: nothing but the roof is in the way); kernel (none of
 *                       these: the kernel's own instructions)
 *   imbalance           slowest thread's busy time / mean busy time; null for one thread
 *   gflops_per_core     gflops / distinct cores among its CPUs
 *   parallel_efficiency time of one thread of the same kernel, problem and cache state in these records / (threads x
 *                       time); null where there is none
 */
void cause_annotate(json_t *record, const struct point *point, const json_t *records, const struct topology *topology);

#endif
