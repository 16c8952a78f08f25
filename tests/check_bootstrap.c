/* SPDX-License-Identifier: Apache-2.0
 *
 * Replay of the stop rule: which values are drawn, that the draws are even, and that the outcomes are those that the
 * series allows.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "harness/bootstrap.h"
#include "harness/fill.h"

enum { RECORDED = 200 };

static struct sequential_rule rule;

/* Normal log-ratios of the given spread. */
static struct bootstrap_request request_of(double recorded[RECORDED], double spread)
{
    rule = sequential_rule_for(0.02);
    for (int i = 0; i < RECORDED; i++)
        recorded[i] = spread * fill_normal(fill_bits(1, 0, FILL_K, (uint64_t)i));
    return (struct bootstrap_request){.recorded = recorded, .n = RECORDED, .rule = &rule, .verdicts = 400, .seed = 5};
}

static void block_lengths(void **state)
{
    (void)state;
    static const size_t known[][2] = {{1, 1}, {2, 2}, {8, 2}, {9, 3}, {27, 3}, {28, 4}, {1000, 10}, {1001, 11}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        assert_int_equal(bootstrap_block_length(known[i][0]), known[i][1]);
}

/* With the place as the value, blocks show: runs of 6 with the last one cut. Each start comes up evenly. */
static void draws_are_blocks(void **state)
{
    (void)state;
    double recorded[RECORDED], draws[24], again[24];
    struct bootstrap_request request = request_of(recorded, 1);
    size_t starts[RECORDED] = {0};
    for (int i = 0; i < RECORDED; i++)
        recorded[i] = i;
    for (uint64_t verdict = 0; verdict < 20000; verdict++) {
        bootstrap_draw(&request, verdict, 20, draws);
        for (int i = 0; i < 20; i++)
            assert_true(i % 6 == 0 ? draws[i] >= 0 && draws[i] <= 194 : draws[i] == draws[i - 1] + 1);
        starts[(size_t)draws[6]]++;
    }
    for (int i = 0; i < 195; i++) /* 20,000 / 195 = 102.6, SD 10.1: five of them */
        assert_in_range(starts[i], 52, 153);
    for (int i = 195; i < RECORDED; i++)
        assert_int_equal(starts[i], 0);
    bootstrap_draw(&request, 7, 24, draws);
    bootstrap_draw(&request, 7, 24, again);
    assert_memory_equal(draws, again, sizeof draws);
    bootstrap_draw(&request, 8, 24, again);
    assert_memory_not_equal(draws, again, sizeof draws);
    request.seed++;
    bootstrap_draw(&request, 7, 24, again);
    assert_memory_not_equal(draws, again, sizeof draws);
    request.effect = 1;
    bootstrap_draw(&request, 7, 24, draws);
    for (int i = 0; i < 24; i++)
        assert_true(fabs(draws[i] - again[i] - log(2.0)) < 1e-12);
}

static struct bootstrap_counts replay(const struct bootstrap_request *request)
{
    struct bootstrap_counts counts;
    assert_int_equal(bootstrap_replay(request, &counts), 0);
    assert_int_equal(counts.slower + counts.same + counts.faster + counts.inconclusive, counts.verdicts);
    return counts;
}

static void quiet_and_hopeless_records(void **state)
{
    (void)state;
    double recorded[RECORDED];
    struct bootstrap_request request = request_of(recorded, 0.001);
    struct bootstrap_counts counts = replay(&request);
    assert_int_equal(counts.same, 400);
    assert_true(counts.mean_processes == 8);
    request.effect = 0.05;
    assert_int_equal(replay(&request).slower, 400);
    request.effect = -0.05;
    assert_int_equal(replay(&request).faster, 400);
    request.which = BOOTSTRAP_DUET;
    assert_int_equal(replay(&request).faster, 400);
    request = request_of(recorded, 3);
    counts = replay(&request);
    /* 2.5 % at most are told as a change by chance, in each direction; the record's own bias adds to one of them */
    assert_true(counts.inconclusive > 370 && counts.mean_processes > 23);
}

/* A larger slowdown is found more often; the same seed counts the same; a duet needs longer than a gate. */
static void rates_follow_the_effect(void **state)
{
    (void)state;
    double recorded[RECORDED];
    struct bootstrap_request request = request_of(recorded, 0.015);
    uint64_t last = 0;
    for (int percent = 0; percent <= 6; percent++) {
        request.effect = percent / 100.0;
        struct bootstrap_counts counts = replay(&request), again = replay(&request);
        assert_memory_equal(&counts, &again, sizeof counts);
        assert_true(counts.slower >= last);
        last = counts.slower;
    }
    assert_true(last > 395);
    request.effect = 0;
    assert_true(replay(&request).slower < 20);
    double gate = replay(&request).mean_processes;
    request.which = BOOTSTRAP_DUET;
    assert_true(replay(&request).mean_processes > gate);
}

/* Swapped builds: slower and faster change places. */
static void swap(void **state)
{
    (void)state;
    double recorded[RECORDED];
    struct bootstrap_request request = request_of(recorded, 0.03);
    request.which = BOOTSTRAP_DUET;
    request.effect = 0.02;
    struct bootstrap_counts straight = replay(&request);
    for (int i = 0; i < RECORDED; i++)
        recorded[i] = -recorded[i];
    request.effect = 1 / 1.02 - 1;
    struct bootstrap_counts swapped = replay(&request);
    assert_true(straight.slower > 50 && straight.inconclusive > 20);
    assert_int_equal(straight.slower, swapped.faster);
    assert_int_equal(straight.faster, swapped.slower);
    assert_int_equal(straight.same, swapped.same);
}

/* Neighbours that agree make whole verdicts drift; drawing single values would hide it. */
static void blocks_keep_what_neighbours_share(void **state)
{
    (void)state;
    double recorded[RECORDED];
    struct bootstrap_request request = request_of(recorded, 0.002);
    for (int i = 0; i < RECORDED; i++)
        recorded[i] += i / 25 % 2 ? 0.03 : -0.03;
    request.block_length = 1;
    uint64_t single = replay(&request).slower;
    request.block_length = 24;
    assert_true(replay(&request).slower > single + 50);
}

static void edges_and_refusals(void **state)
{
    (void)state;
    double recorded[RECORDED], one = 0.5;
    const double effects[] = {-1, -2, NAN, INFINITY}, bad[] = {NAN, INFINITY};
    const struct bootstrap_request good = request_of(recorded, 0.01);
    struct bootstrap_request request = good;
    struct bootstrap_counts counts = {.verdicts = 77};
    request.n = 0;
    assert_int_equal(bootstrap_replay(&request, &counts), -EINVAL);
    request = good, request.block_length = RECORDED + 1;
    assert_int_equal(bootstrap_replay(&request, &counts), -EINVAL);
    for (int i = 0; i < 4; i++) {
        request = good, request.effect = effects[i];
        assert_int_equal(bootstrap_replay(&request, &counts), -EINVAL);
    }
    for (int i = 0; i < 2; i++) {
        recorded[RECORDED - 1] = bad[i];
        assert_int_equal(bootstrap_replay(&good, &counts), -EINVAL);
    }
    recorded[RECORDED - 1] = 0;
    rule.confidence = 1;
    assert_int_equal(bootstrap_replay(&good, &counts), -EINVAL);
    assert_int_equal(counts.verdicts, 77);
    rule = sequential_rule_for(0.02);
    request = good, request.recorded = &one, request.n = 1;
    assert_int_equal(replay(&request).slower, 400);
    request.block_length = 1, request.verdicts = 0;
    assert_int_equal(bootstrap_replay(&request, &counts), 0);
    assert_true(counts.verdicts == 0 && isnan(counts.mean_processes));
    request = good, request.block_length = RECORDED; /* always the whole record */
    counts = replay(&request);
    assert_true(counts.same == 400 || counts.same == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(block_lengths),
        cmocka_unit_test(draws_are_blocks),
        cmocka_unit_test(quiet_and_hopeless_records),
        cmocka_unit_test(rates_follow_the_effect),
        cmocka_unit_test(swap),
        cmocka_unit_test(blocks_keep_what_neighbours_share),
        cmocka_unit_test(edges_and_refusals),
    };
    return cmocka_run_group_tests_name("bootstrap", tests, NULL, NULL);
}
