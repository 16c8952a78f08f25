/* SPDX-License-Identifier: Apache-2.0
 *
 * What the control groups (v1, v2 or both at once) leave this process of CPU time and memory.
 */
#ifndef HARNESS_CGROUP_H
#define HARNESS_CGROUP_H

#include <stdbool.h>

struct cgroup_limits {
    bool v1, v2;         /* which hierarchies this process was found in */
    double cpu_quota;    /* in CPUs, the tightest of the group and its parents; 0: none */
    double memory_limit; /* bytes, likewise; 0: none */
    double memory_left;  /* bytes: least of limit - usage + what the kernel can drop; meaningful if memory_limit > 0 */
    double throttled_ns; /* time that the quotas took so far; -1: unknown */
};

void cgroup_read(struct cgroup_limits *limits);

/* Only the throttled time: for gauges around a measurement. -1: unknown. */
double cgroup_throttled_ns(void);

#endif
