/* SPDX-License-Identifier: Apache-2.0
 *
 * Benjamini-Hochberg against scipy.stats.false_discovery_control (SciPy 1.17); spending against scipy.stats.norm.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "harness/many_tests.h"

enum { TWELVE = 12 };

static const double twelve[TWELVE] = {0.01, 0.04, 0.03, 0.005, 0.04, 0.5, 1.0, 0.0, 0.2, 0.03, 0.0004, 0.9};
static const double adjusted_twelve[TWELVE] = {
    0.03, 0.06, 0.06, 0.02, 0.06, 0.6, 1.0, 0.0, 0.26666666666666666, 0.06, 0.0024, 0.9818181818181818};

static void adjusted_p_values(void **state)
{
    (void)state;
    double adjusted[TWELVE];
    assert_int_equal(many_tests_adjust(twelve, TWELVE, adjusted), 0);
    for (int i = 0; i < TWELVE; i++)
        assert_true(fabs(adjusted[i] - adjusted_twelve[i]) < 1e-15);
    assert_true(adjusted[1] == adjusted[4] && adjusted[2] == adjusted[9]); /* tied ones */
    memcpy(adjusted, twelve, sizeof adjusted);
    assert_int_equal(many_tests_adjust(adjusted, TWELVE, adjusted), 0); /* in place */
    assert_true(fabs(adjusted[8] - adjusted_twelve[8]) < 1e-15);
}

/* Turned about and by steps of 5: the same results at other places. */
static void order_does_not_matter(void **state)
{
    (void)state;
    double moved[TWELVE], adjusted[TWELVE], straight[TWELVE];
    for (int i = 0; i < TWELVE; i++)
        moved[i] = twelve[i * 5 % TWELVE];
    assert_int_equal(many_tests_adjust(twelve, TWELVE, straight), 0);
    assert_int_equal(many_tests_adjust(moved, TWELVE, adjusted), 0);
    for (int i = 0; i < TWELVE; i++)
        assert_true(adjusted[i] == straight[i * 5 % TWELVE]);
}

static void rejections(void **state)
{
    (void)state;
    bool rejected[TWELVE];
    static const struct {
        double q;
        long count;
    } known[] = {{0.001, 1}, {0.01, 2}, {0.025, 3}, {0.05, 4}, {0.07, 8}, {0.3, 9}, {0.7, 10}, {0.99, 11}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        assert_int_equal(many_tests_reject(twelve, TWELVE, known[i].q, rejected), known[i].count);
        for (int j = 0; j < TWELVE; j++)
            assert_int_equal(rejected[j], adjusted_twelve[j] <= known[i].q);
    }
}

/* The step-up rule as it is written down: the largest rank j with p_(j) <= j q / n, and all up to it. */
static void step_up_rule(void **state)
{
    (void)state;
    uint64_t random = 21;
    for (int trial = 0; trial < 500; trial++) {
        double p[25];
        bool rejected[25];
        size_t n = 1 + (size_t)trial % 25, largest = 0;
        for (size_t i = 0; i < n; i++) {
            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            double u = (double)(random >> 40) * 0x1p-24;
            p[i] = i % 2 ? floor(64 * u * u * u * u) / 64 : u;
        }
        for (size_t i = 0; i < n; i++) {
            size_t rank = 0;
            for (size_t j = 0; j < n; j++)
                rank += p[j] <= p[i];
            if (p[i] <= (double)rank * 0.0503 / (double)n && rank > largest)
                largest = rank;
        }
        assert_int_equal(many_tests_reject(p, n, 0.0503, rejected), largest);
    }
}

static void none_and_one(void **state)
{
    (void)state;
    const double one = 0.03;
    double adjusted = 7;
    bool rejected = false;
    assert_int_equal(many_tests_adjust(NULL, 0, NULL), 0);
    assert_int_equal(many_tests_reject(NULL, 0, 0.05, NULL), 0);
    assert_int_equal(many_tests_adjust(&one, 1, &adjusted), 0);
    assert_true(adjusted == 0.03);
    assert_int_equal(many_tests_reject(&one, 1, 0.05, &rejected), 1);
    assert_true(rejected);
    assert_int_equal(many_tests_reject(&one, 1, 0.02, &rejected), 0);
    assert_false(rejected);
}

static void two_equal_and_zero(void **state)
{
    (void)state;
    static const double two[] = {0.01, 0.04}, near[] = {0.03, 0.02}, equal[] = {0.2, 0.2, 0.2, 0.2, 0.2}, zero[4];
    double adjusted[5];
    assert_int_equal(many_tests_adjust(two, 2, adjusted), 0);
    assert_true(adjusted[0] == 0.02 && adjusted[1] == 0.04);
    assert_int_equal(many_tests_adjust(near, 2, adjusted), 0);
    assert_true(adjusted[0] == 0.03 && adjusted[1] == 0.03);
    assert_int_equal(many_tests_adjust(equal, 5, adjusted), 0);
    for (int i = 0; i < 5; i++)
        assert_true(fabs(adjusted[i] - 0.2) < 1e-15);
    assert_int_equal(many_tests_adjust(zero, 4, adjusted), 0);
    for (int i = 0; i < 4; i++)
        assert_true(adjusted[i] == 0);
}

/* NumPy 1.24: sorted p n / rank, minimum.accumulate from the largest on. */
static void a_hundred_thousand(void **state)
{
    (void)state;
    enum { MANY = 100000 };
    double *p = malloc(MANY * sizeof *p), sum = 0;
    bool *rejected = malloc(MANY);
    assert_true(p && rejected);
    for (int64_t i = 0; i < MANY; i++) {
        const double share = (double)(i * 7919 % 100003) / 100003;
        p[i] = share * share;
    }
    assert_int_equal(many_tests_reject(p, MANY, 0.05, rejected), 5002);
    assert_int_equal(many_tests_adjust(p, MANY, p), 0);
    assert_true(p[0] == 0 && fabs(p[1] - 0.07917525067632795) < 1e-14 && fabs(p[50] - 0.9593724372072638) < 1e-14);
    assert_true(fabs(p[MANY - 1] - 0.6832190063910724) < 1e-14);
    for (int i = 0; i < MANY; i++)
        sum += p[i];
    assert_true(fabs(sum - 49996.45045036432) < 1e-7);
    free(p);
    free(rejected);
}

static void spending(void **state)
{
    (void)state;
    const size_t looks[] = {8, 12, 16, 20, 24};
    static const double known[2][5] = {
        {0.013737897364480731, 0.09775403625120731, 0.21600139538527538, 0.3083198053782605, 0.3641868656207751},
        {0.0008140039715777257, 0.02615769169157057, 0.13367295002502846, 0.31708410609011345, 0.5222712482217094}};
    double share[5];
    for (int row = 0; row < 2; row++) {
        double sum = 0;
        assert_int_equal(many_tests_spend(MANY_TESTS_OBRIEN_FLEMING, row == 0 ? 0.05 : 0.01, looks, 5, share), 0);
        for (int i = 0; i < 5; i++) {
            assert_true(fabs(share[i] - known[row][i]) < 1e-12);
            sum += share[i];
        }
        assert_true(fabs(sum - 1) < 1e-12);
    }
    assert_int_equal(many_tests_spend(MANY_TESTS_EVENLY, 0.05, looks, 5, share), 0);
    for (int i = 0; i < 5; i++)
        assert_true(fabs(share[i] - 0.2) < 1e-15);
    assert_int_equal(many_tests_spend(MANY_TESTS_OBRIEN_FLEMING, 0.05, looks, 1, share), 0);
    assert_true(fabs(share[0] - 1) < 1e-12);
}

static void spent_p_values(void **state)
{
    (void)state;
    assert_true(many_tests_spent_p(0.0625, 0.25) == 0.25);
    assert_true(many_tests_spent_p(0.5, 0.2) == 1 && many_tests_spent_p(0.5, 1) == 0.5);
    assert_true(many_tests_spent_p(0, 0.2) == 0);
    assert_true(isnan(many_tests_spent_p(-0.1, 0.2)) && isnan(many_tests_spent_p(1.1, 0.2)));
    assert_true(isnan(many_tests_spent_p(0.1, 0)) && isnan(many_tests_spent_p(0.1, 1.1)));
    assert_true(isnan(many_tests_spent_p(NAN, 0.2)) && isnan(many_tests_spent_p(0.1, NAN)));
}

static void refusals(void **state)
{
    (void)state;
    const double bad[] = {NAN, -0.01, 1.01, INFINITY};
    const size_t looks[] = {8, 12}, level[] = {8, 8}, zero[] = {0, 8};
    double p[2] = {0.5, 0}, adjusted[2] = {7, 7}, share[2] = {7, 7};
    bool rejected[2];
    for (int i = 0; i < 4; i++) {
        p[1] = bad[i];
        assert_int_equal(many_tests_adjust(p, 2, adjusted), -EINVAL);
        assert_int_equal(many_tests_reject(p, 2, 0.05, rejected), -EINVAL);
        assert_int_equal(many_tests_reject(twelve, 2, bad[i], rejected), -EINVAL);
        assert_int_equal(many_tests_spend(MANY_TESTS_EVENLY, bad[i], looks, 2, share), -EINVAL);
    }
    assert_int_equal(many_tests_spend(MANY_TESTS_EVENLY, 0.05, looks, 0, share), -EINVAL);
    assert_int_equal(many_tests_spend(MANY_TESTS_EVENLY, 0.05, level, 2, share), -EINVAL);
    assert_int_equal(many_tests_spend(MANY_TESTS_EVENLY, 0.05, zero, 2, share), -EINVAL);
    assert_true(adjusted[0] == 7 && share[0] == 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adjusted_p_values),  cmocka_unit_test(order_does_not_matter),
        cmocka_unit_test(rejections),         cmocka_unit_test(step_up_rule),
        cmocka_unit_test(none_and_one),       cmocka_unit_test(two_equal_and_zero),
        cmocka_unit_test(a_hundred_thousand), cmocka_unit_test(spending),
        cmocka_unit_test(spent_p_values),     cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests_name("many_tests", tests, NULL, NULL);
}
