/* SPDX-License-Identifier: Apache-2.0
 *
 * How the report's plots come out: axes and ticks, thinning, marks where gnuplot's lines are, text from files, sections
 * without anything to draw or without gnuplot, the machine's boxes.
 */
#include <ctype.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "harness/report_plot.h"
#include "harness/topology.h"
#include "report_example.h"

typedef void section(const struct report *report, FILE *page);
static section *const sections[] = {report_plot_roofline, report_plot_throughput, report_plot_scaling,
                                    report_plot_rivals};
enum { SECTIONS = sizeof sections / sizeof *sections };

/* What a section writes, malloc'd. */
static char *written(const struct report *report, section *write)
{
    struct {
        char *text;
        size_t size;
    } memory = {0};
    FILE *page = open_memstream(&memory.text, &memory.size);
    assert_non_null(page);
    write(report, page);
    fclose(page);
    return memory.text;
}

static size_t occurrences(const char *text, const char *what)
{
    size_t count = 0;
    for (text = strstr(text, what); text; text = strstr(text + 1, what))
        count++;
    return count;
}

/* gnuplot's path; skips the test where there is none. */
static char *gnuplot_or_skip(void)
{
    char *found = gnuplot_find();
    if (!found) {
        print_message("gnuplot is not installed\n");
        skip();
    }
    return found;
}

/* "1 2 5"; static. */
static const char *tick_texts(const struct plot_axis *axis)
{
    static char text[PLOT_TICKS * PLOT_TICK_TEXT];
    text[0] = '\0';
    for (int i = 0; i < axis->tick_count; i++) {
        strcat(text, i ? " " : "");
        strcat(text, axis->ticks[i].text);
    }
    return text;
}

static void test_axes(void **state)
{
    (void)state;
    static const struct {
        double least, most;
        bool log;
        const char *ticks;
    } cases[] = {
        {0.8, 4500, true, "1 10 100 1000"},      {1, 300, true, "1 3 10 30 100 300"},
        {12, 80, true, "15 20 30 40 50 60 80"},  {1, 1e12, true, "1 100 10k 1M 100M"},
        {0, 9.3, false, "0 2 4 6 8 10"},         {0, 1, false, "0 0.2 0.4 0.6 0.8 1"},
        {0, 230, false, "0 50 100 150 200 250"}, {0, 0, false, "0 0.2 0.4 0.6 0.8 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct plot_axis axis = {0};
        (cases[i].log ? plot_axis_log : plot_axis_linear)(&axis, cases[i].least, cases[i].most);
        const size_t length = strlen(cases[i].ticks);
        if (strncmp(tick_texts(&axis), cases[i].ticks, length) != 0)
            fail_msg("%g .. %g: %s", cases[i].least, cases[i].most, tick_texts(&axis));
        assert_true(axis.low <= cases[i].least && axis.high >= cases[i].most && axis.low < axis.high);
        for (int t = 0; t < axis.tick_count; t++)
            assert_true(plot_axis_place(&axis, axis.ticks[t].at) > -1e-9 &&
                        plot_axis_place(&axis, axis.ticks[t].at) < 1 + 1e-9);
    }
}

static void test_ticks_at_values(void **state)
{
    (void)state;
    const double powers[] = {128, 256, 512, 1024, 16384}, heads[] = {64, 80, 96}, crowd[] = {1, 100, 101, 102, 103};
    struct plot_axis axis = {0};
    plot_axis_values(&axis, powers, 5, 320);
    assert_true(axis.log);
    assert_string_equal(tick_texts(&axis), "128 256 512 1024 16k");
    plot_axis_values(&axis, powers, 5, 100);
    assert_string_equal(tick_texts(&axis), "128 1024 16k");
    plot_axis_values(&axis, heads, 3, 320);
    assert_false(axis.log);
    assert_string_equal(tick_texts(&axis), "64 80 96");
    plot_axis_values(&axis, crowd, 5, 320);
    assert_string_equal(tick_texts(&axis), "1 103");
    plot_axis_values(&axis, powers, 1, 320);
    assert_string_equal(tick_texts(&axis), "128");
    assert_true(axis.low < 128 && axis.high > 128);
}

/* 3000 points of two kernels on one spot each, and some outside: few marks stay, all outermost ones among them. */
static void test_thinning(void **state)
{
    (void)state;
    enum { COUNT = 3000 };
    struct report_record *records = calloc(COUNT, sizeof *records);
    struct report report = {.records = records, .record_count = COUNT, .kernel_count = 2};
    size_t *indices = calloc(COUNT, sizeof *indices);
    struct plot_point *places = calloc(COUNT, sizeof *places);
    struct plot plot = {.width = 400, .height = 300, .left = 40, .right = 390, .top = 10, .bottom = 260};
    assert_true(records && indices && places);
    plot_axis_log(&plot.x, 1, 1000);
    plot_axis_log(&plot.y, 1, 1000);
    for (size_t i = 0; i < COUNT; i++) {
        indices[i] = i;
        records[i].kernel = i % 2;
        records[i].noisy = i == 1000;
        places[i] = (struct plot_point){100 * (1 + 1e-7 * (double)i), 100};
    }
    places[7].x = 1;
    places[8].x = 999;
    places[9].y = 1;
    places[10].y = 999;
    assert_int_equal(plot_thin(&report, &plot, indices, places, COUNT, COUNT), COUNT); /* room for all */
    const size_t kept = plot_thin(&report, &plot, indices, places, COUNT, 100);
    assert_in_range(kept, 7, 100);
    bool outermost[11] = {false}, noisy = false, kernels[2] = {false, false};
    for (size_t i = 0; i < kept; i++) {
        if (indices[i] < 11)
            outermost[indices[i]] = true;
        noisy = noisy || indices[i] == 1000;
        kernels[indices[i] % 2] = true;
        const double x = indices[i] == 7 ? 1 : indices[i] == 8 ? 999 : 100 * (1 + 1e-7 * (double)indices[i]);
        assert_true(fabs(places[i].x - x) < 1e-9); /* cut together */
    }
    assert_true(outermost[7] && outermost[8] && outermost[9] && outermost[10] && noisy && kernels[0] && kernels[1]);
    free(records);
    free(indices);
    free(places);
}

/* A mark stands where gnuplot's line goes through its figures. */
static void test_marks_and_lines_agree(void **state)
{
    (void)state;
    char *found = gnuplot_or_skip(), *text = NULL;
    size_t size;
    struct plot_renderer renderer = {.gnuplot = found, .prefix = "t"};
    struct plot plot;
    FILE *page = open_memstream(&text, &size);
    const struct plot_point line[] = {{1, 10}, {30, 20}, {1000, 700}};
    assert_non_null(page);
    plot_begin(&plot, 460, 360, 48);
    plot_axis_log(&plot.x, 1, 1000);
    plot_axis_linear(&plot.y, 0, 700);
    plot.x.label = "it's";
    plot_line(&plot, line, 3, GNUPLOT_SERIES + 2, 0, 1.4);
    for (int i = 0; i < 3; i++)
        plot_mark(&plot, (struct plot_mark){.x = line[i].x,
                                            .y = line[i].y,
                                            .color = GNUPLOT_SERIES + 2,
                                            .hollow = i == 1,
                                            .record = i ? i : PLOT_NO_RECORD,
                                            .title = i ? NULL : strdup("a <b> & \"c\"")});
    plot_end(&plot, &renderer, "Title <x>", "Words & more", page);
    plot_renderer_end(&renderer, page);
    fclose(page);
    assert_int_equal(renderer.failed, 0);
    double drawn[6];
    const char *path = strstr(text, "stroke=\"var(--s2)\" d=\"M");
    assert_non_null(path);
    assert_int_equal(sscanf(path, "stroke=\"var(--s2)\" d=\"M%lf,%lf L%lf,%lf L%lf,%lf", &drawn[0], &drawn[1],
                            &drawn[2], &drawn[3], &drawn[4], &drawn[5]),
                     6);
    const char *mark = strstr(text, "<g fill=\"var(--s2)\"");
    assert_non_null(mark);
    static const int order[] = {0, 2, 1}; /* hollow ones come last */
    for (int i = 0; i < 3; i++) {
        double x, y;
        mark = strstr(mark + 1, "<path d=\"M");
        assert_non_null(mark);
        assert_int_equal(sscanf(mark, "<path d=\"M%lf %lf", &x, &y), 2);
        assert_true(fabs(x - drawn[2 * order[i]]) < 0.1 && fabs(y - drawn[2 * order[i] + 1]) < 0.1);
    }
    assert_non_null(strstr(text, "<title>a &lt;b&gt; &amp; &quot;c&quot;</title>"));
    assert_non_null(strstr(text, "data-r=\"1\""));
    assert_non_null(strstr(text, "aria-labelledby=\"t0t t0d\""));
    assert_non_null(strstr(text, "<title id=\"t0t\">Title &lt;x&gt;</title><desc id=\"t0d\">Words &amp; more</desc>"));
    assert_non_null(strstr(text, "<text>it's</text>"));
    free(text);
    free(found);
}

/* Every section has something to draw: three lengths, two kernels, one and four threads. */
static json_t *full_records(const char *kernel)
{
    json_t *records = json_array();
    for (int k = 0; k < 2; k++)
        for (int threads = 1; threads <= 4; threads += 3)
            for (int S = 128; S <= 512; S *= 2) {
                const double median = 1e4 * (k + 1) / threads;
                json_t *record = example_record(json_pack("{s:s,s:i,s:i,s:i,s:f,s:s}", "kernel", k ? "tiled" : kernel,
                                                          "threads", threads, "S_q", S, "S_kv", S, "median_ns", median,
                                                          "placement", threads > 1 ? kernel : "core:0"));
                json_array_append_new(records, record);
            }
    return records;
}

static void test_text_from_files(void **state)
{
    (void)state;
    char *found = gnuplot_or_skip();
    struct report report;
    example_report(full_records("<script>alert(1)</script>'\"&{/x}\\n_^@`"), full_records("avx2"), &report);
    report.gnuplot = found;
    for (int s = 0; s < SECTIONS; s++) {
        char *text = written(&report, sections[s]);
        if (strstr(text, "<script") || strstr(text, "'\"&{") || strstr(text, "Plots are missing"))
            fail_msg("section %d lets text of a file through", s);
        assert_non_null(strstr(text, "&lt;script&gt;"));
        assert_in_range(occurrences(text, "<svg viewBox=\"0 0"), 1, 40);
        assert_int_equal(occurrences(text, "<svg"), occurrences(text, "</svg>"));
        assert_in_range(occurrences(text, "<title>"), 4, 400);
        assert_null(strstr(text, "rgb("));
        assert_null(strstr(text, "http"));
        free(text);
    }
    report.gnuplot = NULL;
    report_release(&report);
    free(found);
}

/* Without gnuplot, and with one that fails: a sentence, and the figures all the same. */
static void test_without_plots(void **state)
{
    (void)state;
    struct report report;
    char folder[] = P_tmpdir "/check_report_figure.XXXXXX", program[sizeof folder + 16];
    assert_non_null(mkdtemp(folder));
    snprintf(program, sizeof program, "%s/gnuplot", folder);
    FILE *file = fopen(program, "we");
    assert_non_null(file);
    fputs("#!/bin/sh\necho 'line 0: <no> terminal' >&2\nexit 1\n", file);
    fclose(file);
    assert_int_equal(chmod(program, 0755), 0);
    example_report(full_records("avx2"), NULL, &report);
    for (int s = 0; s < SECTIONS; s++) {
        report.gnuplot = NULL;
        char *without = written(&report, sections[s]);
        report.gnuplot = program;
        char *failing = written(&report, sections[s]);
        report.gnuplot = NULL;
        assert_non_null(strstr(without, "gnuplot could not be used"));
        assert_int_equal(occurrences(failing, "Plots are missing here"), 1);
        assert_non_null(strstr(failing, "status 1: line 0: &lt;no&gt; terminal"));
        assert_null(strstr(without, "<svg"));
        assert_null(strstr(failing, "<svg"));
        assert_in_range(occurrences(without, "<tr>"), 3, 1000);
        assert_int_equal(occurrences(without, "<tr>"), occurrences(failing, "<tr>"));
        free(without);
        free(failing);
    }
    unlink(program);
    rmdir(folder);
    report_release(&report);
}

static void test_nothing_to_draw(void **state)
{
    (void)state;
    static const char *const sentences[] = {"No roofline", "No size was measured",
                                            "No kernel was measured on one thread",
                                            "No problem was measured with two kernels"};
    json_t *lists[] = {json_array(),
                       json_pack("[o,o]", example_record(json_pack("{s:s,s:s}", "status", "skipped", "reason", "r")),
                                 example_record(json_pack("{s:s,s:s}", "status", "wrong", "reason", "r"))),
                       json_pack("[o]", example_record(json_pack("{s:n}", "bytes_min")))};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        struct report report;
        example_report(lists[i], NULL, &report);
        for (int s = 0; s < SECTIONS; s++) {
            char *text = written(&report, sections[s]);
            if (!strstr(text, sentences[s]) || strstr(text, "<svg"))
                fail_msg("list %zu, section %d: %.300s", i, s, text);
            free(text);
        }
        report_release(&report);
    }
}

/* The boxes of a machine as its context tells of it, stripped of all but structure: [socket ...] (CPU). */
static char *boxes_of(json_t *topology)
{
    struct report report;
    example_report(json_array(), NULL, &report);
    json_t *context = (json_t *)report.sources[0].context;
    json_object_set_new(context, "topology", topology);
    char *text = written(&report, report_plot_scaling), *out = calloc(1, strlen(text) + 1);
    report_release(&report);
    assert_non_null(out);
    char *at = strstr(text, "<div class=\"machine\""), *end = out;
    assert_non_null(at);
    for (at = strchr(at, '>'); at && strncmp(at, "</div>\n", 7) != 0; at = strpbrk(at + 1, "<")) {
        if (strncmp(at, "<div class=\"box ", 16) == 0)
            end += sprintf(end, "[%c", toupper(at[16]));
        else if (strncmp(at, "</div>", 6) == 0)
            end += sprintf(end, "]");
        else if (strncmp(at, "<i>", 3) == 0)
            end += sprintf(end, " %d", atoi(at + 3));
    }
    free(text);
    return out;
}

static void expect_boxes(const char *synthetic, const char *expected)
{
    struct topology topology;
    struct error error = {0};
    assert_int_equal(topology_load(synthetic, NULL, &topology, &error), 0);
    char *boxes = boxes_of(topology_to_json(&topology));
    topology_release(&topology);
    assert_string_equal(boxes, expected);
    free(boxes);
}

static void test_topology(void **state)
{
    (void)state;
    expect_boxes("pack:2 numa:1 l3:1 core:2 pu:2(indexes=core)", "[S[N[C[C 0 4][C 1 5]]]][S[N[C[C 2 6][C 3 7]]]]");
    expect_boxes("pack:1 l3:2 core:2 pu:1", "[S[N[C[C 0][C 1]][C[C 2][C 3]]]]");
    expect_boxes("pu:3", "[N 0 1 2]");
    /* Nodes inside an L3 cache, one that overlaps others (each CPU stands once), an old file that does not tell of
     * cores. */
    char *boxes = boxes_of(json_loads("{\"allowed_pus\": [0,1,2,3], \"l3\": [{\"cpus\": [0,1,2,3], \"size\": 1024}],"
                                      "\"numa\": [{\"cpus\": [0,1]}, {\"cpus\": [2,3]}, {\"cpus\": [1,2]}],"
                                      "\"sockets\": [{\"cpus\": []}, 5], \"pus_per_core\": {\"max\": 2}}",
                                      0, NULL));
    assert_string_equal(boxes, "[C[N 0][N 3][N 1 2]]");
    free(boxes);
    boxes = boxes_of(json_loads("{\"allowed_pus\": [3, 7], \"pus_per_core\": {\"max\": 1}}", 0, NULL));
    assert_string_equal(boxes, "[C 3][C 7]");
    free(boxes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_axes),
        cmocka_unit_test(test_ticks_at_values),
        cmocka_unit_test(test_thinning),
        cmocka_unit_test(test_marks_and_lines_agree),
        cmocka_unit_test(test_text_from_files),
        cmocka_unit_test(test_without_plots),
        cmocka_unit_test(test_nothing_to_draw),
        cmocka_unit_test(test_topology),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
