/* SPDX-License-Identifier: Apache-2.0
 *
 * The ceilings of a team: what its threads compute, move and wait at best, each as the median of several repeats. The
 * worker's side of `attnbench peak`.
 */
#ifndef HARNESS_PEAKS_H
#define HARNESS_PEAKS_H

#include <jansson.h>

#include "levels.h"
#include "team.h"

/* How much is measured. */
struct peak_effort {
    int repeats;       /* of everything, at least 1 */
    double clocked_ns; /* of one repeat of one loop */
};

enum { PEAK_REPEATS_MOST = 64 };

/* One sample of take(context). Where a thread of this process had to give up its CPU meanwhile it is taken again, a few
 * times at most: the last one stands. */
double peak_sample(double (*take)(void *context), void *context);

/* {"median","mad","min","max","repeats"} of 1 .. PEAK_REPEATS_MOST values; null where there is none, or one is not
 * finite. */
json_t *peak_summary(const double *values, int count);

/* [{"element","vector","name","giga_ops_per_s":{},"reason"}]: one operation is a multiplication or an addition. A loop
 * whose instructions are missing here has a null rate and the reason. NULL: no memory. */
json_t *peak_compute(const struct team *team, const struct peak_effort *effort);

/* [{"function","vector","giga_per_s":{},"reason"}]: values of exp and tanh. */
json_t *peak_functions(const struct team *team, const struct peak_effort *effort);

/* {"level","cache_bytes","threads","bytes","vector","page_mode","mem_nodes","read_gb_per_s":{},"read_streams",
 * "write_gb_per_s":{},"write_streams","copy_gb_per_s":{},"latency_bytes","latency_ns":{},"reason"} of one level. copy
 * counts bytes read and bytes written. Where memory can't be had or bound: reason, and null figures. */
json_t *peak_level(const struct team *team, const struct level *level, const struct peak_effort *effort);

/* {"fork_join_ns":{},"barrier_ns":{}}: an empty parallel region, and a barrier inside one. */
json_t *peak_team(const struct team *team, const struct peak_effort *effort);

#endif
