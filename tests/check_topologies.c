/* SPDX-License-Identifier: Apache-2.0
 *
 * Real machines with right answers: a folder of hwloc XML files beside an ANSWERS.json, by ATTNBENCH_TOPOLOGIES or at
 * ../shared/topologies. Skipped where there is none; tests/topo covers the traits one by one. answers.py holds the
 * output of `topo --json` against all of the answers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/placement.h"

static const char *folder(void)
{
    const char *named = getenv("ATTNBENCH_TOPOLOGIES");
    return named && *named ? named : "../shared/topologies";
}

static json_t *read_answers(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/ANSWERS.json", folder());
    json_t *answers = access(path, R_OK) == 0 ? json_load_file(path, 0, NULL) : NULL;
    if (!answers) {
        print_message("no ANSWERS.json in %s\n", folder());
        skip();
    }
    return answers;
}

static void load(const char *file, const char *restrict_list, struct topology *topology)
{
    char path[4096];
    struct error error;
    snprintf(path, sizeof path, "%s/%s", folder(), file);
    if (topology_load(path, restrict_list, topology, &error) != 0)
        fail_msg("%s", error.text);
}

static hwloc_bitmap_t set_of(const char *text)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    if (text && strcmp(text, "none") != 0)
        assert_int_equal(hwloc_bitmap_list_sscanf(set, text), 0);
    return set;
}

/* The CPUs of a placement as a set; no CPU may stand in it twice. Empty where the placement is refused. */
static hwloc_bitmap_t cpus_of(const struct topology *topology, const char *expression, int threads)
{
    struct placement placement;
    struct error error;
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    if (placement_resolve(topology, expression, threads, &placement, &error) != 0)
        return set;
    for (int i = 0; placement.bound && i < placement.threads; i++)
        hwloc_bitmap_set(set, (unsigned)placement.cpus[i]);
    assert_int_equal(hwloc_bitmap_weight(set), placement.bound ? placement.threads : 0);
    assert_true(hwloc_bitmap_isincluded(set, topology->usable));
    placement_release(&placement);
    return set;
}

static void expect_set(const char *file, const char *what, hwloc_bitmap_t got, const char *expected)
{
    hwloc_bitmap_t wanted = set_of(expected);
    if (!hwloc_bitmap_isequal(got, wanted)) {
        char *text;
        hwloc_bitmap_list_asprintf(&text, got);
        fail_msg("%s, %s: %s, not %s", file, what, text, expected);
    }
    hwloc_bitmap_free(wanted);
    hwloc_bitmap_free(got);
}

static void expect_placement(const char *file, const struct topology *topology, const char *expression, int threads,
                             const char *expected)
{
    expect_set(file, expression, cpus_of(topology, expression, threads), expected);
}

static const char *text_of(const json_t *answer, const char *key)
{
    return json_string_value(json_object_get(answer, key));
}

/* Each "kind:I" against the I-th answer, and no more of them. */
static void expect_domains(const char *file, const struct topology *topology, const char *kind, const json_t *answers)
{
    char expression[64];
    size_t count = json_array_size(answers);
    for (size_t i = 0; i <= count; i++) {
        snprintf(expression, sizeof expression, "%s:%zu", kind, i);
        expect_placement(file, topology, expression, 0,
                         i < count ? json_string_value(json_array_get(answers, i)) : "none");
    }
}

/* NUMA nodes by OS index: the order of the answers is another one where two nodes have the same CPUs. */
static void expect_nodes(const char *file, const struct topology *topology, const json_t *answers)
{
    size_t i;
    json_t *answer;
    assert_int_equal(topology_domain_count(topology, HWLOC_OBJ_NUMANODE), json_array_size(answers));
    json_array_foreach(answers, i, answer)
    {
        bool found = false;
        for (int n = 0; !found; n++) {
            hwloc_obj_t node = topology_domain(topology, HWLOC_OBJ_NUMANODE, n);
            assert_non_null(node);
            found = (json_int_t)node->os_index == json_integer_value(json_object_get(answer, "node"));
            char expression[32];
            snprintf(expression, sizeof expression, "numa:%d", n);
            if (found)
                expect_placement(file, topology, expression, 0, text_of(answer, "pus"));
        }
    }
}

/* In thread order, where the answers tell it. */
static void expect_order(const char *file, const struct topology *topology, const json_t *order)
{
    struct placement placement;
    struct error error;
    const size_t count = json_array_size(order);
    if (count == 0)
        return;
    assert_int_equal(placement_resolve(topology, "compact", 0, &placement, &error), 0);
    assert_int_equal(placement.threads, count);
    for (size_t i = 0; i < count; i++)
        if (placement.cpus[i] != json_integer_value(json_array_get(order, i)))
            fail_msg("%s, compact: CPU %d in place %zu", file, placement.cpus[i], i);
    placement_release(&placement);
}

static void expect_cache(const struct topology *topology, int level, const json_t *size)
{
    assert_int_equal(topology_cache_bytes(topology, level), json_integer_value(size));
}

static hwloc_bitmap_t pus_outside(const struct topology *topology, bool l3)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    for (int i = 0; i < topology->pu_count; i++)
        if ((l3 ? topology->pus[i].l3 : topology->pus[i].numa) < 0)
            hwloc_bitmap_set(set, (unsigned)topology->pus[i].os);
    return set;
}

static void expect_answer(const char *file, const json_t *answer)
{
    struct topology topology;
    load(file, NULL, &topology);
    assert_false(topology.this_system);
    const json_t *cores = json_object_get(answer, "all_cores_no_smt");
    const json_t *threads = json_object_get(answer, "all_hw_threads");
    expect_set(file, "allowed", hwloc_bitmap_dup(topology.usable), text_of(answer, "allowed_pus"));
    assert_int_equal(topology_usable_pus(&topology), json_integer_value(json_object_get(answer, "n_allowed")));
    assert_int_equal(topology_usable_cores(&topology), json_integer_value(json_object_get(cores, "n")));
    expect_placement(file, &topology, "compact", 0, text_of(cores, "pus"));
    expect_placement(file, &topology, "scatter", 0, text_of(cores, "pus"));
    expect_placement(file, &topology, "all", 0, text_of(threads, "pus"));
    expect_placement(file, &topology, "smt", 0, text_of(threads, "pus"));
    expect_order(file, &topology, json_object_get(answer, "first_pu_of_each_core_allowed"));
    expect_domains(file, &topology, "l3", json_object_get(answer, "l3_domains"));
    expect_domains(file, &topology, "socket", json_object_get(answer, "sockets_with_allowed_cpus"));
    expect_nodes(file, &topology, json_object_get(answer, "numa_with_allowed_cpus"));
    expect_set(file, "without L3", pus_outside(&topology, true), text_of(answer, "pus_without_l3"));
    expect_set(file, "without NUMA", pus_outside(&topology, false), text_of(answer, "pus_without_numa"));

    hwloc_bitmap_t rest = hwloc_bitmap_dup(hwloc_topology_get_topology_cpuset(topology.hwloc));
    hwloc_bitmap_andnot(rest, rest, topology.usable);
    expect_set(file, "disallowed", rest, text_of(answer, "disallowed"));
    /* One core per L3, one L3, one socket without siblings: the first threads of a placement. */
    hwloc_bitmap_t of_l3 = set_of(text_of(answer, "one_l3_cores_no_smt"));
    hwloc_bitmap_t of_socket = set_of(text_of(answer, "one_socket_cores_no_smt"));
    if (!hwloc_bitmap_iszero(of_l3))
        expect_placement(file, &topology, "l3:0", hwloc_bitmap_weight(of_l3), text_of(answer, "one_l3_cores_no_smt"));
    expect_placement(file, &topology, "socket:0", hwloc_bitmap_weight(of_socket),
                     text_of(answer, "one_socket_cores_no_smt"));
    hwloc_bitmap_free(of_l3);
    hwloc_bitmap_free(of_socket);
    expect_cache(&topology, 1, json_object_get(answer, "l1d"));
    expect_cache(&topology, 2, json_object_get(answer, "l2"));
    expect_cache(&topology, 3, json_object_get(answer, "l3"));
    topology_release(&topology);
}

static void every_recorded_machine(void **state)
{
    (void)state;
    json_t *answers = read_answers(), *answer;
    const char *file;
    assert_true(json_object_size(answers) > 0);
    json_object_foreach(answers, file, answer) expect_answer(file, answer);
    json_decref(answers);
}

/* The same files inside a narrower cpuset. */
static void narrower_cpusets(void **state)
{
    (void)state;
    static const struct {
        const char *file, *cpus, *placement, *expected;
    } cases[] = {
        {"hybrid-raptorlake-i7-1370p.xml", "12-19", "compact", "12-19"},
        {"hybrid-raptorlake-i7-1370p.xml", "12-19", "pcores", "none"},
        {"hybrid-raptorlake-i7-1370p.xml", "1,3,12", "compact", "1,3,12"},
        {"hybrid-raptorlake-i7-1370p.xml", "1,3,12", "pcores", "1,3"},
        {"hybrid-raptorlake-i7-1370p.xml", "1,3,12", "ecores", "12"},
        {"hybrid-raptorlake-i7-1370p.xml", "0-3,12-13", "pcores", "0-3"},
        {"hybrid-raptorlake-i7-1370p.xml", "0-3,12-13", "ecores", "12-13"},
        {"hybrid-arrowlake-ultra5-225u.xml", "12-13", "compact", "12-13"},
        {"hybrid-arrowlake-ultra5-225u.xml", "12-13", "l3:0", "none"},
        {"ccx-zen3-epyc7a53-nps4-io.xml", "0-63", "all", "0-63"},
        {"ccx-zen3-epyc7a53-nps4-io.xml", "40-47,104-107", "compact", "40-47"},
        {"ccx-zen3-epyc7a53-nps4-io.xml", "40-47,104-107", "numa:0", "40-47,104-107"},
        {"ccx-zen3-epyc7a53-nps4-io.xml", "40-47,104-107", "l3:1", "none"},
        {"ccx-zen5-strixpoint-hx370.xml", "3-4,15-16", "compact", "3-4"},
        {"ccx-zen5-strixpoint-hx370.xml", "3-4,15-16", "l3:each", "3-4"},
        {"ccx-zen5-strixpoint-hx370.xml", "3-4,15-16", "pcores", "3,15"},
        {"hybrid-arm-gb10.xml", "4-5,14-15", "l3:each", "4,14"},
        {"hybrid-arm-gb10.xml", "4-5,14-15", "pcores", "5,15"},
        {"hybrid-arm-gb10.xml", "4-5,14-15", "ecores", "4,14"},
        {"offline-cpu0-haswell-2s.xml", "4,6", "compact", "4,6"},
        {"offline-cpu0-haswell-2s.xml", "4,6", "numa:0", "none"},
        {"cgroup2-opteron6134-4s.xml", "4-5", "numa:0", "4-5"},
        {"cgroup2-opteron6134-4s.xml", "4-5", "l3:0", "4-5"},
        {"cgroup2-opteron6134-4s.xml", "4-5", "socket:1", "none"},
        {"smt4-power9-2s-gpunuma.xml", "168-175", "compact", "168,172"},
        {"smt4-power9-2s-gpunuma.xml", "168-175", "numa:0", "168-175"},
        {"smt4-power9-2s-gpunuma.xml", "168-175", "all", "168-175"},
        {"smt4-arm-thunderx2-2s.xml", "32-63", "compact", "32-63"},
        {"hbm-knl7250-snc4-flat.xml", "66-67,202-203", "compact", "66-67"},
        {"smt8-power8-2s.xml", "7,15", "compact", "7,15"},
        {"smt8-power8-2s.xml", "7,15", "l3:1", "15"},
        {"memless-cpuless-numa-2s.xml", "6-7", "compact", "6-7"},
        {"hbm-knl7250-snc4-flat.xml", "66-67,202-203", "numa:1", "66-67,202-203"},
        {"hbm-knl7250-snc4-flat.xml", "66-67,202-203", "numa:each", "66"},
        {"snc2-cascadelake6230-2s-2lm.xml", "0-3", "l3:0", "0,2"},
        {"snc2-cascadelake6230-2s-2lm.xml", "0-3", "l3:each", "0-1"},
        {"snc2-cascadelake6230-2s-2lm.xml", "0-3", "numa:1", "2"},
    };
    json_decref(read_answers());
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct topology topology;
        load(cases[i].file, cases[i].cpus, &topology);
        expect_placement(cases[i].file, &topology, cases[i].placement, 0, cases[i].expected);
        topology_release(&topology);
    }
}

static void a_newer_format_is_refused(void **state)
{
    (void)state;
    char path[4096];
    struct topology topology;
    struct error error;
    json_decref(read_answers());
    snprintf(path, sizeof path, "%s/refuse-xml-v3.xml", folder());
    assert_true(topology_load(path, NULL, &topology, &error) < 0);
    assert_int_equal(error.exit_code, EXIT_USAGE);
    assert_non_null(strstr(error.text, "refuse-xml-v3.xml"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_recorded_machine),
        cmocka_unit_test(narrower_cpusets),
        cmocka_unit_test(a_newer_format_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
