/* SPDX-License-Identifier: Apache-2.0
 *
 * Kinds of core (performance, efficiency): hwloc's CPU kinds, joined where they tell apart what is one silicon.
 */
#ifndef HARNESS_KINDS_H
#define HARNESS_KINDS_H

#include <hwloc.h>
#include <jansson.h>
#include <stdbool.h>

struct topology;

/* hwloc's kinds are joined where core type, caches and threads of a core agree and maximum frequency (else Linux's
 * capacity) differs by less than this factor: firmware gives single cores of one design some steps more. */
#define KIND_NOISE 1.15

/* In ascending order of efficiency as hwloc has it: the last is the fastest. */
struct topology_kind {
    hwloc_bitmap_t pus;    /* of the whole machine, usable or not */
    hwloc_bitmap_t usable; /* may be empty */
    const char *core_type; /* as hwloc tells; NULL: it does not. Interned */
    double max_mhz;        /* highest of those joined; 0: unknown */
    int joined;            /* how many of hwloc's kinds */
};

/* Fills topology->kinds and kind_count. 0 or -ENOMEM. */
int kinds_find(struct topology *topology);
void kinds_release(struct topology *topology);

/* The usable PUs of the performance cores (the fastest kind) or of all others, as a new set; NULL with *reason where
 * the machine is not hybrid or none of them may be used. */
hwloc_bitmap_t kinds_usable(const struct topology *topology, bool performance, const char **reason);

/* [{efficiency, cpus, cores, core_type, max_mhz, caches}] of the kinds with a usable PU; efficiency counts all kinds of
 * the machine from 0. */
json_t *kinds_to_json(const struct topology *topology);
/* [{efficiency, cpus, infos}]: what hwloc tells, whole machine. */
json_t *kinds_of_hwloc_to_json(const struct topology *topology);

#endif
