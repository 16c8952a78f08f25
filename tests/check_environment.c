/* SPDX-License-Identifier: Apache-2.0
 *
 * Context, cgroups, noise gauges and doctor's findings, on this machine and on fake trees under ATTNBENCH_FS_ROOT.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/build_info.h"
#include "harness/cgroup.h"
#include "harness/environment.h"
#include "harness/machine_facts.h"
#include "tests/fake_tree.h"

static struct topology load(const char *source)
{
    struct topology topology;
    struct error error;
    if (topology_load(source, NULL, &topology, &error) != 0)
        fail_msg("%s", error.text);
    return topology;
}

#define MOUNT_V2 "30 20 0:25 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
#define MOUNT_CPU "31 20 0:26 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
#define MOUNT_MEMORY "32 20 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"

static void quota_v2_takes_the_tightest_parent(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/slice/job\n");
    put("/proc/self/mountinfo", "20 1 8:1 / / rw - ext4 /dev/root rw\n" MOUNT_V2);
    put("/sys/fs/cgroup/slice/job/cpu.max", "400000 100000\n");
    put("/sys/fs/cgroup/slice/cpu.max", "150000 100000\n");
    put("/sys/fs/cgroup/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/slice/job/cpu.stat", "usage_usec 5\nnr_throttled 3\nthrottled_usec 1500\n");
    put("/sys/fs/cgroup/slice/cpu.stat", "throttled_usec 500\n");
    struct cgroup_limits limits;
    cgroup_read(&limits);
    assert_true(limits.v2 && !limits.v1);
    assert_true(limits.cpu_quota == 1.5);
    assert_true(limits.throttled_ns == 2e6);
    assert_true(environment_cpu_quota() == 1.5);
    assert_true(limits.memory_limit == 0);
    put("/sys/fs/cgroup/slice/cpu.max", "max 100000\n");
    assert_true(environment_cpu_quota() == 4);
    put("/sys/fs/cgroup/slice/job/cpu.max", "max 100000\n");
    assert_true(environment_cpu_quota() == 0);
    put("/sys/fs/cgroup/slice/job/cpu.max", "nonsense\n");
    assert_true(environment_cpu_quota() == 0);
}

static void quota_v1(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "4:memory:/a\n3:cpu,cpuacct:/a/b\n1:name=systemd:/x\n");
    put("/proc/self/mountinfo", MOUNT_MEMORY MOUNT_CPU);
    put("/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "50000\n");
    put("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "20000\n");
    put("/sys/fs/cgroup/cpu,cpuacct/a/cpu.stat", "nr_periods 9\nthrottled_time 123456\n");
    struct cgroup_limits limits;
    cgroup_read(&limits);
    assert_true(limits.v1 && !limits.v2);
    assert_true(limits.cpu_quota == 2.5);
    assert_true(limits.throttled_ns == 123456);
}

/* A container sees its own group as the root of the mount. */
static void quota_below_a_mounted_subtree(void **state)
{
    (void)state;
    put("/proc/self/cgroup", "0::/docker/abc/inner\n");
    put("/proc/self/mountinfo", "30 20 0:25 /docker/abc /sys/fs/cgroup\\040here rw - cgroup2 cgroup2 rw\n");
    put("/sys/fs/cgroup here/cpu.max", "300000 100000\n");
    put("/sys/fs/cgroup here/inner/cpu.max", "max 100000\n");
    assert_true(environment_cpu_quota() == 3);
    put("/proc/self/cgroup", "0::/docker/abcdef\n"); /* another group of the same beginning: outside */
    put("/sys/fs/cgroup here/def/cpu.max", "100000 100000\n");
    assert_true(environment_cpu_quota() == 3);
    put("/proc/self/cgroup", "0::/../other\n");
    assert_true(environment_cpu_quota() == 3);
}

static void memory_is_what_the_tightest_limit_leaves(void **state)
{
    (void)state;
    put("/proc/meminfo", "MemTotal:       8000 kB\nMemFree: 1 kB\nMemAvailable:    4000 kB\n");
    assert_int_equal(environment_memory_available(), 4000 * 1024);
    put("/proc/self/cgroup", "0::/job\n");
    put("/proc/self/mountinfo", MOUNT_V2);
    put("/sys/fs/cgroup/job/memory.max", "3000000\n");
    put("/sys/fs/cgroup/job/memory.current", "1000000\n");
    assert_int_equal(environment_memory_available(), 2000000);
    put("/sys/fs/cgroup/job/memory.stat", "anon 5\ninactive_file 250000\n");
    assert_int_equal(environment_memory_available(), 2250000);
    put("/sys/fs/cgroup/job/memory.max", "max\n");
    assert_int_equal(environment_memory_available(), 4000 * 1024);
    put("/sys/fs/cgroup/job/memory.max", "900000\n"); /* lowered below what is in use */
    put("/sys/fs/cgroup/job/memory.stat", "anon 5\n");
    assert_int_equal(environment_memory_available(), 0);
    put("/proc/self/cgroup", "4:memory:/job\n");
    put("/proc/self/mountinfo", MOUNT_MEMORY);
    put("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "77\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "500000\n");
    put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "200000\n");
    assert_int_equal(environment_memory_available(), 300000);
}

static void noise_gauges(void **state)
{
    (void)state;
    struct noise_reading before, after;
    noise_read(&before);
    assert_true(before.steal_ns == -1 && before.throttled_ns == -1); /* an empty tree tells nothing */
    put("/proc/stat", "cpu  10 0 20 3000 5 0 1 250 0 0\ncpu0 5 0 10 1500 2 0 0 125 0 0\n");
    volatile double sink = 0;
    do {
        for (int i = 0; i < 100000; i++)
            sink += i;
        noise_read(&after);
    } while (after.cpu_ns - before.cpu_ns < 2e6);
    assert_true(after.steal_ns == 250 * 1e9 / (double)sysconf(_SC_CLK_TCK));
    assert_true(sink > 0);
    assert_true(before.cpu_ns > 0 && after.cpu_ns < before.cpu_ns + 1e12);
    assert_true(before.involuntary_switches >= 0 && after.involuntary_switches >= before.involuntary_switches);
}

static const struct finding *finding_of(const struct finding *findings, int count, const char *topic)
{
    for (int i = 0; i < count; i++)
        if (strcmp(findings[i].topic, topic) == 0)
            return &findings[i];
    fail_msg("no finding about %s", topic);
    return NULL;
}

static void expect_level(const char *topic, int level, const char *in_state)
{
    struct finding findings[64];
    struct topology topology = load("pack:1 core:4 pu:1");
    topology.cpu_quota = environment_cpu_quota();
    const int count = doctor_examine(&topology, findings, 64);
    const struct finding *f = finding_of(findings, count, topic);
    if (f->level != (unsigned)level || !strstr(f->state, in_state))
        fail_msg("%s: level %d, state '%s'", topic, (int)f->level, f->state);
    /* Whoever is warned is told what to do. */
    assert_true((f->level == FINDING_WARN || f->level == FINDING_NOTE) == (f->mend != NULL));
    assert_non_null(f->why);
    assert_string_not_equal(f->why, "it can move a figure"); /* the answer for a topic that the table forgot */
    topology_release(&topology);
}

static void doctor_knows_nothing_of_an_empty_tree(void **state)
{
    (void)state;
    static const char *const topics[] = {"governor", "turbo",  "thp",        "load",        "steal",
                                         "quota",    "memory", "isolation",  "clocksource", "counters",
                                         "swap",     "smt",    "neighbours", "aslr",        "heat"};
    for (size_t i = 0; i < sizeof topics / sizeof topics[0]; i++)
        expect_level(topics[i], FINDING_UNKNOWN, "");
}

static void doctor_finds_what_is_wrong(void **state)
{
    (void)state;
    char path[128];
    put("/proc/stat", "cpu 1 2 3 4 5 6 7 8 9 10\nprocs_running 6\n");
    expect_level("neighbours", FINDING_WARN, "5 other tasks");
    put("/proc/stat", "cpu 1 2 3 4 5 6 7 8 9 10\nprocs_running 2\n");
    expect_level("neighbours", FINDING_NOTE, "1 other tasks");
    put("/proc/stat", "cpu 1 2 3 4 5 6 7 8 9 10\nprocs_running 1\n");
    expect_level("neighbours", FINDING_OK, "0 other tasks");
    put("/proc/sys/kernel/randomize_va_space", "0\n");
    expect_level("aslr", FINDING_NOTE, "off");
    put("/proc/sys/kernel/randomize_va_space", "2\n");
    expect_level("aslr", FINDING_OK, "on (2)");
    put("/sys/devices/system/cpu/cpu2/thermal_throttle/core_throttle_count", "0\n");
    expect_level("heat", FINDING_OK, "no core");
    put("/sys/devices/system/cpu/cpu3/thermal_throttle/core_throttle_count", "7\n");
    expect_level("heat", FINDING_NOTE, "7 times");
    for (int cpu = 0; cpu < 4; cpu++) {
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor", cpu);
        put(path, "performance\n");
    }
    expect_level("governor", FINDING_OK, "performance");
    put(path, "powersave\n");
    expect_level("governor", FINDING_WARN, "mixed: performance powersave");
    put("/sys/devices/system/cpu/cpufreq/boost", "1\n");
    expect_level("turbo", FINDING_NOTE, "on");
    put("/sys/devices/system/cpu/cpufreq/boost", "0\n");
    expect_level("turbo", FINDING_OK, "off");
    put("/sys/devices/system/cpu/intel_pstate/no_turbo", "0\n");
    expect_level("turbo", FINDING_NOTE, "on");
    put("/sys/devices/system/cpu/smt/active", "1\n");
    expect_level("smt", FINDING_NOTE, "on");
    put("/sys/devices/system/cpu/smt/active", "0\n");
    expect_level("smt", FINDING_OK, "off");
    put("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
    expect_level("thp", FINDING_WARN, "never");
    put("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    expect_level("thp", FINDING_OK, "madvise");
    put("/proc/loadavg", "3.10 2.00 1.00 2/100 1234\n");
    expect_level("load", FINDING_WARN, "3.10");
    put("/proc/loadavg", "1.00 2.00 1.00 2/100 1234\n");
    expect_level("load", FINDING_NOTE, "1.00");
    put("/proc/loadavg", "0.01 2.00 1.00 2/100 1234\n");
    expect_level("load", FINDING_OK, "0.01");
    put("/proc/meminfo", "MemTotal: 64000000 kB\nMemAvailable: 1000000 kB\nSwapTotal: 500 kB\nSwapFree: 400 kB\n");
    expect_level("memory", FINDING_NOTE, "1.0 GB");
    expect_level("swap", FINDING_NOTE, "in use");
    put("/proc/meminfo", "MemTotal: 64000000 kB\nMemAvailable: 32000000 kB\nSwapTotal: 500 kB\nSwapFree: 500 kB\n");
    expect_level("memory", FINDING_OK, "32.8 GB");
    expect_level("swap", FINDING_OK, "not in use");
    put("/sys/devices/system/cpu/isolated", "\n");
    expect_level("isolation", FINDING_NOTE, "no CPU");
    put("/sys/devices/system/cpu/isolated", "2-3\n");
    expect_level("isolation", FINDING_OK, "2-3");
    put("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
    expect_level("clocksource", FINDING_WARN, "hpet");
    put("/proc/sys/kernel/perf_event_paranoid", "4\n");
    expect_level("counters", FINDING_NOTE, "4");
    expect_level("pmu", FINDING_UNKNOWN, "");
    put("/sys/bus/event_source/devices/software/type", "1\n");
    expect_level("pmu", FINDING_NOTE, "none");
    put("/sys/bus/event_source/devices/cpu_core/type", "4\n");
    expect_level("pmu", FINDING_OK, "cpu_core");
    expect_level("msr", FINDING_NOTE, "there is no /dev/cpu/");
    put("/proc/self/cgroup", "0::/\n");
    put("/proc/self/mountinfo", MOUNT_V2);
    expect_level("quota", FINDING_OK, "none");
    put("/sys/fs/cgroup/cpu.max", "150000 100000\n");
    expect_level("quota", FINDING_WARN, "1.50");
    put("/sys/fs/cgroup/cpu.max", "900000 100000\n");
    expect_level("quota", FINDING_NOTE, "9.00");
    setenv("OMP_PROC_BIND", "true", 1);
    expect_level("openmp", FINDING_NOTE, "OMP_PROC_BIND");
    put("/proc/stat", "cpu  10 0 20 3000 5 0 1 250 0 0\n");
    expect_level("steal", FINDING_UNKNOWN, "stands still");
    unsetenv("OMP_PROC_BIND");
}

static bool is_null(const json_t *object, const char *key)
{
    return json_is_null(json_object_get(object, key));
}

static void unknown_is_null_in_the_context(void **state)
{
    (void)state;
    struct topology topology = load("pack:1 core:4 pu:1");
    json_t *context = environment_context(&topology);
    static const char *const keys[] = {"microcode", "governor", "turbo", "smt", "thp", "cgroup"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (!is_null(context, keys[i]))
            fail_msg("%s is not null", keys[i]);
    assert_true(json_is_integer(json_object_get(context, "memory_bytes")));
    json_decref(context);
    put("/proc/cpuinfo", "processor\t: 0\nmodel name\t: X\nmicrocode\t: 0x42\n\nprocessor\t: 1\nmicrocode\t: 0x43\n");
    put("/sys/devices/system/cpu/smt/active", "1\n");
    put("/sys/devices/system/cpu/intel_pstate/no_turbo", "1\n");
    put("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n");
    put("/proc/self/cgroup", "0::/\n");
    put("/proc/self/mountinfo", MOUNT_V2);
    put("/sys/fs/cgroup/cpu.max", "150000 100000\n");
    context = environment_context(&topology);
    assert_string_equal(json_string_value(json_object_get(context, "microcode")), "0x42");
    assert_true(json_is_true(json_object_get(context, "smt")));
    assert_true(json_is_false(json_object_get(context, "turbo")));
    assert_string_equal(json_string_value(json_object_get(context, "thp")), "always");
    const json_t *cgroup = json_object_get(context, "cgroup");
    assert_true(json_real_value(json_object_get(cgroup, "cpu_quota")) == 1.5);
    assert_true(is_null(cgroup, "memory_limit_bytes"));
    json_decref(context);
    topology_release(&topology);
}

static void context_of_this_machine(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        json_type type;
    } fields[] = {{"host", JSON_STRING},           {"machine_key", JSON_STRING},
                  {"cpu_model", JSON_STRING},      {"isa", JSON_OBJECT},
                  {"topology", JSON_OBJECT},       {"memory_bytes", JSON_INTEGER},
                  {"kernel_release", JSON_STRING}, {"compiler", JSON_STRING},
                  {"flags", JSON_STRING},          {"omp", JSON_OBJECT},
                  {"libraries", JSON_OBJECT}};
    setenv("OMP_NUM_THREADS", "96", 1);
    setenv("ATTNBENCH_ORIGINAL_OMP", "{\"OMP_PLACES\": \"cores\"}", 1);
    struct topology topology = load(NULL);
    json_t *context = environment_context(&topology);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (json_typeof(json_object_get(context, fields[i].key)) != fields[i].type)
            fail_msg("%s has the wrong type", fields[i].key);
    const json_t *omp = json_object_get(context, "omp"), *user = json_object_get(omp, "user");
    assert_string_equal(json_string_value(json_object_get(omp, "OMP_NUM_THREADS")), "96");
    assert_string_equal(json_string_value(json_object_get(user, "OMP_PLACES")), "cores");
    assert_string_equal(json_string_value(json_object_get(context, "compiler")), build_compiler);
    assert_non_null(json_string_value(json_object_get(json_object_get(context, "libraries"), "hwloc")));
    json_decref(context);
    /* Something else than an object in the variable is no ground to fail. */
    setenv("ATTNBENCH_ORIGINAL_OMP", "[1", 1);
    context = environment_context(&topology);
    assert_null(json_object_get(json_object_get(context, "omp"), "user"));
    json_decref(context);
    unsetenv("OMP_NUM_THREADS");
    unsetenv("ATTNBENCH_ORIGINAL_OMP");
    topology_release(&topology);
}

static void machine_key_is_the_machine_s(void **state)
{
    (void)state;
    struct topology whole = load("pack:2 core:4 pu:2"), part, other = load("pack:2 core:4 pu:1");
    struct error error;
    assert_int_equal(topology_load("pack:2 core:4 pu:2", "0,3", &part, &error), 0);
    const char *key = machine_key(&whole);
    assert_int_equal(strlen(key), 16);
    assert_int_equal(strspn(key, "0123456789abcdef"), 16);
    assert_string_equal(machine_key(&part), key); /* what may be used now does not make another machine */
    assert_string_not_equal(machine_key(&other), key);
    topology_release(&whole);
    topology_release(&part);
    topology_release(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(quota_v2_takes_the_tightest_parent, new_root, drop_root),
        cmocka_unit_test_setup_teardown(quota_v1, new_root, drop_root),
        cmocka_unit_test_setup_teardown(quota_below_a_mounted_subtree, new_root, drop_root),
        cmocka_unit_test_setup_teardown(memory_is_what_the_tightest_limit_leaves, new_root, drop_root),
        cmocka_unit_test_setup_teardown(noise_gauges, new_root, drop_root),
        cmocka_unit_test_setup_teardown(doctor_knows_nothing_of_an_empty_tree, new_root, drop_root),
        cmocka_unit_test_setup_teardown(doctor_finds_what_is_wrong, new_root, drop_root),
        cmocka_unit_test_setup_teardown(unknown_is_null_in_the_context, new_root, drop_root),
        cmocka_unit_test(context_of_this_machine),
        cmocka_unit_test(machine_key_is_the_machine_s),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
