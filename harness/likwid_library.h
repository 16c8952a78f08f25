/* SPDX-License-Identifier: Apache-2.0
 *
 * liblikwid, opened when it is first needed: a program that was built with its header runs without the library too.
 */
#ifndef HARNESS_LIKWID_LIBRARY_H
#define HARNESS_LIKWID_LIBRARY_H

#include <stddef.h>

/* The functions used, as likwid.h declares them. */
struct likwid_library {
    int (*topology_init)(void);
    int (*numa_init)(void);
    void (*affinity_init)(void);
    int (*perfmon_init)(int threads, const int *cpus);
    int (*perfmon_addEventSet)(const char *events);
    int (*perfmon_setupCounters)(int group);
    int (*perfmon_startCounters)(void);
    int (*perfmon_stopCounters)(void);
    int (*perfmon_getNumberOfEvents)(int group);
    char *(*perfmon_getEventName)(int group, int event);
    char *(*perfmon_getCounterName)(int group, int event);
    double (*perfmon_getLastResult)(int group, int event, int thread);
    void (*markerInit)(void);
    void (*markerClose)(void);
    int (*markerRegisterRegion)(const char *region);
    int (*markerStartRegion)(const char *region);
    int (*markerStopRegion)(const char *region);
};

/* The library, or NULL and the reason (interned) why there is none. */
const struct likwid_library *likwid_library(const char **reason);

/* Version of the library by its file's name ("5.2"), interned; NULL: there is none. */
const char *likwid_version(void);

/* likwid writes to standard output and standard error by itself. Between these two calls both go to a file of memory;
 * likwid_loud gives them back and returns the different things said, at most a line of them, interned; NULL: nothing.
 * Not for use while other threads write. */
struct likwid_silence {
    int said, out, err;
};
void likwid_quiet(struct likwid_silence *silence);
const char *likwid_loud(struct likwid_silence *silence);

#endif
