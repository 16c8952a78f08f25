/* SPDX-License-Identifier: Apache-2.0
 *
 * Ceilings: buffer sizes follow from the caches of recorded and synthetic machines, a pointer chase meets every line
 * once, summaries hold no NaN, memory policies name nodes that exist.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "harness/json_util.h"
#include "harness/latency.h"
#include "harness/levels.h"
#include "harness/memory_policy.h"
#include "harness/peaks.h"
#include "harness/topology.h"

enum { KIB = 1024, MIB = 1024 * 1024 };

static struct topology load(const char *synthetic)
{
    struct topology topology;
    struct error error;
    if (topology_load(synthetic, NULL, &topology, &error) != 0)
        fail_msg("%s: %s", synthetic, error.text);
    return topology;
}

struct expected_level {
    const char *name;
    size_t part, chase;
};

static void expect_levels(const char *synthetic, const int32_t *cpus, int threads,
                          const struct expected_level *expected, int count)
{
    struct topology topology = load(synthetic);
    struct level levels[LEVELS_MOST];
    assert_int_equal(levels_find(&topology, cpus, threads, levels), count);
    for (int l = 0; l < count; l++) {
        assert_string_equal(levels[l].name, expected[l].name);
        assert_int_equal(levels[l].threads, threads);
        assert_int_equal(levels[l].chase_bytes, expected[l].chase);
        for (int t = 0; t < threads; t++)
            assert_int_equal(levels[l].parts[t], expected[l].part);
    }
    levels_release(levels, count);
    topology_release(&topology);
}

static void shared_l3_is_divided(void **state)
{
    (void)state;
    static const char machine[] = "pack:1 l3:1(size=33554432) l2:4(size=1048576) l1:1(size=32768) core:1 pu:1";
    const int32_t cpus[] = {0, 1};
    static const struct expected_level one[] = {{"l1", 16 * KIB, 16 * KIB},
                                                {"l2", 512 * KIB, 512 * KIB},
                                                {"l3", 16 * MIB, 16 * MIB},
                                                {"dram", 128 * MIB, 128 * MIB}};
    static const struct expected_level two[] = {{"l1", 16 * KIB, 16 * KIB},
                                                {"l2", 512 * KIB, 512 * KIB},
                                                {"l3", 8 * MIB, 16 * MIB},
                                                {"dram", 64 * MIB, 128 * MIB}};
    expect_levels(machine, cpus, 1, one, 4);
    expect_levels(machine, cpus, 2, two, 4);
}

static void each_l3_has_its_own_threads(void **state)
{
    (void)state;
    static const char machine[] = "pack:2 l3:2(size=16777216) l2:2(size=524288) l1:1(size=32768) core:1 pu:1";
    const int32_t apart[] = {0, 2, 4, 6}, together[] = {0, 1, 2, 3};
    static const struct expected_level alone[] = {{"l1", 16 * KIB, 16 * KIB},
                                                  {"l2", 256 * KIB, 256 * KIB},
                                                  {"l3", 8 * MIB, 8 * MIB},
                                                  {"dram", 64 * MIB, 64 * MIB}};
    static const struct expected_level pairs[] = {{"l1", 16 * KIB, 16 * KIB},
                                                  {"l2", 256 * KIB, 256 * KIB},
                                                  {"l3", 4 * MIB, 8 * MIB},
                                                  {"dram", 32 * MIB, 64 * MIB}};
    expect_levels(machine, apart, 4, alone, 4);
    expect_levels(machine, together, 4, pairs, 4);
}

static void siblings_share_the_first_level(void **state)
{
    (void)state;
    static const char machine[] = "pack:1 l2:2(size=1048576) l1:1(size=32768) core:1 pu:2";
    const int32_t cpus[] = {0, 1};
    static const struct expected_level expected[] = {
        {"l1", 8 * KIB, 16 * KIB}, {"l2", 256 * KIB, 512 * KIB}, {"dram", 32 * MIB, 64 * MIB}};
    expect_levels(machine, cpus, 2, expected, 3);
}

static void without_l3_memory_lies_beyond_hidden_caches(void **state)
{
    (void)state;
    const int32_t cpus[] = {0, 1};
    static const struct expected_level expected[] = {
        {"l1", 16 * KIB, 16 * KIB}, {"l2", 256 * KIB, 256 * KIB}, {"dram", 32 * MIB, 64 * MIB}};
    expect_levels("pack:1 l2:2(size=524288) l1:1(size=32768) core:1 pu:1", cpus, 2, expected, 3);
}

/* A victim cache about as large as what it backs: half of it would still lie in the inner one. */
static void small_outer_level_is_left_room(void **state)
{
    (void)state;
    const int32_t cpus[] = {0};
    static const struct expected_level expected[] = {{"l1", 16 * KIB, 16 * KIB},
                                                     {"l2", 512 * KIB, 512 * KIB},
                                                     {"l3", 1728 * KIB, 1728 * KIB},
                                                     {"dram", 64 * MIB, 64 * MIB}};
    expect_levels("pack:1 l3:1(size=1441792) l2:1(size=1048576) l1:1(size=32768) core:1 pu:1", cpus, 1, expected, 4);
}

static void without_caches_memory_alone_is_left(void **state)
{
    (void)state;
    struct topology topology = load("pack:1 core:2 pu:1");
    struct level levels[LEVELS_MOST];
    const int32_t cpus[] = {0, 1};
    assert_int_equal(levels_find(&topology, cpus, 2, levels), 1);
    assert_string_equal(levels[0].name, "dram");
    assert_true(levels[0].parts[0] >= 32 * MIB);
    levels_release(levels, 1);
    topology_release(&topology);
}

/* Every recorded machine: caches that only some cores have, sizes unknown, CPUs not in order. */
static void recorded_machines_have_levels(void **state)
{
    (void)state;
    static const char *const files[] = {"clusters", "disallowed",  "fast_memory", "five_kinds", "gaps",
                                        "hybrid",   "l3_for_some", "memoryless",  "two_ccx"};
    bool idle_somewhere = false;
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        char path[64];
        snprintf(path, sizeof path, "tests/topo/%s.xml", files[f]);
        struct topology topology = load(path);
        struct level levels[LEVELS_MOST];
        const int threads = topology_usable_pus(&topology), count = levels_find(&topology, NULL, threads, levels);
        assert_true(count >= 1);
        assert_string_equal(levels[count - 1].name, "dram");
        assert_int_equal(levels[count - 1].threads, threads);
        for (int l = 0; l < count; l++) {
            int taking_part = 0;
            for (int t = 0; t < threads; t++) {
                assert_int_equal(levels[l].parts[t] % LEVEL_UNIT, 0);
                taking_part += levels[l].parts[t] > 0;
            }
            assert_int_equal(levels[l].threads, taking_part);
            idle_somewhere |= taking_part < threads;
            assert_true(levels[l].parts[levels[l].chaser] > 0);
            assert_true(levels[l].chase_bytes >= levels[l].line_bytes);
        }
        levels_release(levels, count);
        topology_release(&topology);
    }
    assert_true(idle_somewhere); /* one of them has an L3 for some cores only */
}

/* Levels reach the worker as they are; what is not the team's is refused. */
static void levels_survive_json(void **state)
{
    (void)state;
    struct topology topology = load("pack:1 l3:1(size=33554432) l2:4(size=1048576) l1:1(size=32768) core:1 pu:1");
    struct level levels[LEVELS_MOST], copies[LEVELS_MOST];
    const int32_t cpus[] = {0, 1, 2};
    const int count = levels_find(&topology, cpus, 3, levels);
    json_t *array = levels_to_json(levels, count, 3);
    assert_int_equal(levels_from_json(array, 3, copies), count);
    json_t *again = levels_to_json(copies, count, 3);
    assert_true(json_equal(array, again));
    levels_release(copies, count);
    assert_int_equal(levels_from_json(array, 2, copies), -EINVAL);
    json_decref(array);
    json_decref(again);
    levels_release(levels, count);
    topology_release(&topology);
}

static void chase_is_one_full_cycle(void **state)
{
    (void)state;
    static const size_t lines[] = {1, 2, 3, 64, 1000, 4096};
    enum { LINE = 64 };
    for (size_t c = 0; c < sizeof lines / sizeof *lines; c++)
        for (uint64_t seed = 1; seed < 4; seed++) {
            char *buffer = aligned_alloc(LINE, lines[c] * LINE);
            char *met = calloc(lines[c], 1);
            assert_non_null(buffer);
            assert_non_null(met);
            latency_link(buffer, lines[c] * LINE, LINE, seed);
            void *at = buffer;
            for (size_t step = 0; step < lines[c]; step++) {
                const size_t line = (size_t)((char *)at - buffer) / LINE;
                assert_true(line < lines[c]);
                assert_false(met[line]); /* so the cycle does not close early */
                met[line] = 1;
                at = latency_chase(at, 1);
            }
            assert_ptr_equal(at, buffer);
            assert_ptr_equal(latency_chase(buffer, 3 * lines[c]), buffer);
            free(buffer);
            free(met);
        }
}

static void summaries_hold_no_nan(void **state)
{
    (void)state;
    const double values[] = {3, 1, 2, 10}, broken[] = {1, NAN, INFINITY};
    json_t *summary = peak_summary(values, 4), *none = peak_summary(values, 0), *bad = peak_summary(broken, 3);
    assert_true(json_get_number(summary, "median", 0) == 2.5);
    assert_true(json_get_number(summary, "mad", 0) == 1);
    assert_true(json_get_number(summary, "min", 0) == 1);
    assert_true(json_get_number(summary, "max", 0) == 10);
    assert_int_equal(json_get_int(summary, "repeats", 0), 4);
    assert_true(json_is_null(none));
    char *text = json_dumps(bad, 0);
    assert_non_null(text);
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "inf"));
    free(text);
    json_decref(summary);
    json_decref(none);
    json_decref(bad);
}

static double count_calls(void *context)
{
    return ++*(int *)context;
}

static void samples_end(void **state)
{
    (void)state;
    int calls = 0;
    const double last = peak_sample(count_calls, &calls);
    assert_true(calls >= 1 && calls <= 16);
    assert_true(last == calls);
}

/* A real team on whatever CPUs there are, with little effort: all figures are there, positive and finite. */
static void expect_summary(const json_t *object, const char *key, const char *reason)
{
    const json_t *summary = json_object_get(object, key);
    if (json_is_string(json_object_get(object, reason))) {
        assert_true(json_is_null(summary));
        return;
    }
    assert_true(json_get_number(summary, "min", -1) > 0);
    assert_true(json_get_number(summary, "max", -1) >= json_get_number(summary, "min", -1));
}

static void ceilings_are_positive(void **state)
{
    (void)state;
    struct team team;
    struct error error;
    struct level level = {
        .name = "l1", .cache_bytes = 32 * KIB, .threads = 1, .chase_bytes = 16 * KIB, .line_bytes = 64};
    const struct peak_effort effort = {.repeats = 2, .clocked_ns = 1e5};
    size_t parts[1] = {16 * KIB}, i, rows = 0;
    json_t *row;
    level.parts = parts;
    assert_int_equal(team_create(1, NULL, &team, &error), 0);
    json_t *compute = peak_compute(&team, &effort), *functions = peak_functions(&team, &effort);
    json_t *memory = peak_level(&team, &level, &effort), *waits = peak_team(&team, &effort);
    json_array_foreach(compute, i, row)
    {
        expect_summary(row, "giga_ops_per_s", "reason");
        rows++;
    }
    json_array_foreach(functions, i, row)
    {
        expect_summary(row, "giga_per_s", "reason");
        rows++;
    }
    assert_int_equal(rows, 16);
    expect_summary(memory, "read_gb_per_s", "reason");
    expect_summary(memory, "write_gb_per_s", "reason");
    expect_summary(memory, "copy_gb_per_s", "reason");
    expect_summary(memory, "latency_ns", "reason");
    expect_summary(waits, "fork_join_ns", "reason");
    expect_summary(waits, "barrier_ns", "reason");
    json_decref(compute);
    json_decref(functions);
    json_decref(memory);
    json_decref(waits);
    team_release(&team);
}

/* More than the machine has is told, not tried. */
static void too_large_a_level_has_a_reason(void **state)
{
    (void)state;
    struct team team;
    struct error error;
    size_t parts[1] = {(size_t)1 << 50};
    struct level level = {.name = "dram", .threads = 1, .chase_bytes = 1 << 20, .line_bytes = 64, .parts = parts};
    const struct peak_effort effort = {.repeats = 1, .clocked_ns = 1e5};
    assert_int_equal(team_create(1, NULL, &team, &error), 0);
    json_t *memory = peak_level(&team, &level, &effort);
    assert_non_null(strstr(json_get_string(memory, "reason", ""), "GB"));
    assert_true(json_is_null(json_object_get(memory, "read_gb_per_s")));
    json_decref(memory);
    team_release(&team);
}

static void policies_name_nodes_that_exist(void **state)
{
    (void)state;
    struct topology topology = load("numa:3 core:2 pu:1");
    struct error error;
    const char *reason;
    static const char *const forms[] = {"local", "interleave", "node:0", "node:17"};
    static const char *const no_forms[] = {"", "node", "node:", "node:-1", "node:1x", "node:123456", "remote"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        assert_true(memory_policy_is_one(forms[i]));
    for (size_t i = 0; i < sizeof no_forms / sizeof *no_forms; i++)
        assert_false(memory_policy_is_one(no_forms[i]));
    assert_int_equal(memory_policy_check(&topology, "node:2", &reason, &error), 0);
    assert_null(reason);
    assert_int_equal(memory_policy_check(&topology, "node:3", &reason, &error), -EINVAL);
    assert_int_equal(error.exit_code, EXIT_USAGE);
    assert_int_equal(memory_policy_check(&topology, NULL, &reason, &error), 0);
    json_t *local = memory_policy_to_json(&topology, NULL), *all = memory_policy_to_json(&topology, "interleave");
    json_t *one = memory_policy_to_json(&topology, "node:1");
    assert_true(json_is_null(local));
    assert_true(json_is_true(json_object_get(all, "interleave")));
    assert_int_equal(json_array_size(json_object_get(all, "nodes")), 3);
    assert_false(json_is_true(json_object_get(one, "interleave")));
    assert_int_equal(json_integer_value(json_array_get(json_object_get(one, "nodes"), 0)), 1);
    json_decref(local);
    json_decref(all);
    json_decref(one);
    topology_release(&topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shared_l3_is_divided),
        cmocka_unit_test(each_l3_has_its_own_threads),
        cmocka_unit_test(siblings_share_the_first_level),
        cmocka_unit_test(without_l3_memory_lies_beyond_hidden_caches),
        cmocka_unit_test(small_outer_level_is_left_room),
        cmocka_unit_test(without_caches_memory_alone_is_left),
        cmocka_unit_test(recorded_machines_have_levels),
        cmocka_unit_test(levels_survive_json),
        cmocka_unit_test(chase_is_one_full_cycle),
        cmocka_unit_test(summaries_hold_no_nan),
        cmocka_unit_test(samples_end),
        cmocka_unit_test(ceilings_are_positive),
        cmocka_unit_test(too_large_a_level_has_a_reason),
        cmocka_unit_test(policies_name_nodes_that_exist),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
