/* SPDX-License-Identifier: Apache-2.0
 *
 * Every placement of every machine, restricted to 200 random subsets of its PUs: each either stays inside the subset,
 * in a form that follows from the grammar, or is refused with a reason. ATTNBENCH_SUBSETS changes the number.
 */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "harness/cpu_list.h"
#include "harness/placement.h"

/* Traits that the recorded machines lack: SMT8, an L3 above several NUMA nodes, dies, no cores, no sockets. */
static const char *const synthetic[] = {
    "pack:2 numa:1 l3:2 core:2 pu:8",
    "pack:2 l3:1 numa:2 core:4 pu:2",
    "pack:2 die:2 l3:2 core:3 pu:1",
    "numa:1 pack:1 pu:7",
    "pu:5",
    "pack:2 [numa] [numa] core:4 pu:2",
    "pack:1 l2:3(size=1000000) core:2 pu:2(indexes=0,6,1,7,2,8,3,9,4,10,5,11)",
};

/* Besides the named placements and the ladder; some mean nothing on most machines. */
static const char *const expressions[] = {
    "N",
    "S0",
    "S1:0",
    "N:0-1",
    "E:N",
    "E:S0:3:1:2",
    "E:N:5:2:3:1",
    "M:scatter",
    "S:scatter",
    "C:scatter:2",
    "D:scatter",
    "M:balanced",
    "C:cbalanced",
    "S:cbalanced:3",
    "L:C0:1-0",
    "M0@C0@S0",
    "C1",
    "all/nosmt",
    "smt/nosmt",
    "scatter/nosmt",
    "pcores/nosmt",
    "ecores/nosmt",
    "socket:0/nosmt",
    "0",
    "core:each",
    "M0:cbalanced",
    "N:cbalanced",
};
enum { EXPRESSIONS = sizeof expressions / sizeof expressions[0], SUBSETS = 200 };

static uint64_t random_state = 20240229;

static uint32_t draw(void)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(random_state >> 33);
}

static int resolved, refused;

/* likwid: CPUs may stand twice. */
static void check(const struct topology *topology, const char *source, const char *restrict_list,
                  const char *expression, bool likwid)
{
    struct placement placement;
    struct error error;
    const int code = placement_resolve(topology, expression, 0, &placement, &error);
    if (code != 0) {
        if (code != -EINVAL || error.exit_code != EXIT_USAGE || !strstr(error.text, expression))
            fail_msg("%s restricted to %s, %s: %d, %s", source, restrict_list, expression, code, error.text);
        refused++;
        return;
    }
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    for (int t = 0; placement.bound && t < placement.threads; t++)
        hwloc_bitmap_set(set, (unsigned)placement.cpus[t]);
    if (placement.threads < 1 || !hwloc_bitmap_isincluded(set, topology->usable) ||
        (placement.bound && hwloc_bitmap_weight(set) != placement.threads && !(likwid && placement.warning)))
        fail_msg("%s restricted to %s, %s: outside, empty or doubled", source, restrict_list, expression);
    if (strstr(expression, "/nosmt") && topology_cores_within(topology, set) != placement.threads)
        fail_msg("%s restricted to %s, %s: two threads on a core", source, restrict_list, expression);
    hwloc_bitmap_free(set);
    placement_release(&placement);
    resolved++;
}

static void check_machine(const char *source, const char *restrict_list, hwloc_const_bitmap_t expected)
{
    struct topology topology;
    struct error error;
    const char *names[LADDER_MAX];
    if (topology_load(source, restrict_list, &topology, &error) != 0)
        fail_msg("%s restricted to %s: %s", source, restrict_list, error.text);
    if (expected && !hwloc_bitmap_isequal(topology.usable, expected))
        fail_msg("%s restricted to %s has other CPUs", source, restrict_list);
    for (int n = 0; placement_name(&topology, n); n++)
        check(&topology, source, restrict_list, placement_name(&topology, n), false);
    for (int n = 0; n < EXPRESSIONS; n++)
        check(&topology, source, restrict_list, expressions[n], true);
    const int steps = placement_ladder(&topology, names, &error);
    assert_true(steps >= 1);
    for (int s = 0; s < steps; s++)
        check(&topology, source, restrict_list, names[s], false);
    json_t *document = topology_to_json(&topology);
    assert_non_null(document);
    json_decref(document);
    topology_release(&topology);
}

static void subsets_of(const char *source)
{
    struct topology topology;
    struct error error;
    const char *named = getenv("ATTNBENCH_SUBSETS");
    const int subsets = named && atoi(named) > 0 ? atoi(named) : SUBSETS;
    if (topology_load(source, NULL, &topology, &error) != 0)
        fail_msg("%s", error.text);
    check_machine(source, NULL, topology.usable);
    int32_t *cpus = malloc((size_t)topology.pu_count * sizeof *cpus);
    hwloc_bitmap_t kept = hwloc_bitmap_alloc();
    for (int round = 0; round < subsets; round++) {
        /* Few, many, or a stretch of PUs. */
        const uint32_t share = 1 + draw() % 8, first = draw() % (uint32_t)topology.pu_count;
        int count = 0;
        for (int i = 0; i < topology.pu_count; i++)
            if (round % 3 == 2 ? (uint32_t)i >= first && (uint32_t)i < first + share : draw() % 8 < share)
                cpus[count++] = topology.pus[i].os;
        if (count == 0)
            cpus[count++] = topology.pus[first].os;
        hwloc_bitmap_zero(kept);
        for (int i = 0; i < count; i++)
            hwloc_bitmap_set(kept, (unsigned)cpus[i]);
        char *list = cpu_list_format(cpus, count);
        check_machine(source, list, kept);
        free(list);
    }
    hwloc_bitmap_free(kept);
    free(cpus);
    topology_release(&topology);
}

static int all_files_of(const char *folder)
{
    DIR *directory = opendir(folder);
    int files = 0;
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        char path[4096];
        const size_t length = strlen(entry->d_name);
        if (length < 4 || strcmp(entry->d_name + length - 4, ".xml") != 0 || strstr(entry->d_name, "refuse") ||
            strcmp(entry->d_name, "version3.xml") == 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        subsets_of(path);
        files++;
    }
    if (directory)
        closedir(directory);
    return files;
}

static void tell(int machines)
{
    print_message("%d machines: %d placements resolved, %d refused\n", machines, resolved, refused);
    assert_true(resolved > 0 && refused > 0);
    resolved = refused = 0;
}

static void synthetic_machines(void **state)
{
    (void)state;
    enum { MACHINES = sizeof synthetic / sizeof synthetic[0] };
    for (int i = 0; i < MACHINES; i++)
        subsets_of(synthetic[i]);
    tell(MACHINES);
}

static void machines_of_this_repository(void **state)
{
    (void)state;
    const int files = all_files_of("tests/topo");
    assert_true(files >= 10);
    tell(files);
}

static void machines_recorded_elsewhere(void **state)
{
    (void)state;
    const char *named = getenv("ATTNBENCH_TOPOLOGIES"), *folder = named && *named ? named : "../shared/topologies";
    const int files = all_files_of(folder);
    if (files == 0) {
        print_message("0 machines in %s\n", folder);
        skip();
    }
    tell(files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(synthetic_machines),
        cmocka_unit_test(machines_of_this_repository),
        cmocka_unit_test(machines_recorded_elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
