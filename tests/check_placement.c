/* SPDX-License-Identifier: Apache-2.0
 *
 * Placements on synthetic and recorded machines, and binding on the real one. tests/topo/README.md tells what the
 * recorded ones are.
 */
#include <errno.h>
#include <omp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/placement_text.h"

/* Two sockets, two NUMA nodes each, two L3s each, four cores each, two threads each: 64 PUs, siblings adjacent. */
static const char big[] = "pack:2 numa:2 l3:2 core:4 pu:2";
/* Siblings are four apart. */
static const char far_siblings[] = "pack:2 core:2 pu:2(indexes=0,4,1,5,2,6,3,7)";

/* The text of a usage error that names the culprit. */
#define assert_refused(text, culprit)                                                                                  \
    do {                                                                                                               \
        const char *refusal_ = (text);                                                                                 \
        assert_int_equal(strncmp(refusal_, "error: ", 7), 0);                                                          \
        assert_non_null(strstr(refusal_, culprit));                                                                    \
    } while (0)

static void compact_scatter_smt(void **state)
{
    (void)state;
    assert_string_equal(resolve(big, NULL, "compact", 10), "0,2,4,6,8,10,12,14,16,18");
    assert_string_equal(resolve(big, NULL, "compact", 34) +
                            strlen("0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30,32,34,36,"
                                   "38,40,42,44,46,48,50,52,54,56,58,60,62"),
                        ",1,3");
    /* Sockets first, then NUMA nodes, then L3s; only then a second core of the first L3. */
    assert_string_equal(resolve(big, NULL, "scatter", 10), "0,32,16,48,8,40,24,56,2,34");
    assert_string_equal(resolve(big, NULL, "smt", 5), "0-4");
    assert_string_equal(resolve(far_siblings, NULL, "compact", 0), "0-3");
    assert_string_equal(resolve(far_siblings, NULL, "all", 0), "0-7");
    assert_string_equal(resolve(far_siblings, NULL, "smt", 0), "0,4,1,5,2,6,3,7");
    assert_string_equal(resolve(far_siblings, NULL, "scatter", 0), "0,2,1,3");
    assert_string_equal(resolve(far_siblings, NULL, "scatter", 6), "0,2,1,3-4,6");
    assert_string_equal(resolve(far_siblings, NULL, "none", 3), "unbound");
}

static void domains(void **state)
{
    (void)state;
    assert_string_equal(resolve(big, NULL, "core:5", 0), "10-11");
    assert_string_equal(resolve(big, NULL, "core:5", 1), "10");
    assert_string_equal(resolve(big, NULL, "l3:3", 0), "24,26,28,30,25,27,29,31");
    assert_string_equal(resolve(big, NULL, "numa:1", 3), "16,18,20");
    assert_string_equal(resolve(big, NULL, "socket:1", 2), "32,34");
    assert_string_equal(resolve(far_siblings, NULL, "core:2", 0), "2,6");
    assert_string_equal(resolve(far_siblings, NULL, "socket:1", 0), "2-3,6-7");
    assert_refused(resolve(big, NULL, "core:32", 0), "core:32");
    assert_refused(resolve(big, NULL, "l3:8", 0), "l3:8");
    assert_refused(resolve(big, NULL, "numa:4", 0), "numa:4");
    assert_refused(resolve(big, NULL, "socket:2", 0), "socket:2");
    assert_refused(resolve("pack:1 core:2 pu:1", NULL, "l3:0", 0), "l3:0");
    assert_refused(resolve("pack:1 core:2 pu:1", NULL, "l3:each", 0), "no usable L3 cache");
    assert_string_equal(resolve(big, NULL, "l3:each", 0), "0,8,16,24,32,40,48,56");
    assert_string_equal(resolve(big, NULL, "numa:each", 3), "0,16,32");
    assert_string_equal(resolve(big, NULL, "socket:each", 0), "0,32");
    assert_string_equal(resolve(far_siblings, NULL, "core:each", 0), "0-3");
    assert_string_equal(resolve(big, NULL, "core:5/nosmt", 0), "10");
    assert_string_equal(resolve(big, NULL, "l3:3/nosmt", 0), "24,26,28,30");
    assert_string_equal(resolve(far_siblings, "1,4-5,6", "all/nosmt", 0), "4,1,6");
    static const char *const malformed[] = {
        "core:",  "core:-1", "core:x", "core:1x",  "core:99999999999", "l3",         "socket", "",
        "ladder", "pcores",  "ecores", "compact2", " compact",         "none/nosmt", "/nosmt", "core:0/nosmt/nosmt",
        "each",   "l3:each1"};
    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++)
        assert_refused(resolve(big, NULL, malformed[i], 0), malformed[i]);
}

static void lists(void **state)
{
    (void)state;
    assert_string_equal(resolve(big, NULL, "5,0,2-4", 0), "5,0,2-4");
    assert_string_equal(resolve(big, NULL, "5,0,2-4", 2), "5,0");
    assert_refused(resolve(big, NULL, "0,64", 0), "64");
    assert_refused(resolve(big, "0-3", "2-5", 0), "4");
    assert_string_equal(resolve(big, NULL, "1,2,1", 0), "1-2,1");
    assert_string_equal(resolve(big, NULL, "3-1", 0), "3,2,1");
    static const char *const malformed[] = {"1,", "1,,2", "1-", "1-2-3", "1;2", "1 2", "0x3", "1-99999999999", "1,a"};
    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++)
        assert_refused(resolve(big, NULL, malformed[i], 0), malformed[i]);
}

static void too_many_threads_are_told(void **state)
{
    (void)state;
    assert_int_equal(strncmp(resolve(big, NULL, "core:0", 3), "range: 3 threads", 16), 0);
    assert_int_equal(strncmp(resolve(big, NULL, "compact", 65), "range: 65 threads", 17), 0);
    assert_int_equal(strncmp(resolve(big, NULL, "none", 65), "range: 65 threads", 17), 0);
    assert_int_equal(strncmp(resolve(big, NULL, "1-2", 3), "range: 3 threads", 16), 0);
}

/* Position in the allowed set must never be taken for an OS index (RRZE-HPC/likwid#630). */
static void restriction(void **state)
{
    (void)state;
    assert_string_equal(resolve(big, "3,4", "numa:0", 0), "3-4");
    assert_string_equal(resolve(big, "3,4", "core:0", 0), "3");
    assert_string_equal(resolve(big, "62-63", "socket:0", 0), "62-63");
    assert_refused(resolve(big, "62-63", "socket:1", 0), "socket:1");
    /* Second siblings alone are cores of their own; one core that has both keeps both. */
    assert_string_equal(resolve(far_siblings, "4-7", "compact", 0), "4-7");
    assert_string_equal(resolve(far_siblings, "4,1,5", "compact", 0), "4,1");
    assert_string_equal(resolve(far_siblings, "4,1,5", "compact", 3), "4,1,5");
    assert_string_equal(resolve(far_siblings, "4,1,5", "all", 0), "4,1,5");
    assert_non_null(strstr(resolve(far_siblings, "8", "compact", 0), "no topology: no usable"));
    assert_non_null(strstr(resolve(far_siblings, "1,,2", "compact", 0), "1,,2"));
}

static void recorded_machines(void **state)
{
    (void)state;
    assert_string_equal(resolve("tests/topo/disallowed.xml", NULL, "compact", 0), "0,2,4");
    assert_string_equal(resolve("tests/topo/disallowed.xml", NULL, "scatter", 0), "0,4,2");
    assert_string_equal(resolve("tests/topo/disallowed.xml", NULL, "all", 0), "0,2,4,1,3,5");
    assert_string_equal(resolve("tests/topo/disallowed.xml", NULL, "l3:1", 0), "4-5");
    assert_refused(resolve("tests/topo/disallowed.xml", NULL, "socket:1", 0), "socket:1");
    assert_refused(resolve("tests/topo/disallowed.xml", NULL, "numa:2", 0), "numa:2");
    assert_refused(resolve("tests/topo/disallowed.xml", NULL, "5-6", 0), "CPU 6 may not be used");
    assert_string_equal(resolve("tests/topo/gaps.xml", NULL, "compact", 0), "4-5,14-15");
    assert_string_equal(resolve("tests/topo/gaps.xml", NULL, "all", 0), "4-5,14-15,8-9");
    assert_string_equal(resolve("tests/topo/gaps.xml", NULL, "scatter", 0), "4,14,5,15");
    assert_string_equal(resolve("tests/topo/gaps.xml", NULL, "numa:0", 0), "4-5,8-9");
    assert_refused(resolve("tests/topo/gaps.xml", NULL, "numa:1", 0), "numa:1");
    assert_refused(resolve("tests/topo/gaps.xml", "14-15", "numa:0", 0), "numa:0");
    assert_refused(resolve("tests/topo/gaps.xml", NULL, "0", 0), "CPU 0 does not exist");
    assert_string_equal(resolve("tests/topo/l3_for_some.xml", NULL, "compact", 0), "0-3");
    assert_string_equal(resolve("tests/topo/l3_for_some.xml", NULL, "l3:0", 0), "0-1");
    assert_string_equal(resolve("tests/topo/l3_for_some.xml", NULL, "scatter", 0), "0,2,1,3");
    /* No Core objects: hardware threads stand for cores. NUMA nodes smaller than the L3; two nodes of the same CPUs. */
    assert_string_equal(resolve("numa:1 pack:1 pu:3", NULL, "compact", 0), "0-2");
    assert_string_equal(resolve("pack:2 l3:1 numa:2 core:2 pu:1", NULL, "scatter", 0), "0,4,2,6,1,5,3,7");
    assert_string_equal(resolve("pack:2 [numa] [numa] core:2 pu:1", NULL, "numa:3", 0), "2-3");
    assert_string_equal(resolve("pack:2 [numa] [numa] core:2 pu:1", NULL, "scatter", 0), "0,2,1,3");
}

static void counts_and_caches(void **state)
{
    (void)state;
    struct topology topology;
    struct error error;
    assert_int_equal(topology_load("pack:2 l3:3(size=6000000) l2:1(size=500000) core:4 pu:2", NULL, &topology, &error),
                     0);
    assert_false(topology.this_system);
    assert_int_equal(topology_usable_cores(&topology), 24);
    assert_int_equal(topology_usable_pus(&topology), 48);
    assert_int_equal(topology_max_threads(&topology), 24);
    topology.cpu_quota = 2.9;
    assert_int_equal(topology_max_threads(&topology), 2);
    topology.cpu_quota = 0.5;
    assert_int_equal(topology_max_threads(&topology), 1);
    topology.cpu_quota = 100;
    assert_int_equal(topology_max_threads(&topology), 24);
    assert_int_equal(topology_cache_bytes(&topology, 1), 0);
    assert_int_equal(topology_cache_bytes(&topology, 2), 500000);
    assert_int_equal(topology_cache_bytes(&topology, 3), 6000000);
    assert_int_equal(topology_llc_total_bytes(&topology), 6 * 6000000);
    json_t *object = topology_to_json(&topology);
    assert_int_equal(json_integer_value(json_object_get(object, "packages")), 2);
    assert_int_equal(json_integer_value(json_object_get(object, "l3_domains")), 6);
    assert_int_equal(json_integer_value(json_object_get(object, "cores")), 24);
    assert_int_equal(json_integer_value(json_object_get(object, "pus")), 48);
    const json_t *caches = json_object_get(object, "caches");
    assert_int_equal(json_array_size(caches), 2);
    const json_t *l3 = json_array_get(caches, 1);
    assert_int_equal(json_integer_value(json_object_get(l3, "level")), 3);
    assert_int_equal(json_integer_value(json_object_get(l3, "count")), 6);
    assert_int_equal(json_integer_value(json_object_get(l3, "shared_by")), 8);
    json_decref(object);
    topology_release(&topology);

    assert_int_equal(topology_load("tests/topo/gaps.xml", "4,9,15", &topology, &error), 0);
    object = topology_to_json(&topology);
    assert_int_equal(json_integer_value(json_object_get(object, "packages")), 2);
    assert_int_equal(json_integer_value(json_object_get(object, "numa_nodes")), 1);
    assert_int_equal(json_integer_value(json_object_get(object, "numa_nodes_without_cpus")), 1);
    assert_int_equal(json_integer_value(json_object_get(object, "cores")), 3);
    assert_int_equal(json_integer_value(json_object_get(object, "l3_domains")), 0);
    assert_int_equal(json_array_size(json_object_get(object, "allowed_pus")), 3);
    assert_int_equal(json_array_size(json_object_get(object, "disallowed_pus")), 3);
    assert_int_equal(topology_cache_bytes(&topology, 1), 0);
    assert_int_equal(topology_llc_total_bytes(&topology), 0);
    json_decref(object);
    topology_release(&topology);
}

static void thousands_of_cpus(void **state)
{
    (void)state;
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    struct topology topology;
    struct placement placement;
    struct error error;
    assert_int_equal(topology_load("pack:2 core:1024 pu:1", NULL, &topology, &error), 0);
    int names = 0;
    for (const char *name; (name = placement_name(&topology, names)); names++) {
        assert_int_equal(placement_resolve(&topology, name, 0, &placement, &error), 0);
        placement_release(&placement);
    }
    /* Whole machine, numa:each and socket:each, cores, NUMA node, sockets. */
    assert_int_equal(names, 5 + 2 + 2048 + 1 + 2);
    assert_int_equal(placement_resolve(&topology, "all", 0, &placement, &error), 0);
    assert_int_equal(placement.threads, 2048);
    for (int i = 0; i < 2048; i++)
        assert_int_equal(placement.cpus[i], i);
    placement_release(&placement);
    topology_release(&topology);
    clock_gettime(CLOCK_MONOTONIC, &end);
    const double seconds = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    print_message("2048 PUs: %d placements planned in %.3f s\n", names, seconds);
    assert_true(seconds < 10); /* against hangs: a sanitizer on a busy machine needs more than the second it may take */
}

static void bad_topologies_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "tests/topo/version3.xml", "tests/topo/README.md", "tests/topo", "no_such_file", "foo:2 bar:3", "pack:0", "",
        "core:4000000 pu:8"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const char *text = resolve(bad[i], NULL, "compact", 0);
        assert_int_equal(strncmp(text, "no topology: ", 13), 0);
        assert_non_null(strstr(text, bad[i]));
        assert_null(strchr(text, '\n'));
    }
    /* A variable that means nothing must not quietly become this machine. */
    setenv("HWLOC_XMLFILE", "no_such_file", 1);
    assert_non_null(strstr(resolve(NULL, NULL, "compact", 0), "HWLOC_XMLFILE 'no_such_file'"));
    setenv("HWLOC_XMLFILE", "tests/topo/gaps.xml", 1);
    assert_string_equal(resolve(NULL, NULL, "compact", 0), "4-5,14-15");
    unsetenv("HWLOC_XMLFILE");
    setenv("HWLOC_SYNTHETIC", "nonsense", 1);
    assert_non_null(strstr(resolve(NULL, NULL, "compact", 0), "HWLOC_SYNTHETIC 'nonsense'"));
    unsetenv("HWLOC_SYNTHETIC");
}

static void binding_is_read_back(void **state)
{
    (void)state;
    struct topology topology;
    struct error error;
    assert_int_equal(topology_load(NULL, NULL, &topology, &error), 0);
    assert_true(topology.this_system);
    for (int i = 0; i < topology.pu_count; i++) {
        assert_int_equal(placement_bind_self(topology.pus[i].os), 0);
        assert_int_equal(placement_current_cpu(), topology.pus[i].os);
    }
    assert_int_equal(placement_bind_self(-1), -EINVAL);
    assert_true(placement_bind_self(100000) < 0);
    assert_true(placement_bind_self(1 << 30) < 0);
    assert_int_equal(affinity_restore(), 0);
    hwloc_bitmap_t now = hwloc_bitmap_alloc();
    assert_int_equal(hwloc_get_cpubind(topology.hwloc, now, HWLOC_CPUBIND_THREAD), 0);
    hwloc_bitmap_t before = hwloc_bitmap_dup(affinity_at_start());
    hwloc_bitmap_and(before, before, hwloc_topology_get_topology_cpuset(topology.hwloc));
    assert_true(hwloc_bitmap_isequal(now, before));
    hwloc_bitmap_free(before);
    hwloc_bitmap_free(now);
    topology_release(&topology);
}

/* Exit codes of the program begun anew. */
enum { ALL_KNOWN = 0, NOT_BOUND = 10, CPUS_LOST = 11 };

static int cpus_at_start(const char *expected)
{
    struct topology topology;
    struct error error;
    hwloc_bitmap_t now = hwloc_bitmap_alloc();
    if (omp_get_max_threads() < 1 || topology_load(NULL, NULL, &topology, &error) != 0)
        return CPUS_LOST;
    const bool bound =
        hwloc_get_cpubind(topology.hwloc, now, HWLOC_CPUBIND_THREAD) == 0 && hwloc_bitmap_weight(now) < atoi(expected);
    const int known = hwloc_bitmap_weight(affinity_at_start()), usable = topology_usable_pus(&topology);
    topology_release(&topology);
    hwloc_bitmap_free(now);
    return known != atoi(expected) || usable != known ? CPUS_LOST : bound ? ALL_KNOWN : NOT_BOUND;
}

/* With OMP_PROC_BIND the OpenMP runtime binds the main thread before main (OpenMathLib/OpenBLAS#2238): the program
 * begins anew under it, and must still know of all CPUs. */
static void openmp_variables_hide_no_cpu(void **state)
{
    (void)state;
    if (hwloc_bitmap_weight(affinity_at_start()) < 2) {
        print_message("one CPU: nothing to hide\n");
        skip();
    }
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char expected[16];
        snprintf(expected, sizeof expected, "%d", hwloc_bitmap_weight(affinity_at_start()));
        setenv("OMP_PROC_BIND", "true", 1);
        setenv("OMP_PLACES", "cores", 1);
        execl("/proc/self/exe", "check_placement", "--cpus-at-start", expected, (char *)NULL);
        _exit(127);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == NOT_BOUND) {
        print_message("this OpenMP runtime did not bind the main thread\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), ALL_KNOWN);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--cpus-at-start") == 0)
        return cpus_at_start(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compact_scatter_smt),
        cmocka_unit_test(domains),
        cmocka_unit_test(lists),
        cmocka_unit_test(too_many_threads_are_told),
        cmocka_unit_test(restriction),
        cmocka_unit_test(recorded_machines),
        cmocka_unit_test(counts_and_caches),
        cmocka_unit_test(thousands_of_cpus),
        cmocka_unit_test(bad_topologies_are_refused),
        cmocka_unit_test(binding_is_read_back),
        cmocka_unit_test(openmp_variables_hide_no_cpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
