/* SPDX-License-Identifier: Apache-2.0
 *
 * The machine as hwloc sees it, cut to what this process may use (affinity and cpuset).
 */
#ifndef HARNESS_TOPOLOGY_H
#define HARNESS_TOPOLOGY_H

#include <hwloc.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "error.h"
#include "kinds.h"

/* One usable PU. Domains are numbered in hwloc's logical order among those that have a usable PU; -1: in none. */
struct topology_pu {
    hwloc_obj_t object;
    int32_t os;      /* OS index */
    int32_t core;    /* a PU without a Core object stands for a core of its own */
    int32_t sibling; /* 0: first usable PU of its core */
    int32_t l3, package;
    int32_t numa; /* the smallest NUMA node around it */
};

/* The objects of one type that have a usable PU, in logical order. */
struct topology_domains {
    hwloc_obj_t *objects;
    int count;
};
enum { DOMAINS_PACKAGE, DOMAINS_DIE, DOMAINS_NUMA, DOMAINS_L3, DOMAINS_TYPES };

struct topology {
    hwloc_topology_t hwloc;
    hwloc_cpuset_t usable;   /* PUs that may be used: allowed by cpuset, and by the affinity that we began with */
    bool this_system;        /* false: planning only, timing is refused */
    double cpu_quota;        /* CPUs by cgroup quota (v1 or v2); 0: no limit */
    struct topology_pu *pus; /* [pu_count], logical order */
    int pu_count, core_count;
    int32_t *pu_by_os; /* [os_count] place in pus of an OS index, -1: not usable */
    int os_count;
    struct topology_domains domains[DOMAINS_TYPES];
    struct topology_kind *kinds; /* [kind_count] */
    int kind_count;              /* 0: hwloc tells of none */
};

/* source: NULL for this machine (HWLOC_XMLFILE and HWLOC_SYNTHETIC respected), else an XML file or a synthetic string.
 * restrict_list: NULL or a PU list that cuts it further. */
int topology_load(const char *source, const char *restrict_list, struct topology *topology, struct error *error);
void topology_release(struct topology *topology);

/* Has this object a usable PU (a NUMA node: and is its memory allowed)? */
bool topology_is_domain(const struct topology *topology, hwloc_obj_t object);
/* Objects of a type (HWLOC_OBJ_PACKAGE, _DIE, _L3CACHE, _NUMANODE) that are domains, and the index-th of them in
 * logical order, NULL beyond the last. */
int topology_domain_count(const struct topology *topology, hwloc_obj_type_t type);
hwloc_obj_t topology_domain(const struct topology *topology, hwloc_obj_type_t type, int index);

/* The usable PU of this OS index; NULL: there is none. */
const struct topology_pu *topology_pu(const struct topology *topology, int32_t os);
/* How many cores have a usable PU in the set. */
int topology_cores_within(const struct topology *topology, hwloc_const_bitmap_t set);
int topology_usable_cores(const struct topology *topology);
int topology_usable_pus(const struct topology *topology);
/* What `--threads max` means: one thread per usable core, at most floor(quota), at least 1. */
int topology_max_threads(const struct topology *topology);
/* Bytes of data cache: level 1, 2 or 3 of the first usable PU (one instance); 0: none. */
size_t topology_cache_bytes(const struct topology *topology, int level);
/* Last-level caches together, over usable PUs: what --cache cold must exceed. */
size_t topology_llc_total_bytes(const struct topology *topology);
/* {packages, numa_nodes, l3_domains, cores, pus, caches} for the context, and much more for `topo --json`. */
json_t *topology_to_json(const struct topology *topology);
/* [{level, type, size (bytes, null: unknown), count, shared_by (usable PUs)}] of the caches above usable PUs of set:
 * one entry for each kind of cache. */
json_t *topology_caches_to_json(const struct topology *topology, hwloc_const_bitmap_t set);
/* What hwloc says that is wrong, or at odds with what one would expect: one line each, interned; up to max are stored.
 * Returns how many. */
enum { TOPOLOGY_WARNINGS_MAX = 16 };
int topology_warnings(const struct topology *topology, const char **warnings, int max);

/* The affinity mask that the process had before any OpenMP runtime bound the main thread (saved in .preinit_array). */
hwloc_const_cpuset_t affinity_at_start(void);
/* Gives that mask back to the calling thread. 0 or -errno. */
int affinity_restore(void);

#endif
