/* SPDX-License-Identifier: Apache-2.0
 *
 * Placements: from a name or expression as users type it to one CPU a thread.
 *
 *   compact         one thread a core in logical order, then second siblings
 *   scatter         round robin over sockets, NUMA nodes, L3 caches
 *   smt             siblings first
 *   all             every usable PU, one per core first
 *   none            not bound
 *   core:I l3:I numa:I socket:I      the PUs of one, one per core first
 *   l3:each numa:each socket:each    one core of each
 *   pcores ecores   the fastest kind of core, and all others, one per core first
 *   PLACE/nosmt     of any of these: one PU of each core alone
 *   0,2-5 S0:0-3 E:N:4:1:2 M:scatter ...   LIKWID's expressions (likwid_expression.h)
 *
 * I is hwloc's logical index among objects with a usable PU. Two NUMA nodes with the same CPUs (fast and ordinary
 * memory) are two placements; numa:each and scatter take those CPUs once, for the smallest node around them, the first
 * of equals.
 */
#ifndef HARNESS_PLACEMENT_H
#define HARNESS_PLACEMENT_H

#include <stdint.h>

#include "topology.h"

struct placement {
    const char *name; /* as asked, interned */
    bool bound;       /* false: `none` */
    int threads;
    int32_t *cpus;       /* [threads] OS indices in thread order; NULL if not bound */
    const char *warning; /* NULL, or what is odd about it (a CPU that stands twice); interned */
};

/*
 * threads: number asked for; 0: all that the placement has (for compact and scatter: topology_max_threads).
 * Errors: -EINVAL an expression that means nothing here (index or kind that does not exist, bad list): exit 2;
 * -ERANGE more threads than CPUs: the caller skips the point with error->text as the reason.
 */
int placement_resolve(const struct topology *topology, const char *expression, int threads, struct placement *placement,
                      struct error *error);
/* The index-th named placement of this topology (compact, scatter, smt, all, none, pcores and ecores of hybrid ones,
 * l3:each, numa:each, socket:each, then core:I, l3:I, numa:I, socket:I), interned; NULL beyond the last. */
const char *placement_name(const struct topology *topology, int index);
void placement_release(struct placement *placement);

/* What `ladder` stands for: one core, that core with its siblings, one L3, one core per L3, one NUMA node, one socket,
 * all cores, all hardware threads, performance cores, efficiency cores. Each where it exists and has other CPUs than
 * those before; siblings only where the list says so. The names are placements, and use all of their threads. Returns
 * how many (at least 1), or -errno. */
enum { LADDER_MAX = 10 };
#define LADDER "ladder"
int placement_ladder(const struct topology *topology, const char *names[LADDER_MAX], struct error *error);

/* Binds a thread (0: the calling one; any of this user's) to cpus[count] and reads the mask back: 0, or -errno; -EXDEV
 * if the mask is not what was asked. */
int placement_bind_thread(pid_t thread, const int32_t *cpus, int count);
/* What such a -errno means, in words. */
const char *placement_bind_reason(int code);
/* Whether the thread's mask is exactly this CPU: the CPU of this moment does not tell whether it was widened. */
bool placement_is_bound(pid_t thread, int32_t cpu);
/* Binds the calling thread to one CPU and reads the mask back: 0, or -errno; -EXDEV if the mask is not what was asked.
 */
int placement_bind_self(int32_t cpu);
/* OS index of the CPU that the calling thread is on. */
int32_t placement_current_cpu(void);

#endif
