/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening liblikwid and keeping it quiet; see likwid_library.h.
 */
#include "likwid_library.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "build_info.h"
#include "intern.h"

#ifdef HAVE_LIKWID
#include <likwid.h>

/* The header's word on what the symbols are. */
#define SAME_TYPE(member, function)                                                                                    \
    _Static_assert(_Generic(&(function), __typeof__(((struct likwid_library *)0)->member) : 1, default : 0),           \
                   #function " is declared otherwise")
SAME_TYPE(topology_init, topology_init);
SAME_TYPE(numa_init, numa_init);
SAME_TYPE(affinity_init, affinity_init);
SAME_TYPE(perfmon_init, perfmon_init);
SAME_TYPE(perfmon_addEventSet, perfmon_addEventSet);
SAME_TYPE(perfmon_setupCounters, perfmon_setupCounters);
SAME_TYPE(perfmon_startCounters, perfmon_startCounters);
SAME_TYPE(perfmon_stopCounters, perfmon_stopCounters);
SAME_TYPE(perfmon_getNumberOfEvents, perfmon_getNumberOfEvents);
SAME_TYPE(perfmon_getEventName, perfmon_getEventName);
SAME_TYPE(perfmon_getCounterName, perfmon_getCounterName);
SAME_TYPE(perfmon_getLastResult, perfmon_getLastResult);
SAME_TYPE(markerInit, likwid_markerInit);
SAME_TYPE(markerClose, likwid_markerClose);
SAME_TYPE(markerRegisterRegion, likwid_markerRegisterRegion);
SAME_TYPE(markerStartRegion, likwid_markerStartRegion);
SAME_TYPE(markerStopRegion, likwid_markerStopRegion);
#endif

enum { SAID_BYTES = 400 };

static struct likwid_library library;
static void *handle;
static const char *refusal;

static const struct {
    const char *name;
    void *slot;
} symbols[] = {
    {"topology_init", &library.topology_init},
    {"numa_init", &library.numa_init},
    {"affinity_init", &library.affinity_init},
    {"perfmon_init", &library.perfmon_init},
    {"perfmon_addEventSet", &library.perfmon_addEventSet},
    {"perfmon_setupCounters", &library.perfmon_setupCounters},
    {"perfmon_startCounters", &library.perfmon_startCounters},
    {"perfmon_stopCounters", &library.perfmon_stopCounters},
    {"perfmon_getNumberOfEvents", &library.perfmon_getNumberOfEvents},
    {"perfmon_getEventName", &library.perfmon_getEventName},
    {"perfmon_getCounterName", &library.perfmon_getCounterName},
    {"perfmon_getLastResult", &library.perfmon_getLastResult},
    {"likwid_markerInit", &library.markerInit},
    {"likwid_markerClose", &library.markerClose},
    {"likwid_markerRegisterRegion", &library.markerRegisterRegion},
    {"likwid_markerStartRegion", &library.markerStartRegion},
    {"likwid_markerStopRegion", &library.markerStopRegion},
};

static void open_library(void)
{
    if (!build_has_likwid) {
        refusal = "this build knows no likwid: likwid.h was not there when it was made";
        return;
    }
    handle = dlopen("liblikwid.so.5", RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        handle = dlopen("liblikwid.so", RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        refusal = intern_format("likwid can't be loaded: %s", dlerror());
        return;
    }
    for (size_t s = 0; s < sizeof symbols / sizeof symbols[0]; s++) {
        void *function = dlsym(handle, symbols[s].name);
        memcpy(symbols[s].slot, &function, sizeof function);
        if (!function)
            refusal = intern_format("this likwid has no %s", symbols[s].name);
    }
}

const struct likwid_library *likwid_library(const char **reason)
{
    if (!handle && !refusal)
        open_library();
    *reason = refusal;
    return refusal ? NULL : &library;
}

const char *likwid_version(void)
{
    const char *reason;
    struct link_map *map = NULL;
    if (!likwid_library(&reason) || dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0)
        return NULL;
    char *file = realpath(map->l_name, NULL);
    const char *version = file ? strstr(file, ".so.") : NULL;
    version = version ? intern(version + strlen(".so.")) : NULL;
    free(file);
    return version;
}

static int aside(int fd, int to)
{
    int kept = dup(fd);
    if (kept >= 0)
        dup2(to, fd);
    return kept;
}

static void back(int kept, int fd)
{
    if (kept < 0)
        return;
    dup2(kept, fd);
    close(kept);
}

void likwid_quiet(struct likwid_silence *silence)
{
    *silence = (struct likwid_silence){.said = memfd_create("likwid", MFD_CLOEXEC), .out = -1, .err = -1};
    fflush(stdout);
    fflush(stderr);
    if (silence->said < 0)
        return;
    silence->out = aside(STDOUT_FILENO, silence->said);
    silence->err = aside(STDERR_FILENO, silence->said);
}

/* A line without the source position that likwid's errors begin with: "ERROR - [./src/perfmon.c:perfmon_init:1994] ".
 */
static const char *message(const char *line)
{
    const char *bracket = strncmp(line, "ERROR - [", 9) == 0 ? strstr(line, "] ") : NULL;
    return bracket ? bracket + 2 : line;
}

const char *likwid_loud(struct likwid_silence *silence)
{
    char said[4096], *rest = NULL, line_text[SAID_BYTES] = "";
    fflush(stdout);
    fflush(stderr);
    back(silence->out, STDOUT_FILENO);
    back(silence->err, STDERR_FILENO);
    if (silence->said < 0)
        return NULL;
    ssize_t bytes = pread(silence->said, said, sizeof said - 1, 0);
    close(silence->said);
    said[bytes > 0 ? bytes : 0] = '\0';
    for (char *line = strtok_r(said, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        const char *text = message(line);
        const size_t used = strlen(line_text);
        if (*text && !strstr(line_text, text) && used + strlen(text) + 3 < sizeof line_text)
            snprintf(line_text + used, sizeof line_text - used, "%s%s", used ? ", " : "", text);
    }
    for (char *c = line_text; *c; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
    return *line_text ? intern(line_text) : NULL;
}
