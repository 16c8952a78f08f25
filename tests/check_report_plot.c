/* SPDX-License-Identifier: Apache-2.0
 *
 * Which points the report's plots are made of, and their figures, against values worked out by hand: ratios and their
 * intervals, sweeps, scaling, contests, ceilings.
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

#include "harness/report_plot.h"
#include "harness/report_plot_ceilings.h"
#include "harness/report_plot_rivals.h"
#include "harness/report_plot_scaling.h"
#include "harness/report_plot_sweeps.h"
#include "report_example.h"

static void expect_near(double value, double expected)
{
    if (!(fabs(value - expected) <= 1e-9 * fabs(expected)))
        fail_msg("%.12g should be %.12g", value, expected);
}

static void expect_interval(struct plot_value value, double middle, double low, double high)
{
    expect_near(value.value, middle);
    expect_near(value.low, low);
    expect_near(value.high, high);
}

static json_t *kernel_record(const char *kernel, double median_ns)
{
    return example_record(json_pack("{s:s,s:f}", "kernel", kernel, "median_ns", median_ns));
}

/* 1e6 FLOPs in 1e4 ns are 100 GFLOP/s; from 0.9 and 1.25 of the time 111.1 and 80. */
static void test_rates_and_ratios(void **state)
{
    (void)state;
    struct report report;
    json_t *no_interval = kernel_record("naive", 4e4);
    json_object_set_new(no_interval, "ci95_low_ns", json_null());
    json_object_set_new(no_interval, "ci95_high_ns", json_null());
    example_report(json_pack("[o,o,o]", kernel_record("avx2", 1e4), kernel_record("tiled", 2e4), no_interval), NULL,
                   &report);
    const struct report_record *fast = &report.records[0], *slow = &report.records[1], *bare = &report.records[2];
    expect_interval(plot_gflops(fast), 100, 80, 1e6 / 0.9e4);
    expect_interval(plot_speed(slow, fast), 0.5, 0.9e4 / 2.5e4, 1.25e4 / 1.8e4);
    expect_interval(plot_speed(fast, slow), 2, 1.8e4 / 1.25e4, 2.5e4 / 0.9e4);
    expect_near(plot_speed(bare, fast).value, 0.25);
    assert_true(isnan(plot_speed(bare, fast).low) && isnan(plot_speed(bare, fast).high));
    assert_true(isnan(plot_gflops(bare).low));
    expect_near(plot_intensity(fast->json), 10);
    report_release(&report);
}

static void test_hover_text(void **state)
{
    (void)state;
    struct report report;
    example_report(json_pack("[o]", example_record(json_pack("{s:s,s:i,s:f,s:s,s:{s:s}}", "kernel", "<b>&'", "threads",
                                                             2, "ci95_high_ns", 1.1e4, "placement", "l3:0", "noise",
                                                             "quality", "noisy"))),
                   NULL, &report);
    char *title = plot_record_title(&report, &report.records[0]);
    assert_string_equal(title,
                        "<b>&' bhq, 2 threads, l3:0: B 1  H 8  S 128  D 64: 100.0 GFLOP/s ±10 %, 50% of the roof "
                        "(compute), noisy");
    free(title);
    report_release(&report);
}

static json_t *sized(const char *kernel, int B, int H, int H_kv, int S_q, int S_kv, int D)
{
    return example_record(json_pack("{s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:f}", "kernel", kernel, "B", B, "H", H, "H_kv",
                                    H_kv, "S_q", S_q, "S_kv", S_kv, "D", D, "D_v", D, "scale", 1 / sqrt(D)));
}

/* Three values of one size with the rest equal make a sweep; two do not, nor do three of different kernels. */
static void test_sweeps(void **state)
{
    (void)state;
    static const int shapes[][6] = {
        /* B, H, H_kv, S_q, S_kv, D */
        {1, 8, 8, 512, 512, 64}, {1, 8, 8, 128, 128, 64}, {1, 8, 8, 256, 256, 64}, /* S */
        {1, 8, 8, 128, 128, 80}, {1, 8, 8, 128, 128, 96},                          /* D, with 64 above */
        {2, 8, 8, 128, 128, 64},                                                   /* B 1 and 2: no sweep */
        {1, 8, 2, 64, 64, 64},   {1, 16, 4, 64, 64, 64},  {1, 4, 1, 64, 64, 64},   /* H, four to a key head */
        {1, 4, 4, 1, 1000, 64},  {1, 4, 4, 1, 2000, 64},  {1, 4, 4, 1, 4000, 64},  /* S_kv */
    };
    struct report report;
    size_t count;
    json_t *records = json_array();
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const int *s = shapes[i];
        json_array_append_new(records, sized("avx2", s[0], s[1], s[2], s[3], s[4], s[5]));
    }
    json_array_append_new(records, sized("tiled", 4, 8, 8, 128, 128, 64)); /* B 1, 2, 4, but of two kernels */
    example_report(records, NULL, &report);
    struct plot_sweep *sweeps = plot_sweeps(&report, 10, &count);
    assert_int_equal(count, 4);
    static const enum sweep_size sizes[] = {SWEEP_S, SWEEP_S_KV, SWEEP_D, SWEEP_H};
    static const double values[][3] = {{128, 256, 512}, {1000, 2000, 4000}, {64, 80, 96}, {4, 8, 16}};
    static const char *const headings[] = {
        "B 1  H 8  D 64; 1 thread, compact", "B 1  H 4  S_q 1  D 64; 1 thread, compact",
        "B 1  H 8  S 128; 1 thread, compact", "B 1  S 64  D 64  kv-heads H/4; 1 thread, compact"};
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(sweeps[i].size, sizes[i]);
        assert_int_equal(sweeps[i].value_count, 3);
        for (int v = 0; v < 3; v++)
            expect_near(sweeps[i].values[v], values[i][v]);
        char *heading = plot_sweep_heading(&report, &sweeps[i]);
        assert_string_equal(heading, headings[i]);
        free(heading);
    }
    size_t order[3];
    assert_int_equal(plot_sweeps_choose(sweeps, count, order, 3), 3);
    plot_sweeps_release(sweeps, count);
    report_release(&report);
}

/* Anything else that differs takes a point out of the sweep; what is not ok never enters. */
static void test_sweeps_keep_apart(void **state)
{
    (void)state;
    static const char *const fields[][2] = {
        {"dtype", "bf16"}, {"causal", "top_left"}, {"cache", "cold"},  {"placement", "l3:0"}, {"layout", "BSHD"},
        {"window", "64"},  {"alias", "kv"},        {"schedule", "bh"}, {"status", "failed"},  {"source", "plugin:x"}};
    for (size_t f = 0; f <= sizeof fields / sizeof *fields; f++) {
        struct report report;
        size_t count;
        json_t *odd = sized("avx2", 1, 8, 8, 512, 512, 64);
        if (f < sizeof fields / sizeof *fields)
            json_object_set_new(odd, fields[f][0], json_string(fields[f][1]));
        example_report(
            json_pack("[o,o,o]", sized("avx2", 1, 8, 8, 128, 128, 64), sized("avx2", 1, 8, 8, 256, 256, 64), odd), NULL,
            &report);
        struct plot_sweep *sweeps = plot_sweeps(&report, 10, &count);
        assert_int_equal(count, f == sizeof fields / sizeof *fields ? 1 : 0);
        plot_sweeps_release(sweeps, count);
        report_release(&report);
    }
}

/* Where lines are too many, the fastest of each kernel stay. */
static void test_lines_to_draw(void **state)
{
    (void)state;
    static const struct {
        const char *kernel, *schedule;
        double ns;
    } lines[] = {{"a", "bh", 4e4}, {"a", "bhq", 1e4}, {"b", "bh", 2e4}, {"b", "bhq", 3e4}, {"c", "bhq", 9e4}};
    struct report report;
    json_t *records = json_array();
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        for (int S = 128; S <= 512; S *= 2) {
            json_t *record = sized(lines[i].kernel, 1, 8, 8, S, S, 64);
            json_object_set_new(record, "schedule", json_string(lines[i].schedule));
            json_object_set_new(record, "gflops", json_real(1e6 / lines[i].ns));
            json_array_append_new(records, record);
        }
    example_report(records, NULL, &report);
    for (size_t most = 1; most <= 5; most++) {
        size_t count;
        struct plot_sweep *sweeps = plot_sweeps(&report, most, &count);
        assert_int_equal(count, 1);
        assert_int_equal(sweeps[0].line_count, 5);
        assert_int_equal(sweeps[0].lines_drawn, most == 4 ? 3 : most);
        static const char *const expected[] = {"a bhq ", "a bhq b bh ", "a bhq b bh c bhq "};
        char text[128] = "";
        for (size_t l = 0; most <= 3 && l < sweeps[0].lines_drawn; l++) {
            const json_t *json = report.records[sweeps[0].lines[l].records[0]].json;
            strcat(strcat(text, json_get_string(json, "kernel", "")), " ");
            strcat(strcat(text, json_get_string(json, "schedule", "")), " ");
        }
        if (most <= 3)
            assert_string_equal(text, expected[most - 1]);
        plot_sweeps_release(sweeps, count);
    }
    report_release(&report);
}

static json_t *threaded(const char *kernel, const char *schedule, int threads, const char *placement, double median_ns)
{
    return example_record(json_pack("{s:s,s:s,s:i,s:s,s:f}", "kernel", kernel, "schedule", schedule, "threads", threads,
                                    "placement", placement, "median_ns", median_ns));
}

/* Against the fastest one-thread point of the same kernel: 8e4 / 2.5e4 = 3.2, over 4 threads 0.8. */
static void test_scaling(void **state)
{
    (void)state;
    struct report report;
    example_report(json_pack("[o,o,o,o,o]", threaded("avx2", "bhq", 1, "core:0", 1e5),
                             threaded("avx2", "serial", 1, "core:0", 8e4), threaded("avx2", "bhq", 4, "l3:0", 2.5e4),
                             threaded("tiled", "bhq", 4, "l3:0", 1e4), threaded("naive", "bhq", 1, "core:0", 1e3)),
                   NULL, &report);
    const struct report_record **bases = plot_scaling_bases(&report), *base = bases[2];
    assert_ptr_equal(base, &report.records[1]);
    assert_ptr_equal(bases[0], base);
    assert_ptr_equal(bases[1], base);
    assert_null(bases[3]); /* tiled has no one-thread point */
    assert_ptr_equal(bases[4], &report.records[4]);
    free(bases);
    expect_interval(plot_speed(&report.records[2], base), 3.2, 7.2e4 / 3.125e4, 1e5 / 2.25e4);
    expect_interval(plot_efficiency(&report.records[2], base), 0.8, 7.2e4 / 12.5e4, 1e5 / 9e4);
    report_release(&report);
}

static void test_peers(void **state)
{
    (void)state;
    static const struct {
        const char *kernel, *source;
        bool peer;
    } cases[] = {
        {"avx512", "builtin", false},     {"openblas", "builtin", true},    {"openblas_2gemm", "builtin", true},
        {"mine", "plugin:mine.so", true}, {"x", "peer:torch 2.1", true},    {"torch", "builtin", true},
        {"torchlight", "builtin", false}, {"onednn-sdpa", "builtin", true}, {"naive", "", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *json = json_pack("{s:s,s:s}", "kernel", cases[i].kernel, "source", cases[i].source);
        const struct report_record record = {.json = json};
        if (plot_is_peer(&record) != cases[i].peer)
            fail_msg("%s of %s", cases[i].kernel, cases[i].source);
        json_decref(json);
    }
}

/* Two problems. First: ours 1e4 (avx512), torch 8e3 = 1.25 x, openblas 4e4 = 0.25 x. Second: ours 2e4, openblas 2e4 =
 * 1 x. Geometric means: torch 1.25, openblas sqrt(0.25 * 1) = 0.5. */
static void test_contests(void **state)
{
    (void)state;
    struct report report;
    size_t count, standing_count;
    json_t *slower_schedule = kernel_record("torch", 9e3), *second[2];
    json_object_set_new(slower_schedule, "schedule", json_string("own"));
    for (int i = 0; i < 2; i++) {
        second[i] = kernel_record(i ? "openblas" : "avx2", 2e4);
        json_object_set_new(second[i], "B", json_integer(4));
    }
    example_report(json_pack("[o,o,o,o,o,o,o]", kernel_record("avx512", 1e4), kernel_record("openblas", 4e4),
                             kernel_record("avx2", 3e4), slower_schedule, kernel_record("torch", 8e3), second[0],
                             second[1]),
                   NULL, &report);
    struct plot_contest *contests = plot_contests(&report, true, &count);
    assert_int_equal(count, 2);
    assert_int_equal(contests[0].base, 0);
    assert_int_equal(contests[0].count, 2);
    assert_int_equal(contests[0].rivals[0].record, 4); /* torch's faster one */
    expect_interval(contests[0].rivals[0].ratio, 1.25, 0.9e4 / 1e4, 1.25e4 / 7.2e3);
    expect_near(contests[0].rivals[1].ratio.value, 0.25);
    expect_near(contests[1].rivals[0].ratio.value, 1);
    struct plot_standing *standings = plot_standings(&report, contests, count, &standing_count);
    assert_int_equal(standing_count, 2);
    assert_string_equal(report.kernels[standings[0].kernel], "torch");
    expect_near(standings[0].mean, 1.25);
    assert_int_equal(standings[0].contests, 1);
    expect_near(standings[1].mean, 0.5);
    assert_int_equal(standings[1].contests, 2);
    free(standings);
    plot_contests_release(contests, count);
    /* Our own alone: avx512 1, avx2 1/3 in the first; the second has one of ours only. */
    contests = plot_contests(&report, false, &count);
    assert_int_equal(count, 1);
    assert_int_equal(contests[0].count, 2);
    expect_near(contests[0].rivals[0].ratio.value, 1);
    expect_near(contests[0].rivals[1].ratio.value, 1.0 / 3);
    plot_contests_release(contests, count);
    report_release(&report);
}

static json_t *bounded(const char *kernel, const char *bound, double roof_gflops, double bytes, double isa)
{
    return example_record(json_pack("{s:s,s:s,s:f,s:f,s:f}", "kernel", kernel, "roof_bound", bound, "roof_gflops",
                                    roof_gflops, "bytes_min", bytes, "isa_roof_gflops", isa));
}

static void expect_ceiling(const struct plot_ceiling *ceiling, enum ceiling_kind kind, const char *name, double value,
                           double least, double most, size_t count)
{
    assert_int_equal(ceiling->kind, kind);
    assert_string_equal(ceiling->name, name);
    expect_near(ceiling->value, value);
    expect_near(ceiling->least, least);
    expect_near(ceiling->most, most);
    assert_int_equal(ceiling->count, count);
}

/* compute: median of 190, 200, 204. dram: 1e6 FLOPs of 1e6 bytes: GB/s are GFLOP/s, 20 and 24. l2: 1e6 FLOPs of 5e5
 * bytes: 150 GFLOP/s are 75 GB/s. tiled's instructions peak at 100; avx2's within 5 % of compute: no line. */
static void test_ceilings(void **state)
{
    (void)state;
    struct report report;
    size_t count, all[] = {0, 1, 2, 3, 4, 5, 6};
    example_report(json_pack("[o,o,o,o,o,o,o]", bounded("avx2", "compute", 200, 1e5, 198),
                             bounded("avx2", "compute", 190, 1e5, 198), bounded("avx2", "compute", 204, 1e5, 198),
                             bounded("tiled", "dram", 20, 1e6, 99), bounded("naive", "dram", 24, 1e6, 101),
                             bounded("avx2", "l2", 150, 5e5, 198), bounded("avx2", "tanh", 1e5, 5e5, 198)),
                   NULL, &report);
    struct plot_ceiling *ceilings = plot_ceilings(&report, all, 7, &count);
    assert_int_equal(count, 4);
    expect_ceiling(&ceilings[0], CEILING_COMPUTE, "compute", 200, 190, 204, 3);
    expect_ceiling(&ceilings[1], CEILING_MEMORY, "l2", 75, 75, 75, 1);
    expect_ceiling(&ceilings[2], CEILING_MEMORY, "dram", 22, 20, 24, 2);
    expect_ceiling(&ceilings[3], CEILING_ISA, "tiled, naive", 99, 99, 101, 2);
    free(ceilings);
    /* Nothing measured, nothing drawn. */
    ceilings = plot_ceilings(&report, all + 6, 1, &count);
    assert_int_equal(count, 1);
    expect_ceiling(&ceilings[0], CEILING_ISA, "avx2", 198, 198, 198, 1);
    free(ceilings);
    report_release(&report);
}

/* Noisy points count only where they are alone. */
static void test_ceilings_without_noise(void **state)
{
    (void)state;
    struct report report;
    size_t count, all[] = {0, 1, 2};
    json_t *records = json_pack("[o,o,o]", bounded("avx2", "compute", 200, 1e5, 200),
                                bounded("avx2", "compute", 50, 1e5, 200), bounded("avx2", "dram", 20, 1e6, 200));
    for (size_t i = 1; i < 3; i++)
        json_object_set_new(json_array_get(records, i), "noise", json_pack("{s:s}", "quality", "noisy"));
    example_report(records, NULL, &report);
    struct plot_ceiling *ceilings = plot_ceilings(&report, all, 3, &count);
    assert_int_equal(count, 2);
    expect_ceiling(&ceilings[0], CEILING_COMPUTE, "compute", 200, 200, 200, 1);
    expect_ceiling(&ceilings[1], CEILING_MEMORY, "dram", 20, 20, 20, 1);
    free(ceilings);
    report_release(&report);
}

/* attnbench peak fills what no point tells, of the same machine, placement and threads only. */
static void test_ceilings_of_peak(void **state)
{
    (void)state;
    struct report report;
    size_t count, all[] = {0};
    json_t *document = json_loads(
        "{\"placements\": [{\"placement\": \"all\", \"threads\": 1, \"compute\": [], \"memory\": []},"
        "{\"placement\": \"compact\", \"threads\": 1, \"compute\": [{\"element\": \"f32\", \"giga_ops_per_s\": "
        "{\"median\": 58, \"min\": 50, \"max\": 60, \"repeats\": 3}}, {\"element\": \"f32\", \"giga_ops_per_s\": "
        "{\"median\": 118, \"min\": 110, \"max\": 119, \"repeats\": 3}}, {\"element\": \"bf16\", \"giga_ops_per_s\": "
        "{\"median\": 236}}], \"memory\": [{\"level\": \"l1\", \"read_gb_per_s\": {\"median\": 300, \"min\": 290, "
        "\"max\": 310, \"repeats\": 5}}, {\"level\": \"dram\", \"read_gb_per_s\": null}]}]}",
        0, NULL);
    assert_non_null(document);
    example_report(json_pack("[o]", bounded("avx2", "dram", 20, 1e6, 117)), NULL, &report);
    struct report_peak peak = {.path = "peak.json", .document = document, .machine = "one"};
    report.peaks = &peak;
    report.peak_count = 1;
    struct plot_ceiling *ceilings = plot_ceilings(&report, all, 1, &count);
    assert_int_equal(count, 3);
    expect_ceiling(&ceilings[0], CEILING_MEMORY, "dram", 20, 20, 20, 1);
    expect_ceiling(&ceilings[1], CEILING_COMPUTE, "compute", 118, 110, 119, 3);
    expect_ceiling(&ceilings[2], CEILING_MEMORY, "l1", 300, 290, 310, 5);
    assert_true(ceilings[2].from_peak && !ceilings[0].from_peak);
    free(ceilings);
    peak.machine = "another";
    ceilings = plot_ceilings(&report, all, 1, &count);
    assert_int_equal(count, 2); /* dram, and the peak of avx2's instructions */
    free(ceilings);
    report.peaks = NULL;
    report.peak_count = 0;
    report_release(&report);
    json_decref(document);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rates_and_ratios),
        cmocka_unit_test(test_hover_text),
        cmocka_unit_test(test_sweeps),
        cmocka_unit_test(test_sweeps_keep_apart),
        cmocka_unit_test(test_lines_to_draw),
        cmocka_unit_test(test_scaling),
        cmocka_unit_test(test_peers),
        cmocka_unit_test(test_contests),
        cmocka_unit_test(test_ceilings),
        cmocka_unit_test(test_ceilings_of_peak),
        cmocka_unit_test(test_ceilings_without_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
