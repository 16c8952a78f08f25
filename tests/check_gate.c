/* SPDX-License-Identifier: Apache-2.0
 *
 * From verdicts of points to the exit code of a gate, on records made up for it: nothing is measured. Adjusted p-values
 * are those of scipy.stats.false_discovery_control (n p / rank where nothing smaller follows).
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "harness/gate.h"
#include "harness/gate_report.h"
#include "harness/json_util.h"

/* A record as duet_decide makes it: what gate reads of one. */
static json_t *record(const char *verdict, double ratio)
{
    return json_pack("{s:s,s:n,s:s,s:f,s:f,s:f,s:f,s:f}", "status", "ok", "reason", "verdict", verdict, "tau", 0.02,
                     "ratio", ratio, "ratio_low", ratio - 0.01, "ratio_high", ratio + 0.01, "log_ratio", log(ratio));
}

static json_t *broken(const char *status)
{
    return json_pack("{s:s,s:s,s:n}", "status", status, "reason", "why not", "verdict");
}

static json_t *with_p(json_t *made, double slower, double faster)
{
    json_object_set_new(made, "p_slower", json_real(slower));
    json_object_set_new(made, "p_faster", json_real(faster));
    return made;
}

static const double first_share = 0.2; /* of a stage's level, spent at its first look */

/* Whose first look puts p down for good. */
static void see(enum gate_stage_name stage, json_t *seen, const char *verdict)
{
    json_object_set_new(seen, "processes", json_integer((json_int_t)gate_stage_first(stage)));
    assert_int_equal(gate_stage_next(stage, seen, verdict, 2), 0);
}

/* A suspect that has been seen at its first look, with p spent. */
static json_t *suspect(const char *verdict, double ratio, double p)
{
    const bool slower = strcmp(verdict, "slower") == 0;
    const double least = first_share * p;
    json_t *made = with_p(record(verdict, ratio), slower ? least : 1 - least, slower ? 1 - least : least);
    assert_string_equal(gate_suspect(made), verdict);
    see(GATE_SUSPECTED, made, verdict);
    return made;
}

static void confirm(json_t *suspected, double ratio, double p)
{
    const bool slower = strcmp(json_get_string(suspected, "suspected", ""), "slower") == 0;
    json_t *again = with_p(record("slower", ratio), slower ? first_share * p : 1, slower ? 1 : first_share * p);
    see(GATE_CONFIRMING, again, slower ? "slower" : "faster");
    gate_note_confirmation(suspected, again);
    json_decref(again);
}

static json_t *same_points(size_t count)
{
    json_t *records = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(records, record("same", 1));
    return records;
}

static json_t *control(const char *first, const char *again)
{
    return json_pack("{s:s,s:s,s:o,s:o}", "class", "compute", "kernel", "avx2", "first", record(first, 1), "again",
                     again ? record(again, 1) : json_null());
}

static struct gate_result conclude(json_t *records, const json_t *controls)
{
    struct gate_result result;
    gate_conclude(records, controls, &result);
    return result;
}

/* One suspect as the last of `others` + 1 points, flagged and concluded. Returns its outcome. */
static enum gate_outcome fate(json_t *suspected, size_t others, enum exit_code *code)
{
    json_t *records = same_points(others);
    json_array_append(records, suspected);
    assert_true(gate_flag(records) >= 0);
    *code = conclude(records, NULL).exit_code;
    json_decref(records);
    return gate_outcome(suspected);
}

static void a_confirmed_slowdown_is_a_regression(void **state)
{
    (void)state;
    enum exit_code code;
    json_t *slower = suspect("slower", 1.1, 1e-6);
    confirm(slower, 1.1, 0.0099);
    assert_int_equal(fate(slower, 9, &code), GATE_REGRESSION);
    assert_int_equal(code, EXIT_REGRESSION);
    assert_true(gate_is_flagged(slower, "slower") && !gate_is_flagged(slower, "faster"));
    assert_true(fabs(json_get_number(slower, "p_adjusted", 0) - 1e-5) < 1e-18); /* 10 points */
    assert_true(json_is_null(json_object_get(slower, "note")));
    json_decref(slower);
}

static void a_confirmed_speedup_is_an_improvement_and_no_failure(void **state)
{
    (void)state;
    enum exit_code code;
    json_t *faster = suspect("faster", 0.9, 1e-6);
    confirm(faster, 0.9, 0.001);
    assert_int_equal(fate(faster, 9, &code), GATE_IMPROVEMENT);
    assert_int_equal(code, EXIT_OK);
    json_decref(faster);
}

/* p = 0.004 is flagged among 12 points (12 p = 0.048), not among 13 (0.052). */
static void many_points_raise_the_bar(void **state)
{
    (void)state;
    enum exit_code code;
    json_t *flagged = suspect("slower", 1.1, 0.004), *missed = suspect("slower", 1.1, 0.004);
    confirm(flagged, 1.1, 0.001);
    assert_int_equal(fate(flagged, 11, &code), GATE_REGRESSION);
    assert_int_equal(fate(missed, 12, &code), GATE_INCONCLUSIVE);
    assert_int_equal(code, EXIT_INCONCLUSIVE);
    assert_non_null(strstr(json_get_string(missed, "note", ""), "not among so many points (adjusted p = 0.052)"));
    json_decref(flagged);
    json_decref(missed);
}

/* No other point has a say in what is no suspect. */
static void all_but_suspects_are_concluded_at_once(void **state)
{
    (void)state;
    json_t *records = same_points(1), *made, *tainting = json_pack("[o]", control("slower", "slower"));
    size_t i;
    json_array_append_new(records, broken("wrong"));
    json_array_append_new(records, record("inconclusive", 1));
    json_object_set_new(json_array_get(records, 2), "smallest_detectable", json_real(0.04));
    json_array_foreach(records, i, made) gate_conclude_so_far(made);
    assert_string_equal(json_get_string(json_array_get(records, 0), "outcome", ""), "same");
    assert_string_equal(json_get_string(json_array_get(records, 1), "outcome", ""), "wrong");
    assert_non_null(strstr(json_get_string(json_array_get(records, 2), "note", ""), "a slowdown of 4.0 % or more"));
    json_t *early = json_deep_copy(records);
    conclude(records, tainting);
    assert_true(json_equal(records, early));
    json_decref(early);
    json_decref(records);
    json_decref(tainting);
}

static void a_suspect_so_far_is_unconfirmed(void **state)
{
    (void)state;
    enum exit_code code;
    json_t *slower = with_p(record("slower", 1.1), 1e-9, 1);
    gate_suspect(slower);
    gate_conclude_so_far(slower);
    assert_int_equal(gate_outcome(slower), GATE_INCONCLUSIVE);
    assert_non_null(strstr(json_get_string(slower, "note", ""), "slower by its own interval"));
    see(GATE_SUSPECTED, slower, "slower");
    confirm(slower, 1.1, 0.001);
    assert_int_equal(fate(slower, 3, &code), GATE_REGRESSION);
    assert_true(json_is_null(json_object_get(slower, "note")));
    json_decref(slower);
}

static void several_suspects_help_each_other(void **state)
{
    (void)state;
    json_t *records = same_points(18);
    json_array_append_new(records, suspect("slower", 1.1, 0.004));
    json_array_append_new(records, suspect("slower", 1.1, 0.005)); /* 20 * 0.005 / 2 = 0.05: both just so */
    assert_int_equal(gate_flag(records), 2);
    json_array_append_new(records, broken("skipped")); /* no point that was judged: no part in it */
    assert_int_equal(gate_flag(records), 2);
    json_array_append_new(records, record("inconclusive", 1));
    assert_int_equal(gate_flag(records), 0);
    json_decref(records);
}

/* The verdict of the stop has no say: only p over the last look's processes has. */
static void a_suspect_that_did_not_run_on_is_not_flagged(void **state)
{
    (void)state;
    enum exit_code code;
    json_t *slower = with_p(record("slower", 1.1), 1e-9, 1), *faster = with_p(record("faster", 0.9), 1, 1e-9);
    gate_suspect(slower);
    gate_suspect(faster);
    assert_int_equal(fate(slower, 0, &code), GATE_INCONCLUSIVE);
    assert_int_equal(code, EXIT_INCONCLUSIVE);
    assert_non_null(strstr(json_get_string(slower, "note", ""), "no time was left"));
    assert_int_equal(fate(faster, 0, &code), GATE_SAME);
    assert_int_equal(code, EXIT_OK);
    json_decref(slower);
    json_decref(faster);
}

static void a_flagged_one_that_could_not_be_confirmed_is_open(void **state)
{
    (void)state;
    enum exit_code code;
    json_t *slower = suspect("slower", 1.1, 1e-6);
    assert_int_equal(fate(slower, 3, &code), GATE_INCONCLUSIVE);
    assert_int_equal(code, EXIT_INCONCLUSIVE);
    json_decref(slower);
}

/* Intervals are 1 % wide on either side: 0.9 % ends below tau, 1.5 % does not. */
static void a_slowdown_that_both_intervals_put_below_tau_passes(void **state)
{
    (void)state;
    enum exit_code code;
    json_t *small = suspect("slower", 1.009, 1e-6), *doubtful = suspect("slower", 1.009, 1e-6);
    json_t *again = suspect("slower", 1.015, 1e-6);
    confirm(small, 1.009, 0.001);
    assert_int_equal(fate(small, 3, &code), GATE_SAME);
    assert_int_equal(code, EXIT_OK);
    assert_string_equal(json_get_string(small, "note", ""), "slower by 0.9 %, less than what counts");
    confirm(doubtful, 1.015, 0.001);
    assert_int_equal(fate(doubtful, 3, &code), GATE_REGRESSION);
    confirm(again, 1.009, 0.001);
    assert_int_equal(fate(again, 3, &code), GATE_REGRESSION);
    json_decref(small);
    json_decref(doubtful);
    json_decref(again);
}

static void an_open_speedup_fails_nobody(void **state)
{
    (void)state;
    enum exit_code code;
    json_t *late = suspect("faster", 0.9, 1e-6), *again = broken("unreached");
    gate_note_confirmation(late, again);
    assert_int_equal(fate(late, 3, &code), GATE_SAME);
    assert_int_equal(code, EXIT_OK);
    assert_string_equal(json_get_string(late, "note", ""), "faster, but not confirmed: why not");
    json_t *tainted = suspect("faster", 0.9, 1e-6), *records = same_points(3), *controls = json_array();
    confirm(tainted, 0.9, 0.001);
    json_array_append(records, tainted);
    json_array_append_new(controls, control("slower", "slower"));
    assert_true(gate_flag(records) == 1);
    assert_int_equal(conclude(records, controls).exit_code, EXIT_OK);
    assert_int_equal(gate_outcome(tainted), GATE_SAME);
    json_decref(controls);
    json_decref(records);
    json_decref(tainted);
    json_decref(again);
    json_decref(late);
}

static void an_open_verdict_tells_what_it_could_have_told(void **state)
{
    (void)state;
    enum exit_code code;
    json_t *open = record("inconclusive", 1.01), *noisy = record("inconclusive", 1.01);
    json_object_set_new(open, "smallest_detectable", json_real(0.034));
    json_object_set_new(noisy, "smallest_detectable", json_real(0.034));
    json_object_set_new(noisy, "reason", json_string("noisy"));
    assert_int_equal(fate(open, 3, &code), GATE_INCONCLUSIVE);
    assert_string_equal(json_get_string(open, "note", ""), "only a slowdown of 3.4 % or more could have been told");
    assert_int_equal(fate(noisy, 3, &code), GATE_INCONCLUSIVE);
    assert_true(json_is_null(json_object_get(noisy, "note")));
    json_decref(open);
    json_decref(noisy);
}

/* Fresh processes that don't confirm: same where they exclude a slowdown of tau (their interval ends below 1.02). */
static void what_is_not_confirmed_is_no_regression(void **state)
{
    (void)state;
    enum exit_code code;
    json_t *gone = suspect("slower", 1.1, 1e-6), *open = suspect("slower", 1.1, 1e-6);
    confirm(gone, 1.005, 0.01);
    assert_int_equal(fate(gone, 3, &code), GATE_SAME);
    assert_int_equal(code, EXIT_OK);
    assert_non_null(strstr(json_get_string(gone, "note", ""), "12 fresh processes did not confirm it (p = 0.01)"));
    confirm(open, 1.015, 0.02);
    assert_int_equal(fate(open, 3, &code), GATE_INCONCLUSIVE);
    assert_int_equal(code, EXIT_INCONCLUSIVE);
    json_decref(gone);
    json_decref(open);
}

static void noise_takes_the_verdict(void **state)
{
    (void)state;
    enum exit_code code;
    json_t *noisy = suspect("slower", 1.1, 1e-6), *later = suspect("slower", 1.1, 1e-6);
    json_object_set_new(noisy, "verdict", json_string("inconclusive")); /* as duet_run_on left it */
    json_object_set_new(noisy, "reason", json_string("noisy: 5 % stolen"));
    assert_int_equal(fate(noisy, 0, &code), GATE_INCONCLUSIVE);
    assert_false(gate_is_flagged(noisy, "slower"));
    json_t *again = with_p(record("inconclusive", 1.1), 1e-6, 1);
    json_object_set_new(again, "reason", json_string("noisy: 5 % stolen"));
    gate_note_confirmation(later, again);
    assert_int_equal(fate(later, 0, &code), GATE_INCONCLUSIVE);
    assert_non_null(strstr(json_get_string(later, "note", ""), "5 % stolen"));
    json_decref(again);
    json_decref(noisy);
    json_decref(later);
}

static void a_crash_while_confirming_is_a_failure(void **state)
{
    (void)state;
    static const enum gate_outcome outcomes[] = {GATE_WRONG, GATE_FAILED, GATE_INCONCLUSIVE};
    static const char *const statuses[] = {"wrong", "failed", "unreached"};
    static const enum exit_code codes[] = {EXIT_WRONG, EXIT_WRONG, EXIT_INCONCLUSIVE};
    for (size_t i = 0; i < 3; i++) {
        enum exit_code code;
        json_t *slower = suspect("slower", 1.1, 1e-6), *again = broken(statuses[i]);
        gate_note_confirmation(slower, again);
        assert_int_equal(fate(slower, 0, &code), outcomes[i]);
        assert_int_equal(code, codes[i]);
        json_decref(again);
        json_decref(slower);
    }
}

/* Worst first: wrong results beat speed, a regression beats what is open. */
static void the_worst_decides_the_exit_code(void **state)
{
    (void)state;
    json_t *records = json_array();
    assert_int_equal(conclude(records, NULL).exit_code, EXIT_NOTHING_RAN);
    json_array_append_new(records, broken("skipped"));
    assert_int_equal(conclude(records, NULL).exit_code, EXIT_NOTHING_RAN);
    json_array_append_new(records, record("same", 1));
    assert_int_equal(conclude(records, NULL).exit_code, EXIT_OK);
    json_array_append_new(records, broken("unreached"));
    assert_int_equal(conclude(records, NULL).exit_code, EXIT_INCONCLUSIVE);
    json_array_append_new(records, record("inconclusive", 1));
    assert_int_equal(conclude(records, NULL).exit_code, EXIT_INCONCLUSIVE);
    json_t *slower = suspect("slower", 1.1, 1e-6);
    confirm(slower, 1.1, 1e-6);
    json_array_append_new(records, slower);
    assert_int_equal(gate_flag(records), 1);
    assert_int_equal(conclude(records, NULL).exit_code, EXIT_REGRESSION);
    json_array_append_new(records, broken("wrong"));
    assert_int_equal(conclude(records, NULL).exit_code, EXIT_WRONG);
    json_array_append_new(records, broken("failed"));
    const struct gate_result result = conclude(records, NULL);
    assert_int_equal(result.exit_code, EXIT_WRONG);
    for (int outcome = 0; outcome < GATE_OUTCOMES; outcome++)
        assert_int_equal(result.counts[outcome], outcome != GATE_IMPROVEMENT);
    json_t *ordered = gate_worst_first(records);
    for (size_t i = 1; i < json_array_size(ordered); i++)
        assert_true(gate_outcome(json_array_get(ordered, i - 1)) < gate_outcome(json_array_get(ordered, i)));
    json_decref(ordered);
    json_decref(records);
}

static void the_greatest_change_comes_first(void **state)
{
    (void)state;
    static const double ratios[] = {1.05, 1.3, 1.1};
    json_t *records = json_array();
    for (size_t i = 0; i < 3; i++)
        json_array_append_new(records, record("inconclusive", ratios[i]));
    conclude(records, NULL);
    json_t *ordered = gate_worst_first(records);
    assert_true(json_get_number(json_array_get(ordered, 0), "ratio", 0) == 1.3);
    assert_true(json_get_number(json_array_get(ordered, 2), "ratio", 0) == 1.05);
    json_decref(ordered);
    json_decref(records);
}

/* A control that alarms once proves nothing; twice, no change counts, but wrong results still do. */
static void controls(void **state)
{
    (void)state;
    static const struct {
        const char *first, *again;
        bool alarms;
    } cases[] = {{"same", NULL, false},
                 {"inconclusive", NULL, false},
                 {"slower", "same", false},
                 {"slower", NULL, false},
                 {"slower", "slower", true},
                 {"faster", "slower", true},
                 {"faster", "inconclusive", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *all = json_array(), *records = same_points(3), *slower = suspect("slower", 1.1, 1e-6);
        json_array_append_new(all, control("same", NULL));
        json_array_append_new(all, control(cases[i].first, cases[i].again));
        confirm(slower, 1.1, 1e-6);
        json_array_append_new(records, slower);
        gate_flag(records);
        struct gate_result result = conclude(records, all);
        assert_int_equal(result.tainted, cases[i].alarms);
        assert_int_equal(result.exit_code, cases[i].alarms ? EXIT_INCONCLUSIVE : EXIT_REGRESSION);
        assert_int_equal(result.counts[GATE_REGRESSION], !cases[i].alarms);
        json_array_append_new(records, broken("wrong"));
        assert_int_equal(conclude(records, all).exit_code, EXIT_WRONG);
        json_decref(records);
        json_decref(all);
    }
}

/* Of the regression's class and clock, but without a verdict: the regression stands, and its note tells. */
static void a_control_without_a_verdict_vouches_for_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *class, *judged_by, *first, *again;
        bool noted;
    } cases[] = {{"compute", "cpu", "same", NULL, false},          {"compute", "cpu", "inconclusive", NULL, true},
                 {"compute", "cpu", "slower", "same", false},      {"compute", "cpu", "slower", "inconclusive", true},
                 {"compute", "wall", "inconclusive", NULL, false}, {"memory", "cpu", "inconclusive", NULL, false},
                 {"compute", "cpu", "unreached", NULL, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *all = json_array(), *records = same_points(3), *slower = suspect("slower", 1.1, 1e-6);
        json_t *made = control(cases[i].first, cases[i].again);
        json_object_set_new(made, "class", json_string(cases[i].class));
        json_object_set_new(made, "judged_by", json_string(cases[i].judged_by));
        if (strcmp(cases[i].first, "unreached") == 0)
            json_object_set_new(made, "first", broken("unreached"));
        json_array_append_new(all, made);
        json_object_set_new(slower, "class", json_string("compute"));
        json_object_set_new(slower, "judged_by", json_string("cpu"));
        confirm(slower, 1.1, 1e-6);
        json_array_append(records, slower);
        gate_flag(records);
        assert_int_equal(conclude(records, all).exit_code, EXIT_REGRESSION);
        const char *note = json_get_string(slower, "note", NULL);
        assert_int_equal(note && strstr(note, "its control has no verdict"), cases[i].noted);
        json_decref(slower);
        json_decref(records);
        json_decref(all);
    }
}

static void what_new_lost_is_told_and_passes(void **state)
{
    (void)state;
    json_t *lost = broken("skipped"), *never = broken("skipped"), *records = same_points(1);
    json_object_set_new(lost, "lost", json_true());
    json_array_append(records, lost);
    json_array_append(records, never);
    const struct gate_result result = conclude(records, NULL);
    assert_int_equal(result.exit_code, EXIT_OK);
    assert_int_equal(result.counts[GATE_SKIPPED], 2);
    assert_string_equal(json_get_string(lost, "note", ""), "lost: BASE does it; why not");
    assert_true(gate_is_lost(lost) && gate_is_news(lost));
    assert_false(gate_is_lost(never) || gate_is_news(never));
    json_decref(records);
    json_decref(never);
    json_decref(lost);
}

static void a_base_that_fails_against_itself_is_a_failure(void **state)
{
    (void)state;
    json_t *all = json_array(), *records = same_points(2), *bad = control("same", NULL);
    json_object_set_new(bad, "first", broken("failed"));
    json_array_append_new(all, bad);
    assert_int_equal(conclude(records, all).exit_code, EXIT_WRONG);
    json_decref(records);
    json_decref(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_confirmed_slowdown_is_a_regression),
        cmocka_unit_test(a_confirmed_speedup_is_an_improvement_and_no_failure),
        cmocka_unit_test(many_points_raise_the_bar),
        cmocka_unit_test(all_but_suspects_are_concluded_at_once),
        cmocka_unit_test(a_suspect_so_far_is_unconfirmed),
        cmocka_unit_test(several_suspects_help_each_other),
        cmocka_unit_test(a_suspect_that_did_not_run_on_is_not_flagged),
        cmocka_unit_test(a_flagged_one_that_could_not_be_confirmed_is_open),
        cmocka_unit_test(a_slowdown_that_both_intervals_put_below_tau_passes),
        cmocka_unit_test(an_open_speedup_fails_nobody),
        cmocka_unit_test(an_open_verdict_tells_what_it_could_have_told),
        cmocka_unit_test(what_is_not_confirmed_is_no_regression),
        cmocka_unit_test(noise_takes_the_verdict),
        cmocka_unit_test(a_crash_while_confirming_is_a_failure),
        cmocka_unit_test(the_worst_decides_the_exit_code),
        cmocka_unit_test(the_greatest_change_comes_first),
        cmocka_unit_test(controls),
        cmocka_unit_test(a_control_without_a_verdict_vouches_for_nothing),
        cmocka_unit_test(what_new_lost_is_told_and_passes),
        cmocka_unit_test(a_base_that_fails_against_itself_is_a_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
