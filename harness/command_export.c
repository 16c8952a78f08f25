/* SPDX-License-Identifier: Apache-2.0
 *
 * attnbench export: a results file in other formats.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "arguments.h"
#include "commands.h"
#include "export.h"
#include "journal.h"
#include "output.h"

static const char help[] = "Usage: attnbench export [--format FORMAT] [-o OUT] FILE\n"
                           "\n"
                           "Writes a results file in another format.\n"
                           "\n"
                           "  --format FORMAT  csv (a row a record), json (one object), jsonl (as in\n"
                           "                   results files), md (GitHub Markdown with the machine's\n"
                           "                   portrait), table, or for other tools: github (what\n"
                           "                   github-action-benchmark takes as customSmallerIsBetter),\n"
                           "                   junit (a test case a point), google-benchmark (for its\n"
                           "                   tools/compare.py); default: csv\n"
                           "  -o OUT           file to write; default: standard output\n"
                           "  --wide           all columns in the table\n"
                           "  --help           this text\n"
                           "\n"
                           "Formats for other tools have one entry a point and machine: the latest record\n"
                           "that is ok, or a wrong one after it. Its name holds the problem, kernel,\n"
                           "schedule, threads and placement, and is the same from run to run of one\n"
                           "machine; in a file with results of several each name holds its machine too.\n"
                           "github has no place for points without a time: how many is told.\n"
                           "\n"
                           "Exit codes: 0 ok, 2 usage or bad file, 5 the output could not be written.\n";

enum { FLAG_FORMAT = ARGUMENTS_LONG_ONLY, FLAG_OUT, FLAG_WIDE, FLAG_HELP };

struct export_options {
    const char *file, *format, *out;
    bool wide, help;
};

static int parse(int argc, char **argv, struct export_options *options, struct error *error)
{
    static const struct option long_flags[] = {
        {"format", required_argument, NULL, FLAG_FORMAT},
        {"output", required_argument, NULL, FLAG_OUT},
        {"wide", no_argument, NULL, FLAG_WIDE},
        {"help", no_argument, NULL, FLAG_HELP},
        {0},
    };
    struct arguments arguments = {argc, argv, ":ho:f:", long_flags};
    const char *value;
    int flag = arguments_next(&arguments, true, &value, error);
    for (; flag > 0; flag = arguments_next(&arguments, false, &value, error)) {
        if (flag == 'f' || flag == FLAG_FORMAT)
            options->format = value;
        else if (flag == 'o' || flag == FLAG_OUT)
            options->out = value;
        else if (flag == FLAG_WIDE)
            options->wide = true;
        else
            options->help = true;
    }
    if (flag < 0)
        return flag;
    if (options->help)
        return 0;
    if (!export_knows(options->format))
        return error_usage(error, "--format %.100s: known are " EXPORT_FORMATS, options->format);
    if (optind == argc)
        return error_usage(error, "which results file? (attnbench export FILE --format csv)");
    if (optind + 1 < argc)
        return error_usage(error, "one results file at a time: what is %.200s?", argv[optind + 1]);
    options->file = argv[optind];
    return 0;
}

/* Opening the output empties it: it must not be the file that was read. */
static int refuse_same_file(const struct export_options *options, struct error *error)
{
    struct stat in, out;
    if (stat(options->file, &in) == 0 && stat(options->out, &out) == 0 && in.st_dev == out.st_dev &&
        in.st_ino == out.st_ino)
        return error_usage(error, "-o %.400s is the results file itself", options->out);
    return 0;
}

static int open_output(const struct export_options *options, FILE **file, struct error *error)
{
    *file = stdout;
    if (!options->out)
        return 0;
    int code = refuse_same_file(options, error);
    if (code)
        return code;
    *file = fopen(options->out, "we");
    if (*file)
        return 0;
    code = error_system(error, errno, "-o %.400s", options->out);
    error->exit_code = EXIT_UNWRITTEN;
    return code;
}

/* A chart without them looks as if all were well. */
static void tell_left_out(const char *file, const struct results *results)
{
    size_t counts[RECORD_STATUS_COUNT], sum = 0;
    const char *before = " (";
    export_github_left_out(results->contexts, results->records, counts);
    for (int status = 0; status < RECORD_STATUS_COUNT; status++)
        sum += counts[status];
    if (sum == 0)
        return;
    fprintf(stderr, "%s: %zu point%s without a time left out", file, sum, sum == 1 ? "" : "s");
    for (int status = 0; status < RECORD_STATUS_COUNT; status++) {
        if (counts[status] == 0)
            continue;
        fprintf(stderr, "%s%zu %s", before, counts[status], record_status_name((enum record_status)status));
        before = ", ";
    }
    fputs(")\n", stderr);
}

int command_export(int argc, char **argv, struct error *error)
{
    struct export_options options = {.format = "csv"};
    struct results results;
    FILE *file;
    int code = parse(argc, argv, &options, error);
    if (code)
        return code;
    if (options.help) {
        fputs(help, stdout);
        return output_flush(stdout, "output", error);
    }
    code = results_read(options.file, &results, error);
    if (code)
        return code;
    if (results.torn)
        fprintf(stderr, "%s: the last line is torn (the run was killed) and left out\n", options.file);
    const struct output_style style = {.wide = options.wide, .ascii = !options.out && !locale_is_utf8()};
    code = open_output(&options, &file, error);
    if (code == 0) {
        code = export_write(file, options.format, results.contexts, results.records, &style, error);
        if (file != stdout && fclose(file) != 0 && code == 0) {
            code = error_system(error, errno, "results could not be written");
            error->exit_code = EXIT_UNWRITTEN;
        }
        if (code && options.out)
            error_prefix(error, code, "-o %.400s", options.out);
    }
    if (code == 0 && strcmp(options.format, "github") == 0)
        tell_left_out(options.file, &results);
    results_release(&results);
    return code;
}
