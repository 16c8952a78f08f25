/* SPDX-License-Identifier: Apache-2.0
 *
 * The stop rule, look by look. Figures of four series of 24 processes come from NumPy (sorted Walsh averages at ranks
 * counted in whole numbers) and scipy.stats.wilcoxon 1.17, method "exact".
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

#include "harness/sequential.h"
#include "harness/signed_rank.h"

enum { ALL = 24 };

static const int noise[ALL] = {-7, 3,  -2, 8,  5, -9, 1, -4,  10, -11, 6,  -1,
                               12, -5, 2,  -8, 9, -3, 7, -12, 4,  11,  -6, -10};

static void series(double shift, double scale, double out[ALL])
{
    for (int i = 0; i < ALL; i++)
        out[i] = shift + scale * noise[i] * 1e-3;
}

static bool close_to(double value, double expected)
{
    return fabs(value - expected) <= 1e-10 * fabs(expected) + 1e-15;
}

static void known_series(void **state)
{
    (void)state;
    static const struct {
        double shift, scale;
        enum sequential_decision gate, duet;
        size_t processes;
        double estimate, low, high, p_slower, p_faster, detectable;
    } known[] = {
        {0, 0.5, SEQUENTIAL_SAME, SEQUENTIAL_SAME, 8, -0.00025, -0.0045, 0.004, 1, 1, 0.01567419883869776},
        {0.03, 0.5, SEQUENTIAL_SLOWER, SEQUENTIAL_SLOWER, 8, 0.02975, 0.0255, 0.034, 0.00390625, 1,
         0.01567419883869776},
        {0.014, 1.5, SEQUENTIAL_SLOWER, SEQUENTIAL_SLOWER, 20, 0.014, 0.0065, 0.0215, 0.0011625289916992188, 1,
         0.01294561981535048},
        {0.01, 3, SEQUENTIAL_INCONCLUSIVE, SEQUENTIAL_INCONCLUSIVE, 24, 0.01, -0.0035, 0.0235, 0.14483356475830078,
         0.9956426024436951, 0.017132650310408143},
    };
    const struct sequential_rule rule = sequential_rule_for(0.02);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        double values[ALL];
        struct sequential_verdict gate, duet;
        series(known[i].shift, known[i].scale, values);
        assert_int_equal(sequential_gate(values, ALL, &rule, &gate), 0);
        assert_int_equal(sequential_duet(values, ALL, &rule, &duet), 0);
        assert_int_equal(gate.decision, known[i].gate);
        assert_int_equal(duet.decision, known[i].duet);
        assert_int_equal(gate.processes, known[i].processes);
        assert_int_equal(gate.look, known[i].processes / 4 - 2);
        assert_int_equal(gate.next_look, 0);
        assert_true(close_to(gate.estimate, known[i].estimate));
        assert_true(close_to(gate.low, known[i].low) && close_to(gate.high, known[i].high));
        assert_true(close_to(gate.p_slower, known[i].p_slower) && close_to(gate.p_faster, known[i].p_faster));
        assert_true(close_to(gate.smallest_detectable, known[i].detectable));
    }
}

/* Of the third series, which stops at 20, the beginnings. At 16 the interval of 99 % lies above the margin, that of the
 * look's change does not. */
static void goes_on_until_told(void **state)
{
    (void)state;
    const struct sequential_rule rule = sequential_rule_for(0.02);
    double values[ALL];
    struct sequential_verdict verdict;
    series(0.014, 1.5, values);
    for (size_t n = 0; n <= ALL; n++) {
        assert_int_equal(sequential_gate(values, n, &rule, &verdict), 0);
        size_t seen = n < 8 ? 0 : n >= 20 ? 20 : n / 4 * 4;
        assert_int_equal(verdict.processes, seen);
        assert_int_equal(verdict.decision, n < 20 ? SEQUENTIAL_GO_ON : SEQUENTIAL_SLOWER);
        assert_int_equal(verdict.next_look, n < 8 ? 8 : n < 20 ? n / 4 * 4 + 4 : 0);
        assert_true(isnan(verdict.estimate) == (n < 8));
        assert_true(isinf(verdict.smallest_detectable) == (n < 8));
    }
    assert_true(close_to(verdict.told_low, 0.0065) && close_to(verdict.told_high, 0.02225));
    for (size_t i = 20; i < ALL; i++)
        values[i] = NAN; /* after the stop: not looked at */
    assert_int_equal(sequential_gate(values, ALL, &rule, &verdict), 0);
    assert_int_equal(verdict.decision, SEQUENTIAL_SLOWER);
}

/* Eight values from low to high: their 99 % interval is [low, high]. */
static enum sequential_decision decide(bool gate, double low, double high)
{
    struct sequential_rule rule = sequential_rule_for(0.02);
    struct sequential_verdict verdict;
    double values[8];
    for (int i = 0; i < 8; i++)
        values[i] = i < 7 ? low + (high - low) * i / 7 : high;
    rule.look_count = 1;
    assert_int_equal((gate ? sequential_gate : sequential_duet)(values, 8, &rule, &verdict), 0);
    assert_true(verdict.low == low && verdict.high == high);
    return verdict.decision;
}

/* T = 0.0198026, m = 0.0049875. */
static void order_of_the_tests(void **state)
{
    (void)state;
    static const struct {
        double low, high;
        enum sequential_decision gate, duet;
    } known[] = {
        {0.006, 0.0197, SEQUENTIAL_SAME, SEQUENTIAL_SAME}, /* surely above the margin, yet surely below tau */
        {0.006, 0.0199, SEQUENTIAL_SLOWER, SEQUENTIAL_SLOWER},
        {0.0049, 0.0199, SEQUENTIAL_INCONCLUSIVE, SEQUENTIAL_INCONCLUSIVE},
        {-0.03, 0.03, SEQUENTIAL_INCONCLUSIVE, SEQUENTIAL_INCONCLUSIVE},
        {-0.0197, -0.006, SEQUENTIAL_SAME, SEQUENTIAL_SAME},
        {-0.0199, -0.006, SEQUENTIAL_FASTER, SEQUENTIAL_FASTER},
        {-0.0199, -0.0049, SEQUENTIAL_SAME, SEQUENTIAL_INCONCLUSIVE}, /* no slowdown; a speed-up is left open */
        {-0.5, 0.0197, SEQUENTIAL_SAME, SEQUENTIAL_INCONCLUSIVE},
        {0, 0, SEQUENTIAL_SAME, SEQUENTIAL_SAME},
        {0.1, 0.1, SEQUENTIAL_SLOWER, SEQUENTIAL_SLOWER},
        {-0.1, -0.1, SEQUENTIAL_FASTER, SEQUENTIAL_FASTER},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        assert_int_equal(decide(true, known[i].low, known[i].high), known[i].gate);
        assert_int_equal(decide(false, known[i].low, known[i].high), known[i].duet);
    }
}

/* Twelve values, one of them far off: by the null distribution's counts (1, 1, 1, 2, 2, ... of 4096 signs) the interval
 * of 99 % ends at the 8th largest Walsh average, that of 99.9 % at the 2nd: just below and just above T. */
static void same_is_spent_over_the_looks(void **state)
{
    (void)state;
    struct sequential_rule rule = sequential_rule_for(0.02);
    struct sequential_verdict gate, duet;
    double values[12] = {0.039};
    for (int i = 1; i < 12; i++)
        values[i] = (i - 1) * 1e-4;
    rule.look_count = 2;
    assert_int_equal(sequential_gate(values, 12, &rule, &gate), 0);
    assert_int_equal(sequential_duet(values, 12, &rule, &duet), 0);
    assert_true(close_to(gate.high, 0.0197) && gate.high < log1p(0.02));
    assert_int_equal(gate.decision, SEQUENTIAL_INCONCLUSIVE);
    assert_int_equal(duet.decision, SEQUENTIAL_INCONCLUSIVE);
    values[0] = 0.0385; /* the 2nd is below T now */
    assert_int_equal(sequential_gate(values, 12, &rule, &gate), 0);
    assert_int_equal(gate.decision, SEQUENTIAL_SAME);
    assert_true(close_to(gate.told_high, 0.01975));
    values[0] = 0.039;
    rule.same_confidence[1] = 0.99;
    assert_int_equal(sequential_gate(values, 12, &rule, &gate), 0);
    assert_int_equal(gate.decision, SEQUENTIAL_SAME);
    rule.same_confidence[1] = 0;
    assert_int_equal(sequential_gate(values, 12, &rule, &gate), -EINVAL);
}

/* What the looks spend adds up to what is promised: of a wrong pass 1 %, of a wrong change 2.5 %. Levels are those that
 * the signed-rank statistic can have, the greatest that are no more than asked for. */
static void levels_add_up(void **state)
{
    (void)state;
    const struct sequential_rule rule = sequential_rule_for(0.02);
    const double *asked[] = {rule.same_confidence, rule.change_confidence};
    const double most[] = {0.01, 0.025};
    for (int kind = 0; kind < 2; kind++) {
        double sum = 0;
        for (size_t look = 0; look < rule.look_count; look++) {
            const size_t n = rule.looks[look];
            double level = 0;
            for (size_t rank = 0; signed_rank_lower_tail(n, rank) <= (1 - asked[kind][look]) / 2; rank++)
                level = signed_rank_lower_tail(n, rank);
            assert_true(level > 0);
            sum += level;
        }
        assert_true(sum <= most[kind] && sum > 0.9 * most[kind]);
    }
}

/* At 24 processes a change takes an interval of 97.4 %, and what passes one of 99.3 %. */
static void the_last_look_spends_most(void **state)
{
    (void)state;
    struct sequential_rule rule = sequential_rule_for(0.02);
    struct sequential_verdict verdict;
    double values[ALL];
    series(0.0134, 2, values);
    assert_int_equal(sequential_gate(values, ALL, &rule, &verdict), 0);
    assert_int_equal(verdict.processes, 24);
    assert_true(verdict.low < log1p(0.005) && verdict.told_low > log1p(0.005));
    assert_int_equal(verdict.decision, SEQUENTIAL_SLOWER);
    rule.change_confidence[4] = 0.99;
    assert_int_equal(sequential_gate(values, ALL, &rule, &verdict), 0);
    assert_int_equal(verdict.decision, SEQUENTIAL_INCONCLUSIVE);
    assert_true(verdict.told_low == verdict.low && verdict.told_high == verdict.high);
}

static uint64_t step(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *random >> 33;
}

/* Negated values: slower and faster change places. And the promises that hold for every verdict. */
static void symmetry_and_promises(void **state)
{
    (void)state;
    const struct sequential_rule rule = sequential_rule_for(0.02);
    uint64_t random = 9;
    int told[SEQUENTIAL_INCONCLUSIVE + 1] = {0};
    for (int trial = 0; trial < 2000; trial++) {
        double values[ALL], negated[ALL], shift = ((double)(step(&random) % 1001) - 500) * 6e-5;
        double scale = (double)(1 + trial % 8) * 1e-5;
        for (int i = 0; i < ALL; i++) {
            values[i] = shift + scale * ((double)(step(&random) % 2001) - 1000);
            negated[i] = -values[i];
        }
        struct sequential_verdict duet, mirror, gate;
        assert_int_equal(sequential_duet(values, ALL, &rule, &duet), 0);
        assert_int_equal(sequential_duet(negated, ALL, &rule, &mirror), 0);
        assert_int_equal(sequential_gate(values, ALL, &rule, &gate), 0);
        told[duet.decision]++;
        assert_int_equal(mirror.decision, duet.decision == SEQUENTIAL_SLOWER   ? SEQUENTIAL_FASTER
                                          : duet.decision == SEQUENTIAL_FASTER ? SEQUENTIAL_SLOWER
                                                                               : duet.decision);
        assert_int_equal(mirror.processes, duet.processes);
        assert_true(mirror.estimate == -duet.estimate && mirror.low == -duet.high);
        assert_true(mirror.p_slower == duet.p_faster && mirror.smallest_detectable == duet.smallest_detectable);
        /* it asks for less, but for a pass more than for a change */
        assert_true(gate.processes <= duet.processes || duet.decision == SEQUENTIAL_FASTER);
        assert_true(gate.decision != SEQUENTIAL_SLOWER || gate.high >= log1p(0.02));
        const double level = duet.processes < ALL ? 0.005 : 0.013;
        assert_true(duet.decision != SEQUENTIAL_SLOWER || (duet.high >= log1p(0.02) && duet.p_slower <= level));
        assert_true(duet.decision != SEQUENTIAL_FASTER || (duet.low <= -log1p(0.02) && duet.p_faster <= level));
        assert_true(duet.decision != SEQUENTIAL_SLOWER || duet.told_low > log1p(0.005));
        assert_true(gate.decision != SEQUENTIAL_SAME || gate.told_high < log1p(0.02));
        /* half a width of at least half the way from m to T, or less that is further from T than from m; at the last
         * look a change takes a narrower interval than the one that is told */
        assert_true(duet.smallest_detectable > 0.005);
        assert_true(duet.processes == ALL ||
                    duet.smallest_detectable >= expm1((log1p(0.02) + log1p(0.005)) / 2) - 1e-12);
    }
    assert_int_equal(told[SEQUENTIAL_GO_ON], 0);
    for (int i = SEQUENTIAL_SAME; i <= SEQUENTIAL_INCONCLUSIVE; i++)
        assert_true(told[i] > 20);
}

static void refusals(void **state)
{
    (void)state;
    double values[ALL];
    struct sequential_verdict verdict = {.processes = 77};
    const struct sequential_rule good = sequential_rule_for(0.02);
    const double taus[] = {0, -0.02, NAN, INFINITY};
    struct sequential_rule rule;
    series(0, 1, values);
    for (int i = 0; i < 4; i++) {
        rule = sequential_rule_for(taus[i]);
        assert_int_equal(sequential_duet(values, ALL, &rule, &verdict), -EINVAL);
    }
    rule = good, rule.confidence = 1;
    assert_int_equal(sequential_duet(values, ALL, &rule, &verdict), -EINVAL);
    rule = good, rule.look_count = 0;
    assert_int_equal(sequential_duet(values, ALL, &rule, &verdict), -EINVAL);
    rule = good, rule.look_count = SEQUENTIAL_LOOKS + 1;
    assert_int_equal(sequential_duet(values, ALL, &rule, &verdict), -EINVAL);
    rule = good, rule.looks[2] = 12;
    assert_int_equal(sequential_duet(values, ALL, &rule, &verdict), -EINVAL);
    rule = good, rule.looks[0] = 0;
    assert_int_equal(sequential_duet(values, ALL, &rule, &verdict), -EINVAL);
    values[3] = NAN;
    assert_int_equal(sequential_gate(values, ALL, &good, &verdict), -EINVAL);
    values[3] = -INFINITY;
    assert_int_equal(sequential_gate(values, ALL, &good, &verdict), -EINVAL);
    assert_int_equal(verdict.processes, 77);
}

static void names(void **state)
{
    (void)state;
    assert_string_equal(sequential_decision_name(SEQUENTIAL_GO_ON), "go on");
    assert_string_equal(sequential_decision_name(SEQUENTIAL_SLOWER), "slower");
    assert_string_equal(sequential_decision_name(SEQUENTIAL_INCONCLUSIVE), "inconclusive");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_series),
        cmocka_unit_test(goes_on_until_told),
        cmocka_unit_test(order_of_the_tests),
        cmocka_unit_test(same_is_spent_over_the_looks),
        cmocka_unit_test(levels_add_up),
        cmocka_unit_test(the_last_look_spends_most),
        cmocka_unit_test(symmetry_and_promises),
        cmocka_unit_test(refusals),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests_name("sequential", tests, NULL, NULL);
}
