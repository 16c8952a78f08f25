/* SPDX-License-Identifier: Apache-2.0
 *
 * The events of Linux's perf_event_open by name, and one counter of them.
 */
#ifndef HARNESS_PERF_EVENTS_H
#define HARNESS_PERF_EVENTS_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct perf_event {
    const char *name; /* as perf names it */
    uint32_t type;    /* PERF_TYPE_... */
    uint64_t config;
    const char *summary;
    bool in_kernel; /* happens only inside the kernel: without kernel mode it would count 0 */
};

/* The named ones; raw ones (rNNNN) besides. */
extern const struct perf_event perf_events[];
extern const size_t perf_events_count;

/* The event of the first `length` bytes of name, raw ones included (name: interned then). False: there is none. */
bool perf_event_find(const char *name, size_t length, struct perf_event *event);

/* Opens a counter, stopped, for thread tid and all that it will start. group: another counter to be scheduled together
 * with, or -1. user_only: without kernel mode. A file descriptor, or -errno. */
int perf_event_open_thread(const struct perf_event *event, pid_t tid, int group, bool user_only);

/* Why an event was refused with this error number, interned: its name, and what stands behind it on this machine. */
const char *perf_event_refusal(const struct perf_event *event, int number);

/* The name under /sys/bus/event_source/devices of a PMU of the cores, interned; NULL: there is none. */
const char *perf_core_pmu(void);

#endif
