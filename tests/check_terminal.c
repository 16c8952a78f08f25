/* SPDX-License-Identifier: Apache-2.0
 *
 * What a terminal can show, and what is shown where it cannot: colours, bars, characters, columns.
 */
#include <math.h>

#include "harness/record_text.h"
#include "tests/table_example.h"

static char *in_style(const json_t *records, const struct output_style *style)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    table_print(file, records, style);
    summary_print(file, records, style);
    fclose(file);
    return text;
}

static void ascii_is_ascii_and_keeps_its_columns(void **state)
{
    (void)state;
    const struct output_style ascii = {.ascii = true, .bars = true}, unicode = {.bars = true};
    json_t *records = json_array();
    json_array_append_new(records, record("avx512", 2, 710000));
    json_array_append_new(records, record("a_kernel_of_ünïcode_and_length_above_all", 2, 1.5e3));
    json_t *skipped = record("naive", 2, 1);
    spoil(skipped, "skipped", "needs what nö machine has, for as long as the line goes");
    json_array_append_new(records, skipped);
    char *text = in_style(records, &ascii), *beside = in_style(records, &unicode);
    for (const char *c = text; *c; c++)
        assert_in_range((unsigned char)*c, 1, 127);
    assert_non_null(strstr(text, " 710.0 us "));
    assert_non_null(strstr(text, " +-% "));
    assert_non_null(strstr(text, "..\n"));
    assert_non_null(strstr(text, "  #####..  77%"));
    assert_non_null(strstr(beside, "  █████▍·  77%"));
    expect_columns(text, 80);
    expect_columns(beside, 80);
    free(text);
    free(beside);
    json_decref(records);
}

static void reasons_are_broken_between_words_where_somebody_looks_on(void **state)
{
    (void)state;
    static const char reason[] =
        "a reason that goes on and on, with a_word_of_some_length and others, until the line of "
        "a terminal is full and one more word begins the next";
    const struct output_style on_terminal = {.bars = true}, piped = {0};
    json_t *records = json_array(), *line = record("naive", 2, 1);
    spoil(line, "skipped", reason);
    json_array_append_new(records, line);
    char *text = in_style(records, &piped);
    assert_int_equal(times_of(reason, text), 1);
    free(text);
    text = in_style(records, &on_terminal);
    expect_columns(text, 80);
    assert_non_null(strstr(text, "  1 skipped: naive: a reason that goes on and on, with a_word_of_some_length and\n"
                                 "    others, until the line of a terminal is full and one more word begins the\n"
                                 "    next\n"));
    free(text);
    json_decref(records);
}

static void characters_have_stand_ins(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"1.5 µs", "1.5 us"}, {"±%", "+-%"},  {"kerne…", "kern.."},
                                           {"…", "."},           {"a …", "a.."}, {"\n…", "\n."},
                                           {"naïve", "na?ve"},   {"", ""},       {"≥", "?"}};
    char text[32], bar[TEXT_BAR_BYTES];
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        snprintf(text, sizeof text, "%s", pairs[i][0]);
        text_to_ascii(text);
        assert_string_equal(text, pairs[i][1]);
    }
    static const struct {
        double fraction;
        const char *unicode, *ascii;
    } bars[] = {{0, "····", "...."},   {0.03125, "▏···", "...."}, {0.5, "██··", "##.."},
                {0.9, "███▋", "####"}, {1, "████", "####"},       {7, "████", "####"},
                {NAN, "    ", "    "}, {-1, "    ", "    "},      {INFINITY, "    ", "    "}};
    for (size_t i = 0; i < sizeof bars / sizeof bars[0]; i++) {
        text_bar(bars[i].fraction, 4, false, bar);
        assert_string_equal(bar, bars[i].unicode);
        text_bar(bars[i].fraction, 4, true, bar);
        assert_string_equal(bar, bars[i].ascii);
    }
}

static void the_summary_tells_where_most_is_left_to_gain(void **state)
{
    (void)state;
    static const struct {
        double fraction;
        const char *cause;
        int size;
    } points[] = {{0.5, "kernel", 1},        {0.3, "starved", 2},   {0.1, "noisy", 3}, {0.7, "kernel", 4},
                  {0.9, "compute-bound", 5}, {0.4, "imbalance", 6}, {0.6, "kernel", 7}};
    json_t *records = json_array();
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        json_t *line = record("avx2", 2, 1000), *slower = record("naive", 2, 9000);
        json_object_set_new(line, "roof_fraction", json_real(points[i].fraction));
        json_object_set_new(line, "cause", json_string(points[i].cause));
        json_object_set_new(line, "B", json_integer(points[i].size));
        json_object_set_new(slower, "roof_fraction", json_real(0.01)); /* not the fastest: it does not matter */
        json_object_set_new(slower, "cause", json_string("kernel"));
        json_object_set_new(slower, "B", json_integer(points[i].size));
        json_array_append_new(records, line);
        json_array_append_new(records, slower);
    }
    char *text = printed(records, true, false, false);
    static const char lines[] = "; why\n"
                                "scaled_dot_product f32  B 2  H 12  S 128  D 64\n"
                                "    2 thr  avx2 bhq             1.000 µs   30% of roof  threads without work\n"
                                "scaled_dot_product f32  B 6  H 12  S 128  D 64\n"
                                "    2 thr  avx2 bhq             1.000 µs   40% of roof  uneven threads\n"
                                "scaled_dot_product f32  B 1  H 12  S 128  D 64\n"
                                "    2 thr  avx2 bhq             1.000 µs   50% of roof  the kernel itself\n";
    const char *section = strstr(text, "Most left to gain");
    assert_non_null(section);
    assert_non_null(strstr(section, lines));
    assert_int_equal(times_of("\n", section), 7);
    expect_columns(text, 80);
    free(text);
    json_decref(records);
}

static void wide_titles_are_words(void **state)
{
    (void)state;
    json_t *records = json_array(), *line = record("naive", 1, 1000);
    json_object_set_new(line, "phases_ns", json_pack("{s:f,s:f}", "project", 1500.0, "attend", 12.5));
    json_array_append_new(records, line);
    char *text = printed(records, false, true, false);
    static const char *const titles[] = {"kernel",  "schedule",      "threads",      "placement",    "median", "95% ±%",
                                         "of roof", "bound by",      "err/bound",    "calls each",   "phases", "cause",
                                         "cpus",    "parallel eff.", "GFLOP/s/core", "rows verified"};
    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++)
        assert_non_null(strstr(text, titles[i]));
    assert_non_null(strstr(text, "project 1.500 µs + attend 12.50 ns\n"));
    free(text);
    json_decref(records);
}

static void the_locale_tells_what_a_terminal_can(void **state)
{
    (void)state;
    static const struct {
        const char *all, *ctype, *lang;
        bool utf8;
    } cases[] = {{"C.UTF-8", NULL, NULL, true},   {"C", NULL, "en_US.UTF-8", false}, {NULL, NULL, "de_DE.utf8", true},
                 {"", "", "en_GB.UTF-8", true},   {NULL, "POSIX", "C.UTF-8", false}, {NULL, NULL, NULL, false},
                 {NULL, "en_US.UTF-8", "C", true}};
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const values[] = {cases[i].all, cases[i].ctype, cases[i].lang};
        for (size_t n = 0; n < 3; n++) {
            unsetenv(names[n]);
            if (values[n])
                setenv(names[n], values[n], 1);
        }
        assert_int_equal(locale_is_utf8(), cases[i].utf8);
    }
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_false(output_style(COLOR_AUTO, false, file).bars);
    assert_true(output_style(COLOR_ALWAYS, false, file).bars);
    assert_false(output_style(COLOR_ALWAYS, false, file).ascii);
    setenv("CLICOLOR_FORCE", "1", 1);
    assert_true(output_style(COLOR_AUTO, false, file).bars);
    assert_false(output_style(COLOR_NEVER, false, file).bars);
    unsetenv("CLICOLOR_FORCE");
    fclose(file);
}

static void color_follows_flag_and_environment(void **state)
{
    (void)state;
    FILE *file = tmpfile();
    assert_non_null(file);
    unsetenv("NO_COLOR");
    unsetenv("CLICOLOR_FORCE");
    assert_false(color_wanted(COLOR_AUTO, file));
    assert_true(color_wanted(COLOR_ALWAYS, file));
    setenv("CLICOLOR_FORCE", "1", 1);
    assert_true(color_wanted(COLOR_AUTO, file));
    assert_false(color_wanted(COLOR_NEVER, file));
    setenv("CLICOLOR_FORCE", "0", 1);
    assert_false(color_wanted(COLOR_AUTO, file));
    setenv("CLICOLOR_FORCE", "1", 1);
    setenv("NO_COLOR", "1", 1);
    assert_false(color_wanted(COLOR_AUTO, file));
    assert_true(color_wanted(COLOR_ALWAYS, file));
    fclose(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ascii_is_ascii_and_keeps_its_columns),
        cmocka_unit_test(reasons_are_broken_between_words_where_somebody_looks_on),
        cmocka_unit_test(characters_have_stand_ins),
        cmocka_unit_test(the_summary_tells_where_most_is_left_to_gain),
        cmocka_unit_test(wide_titles_are_words),
        cmocka_unit_test(the_locale_tells_what_a_terminal_can),
        cmocka_unit_test(color_follows_flag_and_environment),
    };
    return cmocka_run_group_tests_name("terminal", tests, NULL, NULL);
}
