/* SPDX-License-Identifier: Apache-2.0
 *
 * LIKWID's expressions: the examples of its documentation, and its rules on machines that it was not made for. What
 * likwid-pin itself says on this machine is compared in placement.bats.
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

/* The machine of LIKWID's documentation: S0 is 0,4,1,5 and S1 is 2,6,3,7; 4 to 7 are second siblings. */
static const char documented[] = "pack:2 core:2 pu:2(indexes=0,4,1,5,2,6,3,7)";
/* Two sockets of two NUMA nodes of two L3s of two cores, siblings adjacent: 32 PUs. */
static const char nested[] = "pack:2 numa:2 l3:2 core:2 pu:2";

static void expect(const char *source, const char *expression, const char *cpus)
{
    const char *text = resolve(source, NULL, expression, 0);
    if (strcmp(text, cpus) != 0)
        fail_msg("%s on '%s': %s, not %s", expression, source, text, cpus);
}

static void examples_of_the_documentation(void **state)
{
    (void)state;
    expect(documented, "1", "1");
    expect(documented, "1,4", "1,4");
    expect(documented, "0,1-3", "0-3");
    expect(documented, "L:0", "0");
    expect(documented, "L:0,4", "0,4");
    expect(documented, "L:1-3", "1-3");
    expect(documented, "L:N:1,4-6", "1,4-6");
    expect(documented, "E:N:1", "0");
    expect(documented, "E:N:2", "0,4");
    expect(documented, "E:N:2:1:2", "0-1");
    expect(documented, "E:N:4:2:4", "0,4,2,6");
    expect(documented, "S:scatter", "0,2,1,3-4,6,5,7");
    expect(documented, "S:scatter:4", "0,2,1,3");
    expect(documented, "S:balanced:4", "0,4,2,6");
    expect(documented, "S:cbalanced:4", "0-3");
}

static void indices_into_domains(void **state)
{
    (void)state;
    expect(documented, "N:0-3", "0-3");
    expect(documented, "S1:0-1", "2-3");
    expect(documented, "S1:2,0", "6,2");
    expect(documented, "S1:3-0", "7,6,3,2");
    expect(documented, "S0:0-1@S1:0-1", "0-3");
    expect(documented, "S1", "2,6,3,7");
    expect(documented, "N", "0,4,1,5,2,6,3,7");
    expect(documented, "L:S1:0", "2");
    expect(documented, "S0:0@7@E:S1:2", "0,7,2,6");
    expect(nested, "M1:0-1", "8,10");
    expect(nested, "M1:4", "9"); /* cores of both L3s before any sibling */
    expect(nested, "C5:0-3", "20,22,21,23");
    expect(nested, "S1:0", "16");
    expect(nested, "D1:0", "16"); /* no dies: sockets */
    expect("pack:2 die:2 core:2 pu:1", "D1:0-1", "2-3");
    expect("pack:2 core:2 pu:1", "C1:0-1", "2-3");      /* no caches: sockets */
    expect("pack:1 l2:2 core:2 pu:1", "C1:0-1", "2-3"); /* the last level is L2 */
    expect("tests/topo/hybrid.xml", "C1:0-1", "8-9");   /* cores without an L3 share an L2 */
    expect("tests/topo/gaps.xml", "S0:0-3", "4-5,8-9"); /* PU numbers with gaps */
    expect("tests/topo/gaps.xml", "N:0-3", "4-5,14-15");
    expect("tests/topo/fast_memory.xml", "M1:0", "0"); /* as numa:1 */
}

static void domains_take_turns(void **state)
{
    (void)state;
    expect(nested, "S:scatter:4", "0,16,2,18");
    expect(nested, "M:scatter:5", "0,8,16,24,2");
    expect(nested, "C:scatter:9", "0,4,8,12,16,20,24,28,2");
    expect(nested, "N:scatter:3", "0,2,4");
    expect(nested, "M2:scatter:3", "16,18,20");
    expect(nested, "M:balanced:8", "0-1,8-9,16-17,24-25");
    expect(nested, "M:cbalanced:8", "0,2,8,10,16,18,24,26");
    expect(nested, "S:cbalanced:3", "0,2,16");
    /* More threads than cores: as many cores as possible with one thread. */
    expect(documented, "S:cbalanced:6", "0,4,1-2,6,3");
    expect(nested, "C0:cbalanced:3", "0-2");
    /* Domains of different size: the small one is not asked twice. */
    expect("tests/topo/two_ccx.xml", "C:scatter:8", "0,2,1,3,6,4,7,5");
    expect("tests/topo/two_ccx.xml", "C:balanced:12", "0,6,1,7,2,8,3,9,4,10,5,11");
    /* A second kind of memory has the same CPUs: they stand once. */
    expect("tests/topo/fast_memory.xml", "M:scatter:4", "0,4,1,5");
    expect("tests/topo/memoryless.xml", "M:scatter", "0,2,1,3");
    expect("tests/topo/disallowed.xml", "S:scatter", "0,2,4,1,3,5");
}

static const char *warning_of(const char *source, const char *expression, int *threads)
{
    struct topology topology;
    struct placement placement;
    struct error error;
    assert_int_equal(topology_load(source, NULL, &topology, &error), 0);
    if (placement_resolve(&topology, expression, 0, &placement, &error) != 0)
        fail_msg("%s", error.text);
    *threads = placement.threads;
    const char *warning = placement.warning;
    placement_release(&placement);
    topology_release(&topology);
    return warning ? warning : "";
}

static void doubled_cpus_are_warned_of(void **state)
{
    (void)state;
    int threads;
    expect("pack:1 core:2 pu:1", "E:N:4:1:2", "0,0"); /* never more threads than CPUs */
    assert_non_null(strstr(warning_of("pack:1 core:2 pu:1", "E:N:4:1:2", &threads), "several threads on CPU 0"));
    assert_int_equal(threads, 2);
    expect(documented, "E:S0:6:1:2", "0-1,0-1,0-1");
    assert_non_null(strstr(warning_of(documented, "E:S0:6:1:2", &threads), "several threads on CPU 0"));
    expect(documented, "E:N:2:1:0", "0,0");
    expect(documented, "2,2", "2,2");
    expect(documented, "S0:0@S0:0", "0,0");
    assert_non_null(strstr(warning_of(documented, "S0:0@S0:0", &threads), "CPU 0"));
    assert_non_null(strstr(warning_of(documented, "E:N:100", &threads), "cut to as many threads as there are CPUs"));
    assert_int_equal(threads, 8);
    assert_string_equal(warning_of(documented, "S0:0-3@S1:0-3", &threads), "");
    assert_string_equal(warning_of(documented, "E:N:8", &threads), "");
    assert_string_equal(warning_of(documented, "M:scatter", &threads), "");
    assert_non_null(strstr(resolve(documented, NULL, "S0:0-3@S1:0-3", 9), "9 threads asked for"));
    assert_string_equal(resolve(documented, NULL, "S0:0-3@S1:0-3", 5), "0-1,4-5,2");
}

static void what_does_not_exist_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *expression, *string;
    } cases[] = {
        {"8", "CPU 8 does not exist"}, {"0-8", "CPU 8"},          {"S2:0", "2 usable sockets"},
        {"S0:4", "has 4 CPUs"},        {"N:0-8", "has 8 CPUs"},   {"M0:9", "has 8 CPUs"},
        {"C9", "2 usable last-level"}, {"E:S5:1", "2 usable"},    {"E:N:2:1:1:8", "begins behind"},
        {"S:scatter:9", "has 8 CPUs"}, {"S4:scatter", "no such"}, {"G0:0", "GPU"},
        {"S0:0@8", "CPU 8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        refused_for(documented, NULL, cases[i].expression, cases[i].string);
    refused_for(documented, "0-3", "4", "CPU 4 may not be used");
    refused_for("pu:4", NULL, "S0:0", "0 usable sockets");
    static const char *const malformed[] = {"N:",
                                            "N:0-",
                                            "N:-1",
                                            "N:x",
                                            "N:0,",
                                            "S:0",
                                            "S0:0@",
                                            "@S0:0",
                                            "0@@1",
                                            "E",
                                            "E:",
                                            "E:N:",
                                            "E:N:0",
                                            "E:N:2:1",
                                            "E:N:2:0:1",
                                            "E:N:x",
                                            "E:N:2:1:1:1:1",
                                            "L",
                                            "L:",
                                            "L:N",
                                            "L:N:",
                                            "L:L:0",
                                            "S0x:0",
                                            "S:scatter:0",
                                            "S:scatter:x",
                                            "S:scattered",
                                            "X:scatter",
                                            "scatter:2",
                                            "N:0:1",
                                            "S99999999999:0",
                                            "N:99999999999",
                                            "E:N:99999999999",
                                            "S0:0 ",
                                            "M:"};
    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++)
        refused_for(documented, NULL, malformed[i], "placement '");
}

/* Plain numbers are OS indices inside a cpuset too, and indices count what may be used. */
static void inside_a_cpuset(void **state)
{
    (void)state;
    assert_string_equal(resolve(nested, "3,4,20-23", "4,3", 0), "4,3");
    assert_string_equal(resolve(nested, "3,4,20-23", "N:0-3", 0), "3-4,20,22");
    assert_string_equal(resolve(nested, "3,4,20-23", "S1:0-1", 0), "20,22");
    assert_string_equal(resolve(nested, "20-23", "S0:0", 0), "20");
    assert_string_equal(resolve(nested, "3,4,20-23", "C:scatter:3", 0), "3-4,20");
    refused_for(nested, "3,4,20-23", "0", "CPU 0 may not be used");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examples_of_the_documentation),
        cmocka_unit_test(indices_into_domains),
        cmocka_unit_test(domains_take_turns),
        cmocka_unit_test(doubled_cpus_are_warned_of),
        cmocka_unit_test(what_does_not_exist_is_refused),
        cmocka_unit_test(inside_a_cpuset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
