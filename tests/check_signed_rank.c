/* SPDX-License-Identifier: Apache-2.0
 *
 * Hodges-Lehmann estimate, signed-rank interval and tests. p-values come from scipy.stats.wilcoxon 1.17 (method
 * "exact", or "approx" with correction above n = 50); intervals from NumPy's sorted Walsh averages with critical ranks
 * counted in Python's whole numbers; the critical ranks also from the printed tables.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "harness/signed_rank.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const double twelve[] = {2.091, -0.066, 0.433, 0.808, -0.389, 0.402, 0.399, -1.355, 1.418, 1.0, -0.225, 0.228};

static bool close_to(double value, double expected, double relative)
{
    return fabs(value - expected) <= relative * fabs(expected);
}

static double uniform(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return ((double)(*random >> 11) + 0.5) / 9007199254740992.0;
}

/* Wilcoxon's table, two-sided 1 %: the largest T with P(V <= T) <= 0.005, from n = 8. */
static void critical_ranks_of_the_tables(void **state)
{
    (void)state;
    static const int table[] = {0, 1, 3, 5, 7, 9, 12, 15, 19, 23, 27, 32, 37, 42, 48, 54, 61, 68};
    for (size_t i = 0; i < COUNT(table); i++)
        assert_int_equal(signed_rank_critical(8 + i, 0.005), table[i] + 1);
    for (size_t n = 0; n < 8; n++)
        assert_int_equal(signed_rank_critical(n, 0.005), 0);
    assert_int_equal(signed_rank_critical(5, 0.05), 1);
    assert_int_equal(signed_rank_critical(4, 0.05), 0);
}

/* Above the exact range the normal approximation is held against exact counts: within 1.5 % and on the careful side. */
static void critical_ranks_beyond_the_exact_ones(void **state)
{
    (void)state;
    static const int exact[][3] = {{51, 391, 454}, {60, 568, 649}, {100, 1780, 1956}, {200, 7945, 8445}};
    for (size_t i = 0; i < COUNT(exact); i++)
        for (int level = 1; level <= 2; level++) {
            int64_t rank = signed_rank_critical((size_t)exact[i][0], level == 1 ? 0.005 : 0.025);
            assert_true(rank <= exact[i][level] && (double)rank >= 0.985 * exact[i][level]);
        }
}

/* Counted in whole numbers: sum of counts / 2^n. */
static void tails(void **state)
{
    (void)state;
    assert_true(close_to(signed_rank_lower_tail(20, 37), 0.004717826843261719, 1e-14));
    assert_true(close_to(signed_rank_lower_tail(24, 10), 2.562999725341797e-06, 1e-14));
    assert_true(close_to(signed_rank_lower_tail(24, 61), 0.004787862300872803, 1e-14));
    assert_true(close_to(signed_rank_lower_tail(24, 150), 0.5055936574935913, 1e-14));
    assert_true(close_to(signed_rank_lower_tail(50, 0), 8.881784197001252e-16, 1e-14));
    assert_true(close_to(signed_rank_lower_tail(50, 200), 4.199046937714002e-06, 1e-13));
    assert_true(close_to(signed_rank_lower_tail(50, 373), 0.0049821408826806746, 1e-13));
    assert_true(signed_rank_lower_tail(10, -1) == 0 && signed_rank_lower_tail(10, 55) == 1);
    assert_true(signed_rank_lower_tail(0, 0) == 1 && signed_rank_lower_tail(1, 0) == 0.5);
}

static void interval_of_twelve(void **state)
{
    (void)state;
    static const double known[][3] = {{0.90, 0.0015, 0.904}, {0.95, -0.1775, 0.933}, {0.99, -0.461, 1.245}};
    for (size_t i = 0; i < COUNT(known); i++) {
        struct signed_rank_interval interval;
        assert_int_equal(signed_rank_estimate(twelve, 12, known[i][0], &interval), 0);
        assert_true(close_to(interval.estimate, 0.39325, 1e-14));
        assert_true(close_to(interval.low, known[i][1], 1e-12));
        assert_true(close_to(interval.high, known[i][2], 1e-12));
    }
}

static void p_values_of_twelve(void **state)
{
    (void)state;
    static const double known[][4] = {{0, 0.046142578125, 0.96142578125, 0.09228515625},
                                      {0.25, 0.28466796875, 0.74072265625, 0.5693359375},
                                      {0.5, 0.71533203125, 0.31103515625, 0.6220703125},
                                      {-0.3, 0.010498046875, 0.991943359375, 0.02099609375}};
    for (size_t i = 0; i < COUNT(known); i++) {
        struct signed_rank_p p;
        assert_int_equal(signed_rank_test(twelve, 12, known[i][0], &p), 0);
        assert_true(close_to(p.greater, known[i][1], 1e-14));
        assert_true(close_to(p.less, known[i][2], 1e-14));
        assert_true(close_to(p.two_sided, known[i][3], 1e-14));
    }
}

/* scipy: method "approx", correction=True; its exact values are 2.93e-4 and 0.1303 for the first and second margin. */
static void p_values_of_sixty(void **state)
{
    (void)state;
    double values[60];
    struct signed_rank_p p;
    struct signed_rank_interval interval;
    for (int i = 0; i < 60; i++)
        values[i] = ((i * i * 37 + i * 11) % 1009) / 100.0;
    assert_int_equal(signed_rank_test(values, 60, 3.0015, &p), 0);
    assert_true(close_to(p.greater, 0.0003889065964772349, 1e-10));
    assert_int_equal(signed_rank_test(values, 60, 4.0015, &p), 0);
    assert_true(close_to(p.greater, 0.12923683533200236, 1e-10));
    assert_true(close_to(p.less, 0.872307690360743, 1e-10));
    assert_int_equal(signed_rank_estimate(values, 60, 0.99, &interval), 0);
    assert_true(close_to(interval.estimate, 4.4925, 1e-14));
    /* Exact critical rank: 3.365 to 5.55; the normal one may only widen it. */
    assert_true(interval.low <= 3.365 && interval.low > 3.25 && interval.high >= 5.55 && interval.high < 5.65);
}

static void few_values_have_no_interval(void **state)
{
    (void)state;
    const double values[] = {3, 5, 4, 4.5, 3.5, 2, 7};
    struct signed_rank_interval interval;
    struct signed_rank_p p;
    for (size_t n = 1; n <= 7; n++) {
        assert_int_equal(signed_rank_estimate(values, n, 0.99, &interval), 0);
        assert_true(interval.low == -INFINITY && interval.high == INFINITY);
    }
    signed_rank_estimate(values, 2, 0.99, &interval);
    assert_true(interval.estimate == 4); /* of 3, 4, 5 */
    signed_rank_estimate(values, 2, 0.5, &interval);
    assert_true(interval.low == 3 && interval.high == 5);
    signed_rank_test(values, 1, 0, &p);
    assert_true(p.greater == 0.5 && p.less == 1 && p.two_sided == 1);
    signed_rank_test(values, 2, 0, &p);
    assert_true(p.greater == 0.25 && p.less == 1 && p.two_sided == 0.5);
}

static void equal_values(void **state)
{
    (void)state;
    double values[9];
    struct signed_rank_interval interval;
    struct signed_rank_p p;
    for (int i = 0; i < 9; i++)
        values[i] = 0.01;
    assert_int_equal(signed_rank_estimate(values, 9, 0.99, &interval), 0);
    assert_true(interval.estimate == 0.01 && interval.low == 0.01 && interval.high == 0.01);
    assert_int_equal(signed_rank_test(values, 9, 0.01, &p), 0);
    assert_true(p.greater == 1 && p.less == 1 && p.two_sided == 1);
    assert_int_equal(signed_rank_test(values, 9, 0.0099, &p), 0);
    assert_true(p.greater == 1.0 / 512 && p.less == 1 && p.two_sided == 1.0 / 256);
    for (int i = 0; i < 9; i++)
        values[i] = i % 2 ? 0.0 : -0.0;
    assert_int_equal(signed_rank_estimate(values, 9, 0.99, &interval), 0);
    assert_true(interval.estimate == 0 && interval.low == 0 && interval.high == 0);
    assert_int_equal(signed_rank_test(values, 9, 0, &p), 0);
    assert_true(p.two_sided == 1);
}

static int ascending(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Against all averages written out and sorted, with and without ties; the test and the interval must agree, and both
 * turn over with the sign. */
static void held_against_all_averages(void **state)
{
    (void)state;
    uint64_t random = 5;
    for (int trial = 0; trial < 300; trial++) {
        double values[40], negated[40], averages[820];
        size_t n = 1 + (size_t)(40 * uniform(&random)), count = 0;
        for (size_t i = 0; i < n; i++) {
            double x = 2 * uniform(&random) - 0.7;
            values[i] = trial % 2 ? x : floor(8 * x) / 8;
            negated[i] = -values[i];
        }
        for (size_t i = 0; i < n; i++)
            for (size_t j = i; j < n; j++)
                averages[count++] = 0.5 * values[i] + 0.5 * values[j];
        qsort(averages, count, sizeof *averages, ascending);
        struct signed_rank_interval interval, mirror;
        struct signed_rank_p p, q;
        assert_int_equal(signed_rank_estimate(values, n, 0.9, &interval), 0);
        assert_int_equal(signed_rank_estimate(negated, n, 0.9, &mirror), 0);
        assert_true(interval.estimate == 0.5 * averages[(count - 1) / 2] + 0.5 * averages[count / 2]);
        assert_true(mirror.estimate == -interval.estimate);
        assert_true(mirror.low == -interval.high && mirror.high == -interval.low);
        size_t k = (size_t)signed_rank_critical(n, 0.05);
        assert_true(k > 0 ? interval.low == averages[k - 1] && interval.high == averages[count - k]
                          : isinf(interval.low) && isinf(interval.high));
        double last = 0;
        for (int step = -8; step <= 8; step++) {
            double margin = step / 8.0;
            assert_int_equal(signed_rank_test(values, n, margin, &p), 0);
            assert_int_equal(signed_rank_test(negated, n, -margin, &q), 0);
            assert_true(p.greater == q.less && p.less == q.greater);
            assert_true((p.greater <= 0.05) == (interval.low > margin));
            assert_true((p.less <= 0.05) == (interval.high < margin));
            assert_true(p.greater >= last);
            last = p.greater;
        }
    }
}

/* Ten values drawn evenly from -2..2: a test at 5 % must reject no more often than that. NumPy, 200,000 draws with all
 * averages written out: 1.39 % at margin 0, 74.7 % at -1.5; five standard deviations of 20,000 draws are 0.41 and
 * 1.54 points. */
static void ties_do_not_raise_false_alarms(void **state)
{
    (void)state;
    uint64_t random = 11;
    enum { TRIALS = 20000 };
    int at_center = 0, below = 0;
    for (int trial = 0; trial < TRIALS; trial++) {
        double values[10];
        struct signed_rank_p p;
        for (int i = 0; i < 10; i++)
            values[i] = floor(5 * uniform(&random)) - 2;
        signed_rank_test(values, 10, 0, &p);
        at_center += p.greater <= 0.05;
        signed_rank_test(values, 10, -1.5, &p);
        below += p.greater <= 0.05;
    }
    assert_in_range(at_center, (int)(0.0097 * TRIALS), (int)(0.0181 * TRIALS));
    assert_in_range(below, (int)(0.731 * TRIALS), (int)(0.763 * TRIALS));
}

/* scipy.stats.wilcoxon 1.10 (method "approx", with correction); the estimate is NumPy's median of all 2001000 averages.
 */
static void two_thousand(void **state)
{
    (void)state;
    enum { MANY = 2000 };
    static const double known[][3] = {{0.29, 0.00023181950453415143, 0.9997682141696548},
                                      {0.3, 0.0109426354291945, 0.9890584806376859},
                                      {0.31, 0.14149342740790294, 0.858515251808224}};
    static double values[MANY];
    struct signed_rank_interval interval;
    for (int i = 0; i < MANY; i++) {
        const double share = i * 7919 % 10007 / 10007.0;
        values[i] = share * share;
    }
    assert_int_equal(signed_rank_estimate(values, MANY, 0.99, &interval), 0);
    assert_true(close_to(interval.estimate, 0.31874767207273885, 1e-14));
    for (size_t i = 0; i < COUNT(known); i++) {
        struct signed_rank_p p;
        assert_int_equal(signed_rank_test(values, MANY, known[i][0], &p), 0);
        assert_true(close_to(p.greater, known[i][1], 1e-9) && close_to(p.less, known[i][2], 1e-9));
    }
}

static void huge_samples(void **state)
{
    (void)state;
    enum { PLENTY = 100000 };
    double *values = malloc(PLENTY * sizeof *values);
    struct signed_rank_interval interval;
    struct signed_rank_p p;
    uint64_t random = 3;
    assert_non_null(values);
    for (int i = 0; i < PLENTY; i++)
        values[i] = uniform(&random);
    /* Uniform on (0,1): standard error of the estimate is 1 / sqrt(12 n) = 0.00091 (efficiency 1 to the mean). */
    assert_int_equal(signed_rank_estimate(values, PLENTY, 0.99, &interval), 0);
    assert_true(fabs(interval.estimate - 0.5) < 5 * 0.00091);
    assert_true(fabs(interval.high - interval.low - 2 * 2.5758 * 0.00091) < 0.0003);
    assert_int_equal(signed_rank_test(values, PLENTY, 0.49, &p), 0);
    assert_true(p.greater < 1e-20 && p.less > 0.999);
    for (int i = 0; i < PLENTY; i++)
        values[i] = i; /* symmetric about (PLENTY - 1) / 2 */
    assert_int_equal(signed_rank_estimate(values, PLENTY, 0.99, &interval), 0);
    assert_true(interval.estimate == (PLENTY - 1) / 2.0);
    free(values);
    const double largest[] = {1.7e308, 1.7e308, -1.7e308};
    assert_int_equal(signed_rank_estimate(largest, 3, 0.5, &interval), 0);
    assert_true(interval.estimate == 0.85e308);
}

static void refusals(void **state)
{
    (void)state;
    const double bad[][2] = {{1, NAN}, {INFINITY, 1}, {1, -INFINITY}}, good[] = {1, 2};
    const double confidences[] = {0, 1, -0.5, 1.5, NAN};
    struct signed_rank_interval interval = {7, 8, 9};
    struct signed_rank_p p = {7, 8, 9};
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_int_equal(signed_rank_estimate(bad[i], 2, 0.99, &interval), -EINVAL);
        assert_int_equal(signed_rank_test(bad[i], 2, 0, &p), -EINVAL);
    }
    for (size_t i = 0; i < COUNT(confidences); i++)
        assert_int_equal(signed_rank_estimate(good, 2, confidences[i], &interval), -EINVAL);
    assert_int_equal(signed_rank_estimate(good, 0, 0.99, &interval), -EINVAL);
    assert_int_equal(signed_rank_test(good, 0, 0, &p), -EINVAL);
    assert_int_equal(signed_rank_test(good, 2, NAN, &p), -EINVAL);
    assert_true(interval.estimate == 7 && interval.low == 8 && p.greater == 7 && p.less == 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(critical_ranks_of_the_tables),
        cmocka_unit_test(critical_ranks_beyond_the_exact_ones),
        cmocka_unit_test(tails),
        cmocka_unit_test(interval_of_twelve),
        cmocka_unit_test(p_values_of_twelve),
        cmocka_unit_test(p_values_of_sixty),
        cmocka_unit_test(few_values_have_no_interval),
        cmocka_unit_test(equal_values),
        cmocka_unit_test(held_against_all_averages),
        cmocka_unit_test(ties_do_not_raise_false_alarms),
        cmocka_unit_test(two_thousand),
        cmocka_unit_test(huge_samples),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests_name("signed_rank", tests, NULL, NULL);
}
