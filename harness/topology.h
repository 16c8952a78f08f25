/* SPDX-License-Identifier: Apache-2.0
 *
 * The machine as hwloc sees it, cut to what this process may use (affinity and cpuset).
 */
#ifndef HARNESS_TOPOLOGY_H
#define HARNESS_TOPOLOGY_H

#include <hwloc.h>
#include <jansson.h>
#include <stdbool.h>

#include "error.h"

struct topology {
    hwloc_topology_t hwloc;
    hwloc_cpuset_t usable; /* PUs that may be used: allowed by cpuset, and by the affinity that this process began with */
    bool this_system;      /* false: planning only, timing is refused */
    double cpu_quota;      /* CPUs by cgroup quota (v1 or v2); 0: no limit */
};

/* source: NULL for this machine (HWLOC_XMLFILE and HWLOC_SYNTHETIC respected), else an XML file or a synthetic string.
 * restrict_list: NULL or a PU list that cuts it further. */
int topology_load(const char *source, const char *restrict_list, struct topology *topology, struct error *error);
void topology_release(struct topology *topology);

int topology_usable_cores(const struct topology *topology);
int topology_usable_pus(const struct topology *topology);
/* What `--threads max` means: one thread per usable core, at most floor(quota), at least 1. */
int topology_max_threads(const struct topology *topology);
/* Bytes of data cache: level 1, 2 or 3 of the first usable PU (one instance); 0: none. */
size_t topology_cache_bytes(const struct topology *topology, int level);
/* Last-level caches together, over usable PUs: what --cache cold must exceed. */
size_t topology_llc_total_bytes(const struct topology *topology);
/* {packages, numa_nodes, l3_domains, cores, pus, caches} for the context; extended for `topo --json`. */
json_t *topology_to_json(const struct topology *topology);

/* The affinity mask that the process had before any OpenMP runtime bound the main thread (saved in .preinit_array). */
hwloc_const_cpuset_t affinity_at_start(void);
/* Gives that mask back to the calling thread. 0 or -errno. */
int affinity_restore(void);

#endif
