/* SPDX-License-Identifier: Apache-2.0
 *
 * attnbench report: one self-contained HTML page from results files.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "arguments.h"
#include "commands.h"
#include "gnuplot.h"
#include "output.h"
#include "report.h"
#include "whole_file.h"

static const char help[] = "Usage: attnbench report [-o OUT] FILE...\n"
                           "\n"
                           "Makes one HTML page from results files: what came out, roofline, kernels by\n"
                           "shape, scaling, rivals, correctness, every record with the command that repeats\n"
                           "it, how it was measured. The page asks for nothing else: it can be opened from\n"
                           "disk, mailed, printed.\n"
                           "\n"
                           "A FILE is a results file (- is standard input), or what `attnbench peak --json`\n"
                           "printed: its ceilings are drawn into the roofline. Several results files are\n"
                           "laid over each other and compared by machine, build or file.\n"
                           "\n"
                           "  -o OUT, --output OUT  file to write; - is standard output. Default: beside the\n"
                           "                        results file, with its name and .html; for several of\n"
                           "                        them report.html here\n"
                           "  -q, --quiet           only errors and warnings on standard error\n"
                           "  --help                this text\n"
                           "\n"
                           "Plots need gnuplot (5.0 or newer) on PATH; without it the page has the figures\n"
                           "alone.\n"
                           "\n"
                           "Exit codes: 0 ok, 2 usage or bad file, 5 the page could not be written.\n";

enum { FLAG_OUTPUT = ARGUMENTS_LONG_ONLY, FLAG_QUIET, FLAG_HELP };

struct report_options {
    const char *out;
    bool quiet, help;
};

static int parse(int argc, char **argv, struct report_options *options, struct error *error)
{
    static const struct option long_flags[] = {
        {"output", required_argument, NULL, FLAG_OUTPUT},
        {"quiet", no_argument, NULL, FLAG_QUIET},
        {"help", no_argument, NULL, FLAG_HELP},
        {0},
    };
    struct arguments arguments = {argc, argv, ":ho:q", long_flags};
    const char *value;
    int flag = arguments_next(&arguments, true, &value, error);
    for (; flag > 0; flag = arguments_next(&arguments, false, &value, error)) {
        if (flag == 'o' || flag == FLAG_OUTPUT)
            options->out = value;
        else if (flag == 'q' || flag == FLAG_QUIET)
            options->quiet = true;
        else
            options->help = true;
    }
    if (flag == 0 && !options->help && optind == argc)
        return error_usage(error, "which results files? (attnbench report FILE... -o report.html)");
    if (flag == 0 && options->out && !options->out[0])
        return error_usage(error, "-o: an empty name");
    return flag;
}

/* Where the page goes if -o does not say. malloc'd. */
static char *default_out(const struct report *report)
{
    char *out = NULL;
    const char *path = report->sources[0].path;
    bool is_one = strcmp(path, "-") != 0;
    for (size_t i = 1; i < report->source_count; i++)
        is_one = is_one && strcmp(report->sources[i].path, path) == 0;
    if (!is_one)
        return strdup("report.html");
    size_t length = strlen(path);
    if (length > 6 && strcmp(path + length - 6, ".jsonl") == 0)
        length -= 6;
    return asprintf(&out, "%.*s.html", (int)length, path) < 0 ? NULL : out;
}

/* Leaves report->gnuplot NULL, and tells why, where no plot can be made. */
static void find_gnuplot(struct report *report)
{
    struct error why;
    char *version = NULL, *program = gnuplot_find();
    if (!program) {
        fputs("attnbench report: gnuplot is not installed: the page will have no plots\n", stderr);
        return;
    }
    if (gnuplot_version(program, &version, &why) == 0) {
        report->gnuplot = program;
    } else {
        fprintf(stderr, "attnbench report: %s: the page will have no plots\n", why.text);
        free(program);
    }
    free(version);
}

/* The page must not take the place of what it is made from. */
static int refuse_input(char *const *paths, int count, const char *out, struct error *error)
{
    struct stat input, output;
    for (int i = 0; i < count && stat(out, &output) == 0; i++) {
        if (stat(paths[i], &input) == 0 && input.st_dev == output.st_dev && input.st_ino == output.st_ino)
            return error_usage(error, "-o %.400s is one of the files to read", out);
    }
    return 0;
}

static int write_page(const struct report *report, const char *out, struct error *error)
{
    struct whole_file file;
    if (strcmp(out, "-") == 0) {
        report_write(report, stdout);
        return output_flush(stdout, "the page", error);
    }
    int code = whole_file_open(out, &file, error);
    if (code == 0) {
        report_write(report, file.stream);
        code = whole_file_commit(&file, error);
    }
    return code ? error_prefix(error, code, "-o") : 0;
}

int command_report(int argc, char **argv, struct error *error)
{
    struct report_options options = {0};
    struct report report;
    int code = parse(argc, argv, &options, error);
    if (code)
        return code;
    if (options.help) {
        fputs(help, stdout);
        return output_flush(stdout, "output", error);
    }
    char *const *paths = argv + optind;
    const int count = argc - optind;
    code = report_read(paths, (size_t)count, &report, error);
    if (code)
        return code;
    char *chosen = options.out ? strdup(options.out) : default_out(&report);
    if (!chosen)
        abort();
    code = refuse_input(paths, count, chosen, error);
    if (code == 0) {
        find_gnuplot(&report);
        code = write_page(&report, chosen, error);
    }
    if (code == 0 && !options.quiet && strcmp(chosen, "-") != 0)
        fprintf(stderr, "report: %s (%zu record%s)\n", chosen, report.record_count,
                report.record_count == 1 ? "" : "s");
    free(chosen);
    report_release(&report);
    return code;
}
