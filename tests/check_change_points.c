/* SPDX-License-Identifier: Apache-2.0
 *
 * Change points of made-up series. The size and p-value of a known step come from NumPy and scipy.stats.t.sf, with arcs
 * counted one by one.
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

#include "harness/change_points.h"
#include "harness/fill.h"

enum { MOST = 120 };

/* Normal noise of standard deviation `spread`, other numbers for each seed. */
static void noise(double *values, double *errors, size_t n, double spread, double error, uint64_t seed)
{
    for (size_t i = 0; i < n; i++) {
        values[i] = spread * fill_normal(fill_bits(seed, 0, FILL_Q, i));
        errors[i] = error;
    }
}

static void add(double *values, size_t from, size_t to, double size)
{
    for (size_t i = from; i < to; i++)
        values[i] += size;
}

static bool close_to(double value, double expected)
{
    return fabs(value - expected) <= 1e-9 * fabs(expected);
}

static void known_step(void **state)
{
    (void)state;
    static const int pattern[] = {3, -5, 1, 4, -2, -4, 5, 0, -1, 2, -3, 6},
                     error[] = {4, 3, 5, 4, 4, 6, 3, 4, 5, 4, 4, 3};
    double values[12], errors[12];
    struct change_point found[3];
    for (int sign = -1; sign <= 1; sign += 2)
        for (int scale = 1; scale <= 4; scale += 3) { /* phi takes up what is missing from the errors */
            for (int i = 0; i < 12; i++) {
                values[i] = sign * (pattern[i] * 1e-3 + (i >= 7 ? 0.03 : 0));
                errors[i] = error[i] * 1e-3 / scale;
            }
            assert_int_equal(change_points_find(values, errors, 12, CHANGE_POINTS_LEVEL, found), 1);
            assert_int_equal(found[0].first, 7);
            assert_true(close_to(found[0].size, sign * 0.031160593301426273));
            assert_true(close_to(found[0].p, 8.95440942920689e-06));
        }
}

static void no_change(void **state)
{
    (void)state;
    double values[MOST], errors[MOST];
    struct change_point found[MOST / 3];
    for (size_t n = 0; n <= MOST; n += n < 10 ? 1 : 11)
        for (int zero = 0; zero < 2; zero++) {
            noise(values, errors, n, 0, zero ? 0 : 0.002, 1);
            add(values, 0, n, 0.1); /* all equal */
            assert_int_equal(change_points_find(values, errors, n, CHANGE_POINTS_LEVEL, found), 0);
        }
    noise(values, errors, 30, 0, 0.002, 1);
    add(values, 12, 30, 1e-4); /* however clean, less than the errors allow */
    assert_int_equal(change_points_find(values, errors, 30, CHANGE_POINTS_LEVEL, found), 0);
    const double apart[] = {0, 0, 5, 5, 5}, exact[5] = {0};
    for (size_t n = 0; n <= 5; n++) /* too few for two levels */
        assert_int_equal(change_points_find(apart, exact, n, CHANGE_POINTS_LEVEL, found), 0);
    noise(values, errors, 30, 0.002, 0.002, 4);
    add(values, 17, 18, 0.1); /* one outlier is no level */
    assert_int_equal(change_points_find(values, errors, 30, CHANGE_POINTS_LEVEL, found), 0);
}

/* 3 and 3 points are enough for a large step, in both directions. */
static void shortest_series(void **state)
{
    (void)state;
    const double values[] = {0.001, -0.001, 0, 0.05, 0.051, 0.049},
                 errors[] = {0.002, 0.002, 0.002, 0.002, 0.002, 0.002};
    double down[6];
    struct change_point found[1];
    assert_int_equal(change_points_most(5), 0);
    assert_int_equal(change_points_most(6), 1);
    assert_int_equal(change_points_most(9), 2);
    assert_int_equal(change_points_find(values, errors, 6, CHANGE_POINTS_LEVEL, found), 1);
    assert_true(found[0].first == 3 && fabs(found[0].size - 0.05) < 1e-12 && found[0].p <= CHANGE_POINTS_LEVEL);
    for (int i = 0; i < 6; i++)
        down[i] = -values[i];
    assert_int_equal(change_points_find(down, errors, 6, CHANGE_POINTS_LEVEL, found), 1);
    assert_true(found[0].first == 3 && fabs(found[0].size + 0.05) < 1e-12);
}

static void zero_errors(void **state)
{
    (void)state;
    double values[MOST], errors[MOST];
    struct change_point found[MOST / 3];
    noise(values, errors, 20, 0, 0.002, 1);
    add(values, 10, 20, 0.02);
    values[3] = 0.01;
    errors[3] = 0; /* counts as 0.0005: weight 16 beside nine of 1, mean 0.01 * 16 / 25 */
    assert_int_equal(change_points_find(values, errors, 20, CHANGE_POINTS_LEVEL, found), 1);
    assert_int_equal(found[0].first, 10);
    assert_true(close_to(found[0].size, 0.0136));
    noise(values, errors, 20, 0.002, 0, 8); /* no errors known: phi measures the noise */
    assert_int_equal(change_points_find(values, errors, 20, CHANGE_POINTS_LEVEL, found), 0);
    add(values, 10, 20, 0.02);
    assert_int_equal(change_points_find(values, errors, 20, CHANGE_POINTS_LEVEL, found), 1);
}

/* Found at the right place or beside it, with the right sign; the mirrored and the moved series give the same. */
static void several_changes(void **state)
{
    (void)state;
    static const struct {
        size_t n, at[4];
        double size[4];
        long count;
    } known[] = {
        {60, {30, 33}, {0.02, -0.02}, 2}, /* mended soon */
        {60, {20, 40}, {0.02, -0.02}, 2},
        {60, {20, 40}, {0.02, 0.02}, 2},
        {100, {20, 45, 60, 90}, {0.02, -0.01, -0.02, 0.03}, 4},
        {40, {37}, {-0.02}, 1}, /* the last three */
        {40, {3}, {0.02}, 1},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        double values[MOST], errors[MOST], mirrored[MOST];
        struct change_point found[MOST / 3], mirror[MOST / 3];
        noise(values, errors, known[i].n, 0.002, 0.002, 100 + i);
        for (long j = 0; j < known[i].count; j++)
            add(values, known[i].at[j], known[i].n, known[i].size[j]);
        for (size_t j = 0; j < known[i].n; j++)
            mirrored[j] = 7 - values[j];
        assert_int_equal(change_points_find(values, errors, known[i].n, CHANGE_POINTS_LEVEL, found), known[i].count);
        assert_int_equal(change_points_find(mirrored, errors, known[i].n, CHANGE_POINTS_LEVEL, mirror), known[i].count);
        for (long j = 0; j < known[i].count; j++) {
            assert_int_equal(found[j].first, known[i].at[j]);
            assert_true(fabs(found[j].size - known[i].size[j]) < 0.004);
            assert_true(found[j].p <= CHANGE_POINTS_LEVEL);
            assert_int_equal(mirror[j].first, found[j].first);
            assert_true(fabs(mirror[j].size + found[j].size) < 1e-9);
        }
    }
}

/* Three equal steps, of which the search cuts the middle one or beside it first. In these series its cuts alone come
 * out at 29 or 32 with one of the outer ones; moved between their neighbours they part to the outer ones. */
static void cuts_move_to_better_places(void **state)
{
    (void)state;
    static const uint64_t seeds[] = {15, 20, 22};
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++) {
        double values[60], errors[60];
        struct change_point found[19];
        noise(values, errors, 60, 0.002, 0.002, seeds[i]);
        add(values, 20, 60, 0.004);
        add(values, 30, 60, 0.004);
        add(values, 40, 60, 0.004);
        assert_int_equal(change_points_find(values, errors, 60, CHANGE_POINTS_LEVEL, found), 2);
        assert_true(found[0].first == 20 && found[1].first == 40);
    }
}

/* Two runs at twice the time are no level yet, wherever they stand, and no other point makes up the number: neither one
 * before, which would be blamed for them, nor one behind. What changed besides is told as if they were not there. */
static void two_points_are_no_level(void **state)
{
    (void)state;
    static const size_t at[] = {0, 7, 16}; /* first, between, last */
    const double log_2 = 0.6931471805599453;
    for (int sign = -1; sign <= 1; sign += 2)
        for (uint64_t seed = 1; seed <= 50; seed++)
            for (size_t place = 0; place < sizeof at / sizeof at[0]; place++)
                for (int step = 0; step < 2; step++) {
                    double values[19], errors[19];
                    struct change_point found[6];
                    noise(values, errors, 19, 0.01, 0.01, seed);
                    add(values, 11, 19, step * 0.1);
                    add(values, at[place], at[place] + 2, sign * log_2);
                    assert_int_equal(change_points_find(values, errors, 18, CHANGE_POINTS_LEVEL, found), step);
                    assert_true(!step || (found[0].first == 11 && fabs(found[0].size - 0.1) < 0.03));
                    if (at[place] < 16)
                        continue;
                    add(values, 18, 19, sign * log_2); /* the third: told, at the first of them */
                    assert_int_equal(change_points_find(values, errors, 19, CHANGE_POINTS_LEVEL, found), step + 1);
                    assert_int_equal(found[step].first, 16);
                    assert_true(fabs(found[step].size - sign * log_2) < 0.05);
                }
}

/* Points of little weight must not make a change; the same points of full weight do. */
static void weights_count(void **state)
{
    (void)state;
    double values[MOST], errors[MOST];
    struct change_point found[MOST / 3];
    noise(values, errors, 30, 0.002, 0.002, 12);
    add(values, 14, 18, 0.02);
    assert_int_equal(change_points_find(values, errors, 30, CHANGE_POINTS_LEVEL, found), 2);
    for (int i = 14; i < 18; i++)
        errors[i] = 0.04;
    assert_int_equal(change_points_find(values, errors, 30, CHANGE_POINTS_LEVEL, found), 0);
}

/* With right errors at most 1 series in 1,000, with errors half of what they should be hardly more: of 2,000 series 2
 * are expected at most, and 9 or more have a chance of 1 in 4,000. */
static void false_alarms(void **state)
{
    (void)state;
    int alarms = 0, with_small_errors = 0;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        double values[30], errors[30];
        struct change_point found[9];
        noise(values, errors, 30, 0.002, 0.002, seed);
        alarms += change_points_find(values, errors, 30, CHANGE_POINTS_LEVEL, found) > 0;
        noise(values, errors, 30, 0.002, 0.001, seed);
        with_small_errors += change_points_find(values, errors, 30, CHANGE_POINTS_LEVEL, found) > 0;
    }
    assert_in_range(alarms, 0, 8);
    assert_in_range(with_small_errors, 0, 8);
}

/* Decades of daily runs: a step of half the noise stands out, at its place within a hundred times (noise / step)^2. */
static void huge_n(void **state)
{
    (void)state;
    enum { HUGE_N = 20000, STEP_AT = 12345 };
    static double values[HUGE_N], errors[HUGE_N];
    static struct change_point found[HUGE_N / 3];
    noise(values, errors, HUGE_N, 0.002, 0.002, 6);
    add(values, 0, HUGE_N, 13.8); /* log of 1 ms in ns, beside which the step is small */
    add(values, STEP_AT, HUGE_N, 0.001);
    assert_int_equal(change_points_find(values, errors, HUGE_N, CHANGE_POINTS_LEVEL, found), 1);
    assert_in_range(found[0].first, STEP_AT - 400, STEP_AT + 400);
    assert_true(fabs(found[0].size - 0.001) < 0.00015); /* its standard error is 0.000029 */
    assert_true(found[0].p < 1e-100);
}

/* The larger the step, the smaller p. */
static void p_falls_with_the_step(void **state)
{
    (void)state;
    double last = 1;
    for (int step = 10; step <= 30; step += 2) {
        double values[20], errors[20];
        struct change_point found[5];
        noise(values, errors, 20, 0.002, 0.002, 3);
        add(values, 10, 20, step * 1e-3);
        assert_int_equal(change_points_find(values, errors, 20, CHANGE_POINTS_LEVEL, found), 1);
        assert_true(found[0].p < last);
        last = found[0].p;
    }
}

static void refusals(void **state)
{
    (void)state;
    double values[8] = {0}, errors[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    const double bad[] = {NAN, INFINITY, -INFINITY}, levels[] = {0, 1, -1, NAN};
    struct change_point found[1];
    for (int i = 0; i < 3; i++) {
        values[2] = bad[i];
        assert_int_equal(change_points_find(values, errors, 8, CHANGE_POINTS_LEVEL, found), -EINVAL);
        values[2] = 0;
        errors[2] = bad[i];
        assert_int_equal(change_points_find(values, errors, 8, CHANGE_POINTS_LEVEL, found), -EINVAL);
        errors[2] = 1;
    }
    errors[7] = -0.001;
    assert_int_equal(change_points_find(values, errors, 8, CHANGE_POINTS_LEVEL, found), -EINVAL);
    errors[7] = 1;
    for (int i = 0; i < 4; i++)
        assert_int_equal(change_points_find(values, errors, 8, levels[i], found), -EINVAL);
    assert_int_equal(change_points_find(values, errors, 8, CHANGE_POINTS_LEVEL, found), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_step),
        cmocka_unit_test(no_change),
        cmocka_unit_test(shortest_series),
        cmocka_unit_test(zero_errors),
        cmocka_unit_test(weights_count),
        cmocka_unit_test(several_changes),
        cmocka_unit_test(cuts_move_to_better_places),
        cmocka_unit_test(two_points_are_no_level),
        cmocka_unit_test(false_alarms),
        cmocka_unit_test(huge_n),
        cmocka_unit_test(p_falls_with_the_step),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests_name("change_points", tests, NULL, NULL);
}
