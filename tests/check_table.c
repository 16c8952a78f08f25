/* SPDX-License-Identifier: Apache-2.0
 *
 * Figures, table, summary: nothing wider than 80 columns, nothing unknown shown as a number, nothing left out.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "harness/record_text.h"
#include "tests/table_example.h"

static void figures(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } times[] = {{812, "812.0 ns"},   {999.94, "999.9 ns"},  {999.96, "1.000 µs"},
                 {98760, "98.76 µs"}, {1234567, "1.235 ms"}, {12.3e9, "12.30 s"},
                 {1234e9, "1234 s"},  {0, "0 ns"},           {NAN, "-"},
                 {-5, "-"},           {INFINITY, "-"},       {0.0001, "1e-04 ns"}};
    static const struct {
        double value;
        int digits;
        const char *text;
    } numbers[] = {{182.44, 4, "182.4"}, {1.8244, 4, "1.824"}, {0.1823, 3, "0.182"}, {18244, 4, "18244"},
                   {0.012, 2, "0.012"},  {1.2e-5, 2, "1e-05"}, {9.996, 3, "10.00"},  {1e9, 4, "1e+09"},
                   {1e300, 2, ">1e99"},  {1e-300, 2, "<1e-9"}, {0, 3, "0"},          {NAN, 3, "-"},
                   {-1, 3, "-"}};
    static const struct {
        double value;
        const char *text;
    } percents[] = {{0.77, "77%"}, {0.0074, "0.7%"}, {0.0996, "10%"}, {1.19, "119%"},
                    {50, ">1k%"},  {NAN, "-"},       {0, "0.0%"}};
    char text[TEXT_FIGURE];
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        text_time(times[i].value, text);
        assert_string_equal(text, times[i].text);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        text_number(numbers[i].value, numbers[i].digits, 5, text);
        assert_string_equal(text, numbers[i].text);
    }
    for (size_t i = 0; i < sizeof percents / sizeof percents[0]; i++) {
        text_percent(percents[i].value, text);
        assert_string_equal(text, percents[i].text);
    }
}

/* Every magnitude that a double has, in every figure. */
static void figures_fit_at_any_magnitude(void **state)
{
    (void)state;
    char text[TEXT_FIGURE];
    for (int power = -320; power <= 308; power++) {
        for (double digits = 1; digits < 10; digits += 0.4443) {
            double value = digits * pow(10, power);
            text_time(value, text);
            assert_in_range(text_columns(text), 1, 8);
            text_percent(value, text);
            assert_in_range(text_columns(text), 1, 4);
            for (size_t width = 5; width <= 9; width++) {
                text_number(value, 4, width, text);
                assert_in_range(text_columns(text), 1, width);
            }
        }
    }
}

static void text_is_cut_between_characters(void **state)
{
    (void)state;
    char out[64], small[8];
    text_fit("kernel", 6, out, sizeof out);
    assert_string_equal(out, "kernel");
    text_fit("kernels", 6, out, sizeof out);
    assert_string_equal(out, "kerne…");
    text_fit("µµµµ", 3, out, sizeof out);
    assert_string_equal(out, "µµ…");
    text_fit("a\n\033[31mb\t", 20, out, sizeof out);
    assert_string_equal(out, "a  [31mb ");
    text_fit("µµµµµµµµ", 8, small, sizeof small); /* fewer bytes than it needs */
    assert_string_equal(small, "µµ…");
    text_fit("abc", 0, out, sizeof out);
    assert_string_equal(out, "");
}

static void a_plain_table(void **state)
{
    (void)state;
    json_t *records = json_array();
    json_array_append_new(records, record("avx512", 2, 710000));
    json_t *noisy = record("naive", 1, 1.5e9);
    json_object_set_new(noisy, "noise", json_pack("{s:s}", "quality", "noisy"));
    json_array_append_new(records, noisy);
    char *text = printed(records, false, false, false);
    assert_non_null(strstr(text, "scaled_dot_product f32  B 8  H 12  S 128  D 64\n"));
    assert_non_null(strstr(text, "avx512 bhq     2 compact 710.0 µs"));
    assert_non_null(strstr(text, " 123.4 5.60 "));
    assert_non_null(strstr(text, " 77% compute 0.020\n"));
    assert_non_null(strstr(text, " 77% compute 0.020 ~\n"));
    assert_null(strstr(text, "\033"));
    assert_null(strstr(text, " \n"));
    expect_columns(text, 80);
    free(text);
    text = printed(records, false, false, true);
    assert_non_null(strstr(text, "\033[33mnaive"));
    free(text);
    json_decref(records);
}

static void problems_are_told_apart(void **state)
{
    (void)state;
    json_t *records = json_array();
    static const char *const headings[] = {
        "f32  B 8  H 12  S 128  D 64\n",
        "f32  B 8  H 12  S 128  D 64  cold cache\n",
        "f32  B 8  H 12  S 128  D 64  causal bottom_right\n",
        "f32  B 8  H 12  S_q 1  S_kv 128  D 64\n",
        "f32  B 8  H 12  kv-heads 4  S 128  D 64\n",
        "f32  B 8  H 12  S 128  D 64  scale 0.5\n",
    };
    for (int i = 0; i < 12; i++)
        json_array_append_new(records, record(i < 6 ? "naive" : "tiled", 1, 1000 + i));
    for (int i = 0; i < 12; i += 6) {
        json_object_set_new(json_array_get(records, (size_t)i + 1), "cache", json_string("cold"));
        json_object_set_new(json_array_get(records, (size_t)i + 2), "causal", json_string("bottom_right"));
        json_object_set_new(json_array_get(records, (size_t)i + 3), "S_q", json_integer(1));
        json_object_set_new(json_array_get(records, (size_t)i + 4), "H_kv", json_integer(4));
        json_object_set_new(json_array_get(records, (size_t)i + 5), "scale", json_real(0.5));
    }
    char *text = printed(records, false, false, false);
    assert_int_equal(times_of("scaled_dot_product", text), 6);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(times_of(headings[i], text), 1);
    assert_int_equal(times_of("\nnaive", text), 6);
    assert_int_equal(times_of("\ntiled", text), 6);
    free(text);
    json_decref(records);
}

/* A failed record gives way to the one of a later try, and to nothing else. */
static void a_second_try_replaces_a_failure(void **state)
{
    (void)state;
    json_t *records = json_array(), *failed = record("naive", 1, 1), *again = record("naive", 1, 2000);
    json_object_set(again, "point_id", json_object_get(failed, "point_id"));
    spoil(failed, "failed", "signal 9");
    json_array_append_new(records, failed);
    char *text = printed(records, true, false, false);
    assert_non_null(strstr(text, "1 point: 0 ok, 0 skipped, 0 wrong, 1 failed\n"));
    free(text);
    json_array_append_new(records, again);
    text = printed(records, true, false, false);
    assert_non_null(strstr(text, "1 point: 1 ok, 0 skipped, 0 wrong, 0 failed\n"));
    free(text);
    json_array_append_new(records, json_deep_copy(again)); /* as in a file merged from two machines */
    text = printed(records, true, false, false);
    assert_non_null(strstr(text, "2 points: 2 ok, 0 skipped, 0 wrong, 0 failed\n"));
    free(text);
    json_decref(records);
}

static void points_without_rates_tell_why(void **state)
{
    (void)state;
    static const char reason[] =
        "needs avx512f, which this machine does not have, and so on to the very end of the reason";
    json_t *records = json_array();
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"skipped", "wrong", "failed"};
        json_t *line = record("avx512", 1, 1000);
        spoil(line, names[i], reason);
        json_array_append_new(records, line);
    }
    char *text = printed(records, false, false, false);
    assert_int_equal(times_of("skipped: needs avx512f", text), 1);
    assert_int_equal(times_of("wrong: needs avx512f", text), 1);
    assert_int_equal(times_of("failed: needs avx512f", text), 1);
    assert_int_equal(times_of("…\n", text), 3);
    assert_null(strstr(text, "123.4"));
    assert_null(strstr(text, "1.000 µs"));
    expect_columns(text, 80);
    free(text);
    text = printed(records, false, true, false);
    assert_int_equal(times_of(reason, text), 3);
    free(text);
    json_decref(records);
}

static void the_widest_values_fit(void **state)
{
    (void)state;
    static const double values[] = {0, 1e-300, 1e-9, 0.5, 99999, 1e9, 1e18, 1.7e308};
    static const char *const fields[] = {"median_ns",     "ci95_low_ns", "ci95_high_ns",   "gflops", "gb_per_s",
                                         "roof_fraction", "min_ns",      "err_over_bound", "mad_ns", "tokens_per_s"};
    json_t *records = json_array();
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        json_t *line = record("a_peer_library_with_a_long_name", INT32_MAX, 1);
        for (size_t f = 0; f < sizeof fields / sizeof fields[0]; f++)
            json_object_set_new(line, fields[f], json_real(values[i]));
        json_object_set_new(line, "placement", json_string("0,2,4,6,8,10,12,14,16,18,20-47"));
        json_object_set_new(line, "schedule", json_string("splitkv-splitkv"));
        json_object_set_new(line, "roof_bound", json_string("compute-and-more"));
        json_object_set_new(line, "noise", json_pack("{s:s}", "quality", "noisy"));
        json_object_set_new(line, "B", json_integer(INT64_MAX));
        json_object_set_new(line, "S_q", json_integer(INT64_MAX));
        json_object_set_new(line, "kv_lengths",
                            json_string("1:2:3:4:5:6:7:8:9:10:11:12:13:14:15:16:17:18:19:20:21:22:"
                                        "23:24:25:26:27:28:29:30:31:32:33:34:35:36:37:38:39:40"));
        json_array_append_new(records, line);
    }
    json_t *skipped = record("a_peer_library_with_a_long_name", INT32_MAX, 1);
    spoil(skipped, "skipped", "why\nnot\033[2J");
    json_array_append_new(records, skipped);
    char *text = printed(records, false, false, false);
    expect_columns(text, 80);
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "inf"));
    assert_null(strstr(text, "\033"));
    assert_int_equal(times_of(" ~\n", text), sizeof values / sizeof values[0]);
    free(text);
    text = printed(records, true, false, false);
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "\033"));
    free(text);
    json_decref(records);
}

/* Records come from files: any field may be missing or of another type. */
static void odd_records_do_no_harm(void **state)
{
    (void)state;
    json_t *records = json_array(), *whole = record("naive", 1, 1000), *value;
    const char *key;
    json_object_foreach(whole, key, value)
    {
        json_t *without = json_copy(whole), *text_instead = json_copy(whole), *list_instead = json_copy(whole);
        json_object_del(without, key);
        json_object_set_new(text_instead, key, json_string("text"));
        json_object_set_new(list_instead, key, json_array());
        json_array_append_new(records, without);
        json_array_append_new(records, text_instead);
        json_array_append_new(records, list_instead);
    }
    json_array_append_new(records, json_object());
    json_array_append_new(records, json_integer(1));
    for (int wide = 0; wide < 2; wide++) {
        char *text = printed(records, false, wide, true);
        assert_null(strstr(text, "nan"));
        free(text);
    }
    char *text = printed(records, true, false, false);
    assert_null(strstr(text, "nan"));
    free(text);
    json_decref(whole);
    json_decref(records);
}

static void unknown_figures_are_dashes(void **state)
{
    (void)state;
    json_t *records = json_array(), *line = record("naive", 1, 1000);
    json_object_set_new(line, "roof_fraction", json_null());
    json_object_set_new(line, "roof_bound", json_null());
    json_object_set_new(line, "ci95_low_ns", json_null());
    json_array_append_new(records, line);
    char *text = printed(records, false, false, false);
    assert_non_null(strstr(text, "1.000 µs  -   123.4 5.60    - -     0.020\n"));
    free(text);
    json_decref(records);
}

static void the_summary_names_the_fastest(void **state)
{
    (void)state;
    json_t *records = json_array();
    json_array_append_new(records, record("naive", 1, 8000));
    json_array_append_new(records, record("avx512", 1, 1000));
    json_array_append_new(records, record("avx2", 1, 2000));
    json_array_append_new(records, record("naive", 2, 3000));
    json_array_append_new(records, record("avx2", 2, 3010));
    json_array_append_new(records, record("tiled", 4, 500));
    json_t *wrong = record("broken", 1, 1);
    spoil(wrong, "wrong", "row 0 of head 0");
    json_array_append_new(records, wrong);
    char *text = printed(records, true, false, false);
    assert_non_null(strstr(text, "7 points: 6 ok, 0 skipped, 1 wrong, 0 failed\n  1 wrong: broken: row 0 of head 0\n"));
    assert_non_null(strstr(text, "    1 thr  avx512 bhq           1.000 µs   77% of roof  2.00 x avx2 bhq\n"));
    assert_non_null(strstr(text, "    2 thr  naive bhq            3.000 µs   77% of roof  ~1.00 x avx2 bhq\n"));
    assert_non_null(strstr(text, "    4 thr  tiled bhq            500.0 ns   77% of roof\n"));
    free(text);
    json_decref(records);
}

static void the_summary_groups_reasons(void **state)
{
    (void)state;
    json_t *records = json_array();
    for (int i = 0; i < 30; i++) {
        char reason[32];
        json_t *line = record("avx2", 1, 1);
        snprintf(reason, sizeof reason, "reason %d", i < 10 ? 0 : i);
        spoil(line, "skipped", reason);
        json_array_append_new(records, line);
    }
    char *text = printed(records, true, false, false);
    assert_non_null(strstr(text, "30 points: 0 ok, 30 skipped, 0 wrong, 0 failed\n"));
    assert_non_null(strstr(text, "  10 skipped: avx2: reason 0\n"));
    assert_non_null(strstr(text, "  13 skipped for other reasons\n")); /* 8 told: 10 + 7 points */
    assert_null(strstr(text, "Fastest"));
    free(text);
    json_decref(records);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures),
        cmocka_unit_test(figures_fit_at_any_magnitude),
        cmocka_unit_test(text_is_cut_between_characters),
        cmocka_unit_test(a_plain_table),
        cmocka_unit_test(problems_are_told_apart),
        cmocka_unit_test(a_second_try_replaces_a_failure),
        cmocka_unit_test(points_without_rates_tell_why),
        cmocka_unit_test(the_widest_values_fit),
        cmocka_unit_test(odd_records_do_no_harm),
        cmocka_unit_test(unknown_figures_are_dashes),
        cmocka_unit_test(the_summary_names_the_fastest),
        cmocka_unit_test(the_summary_groups_reasons),
    };
    return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
