/* SPDX-License-Identifier: Apache-2.0
 *
 * Placements: from a name or list as users type it to one CPU a thread.
 */
#ifndef HARNESS_PLACEMENT_H
#define HARNESS_PLACEMENT_H

#include <stdint.h>

#include "topology.h"

struct placement {
    const char *name; /* as asked, interned */
    bool bound;       /* false: `none` */
    int threads;
    int32_t *cpus; /* [threads] OS indices in thread order; NULL if not bound */
};

/*
 * threads: number asked for; 0: all that the placement has (for compact and scatter: topology_max_threads).
 * Errors: -EINVAL an expression that means nothing here (index or kind that does not exist, bad list): exit 2;
 * -ERANGE more threads than CPUs: the caller skips the point with error->text as the reason.
 * Known: compact, scatter, core:I, none, all, smt, l3:I, numa:I, socket:I, and lists of OS indices ("0,2-5").
 */
int placement_resolve(const struct topology *topology, const char *expression, int threads, struct placement *placement,
                      struct error *error);
/* The index-th named placement of this topology (compact, scatter, smt, all, none, then core:I, l3:I, numa:I,
 * socket:I), interned; NULL beyond the last. */
const char *placement_name(const struct topology *topology, int index);
void placement_release(struct placement *placement);

/* Binds the calling thread to one CPU and reads the mask back: 0, or -errno; -EXDEV if the mask is not what was asked.
 */
int placement_bind_self(int32_t cpu);
/* OS index of the CPU that the calling thread is on. */
int32_t placement_current_cpu(void);

#endif
