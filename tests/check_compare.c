/* SPDX-License-Identifier: Apache-2.0
 *
 * Points of two results files matched and set in relation; which record stands for a point, and its name.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "harness/compare.h"
#include "harness/record_key.h"
#include "harness/record_name.h"

/* A record of a point that S, kernel and dtype tell apart, with 11 samples from 100 to 110 ns times factor. */
static json_t *record_of(const char *run, const char *kernel, int size, double factor)
{
    json_t *samples = json_array();
    for (int i = 0; i < 11; i++)
        json_array_append_new(samples, json_real(factor * (100 + (i * 7) % 11)));
    return json_pack("{s:s,s:s,s:s,s:s,s:n,s:s,s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:s,s:s,s:s,s:i,s:s,s:s,s:s,s:i,s:o,s:f,"
                     "s:s,s:{s:s}}",
                     "schema", RESULT_SCHEMA, "run_id", run, "point_id", kernel, "status", "ok", "reason", "rule",
                     "scaled_dot_product", "dtype", "f32", "B", 1, "H", 2, "H_kv", 2, "S_q", size, "S_kv", size, "D",
                     64, "kernel", kernel, "source", "builtin", "schedule_requested", "auto", "threads", 2, "placement",
                     "compact", "mem", "local", "cache", "warm", "seed", 1, "samples_ns", samples, "median_ns",
                     105 * factor, "ci_scope", "within_process", "noise", "quality", "clean");
}

static json_t *context_of(const char *run, const char *machine)
{
    return json_pack("{s:s,s:s,s:s,s:s,s:s,s:s}", "schema", CONTEXT_SCHEMA, "run_id", run, "machine_key", machine,
                     "compiler", "cc 1", "flags", "-O3", "kernel_release", "6.1");
}

static struct results results_of(const char *run, const char *machine)
{
    struct results results = {.contexts = json_array(), .records = json_array()};
    json_array_append_new(results.contexts, context_of(run, machine));
    return results;
}

static void set_text(json_t *record, const char *key, const char *value)
{
    json_object_set_new(record, key, json_string(value));
}

static json_t *add(struct results *results, json_t *record)
{
    json_array_append_new(results->records, record);
    return record;
}

static bool near(double value, double expected)
{
    return fabs(value - expected) <= 1e-12 * fabs(expected);
}

/* By hand: of 11 samples the 2nd and the 10th, since P(X < 2) = 12 / 2048 <= 0.025 < P(X < 3) = 67 / 2048. */
static void ratio_and_interval(void **state)
{
    (void)state;
    struct results a = results_of("a", "m"), b = results_of("b", "m");
    struct comparison comparison;
    add(&a, record_of("a", "tiled", 64, 1));
    add(&b, record_of("b", "tiled", 64, 2));
    compare_results(&a, &b, &comparison);
    assert_int_equal(comparison.pair_count, 1);
    const struct compare_pair *pair = &comparison.pairs[0];
    assert_int_equal(pair->kind, COMPARE_FIGURES);
    assert_true(near(pair->ratio, 2));
    assert_true(near(pair->low, 202.0 / 109));
    assert_true(near(pair->high, 218.0 / 101));
    assert_true(compare_stands_out(pair));
    assert_int_equal(comparison.difference_count, 0);
    compare_release(&comparison);
    results_release(&a);
    results_release(&b);
}

static void noise_widens_the_interval(void **state)
{
    (void)state;
    double low, high;
    json_t *record = record_of("a", "tiled", 64, 1);
    assert_true(compare_interval(record, &low, &high));
    assert_true(low == 101 && high == 109);
    set_text(json_object_get(record, "noise"), "quality", "noisy");
    assert_true(compare_interval(record, &low, &high));
    assert_true(low == 100 && high == 110);
    /* Over launches the recorded interval holds; noise never narrows it. */
    set_text(record, "ci_scope", "across_processes");
    json_object_set_new(record, "ci95_low_ns", json_real(90));
    json_object_set_new(record, "ci95_high_ns", json_real(104));
    assert_true(compare_interval(record, &low, &high));
    assert_true(low == 90 && high == 110);
    set_text(json_object_get(record, "noise"), "quality", "clean");
    assert_true(compare_interval(record, &low, &high));
    assert_true(low == 90 && high == 104);
    json_object_set_new(record, "ci95_low_ns", json_null());
    assert_false(compare_interval(record, &low, &high));
    json_decref(record);
}

/* 2 to 5 launches: too few for an interval of their medians, and their samples must not be taken for independent. */
static void no_interval_of_pooled_launches(void **state)
{
    (void)state;
    double low, high;
    json_t *record = record_of("a", "tiled", 64, 1);
    json_object_set_new(record, "ci_scope", json_null());
    assert_false(compare_interval(record, &low, &high));
    set_text(json_object_get(record, "noise"), "quality", "noisy");
    assert_false(compare_interval(record, &low, &high));
    json_object_del(record, "ci_scope");
    assert_false(compare_interval(record, &low, &high));
    json_decref(record);
}

static void no_interval_of_few_samples_or_no_measurement(void **state)
{
    (void)state;
    double low, high;
    json_t *record = record_of("a", "tiled", 64, 1);
    json_t *samples = json_object_get(record, "samples_ns");
    set_text(record, "status", "wrong");
    assert_false(compare_interval(record, &low, &high));
    set_text(record, "status", "ok");
    while (json_array_size(samples) > 5)
        json_array_remove(samples, 0);
    assert_false(compare_interval(record, &low, &high));
    set_text(json_object_get(record, "noise"), "quality", "noisy");
    assert_false(compare_interval(record, &low, &high));
    json_decref(record);
}

/* xorshift64* (Vigna 2016), in [0, 1). */
static double random_uniform(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (double)((*state * UINT64_C(2685821657736338717)) >> 11) * 0x1p-53;
}

/* Times as they come: a floor and a long tail. The median of the distribution is 100 + scale. */
static void draw(json_t *record, int count, double scale, uint64_t *random)
{
    json_t *samples = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(samples, json_real(100 - scale / log(2) * log(1 - random_uniform(random))));
    json_object_set_new(record, "samples_ns", samples);
}

/* How often 2000 intervals of pairs drawn from the same two distributions hold the true ratio. */
static double coverage(int count_a, double scale_a, int count_b, double scale_b)
{
    uint64_t random = 20260101;
    int held = 0, draws = 2000;
    double truth = (100 + scale_b) / (100 + scale_a);
    for (int i = 0; i < draws; i++) {
        struct results a = results_of("a", "m"), b = results_of("b", "m");
        struct comparison comparison;
        draw(add(&a, record_of("a", "tiled", 64, 1)), count_a, scale_a, &random);
        draw(add(&b, record_of("b", "tiled", 64, 1)), count_b, scale_b, &random);
        compare_results(&a, &b, &comparison);
        held += comparison.pairs[0].low <= truth && truth <= comparison.pairs[0].high;
        compare_release(&comparison);
        results_release(&a);
        results_release(&b);
    }
    return (double)held / draws;
}

/* Above 95 % however unlike the sides are; where one hardly varies not so wide as to hold anything. */
static void intervals_hold_the_ratio(void **state)
{
    (void)state;
    static const struct {
        int count_a, count_b;
        double scale_a, scale_b;
    } cases[] = {{11, 11, 5, 5}, {24, 24, 5, 5}, {11, 60, 20, 5}, {60, 60, 5, 0.01}, {7, 11, 50, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double share = coverage(cases[i].count_a, cases[i].scale_a, cases[i].count_b, cases[i].scale_b);
        print_message("coverage of %d and %d samples: %.4f\n", cases[i].count_a, cases[i].count_b, share);
        assert_true(share >= 0.95);
        assert_true(share < 0.985 || cases[i].scale_b > 0.1);
    }
}

static void points_are_matched_whatever_source_and_run(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value;
        bool same;
    } cases[] = {
        {"source", "plugin:x.so", true}, {"point_id", "other", true},
        {"kernel", "avx2", false},       {"rule", "additive", false},
        {"placement", "scatter", false}, {"cache", "cold", false},
        {"mem", "interleave", false},    {"schedule_requested", "bh", false},
        {"causal", "top_left", false},   {"schedule", "bhq", true},
        {"window", "8:0", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct results a = results_of("a", "m"), b = results_of("b", "m");
        struct comparison comparison;
        add(&a, record_of("a", "tiled", 64, 1));
        set_text(add(&b, record_of("b", "tiled", 64, 1)), cases[i].key, cases[i].value);
        compare_results(&a, &b, &comparison);
        if (comparison.counts[COMPARE_FIGURES] != cases[i].same)
            fail_msg("%s", cases[i].key);
        assert_int_equal(comparison.counts[COMPARE_MISSING], !cases[i].same);
        assert_int_equal(comparison.counts[COMPARE_ADDED], !cases[i].same);
        compare_release(&comparison);
        results_release(&a);
        results_release(&b);
    }
}

/* Numbers by value, whatever wrote them; every size matters. */
static void keys_compare_values(void **state)
{
    (void)state;
    json_t *record = record_of("a", "tiled", 64, 1), *other = record_of("b", "tiled", 64, 1);
    json_object_set_new(other, "B", json_real(1));
    char *key = record_key(record, 0), *same = record_key(other, 0);
    assert_string_equal(key, same);
    free(same);
    static const char *const sizes[] = {"B", "H", "H_kv", "S_q", "S_kv", "D", "D_v", "threads", "seed", "scale"};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        json_object_update(other, record);
        json_object_set_new(other, sizes[i], json_integer(77));
        char *different = record_key(other, 0);
        assert_string_not_equal(key, different);
        free(different);
        json_object_del(other, sizes[i]);
    }
    free(key);
    json_decref(record);
    json_decref(other);
}

static const struct compare_difference *difference_in(const struct comparison *comparison, const char *field)
{
    for (size_t i = 0; i < comparison->difference_count; i++) {
        if (strcmp(comparison->differences[i].field, field) == 0)
            return &comparison->differences[i];
    }
    return NULL;
}

/* What differs is told, be it in the context or in the point, and matched all the same. */
static void differences_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *field, *value;
        bool of_record, refused;
    } cases[] = {
        {"machine_key", "n", false, true},
        {"compiler", "cc 2", false, true},
        {"flags", "-O2", false, true},
        {"kernel_release", "6.2", false, true},
        {"page_mode", "4k", true, true},
        {"dtype", "bf16", true, true},
        {"seed", NULL, true, true},
        {"microcode", "0x2", false, false},
        {"governor", "powersave", false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct results a = results_of("a", "m"), b = results_of("b", "m");
        struct comparison comparison;
        set_text(add(&a, record_of("a", "tiled", 64, 1)), "page_mode", "2m");
        set_text(add(&b, record_of("b", "tiled", 64, 1)), "page_mode", "2m");
        set_text(json_array_get(a.contexts, 0), "microcode", "0x1");
        set_text(json_array_get(a.contexts, 0), "governor", "performance");
        json_t *changed = json_array_get(cases[i].of_record ? b.records : b.contexts, 0);
        json_object_set_new(changed, cases[i].field, cases[i].value ? json_string(cases[i].value) : json_integer(2));
        compare_results(&a, &b, &comparison);
        assert_int_equal(comparison.counts[COMPARE_FIGURES], 1);
        assert_int_equal(comparison.difference_count, 1);
        assert_non_null(difference_in(&comparison, cases[i].field));
        assert_int_equal(comparison.differences[0].refused, cases[i].refused);
        assert_int_equal(comparison.differences[0].points, 1);
        compare_release(&comparison);
        results_release(&a);
        results_release(&b);
    }
}

/* Points of the machine itself come first, those of another only where nothing else is left. */
static void machines_are_matched_with_themselves(void **state)
{
    (void)state;
    struct results a = results_of("a1", "m"), b = results_of("b2", "n");
    struct comparison comparison;
    json_array_append_new(a.contexts, context_of("a2", "n"));
    json_array_append_new(b.contexts, context_of("b1", "m"));
    add(&a, record_of("a1", "tiled", 64, 1));
    add(&a, record_of("a2", "tiled", 64, 10));
    add(&b, record_of("b2", "tiled", 64, 10));
    add(&b, record_of("b1", "tiled", 64, 1));
    compare_results(&a, &b, &comparison);
    assert_int_equal(comparison.counts[COMPARE_FIGURES], 2);
    assert_int_equal(comparison.difference_count, 0);
    assert_true(near(comparison.pairs[0].ratio, 1) && near(comparison.pairs[1].ratio, 1));
    compare_release(&comparison);
    results_release(&a);
    results_release(&b);
}

static void several_differences_at_once_are_told(void **state)
{
    (void)state;
    struct results a = results_of("a", "m"), b = results_of("b", "n");
    struct comparison comparison;
    add(&a, record_of("a", "tiled", 64, 1));
    set_text(add(&b, record_of("b", "tiled", 64, 1)), "dtype", "bf16");
    compare_results(&a, &b, &comparison);
    assert_int_equal(comparison.counts[COMPARE_FIGURES], 1);
    assert_int_equal(comparison.difference_count, 2);
    assert_non_null(difference_in(&comparison, "machine_key"));
    assert_non_null(difference_in(&comparison, "dtype"));
    compare_release(&comparison);
    results_release(&a);
    results_release(&b);
}

static void largest_changes_stand_first(void **state)
{
    (void)state;
    struct results a = results_of("a", "m"), b = results_of("b", "m");
    struct comparison comparison;
    static const double factors[] = {1.1, 1, 0.5, 1.9, 1};
    for (int i = 0; i < 5; i++) {
        add(&a, record_of("a", "tiled", 16 + i, 1));
        add(&b, record_of("b", "tiled", 16 + i, factors[i]));
    }
    set_text(add(&a, record_of("a", "gone", 16, 1)), "status", "ok");
    set_text(add(&b, record_of("b", "new", 16, 1)), "status", "skipped");
    set_text(add(&a, record_of("a", "fell", 16, 1)), "status", "ok");
    set_text(add(&b, record_of("b", "fell", 16, 1)), "status", "wrong");
    compare_results(&a, &b, &comparison);
    static const double expected[] = {0.5, 1.9, 1.1, 1, 1};
    for (int i = 0; i < 5; i++)
        assert_true(near(comparison.pairs[i].ratio, expected[i]));
    assert_int_equal(json_integer_value(json_object_get(comparison.pairs[3].a.record, "S_q")), 17);
    assert_int_equal(json_integer_value(json_object_get(comparison.pairs[4].a.record, "S_q")), 20);
    assert_int_equal(comparison.pairs[5].kind, COMPARE_STATUS);
    assert_int_equal(comparison.pairs[6].kind, COMPARE_MISSING);
    assert_int_equal(comparison.pairs[7].kind, COMPARE_ADDED);
    assert_int_equal(comparison.pair_count, 8);
    compare_release(&comparison);
    results_release(&a);
    results_release(&b);
}

/* Statuses of records of one point in file order, and which of them stands for it. */
static void the_latest_ok_record_stands_for_a_point(void **state)
{
    (void)state;
    static const struct {
        const char *statuses[3];
        json_int_t chosen;
    } cases[] = {
        {{"ok", "ok", "failed"}, 1},    {{"failed", "ok", "skipped"}, 1}, {{"failed", "skipped", "failed"}, 2},
        {{"ok", "wrong", "failed"}, 2}, {{"wrong", "failed", "ok"}, 2},   {{"ok", "failed", "wrong"}, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct results results = results_of("a", "m");
        for (int j = 0; j < 3; j++) {
            json_t *record = add(&results, record_of("a", "tiled", 64, 1));
            set_text(record, "status", cases[i].statuses[j]);
            json_object_set_new(record, "number", json_integer(j));
        }
        json_t *latest = record_latest(results.contexts, results.records);
        assert_int_equal(json_array_size(latest), 1);
        assert_int_equal(json_integer_value(json_object_get(json_array_get(latest, 0), "number")), cases[i].chosen);
        json_decref(latest);
        results_release(&results);
    }
}

static const char *name_at(const json_t *names, size_t index)
{
    return json_string_value(json_array_get(names, index));
}

static void names_are_unique_and_stable(void **state)
{
    (void)state;
    struct results results = results_of("a", "m");
    add(&results, record_of("a", "tiled", 64, 1));
    set_text(add(&results, record_of("a", "tiled", 64, 1)), "mem", "node:1");
    json_object_set_new(add(&results, record_of("a", "tiled", 64, 1)), "seed", json_integer(9));
    json_t *names = record_names(results.contexts, results.records);
    assert_string_equal(name_at(names, 0), "scaled_dot_product/f32/B:1/H:2/S:64/D:64/tiled/auto/threads:2/compact");
    assert_string_equal(name_at(names, 1),
                        "scaled_dot_product/f32/B:1/H:2/S:64/D:64/tiled/auto/threads:2/compact/mem:node:1");
    assert_string_equal(name_at(names, 2),
                        "scaled_dot_product/f32/B:1/H:2/S:64/D:64/seed:9/tiled/auto/threads:2/compact");
    json_decref(names);
    /* Scales that six digits don't tell apart: the same words, so the points' own IDs. */
    json_array_clear(results.records);
    json_object_set_new(add(&results, record_of("a", "one", 64, 1)), "scale", json_real(0.3));
    json_object_set_new(add(&results, record_of("a", "one", 64, 1)), "scale", json_real(0.3 + 1e-9));
    set_text(json_array_get(results.records, 1), "point_id", "two");
    names = record_names(results.contexts, results.records);
    assert_string_equal(name_at(names, 0),
                        "scaled_dot_product/f32/B:1/H:2/S:64/D:64/scale:0.3/one/auto/threads:2/compact/point:one");
    assert_string_equal(name_at(names, 1),
                        "scaled_dot_product/f32/B:1/H:2/S:64/D:64/scale:0.3/one/auto/threads:2/compact/point:two");
    json_decref(names);
    json_array_append_new(results.contexts, context_of("b", "n"));
    set_text(json_array_get(results.records, 1), "run_id", "b");
    names = record_names(results.contexts, results.records);
    assert_non_null(strstr(name_at(names, 0), "/compact/machine:m"));
    assert_non_null(strstr(name_at(names, 1), "/compact/machine:n"));
    assert_null(strstr(name_at(names, 0), "point:"));
    json_decref(names);
    results_release(&results);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ratio_and_interval),
        cmocka_unit_test(noise_widens_the_interval),
        cmocka_unit_test(no_interval_of_few_samples_or_no_measurement),
        cmocka_unit_test(no_interval_of_pooled_launches),
        cmocka_unit_test(intervals_hold_the_ratio),
        cmocka_unit_test(points_are_matched_whatever_source_and_run),
        cmocka_unit_test(keys_compare_values),
        cmocka_unit_test(differences_are_told),
        cmocka_unit_test(machines_are_matched_with_themselves),
        cmocka_unit_test(several_differences_at_once_are_told),
        cmocka_unit_test(largest_changes_stand_first),
        cmocka_unit_test(the_latest_ok_record_stands_for_a_point),
        cmocka_unit_test(names_are_unique_and_stable),
    };
    return cmocka_run_group_tests_name("compare", tests, NULL, NULL);
}
