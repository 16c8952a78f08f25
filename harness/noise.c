/* SPDX-License-Identifier: Apache-2.0
 *
 * Gauges of what disturbs a measurement, read on both sides of it; see environment.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "cgroup.h"
#include "environment.h"
#include "system_files.h"

/* First line of /proc/stat: cpu user nice system idle iowait irq softirq steal ..., in clock ticks. */
static double steal_ns(void)
{
    double steal;
    char *text = system_read("/proc/stat");
    const long ticks = sysconf(_SC_CLK_TCK);
    const bool told = text && ticks > 0 && sscanf(text, "cpu %*f %*f %*f %*f %*f %*f %*f %lf", &steal) == 1;
    free(text);
    return told ? steal * 1e9 / (double)ticks : -1;
}

void noise_read(struct noise_reading *reading)
{
    struct rusage usage; /* of all threads of the process, ended ones too */
    struct timespec cpu;
    reading->steal_ns = steal_ns();
    reading->involuntary_switches = getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : -1;
    reading->cpu_ns =
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu) == 0 ? (double)cpu.tv_sec * 1e9 + (double)cpu.tv_nsec : -1;
    reading->throttled_ns = cgroup_throttled_ns();
}
