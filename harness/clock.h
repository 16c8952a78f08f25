/* SPDX-License-Identifier: Apache-2.0
 *
 * Time in nanoseconds as doubles: exact to well below a nanosecond for 50 days of uptime.
 */
#ifndef HARNESS_CLOCK_H
#define HARNESS_CLOCK_H

#include <time.h>

static inline double clock_read_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* Monotonic wall time. */
static inline double clock_ns(void)
{
    return clock_read_ns(CLOCK_MONOTONIC);
}

/* CPU time of all threads of this process, spinning included. */
static inline double clock_process_cpu_ns(void)
{
    return clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

#endif
