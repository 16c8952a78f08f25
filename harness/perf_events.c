/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of perf events, opening one, and why that failed; see perf_events.h.
 */
#include "perf_events.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "intern.h"
#include "system_files.h"

#define SOFTWARE(id) PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##id
#define HARDWARE(id) PERF_TYPE_HARDWARE, PERF_COUNT_HW_##id
#define CACHE(cache, op, result)                                                                                       \
    PERF_TYPE_HW_CACHE, (PERF_COUNT_HW_CACHE_##cache | (PERF_COUNT_HW_CACHE_OP_##op << 8) |                            \
                         (PERF_COUNT_HW_CACHE_RESULT_##result << 16))

const struct perf_event perf_events[] = {
    {"task-clock", SOFTWARE(TASK_CLOCK), "ns that the threads had a CPU", false},
    {"page-faults", SOFTWARE(PAGE_FAULTS), "pages touched for the first time, or fetched back", false},
    {"minor-faults", SOFTWARE(PAGE_FAULTS_MIN), "page faults without a disk", false},
    {"major-faults", SOFTWARE(PAGE_FAULTS_MAJ), "page faults that waited for a disk", false},
    {"context-switches", SOFTWARE(CONTEXT_SWITCHES), "times that a thread left its CPU", true},
    {"cpu-migrations", SOFTWARE(CPU_MIGRATIONS), "times that a thread came to another CPU", true},
    {"cycles", HARDWARE(CPU_CYCLES), "core cycles", false},
    {"instructions", HARDWARE(INSTRUCTIONS), "instructions retired", false},
    {"ref-cycles", HARDWARE(REF_CPU_CYCLES), "cycles at the nominal clock", false},
    {"cache-references", HARDWARE(CACHE_REFERENCES), "accesses to the last-level cache", false},
    {"cache-misses", HARDWARE(CACHE_MISSES), "misses of the last-level cache", false},
    {"branches", HARDWARE(BRANCH_INSTRUCTIONS), "branches retired", false},
    {"branch-misses", HARDWARE(BRANCH_MISSES), "branches mispredicted", false},
    {"stalled-cycles-frontend", HARDWARE(STALLED_CYCLES_FRONTEND), "cycles without instructions to issue", false},
    {"stalled-cycles-backend", HARDWARE(STALLED_CYCLES_BACKEND), "cycles without units or data", false},
    {"L1-dcache-loads", CACHE(L1D, READ, ACCESS), "loads from the L1 data cache", false},
    {"L1-dcache-load-misses", CACHE(L1D, READ, MISS), "loads that missed the L1 data cache", false},
    {"L1-dcache-stores", CACHE(L1D, WRITE, ACCESS), "stores to the L1 data cache", false},
    {"LLC-loads", CACHE(LL, READ, ACCESS), "loads from the last-level cache", false},
    {"LLC-load-misses", CACHE(LL, READ, MISS), "loads that missed the last-level cache", false},
    {"LLC-stores", CACHE(LL, WRITE, ACCESS), "stores to the last-level cache", false},
    {"LLC-store-misses", CACHE(LL, WRITE, MISS), "stores that missed the last-level cache", false},
    {"dTLB-loads", CACHE(DTLB, READ, ACCESS), "loads through the data TLB", false},
    {"dTLB-load-misses", CACHE(DTLB, READ, MISS), "loads that missed the data TLB", false},
    {"node-loads", CACHE(NODE, READ, ACCESS), "loads from memory", false},
    {"node-load-misses", CACHE(NODE, READ, MISS), "loads from another node's memory", false},
};
const size_t perf_events_count = sizeof perf_events / sizeof perf_events[0];

/* rNNNN: at most 16 hexadecimal digits, as the PMU's manual numbers its events. */
static bool raw_event(const char *name, size_t length, struct perf_event *event)
{
    enum { RAW_DIGITS = 16 };
    if (length < 2 || length > 1 + RAW_DIGITS || name[0] != 'r')
        return false;
    for (size_t i = 1; i < length; i++)
        if (!isxdigit((unsigned char)name[i]))
            return false;
    char digits[RAW_DIGITS + 1] = "";
    memcpy(digits, name + 1, length - 1);
    *event = (struct perf_event){
        .name = intern_format("%.*s", (int)length, name), .type = PERF_TYPE_RAW, .config = strtoull(digits, NULL, 16)};
    return true;
}

bool perf_event_find(const char *name, size_t length, struct perf_event *event)
{
    for (size_t i = 0; i < perf_events_count; i++)
        if (strlen(perf_events[i].name) == length && strncmp(perf_events[i].name, name, length) == 0) {
            *event = perf_events[i];
            return true;
        }
    return raw_event(name, length, event);
}

int perf_event_open_thread(const struct perf_event *event, pid_t tid, int group, bool user_only)
{
    struct perf_event_attr attr = {
        .size = sizeof attr,
        .type = event->type,
        .config = event->config,
        .disabled = 1,
        .inherit = 1,
        .exclude_kernel = user_only,
        .exclude_hv = user_only,
        .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
    };
    long fd = syscall(SYS_perf_event_open, &attr, tid, -1, group, PERF_FLAG_FD_CLOEXEC);
    return fd < 0 ? -errno : (int)fd;
}

const char *perf_core_pmu(void)
{
    static const char *const names[] = {"cpu", "cpu_core", "cpu_atom", "armv8_pmuv3", "armv8_pmuv3_0"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        double type;
        if (system_number(&type, "/sys/bus/event_source/devices/%s/type", names[i]))
            return names[i];
    }
    return NULL;
}

const char *perf_event_refusal(const struct perf_event *event, int number)
{
    const char *error = strerrorname_np(number);
    double level;
    if (!error)
        error = "unknown error";
    switch (number) {
    case ENOENT:
    case ENODEV:
    case EOPNOTSUPP:
        if (event->type != PERF_TYPE_SOFTWARE && !perf_core_pmu())
            return intern_format("%s: no PMU here (the hypervisor or kernel shows none)", error);
        return intern_format("%s: this machine's PMU does not count it", error);
    case EACCES:
    case EPERM:
        if (system_number(&level, "/proc/sys/kernel/perf_event_paranoid"))
            return intern_format("%s: perf_event_paranoid is %.0f, and a container may forbid it", error, level);
        return intern_format("%s: not allowed here", error);
    case ENOSYS:
        return intern_format("%s: this kernel has no perf events", error);
    default:
        return intern_format("%s: %s", error, strerror(number));
    }
}
