/* SPDX-License-Identifier: Apache-2.0
 *
 * Faults of placement that other programs were bitten by, one test each. Cases 4, 8 and 9 need the real machine: see
 * placement.bats.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/placement_text.h"

static json_t *document_of(const char *source, const char *restrict_list)
{
    struct topology topology;
    struct error error;
    if (topology_load(source, restrict_list, &topology, &error) != 0)
        fail_msg("%s", error.text);
    json_t *document = topology_to_json(&topology);
    topology_release(&topology);
    return document;
}

static json_int_t number(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

/* The position in a cpuset taken for an OS index. */
static void case_1_position_in_the_cpuset(void **state)
{
    (void)state;
    assert_string_equal(resolve("tests/topo/disallowed.xml", "4-5", "numa:0", 0), "4-5");
    assert_string_equal(resolve("tests/topo/disallowed.xml", "4-5", "M0:0-1", 0), "4-5");
    assert_string_equal(resolve("tests/topo/disallowed.xml", "4-5", "N:1", 0), "5");
    assert_string_equal(resolve("pack:1 l3:1 core:8 pu:1", "3,4", "l3:0", 0), "3-4");
}

/* A loop over sockets that expects a thread in each. */
static void case_2_sockets_without_a_pu(void **state)
{
    (void)state;
    const char machine[] = "tests/topo/disallowed.xml";
    assert_string_equal(resolve(machine, NULL, "socket:0/nosmt", 0), "0,2,4");
    assert_string_equal(resolve(machine, NULL, "l3:each", 0), "0,4");
    assert_string_equal(resolve(machine, NULL, "socket:each", 0), "0");
    assert_string_equal(resolve(machine, NULL, "S:scatter:3", 0), "0,2,4");
    refused_for(machine, NULL, "socket:1", "1 usable socket");
    json_t *document = document_of(machine, NULL);
    assert_int_equal(number(document, "packages"), 1);
    assert_int_equal(number(document, "l3_domains"), 2);
    assert_int_equal(number(document, "numa_nodes"), 2);
    json_decref(document);
}

/* As many threads as a socket has cores, on half of its cores. */
static void case_3_siblings_by_number(void **state)
{
    (void)state;
    /* Even PUs on one socket, siblings 8 apart, two NUMA nodes under each L3. */
    const char snc[] = "pack:2 l3:1 numa:2 core:2 pu:2(indexes=0,8,4,12,2,10,6,14,1,9,5,13,3,11,7,15)";
    assert_string_equal(resolve(snc, NULL, "socket:0", 4), "0,4,2,6");
    assert_string_equal(resolve(snc, NULL, "S0:0-3", 0), "0,4,2,6");
    assert_string_equal(resolve(snc, NULL, "socket:1/nosmt", 0), "1,5,3,7");
    assert_string_equal(resolve("pack:1 l3:1 core:2 pu:2(indexes=0,2,1,3)", NULL, "compact", 0), "0-1");
}

/* Frequencies taken for kinds of core. */
static void case_5_kinds_that_are_noise(void **state)
{
    (void)state;
    refused_for("tests/topo/frequency_noise.xml", NULL, "pcores", "not hybrid");
    refused_for("tests/topo/frequency_noise.xml", NULL, "ecores", "not hybrid");
    assert_string_equal(resolve("tests/topo/five_kinds.xml", NULL, "pcores", 0), "2-3,6-7");
    assert_string_equal(resolve("tests/topo/five_kinds.xml", NULL, "ecores", 0), "0-1,4-5");
}

/* A kind that still lists CPUs which may not be used. */
static void case_6_kinds_outside_the_cpuset(void **state)
{
    (void)state;
    assert_string_equal(resolve("tests/topo/hybrid.xml", "0-1,4-5", "pcores", 0), "0-1");
    assert_string_equal(resolve("tests/topo/hybrid.xml", "0-1,4-5", "ecores", 0), "4-5");
    refused_for("tests/topo/hybrid.xml", "4-9", "pcores", "no performance core may be used");
}

/* Restriction where NUMA nodes lack CPUs, or CPUs a node. */
static void case_7_restriction_and_empty_nodes(void **state)
{
    (void)state;
    assert_string_equal(resolve("tests/topo/gaps.xml", "14-15", "all", 0), "14-15");
    refused_for("tests/topo/gaps.xml", "14-15", "numa:0", "no usable NUMA node");
    assert_string_equal(resolve("tests/topo/memoryless.xml", "2-3", "all", 0), "2-3");
    assert_string_equal(resolve("tests/topo/memoryless.xml", "2-3", "numa:0", 0), "2-3");
    assert_string_equal(resolve("tests/topo/fast_memory.xml", "4-5", "numa:each", 0), "4");
}

/* More CPUs than fixed-size tables and masks hold. */
static void case_10_thousands_of_cpus(void **state)
{
    (void)state;
    const char many[] = "pack:2 core:1024 pu:1";
    assert_string_equal(resolve(many, NULL, "all", 0), "0-2047");
    assert_string_equal(resolve(many, NULL, "N", 0), "0-2047");
    assert_string_equal(resolve(many, NULL, "socket:1", 0), "1024-2047");
    assert_string_equal(resolve(many, NULL, "S1:1023", 0), "2047");
    assert_string_equal(resolve(many, "1023-1025", "all", 0), "1023-1025");
    json_t *document = document_of(many, "1025,2000");
    assert_int_equal(json_array_size(json_object_get(document, "disallowed_pus")), 2046);
    json_decref(document);
}

/* Ratios upside down, and one domain's cache taken for the socket's. */
static void case_11_cores_and_caches_of_a_domain(void **state)
{
    (void)state;
    json_t *snc = document_of("pack:2 l3:1 numa:2 core:10 pu:2", NULL);
    assert_int_equal(number(snc, "numa_nodes"), 4);
    for (size_t n = 0; n < 4; n++)
        assert_int_equal(number(json_array_get(json_object_get(snc, "numa"), n), "cores"), 10);
    json_decref(snc);
    json_t *dies = document_of("pack:2 l3:12(size=33554432) core:8 pu:2", NULL);
    for (size_t s = 0; s < 2; s++) {
        const json_t *socket = json_array_get(json_object_get(dies, "sockets"), s);
        assert_int_equal(number(socket, "cores"), 96);
        assert_int_equal(number(socket, "l3_domains"), 12);
        assert_int_equal(number(socket, "l3_bytes"), INT64_C(384) << 20);
        assert_int_equal(number(socket, "l3_bytes") / number(socket, "cores"), 4 << 20);
    }
    assert_int_equal(number(json_array_get(json_object_get(dies, "l3"), 0), "size"), 32 << 20);
    json_decref(dies);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_1_position_in_the_cpuset),   cmocka_unit_test(case_2_sockets_without_a_pu),
        cmocka_unit_test(case_3_siblings_by_number),       cmocka_unit_test(case_5_kinds_that_are_noise),
        cmocka_unit_test(case_6_kinds_outside_the_cpuset), cmocka_unit_test(case_7_restriction_and_empty_nodes),
        cmocka_unit_test(case_10_thousands_of_cpus),       cmocka_unit_test(case_11_cores_and_caches_of_a_domain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
