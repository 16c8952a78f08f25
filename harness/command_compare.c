/* SPDX-License-Identifier: Apache-2.0
 *
 * attnbench compare: two results files, point by point.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "commands.h"
#include "compare.h"
#include "compare_output.h"
#include "json_util.h"
#include "record_text.h"
#include "report_input.h"

static const char help[] = "Usage: attnbench compare [OPTION...] FILE FILE\n"
                           "\n"
                           "Two results files, A and B, point by point: B's median over A's, with its 95 %\n"
                           "interval, largest change first; then points of another status, and those that\n"
                           "one file alone has. \"-\" is standard input, for one of them. Sequential, not\n"
                           "interleaved: no verdict. For one use attnbench duet or gate.\n"
                           "\n"
                           "A point is problem, kernel, schedule asked for, placement, threads, cache and\n"
                           "mem. Of several records of a point the latest that is ok counts, or a wrong\n"
                           "one after it. The interval joins those of both medians (order statistics; over\n"
                           "launches: of the launches' medians, from 6 launches on); that of a noisy record\n"
                           "is at least the range of its samples. A noisy point is marked \"~\", never\n"
                           "coloured.\n"
                           "\n"
                           "Points that differ in machine, compiler, flags, Linux release, page mode, dtype\n"
                           "or seed are not comparable.\n"
                           "\n"
                           "  -o table|json|csv|md  what standard output shows; default: table\n"
                           "  --fail-on PERCENT     exit 3 if a point without noise is slower by more, its\n"
                           "                        whole interval too; 1 if one is wrong or failed that\n"
                           "                        was not, or is new; 4 if one is missing from B, or was\n"
                           "                        ok and is skipped there, or if no point could tell\n"
                           "  --force               compare what is not comparable, with warnings\n"
                           "  --wide                whole lines in the table\n"
                           "  --color WHEN          auto (the default), always or never\n"
                           "  --help                this text\n"
                           "\n"
                           "Exit codes: 0 ok, 1 now wrong or failed, 2 usage or bad file, 3 slower, 4 not\n"
                           "comparable, too noisy or a point missing, 5 the output could not be written.\n"
                           "1 and 3, and 4 for a missing point, only with --fail-on.\n";

#define FORMATS "table, json, csv, md"

enum { FLAG_FAIL_ON = ARGUMENTS_LONG_ONLY, FLAG_FORCE, FLAG_WIDE, FLAG_COLOR, FLAG_HELP };

struct compare_options {
    const char *files[2], *format;
    double fail_on; /* percent; NaN: never */
    bool force, wide, help;
    enum color_mode color;
};

static int read_percent(const char *text, double *percent, struct error *error)
{
    char *end;
    *percent = strtod(text, &end);
    if (end > text && *end == '%')
        end++;
    if (end == text || *end || !isfinite(*percent) || *percent < 0)
        return error_usage(error, "--fail-on %.100s: not a percentage of 0 or more", text);
    return 0;
}

static bool is_format(const char *format)
{
    return strcmp(format, "table") == 0 || strcmp(format, "json") == 0 || strcmp(format, "csv") == 0 ||
           strcmp(format, "md") == 0;
}

static int take_flag(int flag, const char *value, struct compare_options *options, struct error *error)
{
    if (flag == 'o')
        options->format = value;
    else if (flag == FLAG_FAIL_ON)
        return read_percent(value, &options->fail_on, error);
    else if (flag == FLAG_FORCE)
        options->force = true;
    else if (flag == FLAG_WIDE)
        options->wide = true;
    else
        options->help = true;
    return 0;
}

static int check_operands(int argc, char **argv, struct compare_options *options, struct error *error)
{
    if (!is_format(options->format))
        return error_usage(error, "-o %.100s: known are " FORMATS, options->format);
    if (argc - optind < 2)
        return error_usage(error, "which two results files? (attnbench compare A.jsonl B.jsonl)");
    if (argc - optind > 2)
        return error_usage(error, "two results files at a time: what is %.200s?", argv[optind + 2]);
    options->files[0] = argv[optind];
    options->files[1] = argv[optind + 1];
    if (strcmp(options->files[0], "-") == 0 && strcmp(options->files[1], "-") == 0)
        return error_usage(error, "- and -: standard input can be one of the files only");
    return 0;
}

static int parse(int argc, char **argv, struct compare_options *options, struct error *error)
{
    static const struct option long_flags[] = {
        {"fail-on", required_argument, NULL, FLAG_FAIL_ON},
        {"force", no_argument, NULL, FLAG_FORCE},
        {"wide", no_argument, NULL, FLAG_WIDE},
        {"color", optional_argument, NULL, FLAG_COLOR},
        {"help", no_argument, NULL, FLAG_HELP},
        {0},
    };
    struct arguments arguments = {argc, argv, ":ho:", long_flags};
    const char *value;
    int code, flag = arguments_next(&arguments, true, &value, error);
    for (; flag > 0; flag = arguments_next(&arguments, false, &value, error)) {
        code = flag == FLAG_COLOR ? arguments_color(&arguments, value, &options->color, error)
                                  : take_flag(flag, value, options, error);
        if (code)
            return code;
    }
    if (flag < 0 || options->help)
        return flag;
    return check_operands(argc, argv, options, error);
}

static int read_file(const char *path, struct report_input *input, struct error *error)
{
    int code = report_input_read(path, input, error);
    if (code)
        return code;
    if (input->peak) {
        report_input_release(input);
        return error_usage(error, "%.400s: peaks, not results", path);
    }
    if (input->results.torn)
        fprintf(stderr, "%s: the last line is torn (the run was killed) and left out\n", path);
    return 0;
}

/* What forbids the comparison, or is worth a warning. */
static int check_comparable(const struct comparison *comparison, bool force, struct error *error)
{
    size_t matched =
        comparison->counts[COMPARE_FIGURES] + comparison->counts[COMPARE_STATUS] + comparison->counts[COMPARE_NEITHER];
    const struct compare_difference *worst = comparison->differences;
    if (matched == 0) {
        error_usage(error, "not comparable: no point stands in both files");
        error->exit_code = EXIT_INCONCLUSIVE;
        return -EINVAL;
    }
    if (!force && comparison->difference_count > 0 && worst->refused) {
        size_t refused = 0;
        while (refused < comparison->difference_count && comparison->differences[refused].refused)
            refused++;
        char others[64] = "";
        if (refused > 1)
            snprintf(others, sizeof others, ", and %zu more difference%s", refused - 1, refused > 2 ? "s" : "");
        error_usage(error,
                    "not comparable: %s is %.200s in A, %.200s in B (%zu point%s)%s; --force compares all the same",
                    worst->field, worst->a, worst->b, worst->points, worst->points == 1 ? "" : "s", others);
        error->exit_code = EXIT_INCONCLUSIVE;
        return -EINVAL;
    }
    return 0;
}

static void warn(const struct comparison *comparison)
{
    for (size_t i = 0; i < comparison->difference_count; i++) {
        const struct compare_difference *difference = &comparison->differences[i];
        fprintf(stderr, "warning: %s%s is %.300s in A, %.300s in B (%zu point%s)\n",
                difference->refused ? "not comparable: " : "", difference->field, difference->a, difference->b,
                difference->points, difference->points == 1 ? "" : "s");
    }
}

/* What --fail-on says of one point. */
struct judgement {
    size_t broken, slower, doubtful, clean, missing;
};

static void judge_pair(const struct compare_pair *pair, double fail_on, struct judgement *judgement)
{
    double limit = 1 + fail_on / 100;
    enum record_status to = record_status(pair->b.record);
    if (pair->kind == COMPARE_STATUS || pair->kind == COMPARE_ADDED)
        judgement->broken += (to == RECORD_WRONG || to == RECORD_FAILED);
    /* What A could not do either is no loss; what B skips is as good as missing. */
    judgement->missing += pair->kind == COMPARE_MISSING && record_status(pair->a.record) != RECORD_SKIPPED;
    judgement->missing +=
        pair->kind == COMPARE_STATUS && record_status(pair->a.record) == RECORD_OK && to == RECORD_SKIPPED;
    if (pair->kind != COMPARE_FIGURES)
        return;
    bool known = !compare_noisy(pair) && !isnan(pair->low);
    judgement->clean += known;
    judgement->slower += known && pair->low > limit;
    judgement->doubtful += pair->ratio > limit && !(known && pair->low > limit);
}

static int judge(const struct comparison *comparison, double fail_on)
{
    struct judgement judgement = {0};
    if (isnan(fail_on))
        return EXIT_OK;
    for (size_t i = 0; i < comparison->pair_count; i++)
        judge_pair(&comparison->pairs[i], fail_on, &judgement);
    fprintf(stderr,
            "--fail-on %g: %zu slower by more than that, %zu more within their intervals or their noise; %zu now wrong "
            "or failed; %zu missing from B, or skipped there\n",
            fail_on, judgement.slower, judgement.doubtful, judgement.broken, judgement.missing);
    if (judgement.broken > 0)
        return EXIT_WRONG;
    if (judgement.slower > 0)
        return EXIT_REGRESSION;
    return judgement.clean > 0 && judgement.missing == 0 ? EXIT_OK : EXIT_INCONCLUSIVE;
}

static void write_comparison(const struct comparison *comparison, const struct compare_options *options,
                             const struct compare_files *files)
{
    if (strcmp(options->format, "json") == 0) {
        compare_json(stdout, comparison, files);
    } else if (strcmp(options->format, "csv") == 0) {
        compare_csv(stdout, comparison);
    } else if (strcmp(options->format, "md") == 0) {
        compare_markdown(stdout, comparison, files);
    } else {
        const struct output_style style = output_style(options->color, options->wide, stdout);
        compare_table(stdout, comparison, files, &style);
    }
}

static int compare_inputs(const struct compare_options *options, const struct report_input *a,
                          const struct report_input *b, struct error *error)
{
    struct comparison comparison;
    const struct compare_files files = {options->files[0], options->files[1], &a->results, &b->results};
    compare_results(&a->results, &b->results, &comparison);
    int code = check_comparable(&comparison, options->force, error);
    if (code == 0) {
        warn(&comparison);
        write_comparison(&comparison, options, &files);
        code = output_flush(stdout, "the comparison", error);
    }
    if (code == 0)
        code = judge(&comparison, options->fail_on);
    compare_release(&comparison);
    return code;
}

int command_compare(int argc, char **argv, struct error *error)
{
    struct compare_options options = {.format = "table", .fail_on = NAN, .color = COLOR_AUTO};
    struct report_input a, b;
    int code = parse(argc, argv, &options, error);
    if (code)
        return code;
    if (options.help) {
        fputs(help, stdout);
        return output_flush(stdout, "output", error);
    }
    code = read_file(options.files[0], &a, error);
    if (code)
        return code;
    code = read_file(options.files[1], &b, error);
    if (code == 0) {
        code = compare_inputs(&options, &a, &b, error);
        report_input_release(&b);
    }
    report_input_release(&a);
    return code;
}
