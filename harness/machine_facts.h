/* SPDX-License-Identifier: Apache-2.0
 *
 * Single facts about the machine and its settings, for the context record and for doctor. Unknown is NULL or -1.
 */
#ifndef HARNESS_MACHINE_FACTS_H
#define HARNESS_MACHINE_FACTS_H

#include "topology.h"

const char *machine_cpu_model(const struct topology *topology); /* what this process's CPU calls itself; never NULL */
const char *machine_microcode(void);
const char *machine_hypervisor(void); /* "none" on bare metal */
/* The frequency governor of the usable CPUs: one name, or "mixed: a b". */
const char *machine_governor(const struct topology *topology);
int machine_turbo(void);               /* 1: CPUs may clock above their nominal frequency; 0; -1 */
int machine_smt(void);                 /* 1: more than one thread a core is online; 0; -1 */
const char *machine_thp(void);         /* transparent huge pages: always, madvise, never */
double machine_memory_bytes(void);     /* 0: unknown */
double machine_memory_available(void); /* MemAvailable, without the cgroup; 0: unknown */

/* 16 hex digits, the same for machines that give comparable figures: a digest of CPU model, topology (all of it, not
 * only what may be used now), memory class and hypervisor; not of the host name. */
const char *machine_key(const struct topology *topology);

#endif
