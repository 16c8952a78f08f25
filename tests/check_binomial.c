/* SPDX-License-Identifier: Apache-2.0
 *
 * Clopper-Pearson bounds against scipy.stats.beta.ppf / isf, the incomplete beta function against
 * scipy.special.betainc, Student's tail against scipy.stats.t.sf (SciPy 1.17).
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/beta.h"
#include "harness/binomial.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static bool close_to(double value, double expected, double relative)
{
    return fabs(value - expected) <= relative * fabs(expected);
}

static void incomplete_beta(void **state)
{
    (void)state;
    static const double known[][4] = {{0.5, 0.5, 0.25, 1.0 / 3},
                                      {2, 3, 0.4, 0.5248},
                                      {20, 5, 0.7, 0.1110752232609222},
                                      {0.01, 4, 0.3, 0.9985402247078614},
                                      {1e4, 2e4, 0.33, 0.11020551912742219},
                                      {10, 1, 1e-8, 1e-80},
                                      {300, 0.5, 0.99, 0.014103172217926252}};
    for (size_t i = 0; i < COUNT(known); i++)
        assert_true(close_to(beta_regularized(known[i][0], known[i][1], known[i][2]), known[i][3], 1e-10));
    assert_true(close_to(beta_regularized(1e6, 1e6, 0.4995), 0.07864957758091215, 1e-7));
    assert_true(beta_regularized(3, 4, 0) == 0 && beta_regularized(3, 4, 1) == 1);
    assert_true(isnan(beta_regularized(0, 1, 0.5)) && isnan(beta_regularized(1, -1, 0.5)));
    assert_true(isnan(beta_regularized(1, 1, 1.5)) && isnan(beta_regularized(1, 1, NAN)));
}

static void student(void **state)
{
    (void)state;
    static const double known[][3] = {{0, 3, 0.5},
                                      {1, 1, 0.25},
                                      {2.5, 4, 0.03338327240599407},
                                      {-2.5, 4, 0.966616727594006},
                                      {12, 4, 0.0001382142742514865},
                                      {30, 10, 1.9808961710156623e-11},
                                      {4.2, 58, 4.653838624663956e-05},
                                      {0.001, 7, 0.4996150086224994},
                                      {8, 1000, 1.7133307411957489e-15}};
    for (size_t i = 0; i < COUNT(known); i++)
        assert_true(close_to(student_upper_tail(known[i][0], known[i][1]), known[i][2], 1e-10));
    assert_true(student_upper_tail(INFINITY, 5) == 0 && student_upper_tail(-INFINITY, 5) == 1);
    assert_true(isnan(student_upper_tail(NAN, 5)) && isnan(student_upper_tail(1, 0)));
}

static void bounds(void **state)
{
    (void)state;
    static const struct {
        int64_t k, n;
        double confidence, low, high, lower, upper;
    } known[] = {
        {0, 100, 0.95, 0, 0.03621669264517641, 0, 0.029513049607039925},
        {0, 1000, 0.99, 0, 0.005284306039497442, 0, 0.004594582648473037},
        {1, 10, 0.95, 0.0025285785444617865, 0.4450161170281954, 0.005116196891823705, 0.39416330243650466},
        {5, 10, 0.95, 0.18708602844739855, 0.8129139715526015, 0.22244110100812942, 0.7775588989918706},
        {10, 10, 0.95, 0.6915028921812392, 1, 0.7411344491069478, 1},
        {3, 150, 0.95, 0.004143625281220548, 0.05733422228820578, 0.005472929955259453, 0.050877067978523934},
        {7, 1000, 0.99, 0.00204138657144476, 0.017046931835088576, 0.002334501080342468, 0.01592806302058378},
        {994, 1000, 0.99, 0.9844158212101678, 0.9984604198888787, 0.9854917289008951, 0.9982118384944541},
        {0, 10000000, 0.95, 0, 3.6888787737224376e-07, 0, 2.9957318248334424e-07},
        {1, 10000000, 0.95, 2.5317807952240324e-09, 5.571642116990813e-07, 5.129329425600047e-09,
         4.743863629843794e-07},
        {12345, 10000000, 0.99, 0.0012060854036643593, 0.001263390235341376, 0.0012088150333616292,
         0.00126057916249951},
        {5000000, 10000000, 0.95, 0.4996900525213711, 0.5003099474786289, 0.49973987583016577, 0.5002601241698342},
        {9999999, 10000000, 0.95, 0.9999994428357883, 0.9999999974682192, 0.999999525613637, 0.9999999948706706},
    };
    for (size_t i = 0; i < COUNT(known); i++) {
        double low, high, lower, upper;
        const double relative = known[i].n < 10000 ? 1e-10 : 1e-7;
        assert_int_equal(binomial_interval(known[i].k, known[i].n, known[i].confidence, &low, &high), 0);
        assert_int_equal(binomial_lower(known[i].k, known[i].n, known[i].confidence, &lower), 0);
        assert_int_equal(binomial_upper(known[i].k, known[i].n, known[i].confidence, &upper), 0);
        assert_true(close_to(low, known[i].low, relative) && close_to(high, known[i].high, relative));
        assert_true(close_to(lower, known[i].lower, relative) && close_to(upper, known[i].upper, relative));
    }
}

static void no_trials(void **state)
{
    (void)state;
    double low = 7, high = 7;
    assert_int_equal(binomial_interval(0, 0, 0.95, &low, &high), 0);
    assert_true(low == 0 && high == 1);
    low = high = 7;
    assert_int_equal(binomial_lower(0, 0, 0.95, &low), 0);
    assert_int_equal(binomial_upper(0, 0, 0.95, &high), 0);
    assert_true(low == 0 && high == 1);
    assert_int_equal(binomial_interval(0, 1, 0.95, &low, &high), 0);
    assert_true(low == 0 && close_to(high, 0.975, 1e-12)); /* 1 - 0.025 */
    assert_int_equal(binomial_interval(1, 1, 0.95, &low, &high), 0);
    assert_true(close_to(low, 0.025, 1e-12) && high == 1);
}

/* Failures mirror successes; bounds rise with k and close in with n; the coverage promised is kept, summed exactly. */
static void properties(void **state)
{
    (void)state;
    enum { N = 30 };
    double low[N + 1], high[N + 1];
    for (int k = 0; k <= N; k++)
        assert_int_equal(binomial_interval(k, N, 0.9, &low[k], &high[k]), 0);
    for (int k = 0; k <= N; k++) {
        assert_true(fabs(low[k] - (1 - high[N - k])) < 1e-12);
        assert_true(low[k] <= (double)k / N && high[k] >= (double)k / N);
        assert_true(k == 0 || (low[k] > low[k - 1] && high[k] > high[k - 1]));
    }
    for (int step = 1; step < 100; step++) {
        double p = step / 100.0, covered = 0, mass = pow(1 - p, N);
        for (int k = 0; k <= N; k++) {
            covered += low[k] <= p && p <= high[k] ? mass : 0;
            mass *= (double)(N - k) / (k + 1) * p / (1 - p);
        }
        assert_true(covered >= 0.9);
    }
    double last = 1, wide, narrow;
    for (int64_t n = 10; n <= 100000; n *= 10) {
        assert_int_equal(binomial_interval(n / 5, n, 0.95, &wide, &narrow), 0);
        assert_true(narrow - wide < last);
        last = narrow - wide;
    }
}

static void refusals(void **state)
{
    (void)state;
    double low = 7, high = 7;
    const double confidences[] = {0, 1, -1, 2, NAN, INFINITY};
    assert_int_equal(binomial_interval(-1, 10, 0.95, &low, &high), -EINVAL);
    assert_int_equal(binomial_interval(11, 10, 0.95, &low, &high), -EINVAL);
    assert_int_equal(binomial_interval(0, -1, 0.95, &low, &high), -EINVAL);
    for (size_t i = 0; i < COUNT(confidences); i++) {
        assert_int_equal(binomial_interval(1, 10, confidences[i], &low, &high), -EINVAL);
        assert_int_equal(binomial_lower(1, 10, confidences[i], &low), -EINVAL);
        assert_int_equal(binomial_upper(1, 10, confidences[i], &high), -EINVAL);
    }
    assert_true(low == 7 && high == 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(incomplete_beta), cmocka_unit_test(student),    cmocka_unit_test(bounds),
        cmocka_unit_test(no_trials),       cmocka_unit_test(properties), cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests_name("binomial", tests, NULL, NULL);
}
