/* SPDX-License-Identifier: Apache-2.0
 *
 * Buffer sizes that lie in each level of the memory hierarchy for the threads of a placement, from the caches that
 * hwloc finds above their CPUs.
 */
#ifndef HARNESS_LEVELS_H
#define HARNESS_LEVELS_H

#include <jansson.h>

#include "topology.h"

/* l1 to l5, and memory itself. */
enum { LEVELS_MOST = 6, LEVEL_UNIT = 4096 };

struct level {
    const char *name;   /* "l1" ... "l5", "dram" */
    double cache_bytes; /* one instance, the first thread's; of the last level's for dram */
    int threads;        /* that have this level: the others idle while it is measured */
    size_t *parts;      /* [team] bytes that each thread walks, a multiple of LEVEL_UNIT; 0: it has no such level */
    size_t chase_bytes; /* what the first thread that has it chases pointers in, alone */
    int chaser;         /* that thread */
    size_t line_bytes;  /* of a cache line */
};

/*
 * A cache's threads together walk half of it. Where that would still leave much of a thread's part in the next inner
 * level (part < 2 x that level's share), they walk that share and half of this cache's: more than the inner level
 * holds. dram: four times the outermost cache, whose threads share it evenly, and at least 64 MiB in all, since systems
 * do not tell of every cache. Private and shared caches follow from how many of the team's CPUs lie under each. A level
 * whose size is not known, or that no thread has, is left out.
 *
 * cpus: [threads] OS indices; NULL (unbound): as if on the usable PUs in logical order. Returns how many levels,
 * innermost first, or -ENOMEM.
 */
int levels_find(const struct topology *topology, const int32_t *cpus, int threads, struct level levels[LEVELS_MOST]);
void levels_release(struct level *levels, int count);

/* Bytes that measuring a level takes: all parts, and the chase's. */
double level_bytes(const struct level *level, int team);

/* Array of levels, for the worker, and back: count or -errno. */
json_t *levels_to_json(const struct level *levels, int count, int team);
int levels_from_json(const json_t *array, int team, struct level levels[LEVELS_MOST]);

#endif
