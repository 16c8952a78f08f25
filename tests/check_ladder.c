/* SPDX-License-Identifier: Apache-2.0
 *
 * Kinds of core, the ladder, and how a sweep writes the ladder out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "harness/sweep.h"
#include "tests/placement_text.h"

static void loaded(const char *source, const char *restrict_list, struct topology *topology)
{
    struct error error;
    if (topology_load(source, restrict_list, topology, &error) != 0)
        fail_msg("%s", error.text);
}

/* "name=CPUs name=CPUs ..." */
static void expect_ladder(const char *source, const char *restrict_list, const char *expected)
{
    struct topology topology;
    struct error error;
    const char *names[LADDER_MAX];
    char text[4096] = "";
    loaded(source, restrict_list, &topology);
    const int count = placement_ladder(&topology, names, &error);
    assert_true(count >= 1);
    for (int i = 0; i < count; i++) {
        struct placement placement;
        assert_int_equal(placement_resolve(&topology, names[i], 0, &placement, &error), 0);
        char *cpus = cpu_list_format(placement.cpus, placement.threads);
        const size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s=%s", i ? " " : "", names[i], cpus);
        free(cpus);
        placement_release(&placement);
    }
    topology_release(&topology);
    assert_string_equal(text, expected);
}

static void steps_of_the_ladder(void **state)
{
    (void)state;
    expect_ladder("pack:1 core:1 pu:1", NULL, "core:0=0");
    expect_ladder("pack:1 l3:1 core:2 pu:1", NULL, "core:0=0 l3:0=0-1");
    expect_ladder("pack:2 numa:2 l3:2 core:2 pu:2", NULL,
                  "core:0/nosmt=0 core:0=0-1 l3:0/nosmt=0,2 l3:each=0,4,8,12,16,20,24,28 numa:0/nosmt=0,2,4,6 "
                  "socket:0/nosmt=0,2,4,6,8,10,12,14 compact=0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30 "
                  "all=0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30,1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31");
    /* The L3 larger than the NUMA node; no SMT, so the short names. */
    expect_ladder("pack:2 l3:1 numa:2 core:2 pu:1", NULL, "core:0=0 l3:0=0-3 l3:each=0,4 numa:0=0-1 compact=0-7");
    expect_ladder("tests/topo/hybrid.xml", NULL,
                  "core:0/nosmt=0 core:0=0-1 l3:0/nosmt=0,2,4-7 numa:0/nosmt=0,2,4-9 all=0,2,4-9,1,3 "
                  "pcores/nosmt=0,2 ecores=4-9");
    expect_ladder("tests/topo/gaps.xml", NULL,
                  "core:0/nosmt=4 core:0=4,8 numa:0/nosmt=4-5 compact=4-5,14-15 all=4-5,14-15,8-9");
    /* One L3 core each: one core per L3 is all cores. */
    expect_ladder("pack:2 l3:2 core:1 pu:8", "7,15,23,31", "core:0=7 l3:each=7,15,23,31 socket:0=7,15");
}

static void kinds_of_core(void **state)
{
    (void)state;
    const char hybrid[] = "tests/topo/hybrid.xml", *five = "tests/topo/five_kinds.xml";
    assert_string_equal(resolve(hybrid, NULL, "pcores", 0), "0,2,1,3");
    assert_string_equal(resolve(hybrid, NULL, "pcores/nosmt", 0), "0,2");
    assert_string_equal(resolve(hybrid, NULL, "ecores", 0), "4-9");
    assert_string_equal(resolve(hybrid, NULL, "ecores", 3), "4-6");
    assert_string_equal(resolve(five, NULL, "pcores", 0), "2-3,6-7");
    assert_string_equal(resolve(five, NULL, "ecores", 0), "0-1,4-5");
    assert_string_equal(resolve("tests/topo/two_ccx.xml", NULL, "pcores", 0), "0-1,6-7");
    assert_string_equal(resolve("tests/topo/two_ccx.xml", NULL, "ecores/nosmt", 0), "2-5");
    for (int performance = 0; performance < 2; performance++) {
        const char *name = performance ? "pcores" : "ecores";
        refused_for("tests/topo/frequency_noise.xml", NULL, name, "3 kinds of core are one design");
        refused_for("tests/topo/gaps.xml", NULL, name, "not hybrid: hwloc tells of no kinds");
        refused_for("pack:2 core:2 pu:2", NULL, name, "not hybrid");
    }
    refused_for(hybrid, "4-9", "pcores", "no performance core may be used");
    refused_for(hybrid, "0-3", "ecores", "no efficiency core may be used");
    assert_string_equal(resolve(hybrid, "1,3,8", "pcores", 0), "1,3");
    assert_string_equal(resolve(hybrid, "1,3,8", "ecores", 0), "8");
}

static void kinds_in_json(void **state)
{
    (void)state;
    struct topology topology;
    loaded("tests/topo/five_kinds.xml", "0-6", &topology);
    json_t *document = topology_to_json(&topology);
    const json_t *kinds = json_object_get(document, "kinds"), *fast = json_array_get(kinds, 1);
    assert_int_equal(json_array_size(kinds), 2);
    assert_int_equal(json_array_size(json_object_get(document, "hwloc_kinds")), 5);
    assert_int_equal(json_integer_value(json_object_get(fast, "efficiency")), 1);
    assert_int_equal(json_array_size(json_object_get(fast, "cpus")), 3);
    assert_true(json_number_value(json_object_get(fast, "max_mhz")) == 3900);
    const json_t *l2 = json_array_get(json_object_get(fast, "caches"), 1);
    assert_int_equal(json_integer_value(json_object_get(l2, "size")), 2 << 20);
    assert_int_equal(json_integer_value(json_object_get(l2, "count")), 3);
    const char *warnings[TOPOLOGY_WARNINGS_MAX];
    assert_int_equal(topology_warnings(&topology, warnings, TOPOLOGY_WARNINGS_MAX), 1);
    assert_non_null(strstr(warnings[0], "5 kinds"));
    json_decref(document);
    topology_release(&topology);
}

static void expect_warning(const char *source, const char *restrict_list, const char *string)
{
    struct topology topology;
    const char *warnings[TOPOLOGY_WARNINGS_MAX];
    bool found = false;
    loaded(source, restrict_list, &topology);
    const int count = topology_warnings(&topology, warnings, TOPOLOGY_WARNINGS_MAX);
    for (int i = 0; i < count; i++)
        found |= string && strstr(warnings[i], string);
    topology_release(&topology);
    if (string ? !found : count != 0)
        fail_msg("%s: %d warnings, '%s' %s", source, count, string ? string : "", found ? "among them" : "missing");
}

static void what_hwloc_is_wrong_about(void **state)
{
    (void)state;
    expect_warning("tests/topo/clusters.xml", NULL, "2 cores but 8 L1 caches, 4 in one core");
    expect_warning("tests/topo/fast_memory.xml", NULL, "2 of 4 NUMA nodes have the CPUs of other nodes");
    expect_warning("tests/topo/memoryless.xml", NULL, "1 of 3 NUMA nodes");
    expect_warning("tests/topo/gaps.xml", NULL, "2 hardware threads belong to no NUMA node");
    expect_warning("tests/topo/hybrid.xml", NULL, "2 hardware threads have no L3 cache");
    expect_warning("tests/topo/frequency_noise.xml", NULL, "3 kinds of core");
    expect_warning("pack:1 pu:4", NULL, "no cores");
    expect_warning("tests/topo/two_ccx.xml", NULL, NULL);
    expect_warning("pack:2 numa:2 l3:2 core:2 pu:2", NULL, NULL);
    expect_warning("tests/topo/hybrid.xml", "0-7", NULL);
}

/* "place*threads ..." of the plan that flags make, skipped points in brackets. */
static const char *planned(const char *source, const char *places, const char *threads)
{
    static char text[4096];
    struct topology topology;
    struct plan plan;
    struct error error;
    struct request *request = request_create();
    loaded(source, NULL, &topology);
    assert_int_equal(request_set(request, "S", "16", "-S", &error), 0);
    assert_int_equal(request_set(request, "kernel", "naive", "--kernel", &error), 0);
    assert_int_equal(request_set(request, "place", places, "--place", &error), 0);
    if (threads)
        assert_int_equal(request_set(request, "threads", threads, "--threads", &error), 0);
    if (request_plan(request, &topology, false, &plan, &error) != 0)
        fail_msg("%s", error.text);
    *text = 0;
    for (size_t i = 0; i < plan.count; i++) {
        const struct point *point = &plan.points[i];
        const size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, point->skip_reason ? "%s[%s*%d]" : "%s%s*%d", i ? " " : "",
                 point->placement, point->threads);
    }
    plan_release(&plan);
    request_destroy(request);
    topology_release(&topology);
    return text;
}

static void a_sweep_over_the_ladder(void **state)
{
    (void)state;
    const char machine[] = "pack:1 l3:2 core:2 pu:2";
    assert_string_equal(planned(machine, "ladder", NULL),
                        "core:0/nosmt*1 core:0*2 l3:0/nosmt*2 l3:each*2 numa:0/nosmt*4 all*8");
    assert_string_equal(planned(machine, "scatter,ladder", NULL),
                        "scatter*4 core:0/nosmt*1 core:0*2 l3:0/nosmt*2 l3:each*2 numa:0/nosmt*4 all*8");
    /* Threads that are given hold for every step; more than it has are skipped. */
    assert_string_equal(planned(machine, "ladder", "1,2"),
                        "core:0/nosmt*1 core:0*1 l3:0/nosmt*1 l3:each*1 numa:0/nosmt*1 all*1 "
                        "[core:0/nosmt*2] core:0*2 l3:0/nosmt*2 l3:each*2 numa:0/nosmt*2 all*2");
    assert_string_equal(planned("pack:1 core:2 pu:1", "ladder", "max"), "[core:0*2] numa:0*2");
}

static void commas_of_places(void **state)
{
    (void)state;
    assert_string_equal(planned("pack:2 core:2 pu:1", "0,2-3,compact", NULL), "0,2-3*3 compact*4");
    assert_string_equal(planned("pack:2 core:2 pu:1", "S0:0,1,L:N:2,3,smt,M0:0@2,3", NULL),
                        "S0:0,1*2 L:N:2,3*2 smt*4 M0:0@2,3*3");
    assert_string_equal(planned("pack:2 core:2 pu:1", "E:N:2,1,S:scatter:3,2,core:1,0", NULL),
                        "E:N:2*2 1*1 S:scatter:3*3 2*1 core:1*1 0*1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_of_the_ladder),     cmocka_unit_test(kinds_of_core),
        cmocka_unit_test(kinds_in_json),           cmocka_unit_test(what_hwloc_is_wrong_about),
        cmocka_unit_test(a_sweep_over_the_ladder), cmocka_unit_test(commas_of_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
