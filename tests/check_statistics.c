/* SPDX-License-Identifier: Apache-2.0
 *
 * Medians, deviations, and the interval of the median held against exact binomial sums.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "harness/statistics.h"

static void medians(void **state)
{
    (void)state;
    const double odd[] = {5, 1, 4, 2, 3}, even[] = {8, 1, 3, 2};
    assert_true(statistics_median(odd, 5) == 3);
    assert_true(statistics_median(even, 4) == 2.5);
    assert_true(statistics_median(even, 1) == 8);
    assert_true(odd[0] == 5 && odd[1] == 1); /* left as it was */
    const double largest[] = {1.7e308, 1.7e308};
    assert_true(statistics_median(largest, 2) == 1.7e308);
}

static void deviations_and_minimum(void **state)
{
    (void)state;
    const double values[] = {1, 1, 2, 2, 4, 6, 9}; /* deviations from 2: 1 1 0 0 2 4 7 */
    assert_true(statistics_mad(values, 7) == 1);
    const double shuffled[] = {9, 2, 1, 6, 2, 1, 4};
    assert_true(statistics_mad(shuffled, 7) == 1);
    assert_true(statistics_min(shuffled, 7) == 1);
}

/* Those of scipy.stats.median_abs_deviation; the interval reaches from rank 3 of 12 (binom.ppf(0.025, 12, 0.5)). */
static void few_equal_and_tied_values(void **state)
{
    (void)state;
    const double two[] = {1, 2}, equal[] = {4, 4, 4, 4, 4, 4, 4}, zeros[9] = {0};
    const double tied[] = {5, 2, 9, 2, 5, 3, 5, 2, 5, 3, 2, 5};
    double low = -1, high = -1;
    assert_true(statistics_median(two, 2) == 1.5 && statistics_mad(two, 2) == 0.5 && statistics_mad(two, 1) == 0);
    assert_true(statistics_median(equal, 7) == 4 && statistics_mad(equal, 7) == 0 && statistics_min(equal, 7) == 4);
    assert_true(statistics_median_ci95(equal, 7, &low, &high) && low == 4 && high == 4);
    assert_true(statistics_median(zeros, 9) == 0 && statistics_mad(zeros, 9) == 0);
    assert_true(statistics_median_ci95(zeros, 9, &low, &high) && low == 0 && high == 0);
    assert_true(statistics_median(tied, 12) == 4 && statistics_mad(tied, 12) == 1);
    assert_true(statistics_median_ci95(tied, 12, &low, &high) && low == 2 && high == 5);
}

static void nothing_gives_nan(void **state)
{
    (void)state;
    double low = -1, high = -1;
    assert_true(isnan(statistics_median(NULL, 0)));
    assert_true(isnan(statistics_mad(NULL, 0)));
    assert_true(isnan(statistics_min(NULL, 0)));
    assert_false(statistics_median_ci95(NULL, 0, &low, &high));
    assert_true(low == -1 && high == -1);
}

/* Whole-number sums: P(X < rank) <= 1/40 is 40 * sum of C(n, i < rank) <= 2^n. Exact up to n = 58. */
static uint64_t exact_rank(uint64_t n)
{
    uint64_t choose = 1, sum = 0, rank = 0;
    for (uint64_t i = 0; i <= n; i++) {
        sum += choose;
        if (sum > (UINT64_C(1) << n) / 40)
            break;
        rank = i + 1;
        choose = choose * (n - i) / (i + 1);
    }
    return rank;
}

static void ranks_are_the_exact_ones(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 58; n++)
        assert_int_equal(statistics_ci95_rank(n), exact_rank(n));
}

/* Published tables (e.g. Conover, Practical Nonparametric Statistics): rank 2 at 11, 10 at 30, 40 at 100. */
static void ranks_of_the_tables(void **state)
{
    (void)state;
    static const struct {
        size_t n, rank;
    } known[] = {{0, 0}, {5, 0}, {6, 1}, {8, 1}, {9, 2}, {11, 2}, {12, 3}, {20, 6}, {30, 10}, {100, 40}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        assert_int_equal(statistics_ci95_rank(known[i].n), known[i].rank);
}

/* scipy.stats.binom.ppf(0.025, n, 0.5) of SciPy 1.17; and scipy.stats.quantile_test(...,
 * p=0.5).confidence_interval(0.95), which reaches from rank 22 of 60 to the same from above. */
static void ranks_and_interval_of_scipy(void **state)
{
    (void)state;
    static const size_t known[][2] = {{7, 1},    {15, 4},    {25, 8},     {50, 18},      {75, 29},
                                      {150, 63}, {500, 228}, {1000, 469}, {10000, 4902}, {100000, 49690}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        assert_int_equal(statistics_ci95_rank(known[i][0]), known[i][1]);
    double values[60], low, high;
    for (int i = 0; i < 60; i++)
        values[i] = ((i * i * 37 + i * 11) % 1009) / 100.0;
    assert_true(statistics_median_ci95(values, 60, &low, &high));
    assert_true(low == 3.33 && high == 5.67);
}

/* The row of Pascal's triangle as probabilities, built by halving: no factorials, no logarithms. */
static size_t rank_by_pascal(size_t n)
{
    double *row = calloc(n + 1, sizeof *row), tail = 0;
    size_t rank = 0;
    row[0] = 1;
    for (size_t i = 1; i <= n; i++) {
        for (size_t k = i; k > 0; k--)
            row[k] = 0.5 * row[k] + 0.5 * row[k - 1];
        row[0] *= 0.5;
    }
    while (tail + row[rank] <= 0.025)
        tail += row[rank++];
    free(row);
    return rank;
}

static void ranks_of_many_values(void **state)
{
    (void)state;
    for (size_t n = 59; n <= 400; n++)
        assert_int_equal(statistics_ci95_rank(n), rank_by_pascal(n));
    assert_int_equal(statistics_ci95_rank(1100), rank_by_pascal(1100)); /* 2^-1100 is no double */
    assert_int_equal(statistics_ci95_rank(3000), rank_by_pascal(3000));
}

static void interval_is_symmetric_in_rank(void **state)
{
    (void)state;
    double values[11], low, high;
    for (int i = 0; i < 11; i++)
        values[i] = (i * 7) % 11; /* 0..10 in another order */
    assert_false(statistics_median_ci95(values, 5, &low, &high));
    assert_true(statistics_median_ci95(values, 11, &low, &high));
    assert_true(low == 1 && high == 9);
    assert_true(statistics_median_ci95(values, 6, &low, &high));
    assert_true(low == statistics_min(values, 6));
}

/* Held against what it promises: of many samples of a skewed distribution, at least 95 % of the intervals hold the
 * median. */
static void interval_covers(void **state)
{
    (void)state;
    uint64_t random = 1;
    int covered = 0;
    enum { TRIALS = 4000, N = 11 };
    for (int trial = 0; trial < TRIALS; trial++) {
        double values[N], low, high;
        for (int i = 0; i < N; i++) {
            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            values[i] = -log(((double)(random >> 11) + 0.5) / 9007199254740992.0);
        }
        assert_true(statistics_median_ci95(values, N, &low, &high));
        covered += low <= log(2.0) && log(2.0) <= high;
    }
    /* Rank 2 of 11 covers 98.8 %; five standard deviations of that below and above. */
    assert_in_range(covered, (int)(0.979 * TRIALS), (int)(0.998 * TRIALS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(medians),
        cmocka_unit_test(deviations_and_minimum),
        cmocka_unit_test(few_equal_and_tied_values),
        cmocka_unit_test(nothing_gives_nan),
        cmocka_unit_test(ranks_are_the_exact_ones),
        cmocka_unit_test(ranks_of_the_tables),
        cmocka_unit_test(ranks_and_interval_of_scipy),
        cmocka_unit_test(ranks_of_many_values),
        cmocka_unit_test(interval_is_symmetric_in_rank),
        cmocka_unit_test(interval_covers),
    };
    return cmocka_run_group_tests_name("statistics", tests, NULL, NULL);
}
