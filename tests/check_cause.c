/* SPDX-License-Identifier: Apache-2.0
 *
 * What holds a point back: each cause from the traits that make it, and scaling against one thread of the same kind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "harness/cause.h"
#include "harness/json_util.h"

static struct topology machine; /* two cores of two hardware threads: PUs 0,1 and 2,3 */

static int load_machine(void **state)
{
    (void)state;
    struct error error;
    return topology_load("pack:1 core:2 pu:2", NULL, &machine, &error);
}

static int drop_machine(void **state)
{
    (void)state;
    topology_release(&machine);
    return 0;
}

static struct point sample_point(void)
{
    return (struct point){.spec = spec_default(),
                          .kernel = "tiled",
                          .source = "builtin",
                          .schedule_requested = "auto",
                          .placement = "compact",
                          .threads = 2,
                          .cache = CACHE_WARM};
}

/* An ok record of 2 threads on two cores, busy for the same time, near a compute roof. */
static json_t *sound_record(void)
{
    json_t *record = json_pack("{s:s,s:s,s:s,s:s,s:i,s:f,s:f,s:s,s:f,s:[i,i],s:[f,f],s:{s:s}}", "status", "ok",
                               "kernel", "tiled", "source", "builtin", "cache", "warm", "threads", 2, "median_ns",
                               100.0, "gflops", 80.0, "roof_bound", "compute", "roof_fraction", 0.9, "cpus", 0, 2,
                               "thread_busy_ns", 95.0, 95.0, "noise", "quality", "clean");
    struct problem_spec spec = spec_default();
    json_t *fields = spec_to_json(&spec);
    json_object_update(record, fields);
    json_decref(fields);
    return record;
}

static void expect_cause(json_t *record, const char *cause)
{
    struct point point = sample_point();
    json_t *none = json_array();
    cause_annotate(record, &point, none, &machine);
    assert_string_equal(json_get_string(record, "cause", "none"), cause);
    json_decref(none);
    json_decref(record);
}

static void each_trait_has_its_cause(void **state)
{
    (void)state;
    json_t *record = sound_record();
    expect_cause(record, "compute-bound");

    record = sound_record();
    json_object_set_new(record, "roof_bound", json_string("dram"));
    expect_cause(record, "dram-bound");

    record = sound_record();
    json_object_set_new(record, "roof_bound", json_string("l2"));
    expect_cause(record, "cache-bound");

    record = sound_record();
    json_object_set_new(record, "roof_fraction", json_real(0.4));
    expect_cause(record, "kernel");

    record = sound_record();
    json_object_set_new(record, "thread_busy_ns", json_pack("[f,f]", 190.0, 1.0));
    expect_cause(record, "starved");

    record = sound_record();
    json_object_set_new(record, "thread_busy_ns", json_pack("[f,f]", 120.0, 70.0));
    expect_cause(record, "imbalance");

    record = sound_record();
    json_object_set_new(record, "cpus", json_pack("[i,i]", 0, 1)); /* siblings of one core */
    expect_cause(record, "smt-shared");

    record = sound_record();
    json_object_set_new(json_object_get(record, "noise"), "quality", json_string("noisy"));
    json_object_set_new(record, "cpus", json_pack("[i,i]", 0, 1));
    expect_cause(record, "noisy");

    record = sound_record();
    json_object_set_new(json_object_get(record, "noise"), "quality", json_string("noisy"));
    json_object_set_new(json_object_get(record, "noise"), "throttled_ns", json_real(5e6));
    expect_cause(record, "throttled");
}

static void a_point_without_a_time_has_no_cause(void **state)
{
    (void)state;
    json_t *record = sound_record();
    json_object_set_new(record, "status", json_string("wrong"));
    expect_cause(record, "none");
}

static void scaling_is_against_one_thread_of_the_same_kind(void **state)
{
    (void)state;
    struct point point = sample_point();
    json_t *alone = sound_record(), *other = sound_record(), *record = sound_record();
    json_object_set_new(alone, "threads", json_integer(1));
    json_object_set_new(alone, "median_ns", json_real(180));
    json_object_set_new(other, "threads", json_integer(1));
    json_object_set_new(other, "median_ns", json_real(20)); /* another kernel's: must not count */
    json_object_set_new(other, "kernel", json_string("avx2"));
    json_t *records = json_pack("[o,o]", alone, other);
    cause_annotate(record, &point, records, &machine);
    assert_true(json_get_number(record, "parallel_efficiency", 0) == 180.0 / (2 * 100.0));
    assert_true(json_get_number(record, "gflops_per_core", 0) == 40);
    assert_true(json_get_number(record, "imbalance", 0) == 1);
    json_object_set_new(alone, "B", json_integer(7)); /* another problem */
    cause_annotate(record, &point, records, &machine);
    assert_true(json_is_null(json_object_get(record, "parallel_efficiency")));
    json_decref(records);
    json_decref(record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_trait_has_its_cause),
        cmocka_unit_test(a_point_without_a_time_has_no_cause),
        cmocka_unit_test(scaling_is_against_one_thread_of_the_same_kind),
    };
    return cmocka_run_group_tests(tests, load_machine, drop_machine);
}
