/* SPDX-License-Identifier: Apache-2.0
 *
 * What about this machine and build a result depends on: the fields of the context record, and noise gauges.
 */
#ifndef HARNESS_ENVIRONMENT_H
#define HARNESS_ENVIRONMENT_H

#include <jansson.h>
#include <stdint.h>

#include "topology.h"

/* Everything of the context but schema, run_id, time_utc, command, config, seed: host, machine_key, cpu_model,
 * microcode, isa, topology, memory_bytes, hypervisor, governor, turbo, smt, thp, cgroup, kernel_release, compiler,
 * flags, build_commit, build_dirty, omp, libraries. Unknown is null. Root of /sys and /proc can be moved for tests by
 * ATTNBENCH_FS_ROOT. */
json_t *environment_context(const struct topology *topology);

/* Bytes that may still be allocated: min(MemAvailable, what the cgroup's memory limit leaves); 0: unknown. */
uint64_t environment_memory_available(void);

/* Bytes that another process may take: what was asked for (0: nothing), or what is there now but for a reserve. */
double environment_memory_limit(double asked);

/* Why a point that needs so many bytes can't be measured here: it is allowed fewer (--memory-limit; 0: no limit), or
 * there are fewer. NULL: it can. Interned. */
const char *environment_memory_refusal(double needed, double allowed);

/* CPU quota of this process's cgroup, v1 or v2, in CPUs; 0: none. */
double environment_cpu_quota(void);

/* Gauges read before and after a measurement; differences go into the record's noise. -1: unknown. */
struct noise_reading {
    double steal_ns;              /* whole machine, /proc/stat */
    int64_t involuntary_switches; /* this process */
    double cpu_ns;                /* CPU time of this process */
    double throttled_ns;          /* cgroup */
};
void noise_read(struct noise_reading *reading);

/* One finding of `attnbench doctor`. */
struct finding {
    const char *topic; /* "governor", "turbo", "smt", "thp", "load", "steal", "quota", "emulation" ... */
    enum { FINDING_OK, FINDING_NOTE, FINDING_WARN, FINDING_UNKNOWN } level;
    const char *state; /* what was found, interned */
    const char *mend;  /* what to do about it, or NULL; interned */
    const char *why;   /* why the topic matters to a measurement */
};
/* Fills up to max findings; returns how many. */
int doctor_examine(const struct topology *topology, struct finding *findings, int max);

#endif
