/* SPDX-License-Identifier: Apache-2.0
 *
 * What makes a duet's verdict hold or not, on records made up for it: each rule about noise on both sides of its
 * threshold, the looks that noise extends, the order of loading, and the sizes of batches. Nothing is measured.
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

#include "harness/duet_look.h"
#include "harness/json_util.h"
#include "harness/worker_duet.h"

static const double tau = 0.02;

static void append(json_t *record, const char *field, double value)
{
    json_array_append_new(json_object_get(record, field), json_number_or_null(value));
}

/* A record without processes. */
static json_t *start(const char *judged_by)
{
    return json_pack("{s:s,s:s,s:n,s:n,s:[],s:[],s:[],s:[],s:[],s:[],s:[]}", "judged_by", judged_by, "status",
                     "unreached", "reason", "verdict", "log_ratios_cpu", "log_ratios_wall", "wall_over_cpu",
                     "switches_per_s", "steal_share", "clock_drift", "migrations");
}

/* A process of a quiet machine but for one gauge (NULL: none). */
static void add_process(json_t *record, double cpu, double wall, const char *gauge, double value)
{
    static const struct {
        const char *name;
        double quiet;
    } gauges[] = {
        {"wall_over_cpu", 1}, {"switches_per_s", 3}, {"steal_share", 0}, {"clock_drift", 0.001}, {"migrations", 0}};
    append(record, "log_ratios_cpu", cpu);
    append(record, "log_ratios_wall", wall);
    for (size_t g = 0; g < sizeof gauges / sizeof *gauges; g++)
        append(record, gauges[g].name, gauge && strcmp(gauge, gauges[g].name) == 0 ? value : gauges[g].quiet);
}

static struct sequential_verdict verdict_of(enum sequential_decision decision, double low, double high)
{
    return (struct sequential_verdict){.decision = decision, .processes = 8, .told_low = low, .told_high = high};
}

/* What is said of 8 processes with the gauge at this value, by the rule of duet or of gate. */
static const char *reason(const char *judged_by, const char *gauge, double value,
                          const struct sequential_verdict *verdict, bool one_sided)
{
    const struct sequential_rule rule = sequential_rule_for(tau);
    json_t *record = start(judged_by);
    for (int p = 0; p < 8; p++)
        add_process(record, 0, 0, gauge, value);
    const char *said = duet_noise_reason(record, verdict, &rule, one_sided);
    json_decref(record);
    return said;
}

static void each_gauge_has_its_threshold_and_its_clock(void **state)
{
    (void)state;
    static const struct {
        const char *gauge;
        double most, beyond; /* that is still quiet, and that no longer is */
        bool by_cpu;         /* counts where CPU time decides, too */
        const char *text;
    } table[] = {
        {"wall_over_cpu", 1.3, 1.301, false, "noisy: wall time is 1.30 times the CPU time"},
        {"switches_per_s", 60, 61, false, "noisy: 61 involuntary switches a second"},
        {"migrations", 0, 1, true, "noisy: threads were met on other CPUs than theirs"},
        {"steal_share", 0.02, 0.021, true, "noisy: 2.1 % of the CPUs' time was stolen"},
        {"clock_drift", 0.01, 0.011, true, "noisy: the clock drifted by 1.1 % within a process"},
    };
    /* An interval that ends just below tau: every doubt shakes it. */
    const struct sequential_verdict same = verdict_of(SEQUENTIAL_SAME, -0.001, log1p(tau) - 1e-4);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        assert_null(reason("wall", table[i].gauge, table[i].most, &same, false));
        assert_null(reason("cpu", table[i].gauge, table[i].most, &same, false));
        assert_string_equal(reason("wall", table[i].gauge, table[i].beyond, &same, false), table[i].text);
        if (table[i].by_cpu)
            assert_string_equal(reason("cpu", table[i].gauge, table[i].beyond, &same, false), table[i].text);
        else
            assert_null(reason("cpu", table[i].gauge, 1000 * table[i].beyond, &same, false));
    }
}

static void what_is_not_known_is_no_noise(void **state)
{
    (void)state;
    static const char *const gauges[] = {"wall_over_cpu", "switches_per_s", "migrations", "steal_share", "clock_drift"};
    const struct sequential_verdict same = verdict_of(SEQUENTIAL_SAME, -0.001, log1p(tau) - 1e-4);
    for (size_t g = 0; g < sizeof gauges / sizeof *gauges; g++)
        assert_null(reason("wall", gauges[g], NAN, &same, false));
}

/* Stolen time and a drifting clock meet both sides: they count where the interval is that close to its limit. */
static void steal_and_drift_count_where_they_could_turn_the_verdict(void **state)
{
    (void)state;
    const double high = log1p(tau), margin = log1p(tau / 4), slack = 0.03, e = 1e-4;
    const struct {
        struct sequential_verdict verdict;
        bool one_sided, noisy;
    } table[] = {
        {verdict_of(SEQUENTIAL_SLOWER, margin + slack + e, 1), false, false},
        {verdict_of(SEQUENTIAL_SLOWER, margin + slack - e, 1), false, true},
        {verdict_of(SEQUENTIAL_SLOWER, margin + slack - e, 1), true, true},
        {verdict_of(SEQUENTIAL_FASTER, -1, -margin - slack - e), false, false},
        {verdict_of(SEQUENTIAL_FASTER, -1, -margin - slack + e), false, true},
        {verdict_of(SEQUENTIAL_SAME, -high + slack + e, high - slack - e), false, false},
        {verdict_of(SEQUENTIAL_SAME, -high + slack + e, high - slack + e), false, true},
        {verdict_of(SEQUENTIAL_SAME, -high + slack - e, high - slack - e), false, true},
        {verdict_of(SEQUENTIAL_SAME, -high + slack - e, high - slack - e), true, false},
        {verdict_of(SEQUENTIAL_SAME, -1, high - slack + e), true, true},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        assert_int_equal(reason("cpu", "steal_share", slack, &table[i].verdict, table[i].one_sided) != NULL,
                         table[i].noisy);
        assert_int_equal(reason("wall", "clock_drift", slack, &table[i].verdict, table[i].one_sided) != NULL,
                         table[i].noisy);
    }
}

/* 24 processes that each drifted by 2 %: their mean by sqrt(2 ln 200 / 24) of it, 1.329 %, in 1 of 100 cases. */
static void chance_evens_out_over_many_processes(void **state)
{
    (void)state;
    const double high = log1p(tau), slack = 0.02 * sqrt(2 * log(200) / 24);
    struct sequential_verdict same = verdict_of(SEQUENTIAL_SAME, 0, high - slack - 1e-6);
    same.processes = 24;
    assert_true(fabs(slack - 0.01329) < 1e-5);
    assert_null(reason("cpu", "clock_drift", 0.02, &same, true));
    assert_null(reason(
        "cpu", "steal_share", 0.0201,
        &(struct sequential_verdict){.decision = SEQUENTIAL_SAME, .processes = 24, .told_high = high - slack - 1e-4},
        true));
    same.told_high = high - slack + 1e-6;
    assert_non_null(reason("cpu", "clock_drift", 0.02, &same, true));
    same.processes = 4; /* fewer: never more than the whole */
    same.told_high = high - 0.02 - 1e-6;
    assert_null(reason("cpu", "clock_drift", 0.02, &same, true));
}

static void an_open_verdict_needs_no_reason(void **state)
{
    (void)state;
    const struct sequential_verdict go_on = verdict_of(SEQUENTIAL_GO_ON, -1, 1);
    const struct sequential_verdict open = verdict_of(SEQUENTIAL_INCONCLUSIVE, -1, 1);
    assert_null(reason("wall", "wall_over_cpu", 9, &go_on, false));
    assert_null(reason("wall", "wall_over_cpu", 9, &open, true));
}

static void the_median_process_decides(void **state)
{
    (void)state;
    const struct sequential_rule rule = sequential_rule_for(tau);
    const struct sequential_verdict same = verdict_of(SEQUENTIAL_SAME, -0.001, 0.001);
    json_t *record = start("wall");
    for (int p = 0; p < 9; p++)
        add_process(record, 0, 0, p < 4 ? "wall_over_cpu" : NULL, 5);
    assert_null(duet_noise_reason(record, &same, &rule, false));
    add_process(record, 0, 0, "wall_over_cpu", 5);
    add_process(record, 0, 0, "wall_over_cpu", 5);
    assert_non_null(duet_noise_reason(record, &same, &rule, false));
    json_decref(record);
}

/* Processes are added until the duet is over, noisy ones first. Returns how many there were. */
static size_t play(const struct duet_run *run, json_t *record, double cpu, double wall, size_t noisy_ones)
{
    bool extended = false;
    for (size_t p = 1; p <= 100; p++) {
        const double wobble = (p % 2 ? 1e-4 : -1e-4) * (double)p; /* no two alike */
        add_process(record, cpu + wobble, wall + wobble, p <= noisy_ones ? "wall_over_cpu" : NULL, 2);
        if (duet_look(run, record, &extended))
            return p;
        assert_string_equal(json_get_string(record, "status", ""), "unreached");
    }
    return 0;
}

static void says(const json_t *record, const char *verdict, const char *reason_begins, size_t processes)
{
    const char *why = json_get_string(record, "reason", NULL);
    assert_string_equal(json_get_string(record, "status", ""), "ok");
    assert_string_equal(json_get_string(record, "verdict", ""), verdict);
    assert_int_equal(json_get_int(record, "processes", 0), processes);
    if (reason_begins)
        assert_non_null(why && strstr(why, reason_begins) == why ? why : NULL);
    else
        assert_null(why);
}

static void noise_extends_and_is_given_up_only_at_the_end(void **state)
{
    (void)state;
    static const struct {
        const char *judged_by;
        double cpu, wall;
        size_t noisy_ones, processes;
        const char *verdict, *reason;
    } table[] = {
        {"wall", 0, 0, 0, 8, "same", NULL},
        {"wall", 0.5, 0.1, 0, 8, "slower", NULL},
        {"wall", 0.5, -0.1, 0, 8, "faster", NULL},
        {"cpu", 0.1, 0.5, 24, 8, "slower", NULL},
        {"cpu", 0, 0.5, 24, 8, "same", NULL},
        {"wall", 0, 0.1, 5, 12, "slower", NULL},
        {"wall", 0, 0, 7, 16, "same", NULL},
        {"wall", 0, 0.1, 11, 24, "slower", NULL},
        {"wall", 0, 0.1, 24, 24, "inconclusive", "noisy: wall time is 2.00 times the CPU time"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const struct duet_run run = {.rule = sequential_rule_for(tau)};
        json_t *record = start(table[i].judged_by);
        assert_int_equal(play(&run, record, table[i].cpu, table[i].wall, table[i].noisy_ones), table[i].processes);
        says(record, table[i].verdict, table[i].reason, table[i].processes);
        json_decref(record);
    }
}

/* Of 8 noisy processes that look slower and 4 quiet ones that do not, a look that counted the first 8 alone would say
 * slower. */
static void what_was_extended_is_judged_by_all_of_it(void **state)
{
    (void)state;
    const struct duet_run run = {.rule = sequential_rule_for(tau)};
    json_t *record = start("wall");
    bool extended = false;
    for (int p = 0; p < 8; p++) {
        add_process(record, 0, 0.1 + 1e-4 * p, "wall_over_cpu", p < 5 ? 2 : 1);
        assert_false(duet_look(&run, record, &extended));
    }
    assert_true(extended);
    for (int p = 0; p < 4; p++) {
        add_process(record, 0, -0.2 - 1e-4 * p, NULL, 0);
        assert_false(duet_look(&run, record, &extended));
    }
    json_decref(record);
}

static void so_many_processes_as_are_asked_for(void **state)
{
    (void)state;
    const struct duet_run run = {.rule = sequential_rule_for(tau), .exactly = 10, .one_sided = true};
    json_t *record = start("wall");
    assert_int_equal(play(&run, record, 0, 0.1, 0), 10);
    says(record, "slower", NULL, 10);
    json_decref(record);
    record = start("wall");
    assert_int_equal(play(&run, record, 0, 0.1, 10), 10);
    says(record, "inconclusive", "noisy: ", 10);
    /* later, on a machine that is quiet again */
    for (int p = 0; p < 14; p++)
        add_process(record, 0, 0.1 + 1e-4 * p, NULL, 0);
    assert_int_equal(duet_look_at_all(&run, record), 0);
    says(record, "slower", NULL, 24);
    json_decref(record);
}

static void nothing_to_see_is_a_failure(void **state)
{
    (void)state;
    const struct duet_run run = {.rule = sequential_rule_for(tau)};
    json_t *record = start("wall");
    assert_int_equal(duet_look_at_all(&run, record), -EIO);
    assert_string_equal(json_get_string(record, "status", ""), "failed");
    json_decref(record);
}

static void neither_side_comes_first_more_often(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        int ways[2][2] = {{0}}, loads = 0;
        for (uint64_t process = 0; process < 24; process++) {
            enum duet_side loaded, opened;
            duet_order(seed, process, &loaded, &opened);
            assert_true(loaded < DUET_SIDES && opened < DUET_SIDES);
            ways[loaded][opened]++;
            loads += loaded == DUET_B;
            if (process % 2)
                assert_int_equal(loads, (process + 1) / 2);
            if (process % 4 == 3)
                for (int w = 0; w < 4; w++)
                    assert_int_equal(ways[w / 2][w % 2], (process + 1) / 4);
        }
    }
}

/* Which of two comes first is chance: by seed, and from pair to pair. */
static void the_order_is_random_all_the_same(void **state)
{
    (void)state;
    int by_seed = 0, by_pair = 0, both = 0;
    enum duet_side loaded, opened;
    for (uint64_t n = 0; n < 64; n++) {
        duet_order(n, 0, &loaded, &opened);
        by_seed += loaded == DUET_B;
        both += loaded == opened;
        duet_order(1, 2 * n, &loaded, &opened);
        by_pair += loaded == DUET_B;
    }
    assert_in_range(by_seed, 12, 52);
    assert_in_range(by_pair, 12, 52);
    assert_in_range(both, 12, 52);
}

static void batches_are_one_size_unless_the_sides_are_far_apart(void **state)
{
    (void)state;
    static const struct {
        double call_ns[SIDES];
        int64_t calls[SIDES];
    } table[] = {
        {{1e3, 1e3}, {500, 500}}, {{330e3, 340e3}, {1, 1}}, {{330e3, 335e3}, {2, 2}}, {{199e3, 201e3}, {3, 3}},
        {{100e3, 200e3}, {3, 3}}, {{200e3, 100e3}, {3, 3}}, {{100e3, 201e3}, {5, 2}}, {{201e3, 100e3}, {2, 5}},
        {{700e3, 900e3}, {1, 1}}, {{3e9, 4e9}, {1, 1}},     {{50e3, 5e6}, {10, 1}},   {{0, 0}, {500000, 500000}},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        int64_t calls[SIDES];
        worker_duet_batches(table[i].call_ns, calls);
        assert_int_equal(calls[A], table[i].calls[A]);
        assert_int_equal(calls[B], table[i].calls[B]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_gauge_has_its_threshold_and_its_clock),
        cmocka_unit_test(what_is_not_known_is_no_noise),
        cmocka_unit_test(steal_and_drift_count_where_they_could_turn_the_verdict),
        cmocka_unit_test(chance_evens_out_over_many_processes),
        cmocka_unit_test(an_open_verdict_needs_no_reason),
        cmocka_unit_test(the_median_process_decides),
        cmocka_unit_test(noise_extends_and_is_given_up_only_at_the_end),
        cmocka_unit_test(what_was_extended_is_judged_by_all_of_it),
        cmocka_unit_test(so_many_processes_as_are_asked_for),
        cmocka_unit_test(nothing_to_see_is_a_failure),
        cmocka_unit_test(neither_side_comes_first_more_often),
        cmocka_unit_test(the_order_is_random_all_the_same),
        cmocka_unit_test(batches_are_one_size_unless_the_sides_are_far_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
