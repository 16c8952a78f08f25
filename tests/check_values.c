/* SPDX-License-Identifier: Apache-2.0
 *
 * The grammar of sizes, ranges, durations and numbers, and how errors quote what was wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "harness/values.h"

static void expect_range(const char *text, const int64_t *values, size_t count)
{
    struct value_list list = {0};
    struct error error = {0};
    if (value_range(text, "here", &list, &error))
        fail_msg("%s: %s", text, error.text);
    assert_int_equal(list.count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(list.items[i].integer, values[i]);
        assert_string_equal(list.items[i].where, "here");
    }
    value_list_release(&list);
}

static void refuse_range(const char *text, const char *part)
{
    struct value_list list = {0};
    struct error error = {0};
    assert_int_not_equal(value_range(text, NULL, &list, &error), 0);
    assert_int_equal(error.exit_code, EXIT_USAGE);
    if (!strstr(error.text, part) || strchr(error.text, '\n'))
        fail_msg("%s: '%s' should hold '%s' in one line", text, error.text, part);
    value_list_release(&list);
}

static void sizes_and_ranges_read(void **state)
{
    (void)state;
    expect_range("0", (int64_t[]){0}, 1);
    expect_range("512", (int64_t[]){512}, 1);
    expect_range("2k", (int64_t[]){2048}, 1);
    expect_range("1m", (int64_t[]){1048576}, 1);
    expect_range("9223372036854775807", (int64_t[]){INT64_MAX}, 1);
    expect_range("128-1024x2", (int64_t[]){128, 256, 512, 1024}, 4);
    expect_range("128-1024*2", (int64_t[]){128, 256, 512, 1024}, 4);
    expect_range("1-100x10", (int64_t[]){1, 10, 100}, 3);
    expect_range("1-99x10", (int64_t[]){1, 10}, 2);
    expect_range("128-512+128", (int64_t[]){128, 256, 384, 512}, 4);
    expect_range("0-5+2", (int64_t[]){0, 2, 4}, 3);
    expect_range("1k-4kx2", (int64_t[]){1024, 2048, 4096}, 3);
    expect_range("7-7x2", (int64_t[]){7}, 1);
    expect_range("7-7+1", (int64_t[]){7}, 1);
    /* The step behind the last value would not fit into 64 bits. */
    expect_range("4611686018427387904-9223372036854775807x2", (int64_t[]){INT64_C(1) << 62}, 1);
    expect_range("9223372036854775806-9223372036854775807+1", (int64_t[]){INT64_MAX - 1, INT64_MAX}, 2);
}

static void bad_ranges_are_refused(void **state)
{
    (void)state;
    refuse_range("", "''");
    refuse_range("abc", "'abc'");
    refuse_range("-1", "'-1'");
    refuse_range("1.5", "'1.5'");
    refuse_range("8 ", "'8 '");
    refuse_range(" 8", "' 8'");
    refuse_range("0x10", "'0x10'");
    refuse_range("2kk", "'2kk'");
    refuse_range("99999999999999999999", "too large");
    refuse_range("9223372036854775807k", "too large");
    refuse_range("128-4096", "needs a step");
    refuse_range("128-4096x1", "never ends");
    refuse_range("128-4096x0", "never ends");
    refuse_range("128-4096+0", "never ends");
    refuse_range("0-4096x2", "never ends");
    refuse_range("4096-128x2", "below its start");
    refuse_range("4096-128+1", "below its start");
    refuse_range("128-4096x", "not a range");
    refuse_range("128-4096x2x2", "not a range");
    refuse_range("128-", "not a range");
    refuse_range("128--4096x2", "not a range");
    refuse_range("1-1000000000000+1", "1000000000000 values");
    refuse_range("1-9223372036854775807+1", "values");
    refuse_range("a\nb", "'a?b'");
}

static void a_list_is_bounded(void **state)
{
    (void)state;
    struct value_list list = {0};
    struct error error = {0};
    assert_int_equal(value_range("1-1000000+1", NULL, &list, &error), 0);
    assert_int_equal(list.count, VALUES_MAX);
    assert_int_not_equal(value_range("1", NULL, &list, &error), 0);
    value_list_release(&list);
}

static void durations_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double seconds;
    } good[] = {{"0.5s", 0.5}, {"200ms", 0.2}, {"10m", 600}, {"1h", 3600}, {"50us", 50e-6}, {"1e1s", 10}};
    static const char *const bad[] = {"", "5", "s", "0s", "-1s", "1e400s", "nans", "infs", "0x1s", "1 s", "1sm", "1d"};
    struct error error;
    double seconds;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(value_duration(good[i].text, &seconds, &error), 0);
        assert_true(seconds > good[i].seconds * (1 - 1e-12) && seconds < good[i].seconds * (1 + 1e-12));
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (value_duration(bad[i], &seconds, &error) == 0)
            fail_msg("'%s' read as a duration", bad[i]);
}

static void numbers_and_seeds_read(void **state)
{
    (void)state;
    struct error error;
    double number;
    int64_t seed;
    assert_int_equal(value_number("-2.5e-3", &number, &error), 0);
    assert_true(number == -2.5e-3);
    assert_int_not_equal(value_number("", &number, &error), 0);
    assert_int_not_equal(value_number("nan", &number, &error), 0);
    assert_int_not_equal(value_number("1e999", &number, &error), 0);
    assert_int_not_equal(value_number("1x", &number, &error), 0);
    assert_int_equal(value_seed("9223372036854775807", &seed, &error), 0);
    assert_int_equal(seed, INT64_MAX);
    assert_int_not_equal(value_seed("9223372036854775808", &seed, &error), 0);
    assert_int_not_equal(value_seed("-1", &seed, &error), 0);
    assert_int_not_equal(value_seed("1k", &seed, &error), 0);
    assert_int_not_equal(value_seed("", &seed, &error), 0);
}

static void long_text_is_cut_in_quotes(void **state)
{
    (void)state;
    char text[1000], shown[QUOTED_BYTES];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    quoted(text, shown);
    assert_true(strlen(shown) < QUOTED_BYTES);
    assert_non_null(strstr(shown, "xxx...'"));
    assert_string_equal(quoted("a\tb", shown), "'a?b'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_and_ranges_read),  cmocka_unit_test(bad_ranges_are_refused),
        cmocka_unit_test(a_list_is_bounded),      cmocka_unit_test(durations_read),
        cmocka_unit_test(numbers_and_seeds_read), cmocka_unit_test(long_text_is_cut_in_quotes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
