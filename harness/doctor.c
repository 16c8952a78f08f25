/* SPDX-License-Identifier: Apache-2.0
 *
 * What about this machine will disturb a measurement, one function a topic; see environment.h. A finding is a state
 * that was read just now; what can't be read is said to be unknown.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cgroup.h"
#include "environment.h"
#include "intern.h"
#include "isa.h"
#include "machine_facts.h"
#include "perf_events.h"
#include "probe.h"
#include "system_files.h"

/* Shares of all CPU time. Steal in benchmarks is told apart from chance above half a per cent. */
#define STEAL_NOTE 0.005
#define STEAL_WARN 0.02
/* Runnable tasks a usable CPU. */
#define LOAD_NOTE 0.1
#define LOAD_WARN 0.5
/* Below this the larger problems of the shipped configs do not fit. */
#define MEMORY_NOTE_BYTES 4e9

static struct finding ok(const char *topic, const char *state)
{
    return (struct finding){.topic = topic, .level = FINDING_OK, .state = state};
}

static struct finding note(const char *topic, const char *state, const char *mend)
{
    return (struct finding){.topic = topic, .level = FINDING_NOTE, .state = state, .mend = mend};
}

static struct finding warn(const char *topic, const char *state, const char *mend)
{
    return (struct finding){.topic = topic, .level = FINDING_WARN, .state = state, .mend = mend};
}

static struct finding unknown(const char *topic, const char *state)
{
    return (struct finding){.topic = topic, .level = FINDING_UNKNOWN, .state = state};
}

static struct finding examine_governor(const struct topology *topology)
{
    const char *governor = machine_governor(topology);
    if (!governor)
        return unknown("governor", "no cpufreq here: firmware or the host sets the clock");
    if (strcmp(governor, "performance") == 0)
        return ok("governor", governor);
    return warn("governor", governor, "cpupower frequency-set -g performance");
}

static struct finding examine_turbo(void)
{
    int turbo = machine_turbo();
    if (turbo < 0)
        return unknown("turbo", "neither intel_pstate/no_turbo nor cpufreq/boost can be read");
    if (turbo == 0)
        return ok("turbo", "off");
    return note("turbo", "on: the clock depends on heat and on how many cores are busy",
                "for steady clocks: write 1 to /sys/devices/system/cpu/intel_pstate/no_turbo, or 0 to "
                "/sys/devices/system/cpu/cpufreq/boost");
}

static struct finding examine_smt(const struct topology *topology)
{
    int smt = machine_smt();
    const bool seen = topology->pu_count > topology->core_count;
    if (smt < 0 && !seen)
        return unknown("smt", "smt/active can't be read; hwloc sees one thread a core");
    if (smt <= 0 && !seen)
        return ok("smt", "off, or one thread a core");
    return note("smt", "on: other work on a sibling shares the core's units and caches",
                "placement compact uses one thread a core; keep the siblings idle or switch them off: write off to "
                "/sys/devices/system/cpu/smt/control");
}

static struct finding examine_thp(void)
{
    const char *thp = machine_thp();
    if (!thp)
        return unknown("thp", "transparent_hugepage/enabled can't be read");
    if (strcmp(thp, "never") == 0)
        return warn("thp", "never: buffers lie on 4 KiB pages, DRAM reads are slower by a quarter and more",
                    "write madvise to /sys/kernel/mm/transparent_hugepage/enabled");
    return ok("thp", intern_format("%s: huge pages can be had", thp));
}

static struct finding examine_load(const struct topology *topology)
{
    double load;
    if (!system_number(&load, "/proc/loadavg"))
        return unknown("load", "/proc/loadavg can't be read");
    const char *state = intern_format("%.2f over the last minute, %d usable CPUs", load, topology->pu_count);
    const char *mend = "stop other work (top shows it), then wait a minute";
    const double per_cpu = load / topology->pu_count;
    return per_cpu > LOAD_WARN   ? warn("load", state, mend)
           : per_cpu > LOAD_NOTE ? note("load", state, mend)
                                 : ok("load", state);
}

/* Load is an average over a minute; this is the present moment. The reader itself is one of those running. */
static struct finding examine_neighbours(const struct topology *topology)
{
    double running;
    char *text = system_read("/proc/stat");
    const bool told = keyed_number(text, "procs_running", &running);
    free(text);
    if (!told)
        return unknown("neighbours", "/proc/stat can't be read");
    const double others = running > 1 ? running - 1 : 0;
    const char *state = intern_format("%.0f other tasks want a CPU just now", others);
    if (others >= topology->pu_count)
        return warn("neighbours", state, "stop them, or leave their CPUs out with --place");
    return others > 0 ? note("neighbours", state, "stop them, or leave their CPUs out with --place")
                      : ok("neighbours", state);
}

static struct finding examine_aslr(void)
{
    double level;
    if (!system_number(&level, "/proc/sys/kernel/randomize_va_space"))
        return unknown("aslr", "randomize_va_space can't be read");
    if (level == 0)
        return note("aslr", "off: every process gets the same addresses",
                    "one lucky or unlucky placement looks like the truth; sysctl kernel.randomize_va_space=2");
    return ok("aslr", intern_format("on (%.0f): --launches N averages over placements in memory", level));
}

/* Times that the usable CPUs' cores slowed down for heat since boot. */
static struct finding examine_heat(const struct topology *topology)
{
    double times = 0, one, degrees;
    bool told = false;
    for (int i = 0; i < topology->pu_count; i++)
        if (system_number(&one, "/sys/devices/system/cpu/cpu%d/thermal_throttle/core_throttle_count",
                          (int)topology->pus[i].os)) {
            told = true;
            times += one;
        }
    const bool zone = system_number(&degrees, "/sys/class/thermal/thermal_zone0/temp");
    if (!told)
        return unknown("heat", zone ? intern_format("%.0f C; thermal_throttle can't be read", degrees / 1000)
                                    : "neither thermal_throttle nor a thermal zone can be read");
    if (times > 0)
        return note("heat", intern_format("cores were slowed for heat %.0f times since boot", times),
                    "better cooling, or a lower clock that can be held: compare peak before and after a long run");
    return ok("heat", "no core was slowed for heat since boot");
}

/* All ticks and stolen ticks so far. */
static bool read_ticks(double *all, double *steal)
{
    double field[8];
    char *text = system_read("/proc/stat");
    const bool told = text && sscanf(text, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &field[0], &field[1], &field[2],
                                     &field[3], &field[4], &field[5], &field[6], &field[7]) == 8;
    free(text);
    *all = 0;
    for (int i = 0; told && i < 8; i++)
        *all += field[i];
    *steal = told ? field[7] : 0;
    return told;
}

static struct finding examine_steal(void)
{
    double all0, steal0, all1, steal1;
    const struct timespec pause = {.tv_nsec = 200 * 1000 * 1000};
    if (!read_ticks(&all0, &steal0) || nanosleep(&pause, NULL) != 0 || !read_ticks(&all1, &steal1))
        return unknown("steal", "/proc/stat can't be read");
    if (all1 <= all0)
        return unknown("steal", "/proc/stat stands still");
    const double now = (steal1 - steal0) / (all1 - all0), ever = steal1 / all1;
    const double worse = now > ever ? now : ever;
    const char *state = intern_format("%.1f %% of CPU time just now, %.1f %% since boot", 100 * now, 100 * ever);
    const char *mend = "the host gives this machine's CPUs to others: use a dedicated or less busy host";
    return worse > STEAL_WARN   ? warn("steal", state, mend)
           : worse > STEAL_NOTE ? note("steal", state, mend)
                                : ok("steal", state);
}

static struct finding examine_quota(const struct topology *topology, const struct cgroup_limits *limits)
{
    if (!limits->v1 && !limits->v2)
        return unknown("quota", "no control group was found");
    if (limits->cpu_quota <= 0)
        return ok("quota", "none");
    const char *state = limits->throttled_ns > 0 ? intern_format("%.2f CPUs by cgroup; %.3f s lost to it so far",
                                                                 limits->cpu_quota, limits->throttled_ns / 1e9)
                                                 : intern_format("%.2f CPUs by cgroup", limits->cpu_quota);
    if (limits->cpu_quota < topology->core_count)
        return warn("quota", state,
                    intern_format("--threads max means %d here; raise cpu.max (v1: cpu.cfs_quota_us) of this group "
                                  "and its parents for all %d cores",
                                  topology_max_threads(topology), topology->core_count));
    return note("quota", state, "threads of other processes in this group count too: keep them idle");
}

static struct finding examine_memory(const struct cgroup_limits *limits)
{
    const double available = (double)environment_memory_available();
    if (available <= 0)
        return unknown("memory", "/proc/meminfo can't be read");
    const char *state = limits->memory_limit > 0 ? intern_format("%.1f GB can be had; the cgroup's limit is %.1f GB",
                                                                 available / 1e9, limits->memory_limit / 1e9)
                                                 : intern_format("%.1f GB can be had", available / 1e9);
    if (available < MEMORY_NOTE_BYTES)
        return note("memory", state,
                    "larger points will be skipped, each with its need: free memory or raise the limit");
    return ok("memory", state);
}

static struct finding examine_swap(void)
{
    double total = 0, left = 0;
    char *text = system_read("/proc/meminfo");
    const bool told = keyed_number(text, "SwapTotal", &total) && keyed_number(text, "SwapFree", &left);
    free(text);
    if (!told)
        return unknown("swap", "/proc/meminfo can't be read");
    if (total <= 0)
        return ok("swap", "none");
    if (total - left <= 0)
        return ok("swap", "not in use");
    return note("swap", intern_format("%.2f GB in use: pages may move while a point runs", (total - left) * 1024 / 1e9),
                "free memory, then swapoff -a && swapon -a");
}

static struct finding examine_affinity(const struct topology *topology)
{
    const int all = hwloc_bitmap_weight(hwloc_topology_get_topology_cpuset(topology->hwloc));
    if (topology->pu_count == all)
        return ok("affinity", intern_format("all %d CPUs may be used", all));
    return note("affinity", intern_format("%d of %d CPUs may be used", topology->pu_count, all),
                "figures hold for these alone: for the whole machine start without taskset, numactl or a cpuset");
}

static struct finding examine_isolation(void)
{
    const char *isolated = system_line("/sys/devices/system/cpu/isolated");
    const char *tickless = system_line("/sys/devices/system/cpu/nohz_full");
    if (!isolated)
        return unknown("isolation", "/sys/devices/system/cpu/isolated can't be read");
    if (!*isolated)
        return note("isolation", "no CPU is kept free of other tasks",
                    "for the steadiest figures: isolcpus= and nohz_full= on the kernel's command line");
    return ok("isolation",
              intern_format("CPUs %s isolated, tickless: %s", isolated, tickless && *tickless ? tickless : "none"));
}

static struct finding examine_hypervisor(void)
{
    const char *hypervisor = machine_hypervisor();
    if (!hypervisor)
        return unknown("hypervisor", "this CPU does not tell");
    if (strcmp(hypervisor, "none") == 0)
        return ok("hypervisor", "none");
    return note("hypervisor", intern_format("%s: neighbours on the host share caches, memory and power", hypervisor),
                "compare only what was measured interleaved, in one run; repeat at another hour");
}

static struct finding examine_emulation(void)
{
    if (!isa_emulated())
        return ok("emulation", "none");
    return warn("emulation", intern_format("this process sees %s, the kernel another CPU", isa_cpu_brand()),
                "times mean nothing under user-mode emulation: use it for verify alone");
}

static struct finding examine_clocksource(void)
{
    const char *source = system_line("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    if (!source)
        return unknown("clocksource", "it can't be read");
    if (strcmp(source, "hpet") == 0 || strcmp(source, "acpi_pm") == 0)
        return warn("clocksource", intern_format("%s: a clock read takes a microsecond", source),
                    "write tsc to /sys/devices/system/clocksource/clocksource0/current_clocksource");
    return ok("clocksource", source);
}

static struct finding examine_counters(void)
{
    double level;
    if (!system_number(&level, "/proc/sys/kernel/perf_event_paranoid"))
        return unknown("counters", "perf_event_paranoid can't be read: no perf events in this kernel");
    if (level <= 2)
        return ok("counters", intern_format("perf_event_paranoid is %.0f: own processes can be counted", level));
    return note("counters", intern_format("perf_event_paranoid is %.0f: perf counters are for root alone", level),
                "sysctl kernel.perf_event_paranoid=2");
}

static struct finding examine_pmu(void)
{
    double type;
    const char *pmu = perf_core_pmu();
    if (pmu)
        return ok("pmu", intern_format("%s: the kernel sees the cores' performance counters", pmu));
    if (!system_number(&type, "/sys/bus/event_source/devices/software/type"))
        return unknown("pmu", "/sys/bus/event_source can't be read");
    return note("pmu", "none: software events alone can be counted (--counters perf:task-clock+page-faults)",
                "virtual machine: let the host pass its PMU on; cycles and cache misses stay null until then");
}

static struct finding examine_msr(const struct topology *topology)
{
    const char *path = intern_format("/dev/cpu/%d/msr", (int)topology->pus[0].os);
    const char *whole = intern_format("%s%s", system_root(), path);
    if (access(whole, R_OK | W_OK) == 0)
        return ok("msr", intern_format("%s can be used: likwid can count", path));
    if (access(whole, F_OK) == 0)
        return note("msr", intern_format("%s is closed to this user", path),
                    "for --counters likwid:GROUP: run as root, or install likwid-accessD");
    return note("msr", intern_format("there is no %s", path),
                "for --counters likwid:GROUP: modprobe msr; a virtual machine or container needs it from its host");
}

static struct finding examine_float_mode(void)
{
    if (probe_float_mode() == 0)
        return ok("float-mode", "subnormal numbers are kept");
    return note("float-mode", "this process began with subnormals flushed to zero",
                "workers clear FTZ and DAZ; find the library that set them if other programs matter");
}

/* Variables of the OpenMP runtimes; the workers' own settings stand against them. */
static struct finding examine_openmp(void)
{
    static const char *const names[] = {"OMP_NUM_THREADS", "OMP_PROC_BIND", "OMP_PLACES",      "GOMP_CPU_AFFINITY",
                                        "KMP_AFFINITY",    "OMP_DYNAMIC",   "OMP_THREAD_LIMIT"};
    const char *found = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (getenv(names[i]))
            found = found ? intern_format("%s %s", found, names[i]) : names[i];
    if (!found)
        return ok("openmp", "nothing set in the environment");
    return note("openmp", intern_format("set: %s", found),
                "threads and binding follow --threads and --place alone; the variables are recorded, and may be unset");
}

static struct finding examine_topology(const struct topology *topology)
{
    const char *first;
    if (topology_warnings(topology, &first, 1) == 0)
        return ok("topology", "hwloc's picture is consistent");
    return warn("topology", first, "attnbench topo shows the picture; a newer hwloc may see better");
}

/* Why a topic matters to a measurement, whatever its state. */
static const char *why(const char *topic)
{
    static const char *const reasons[][2] = {
        {"governor", "a clock that follows the load is low in the first milliseconds of every point"},
        {"turbo", "a clock that depends on heat and neighbours moves every figure by its own tens of per cent"},
        {"smt", "a sibling's work takes issue slots and cache from the thread that is measured"},
        {"thp", "page walks cost 20 to 45 % of the DRAM bandwidth that one thread reaches"},
        {"load", "other work takes CPU time, cache and memory bandwidth"},
        {"neighbours", "a thread that waits for its CPU stops its whole team"},
        {"steal", "stolen time is in the wall time of every sample"},
        {"quota", "a team that uses up its quota is stopped for the rest of the period"},
        {"memory", "points that do not fit are skipped"},
        {"swap", "a page that comes back from disk costs milliseconds"},
        {"affinity", "only these CPUs are planned with"},
        {"isolation", "the scheduler's tick and other tasks interrupt samples"},
        {"hypervisor", "what neighbours on the host do is not seen from here"},
        {"emulation", "an emulator's times are not the CPU's"},
        {"clocksource", "a slow clock lies in every short sample"},
        {"aslr", "where buffers lie decides cache conflicts; a bias fixed for one process is not noise"},
        {"heat", "a throttled core is below its roof for reasons that no kernel can mend"},
        {"counters", "without them nothing tells cache misses from waiting"},
        {"pmu", "cycles, instructions and cache misses come from it"},
        {"msr", "likwid reads its counters and the energy there"},
        {"float-mode", "flushing subnormals changes results and, on some CPUs, speed"},
        {"openmp", "other programs' thread settings must not decide what is measured"},
        {"topology", "placements follow from hwloc's picture"},
    };
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (strcmp(reasons[i][0], topic) == 0)
            return reasons[i][1];
    return "it can move a figure";
}

int doctor_examine(const struct topology *topology, struct finding *findings, int max)
{
    struct cgroup_limits limits;
    cgroup_read(&limits);
    const struct finding all[] = {
        examine_governor(topology),
        examine_turbo(),
        examine_smt(topology),
        examine_thp(),
        examine_load(topology),
        examine_neighbours(topology),
        examine_steal(),
        examine_quota(topology, &limits),
        examine_memory(&limits),
        examine_swap(),
        examine_affinity(topology),
        examine_isolation(),
        examine_hypervisor(),
        examine_emulation(),
        examine_clocksource(),
        examine_aslr(),
        examine_heat(topology),
        examine_counters(),
        examine_pmu(),
        examine_msr(topology),
        examine_float_mode(),
        examine_openmp(),
        examine_topology(topology),
    };
    int count = (int)(sizeof all / sizeof all[0]);
    if (count > max)
        count = max;
    memcpy(findings, all, (size_t)count * sizeof all[0]);
    for (int i = 0; i < count; i++)
        findings[i].why = why(findings[i].topic);
    return count;
}
