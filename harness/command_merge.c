/* SPDX-License-Identifier: Apache-2.0
 *
 * attnbench merge: results files of several machines as one.
 */
#include <errno.h>

#include "arguments.h"
#include "commands.h"
#include "merge.h"
#include "output.h"
#include "whole_file.h"

static const char help[] = "Usage: attnbench merge [-o OUT] FILE...\n"
                           "\n"
                           "Puts results files together: machine by machine, each run's context followed by\n"
                           "its records, as show, export and report read them. Lines stay as they are,\n"
                           "unknown fields included. A point of a run that stands in several files is kept\n"
                           "once, so files may be merged again, and OUT may be one of them; how many were\n"
                           "dropped is told.\n"
                           "\n"
                           "  -o OUT, --output OUT  file to write, whole or not at all; default: standard\n"
                           "                        output\n"
                           "  -q, --quiet           only errors on standard error\n"
                           "  --help                this text\n"
                           "\n"
                           "Exit codes: 0 ok, 2 usage or bad file, 5 the output could not be written.\n";

enum { FLAG_OUT = ARGUMENTS_LONG_ONLY, FLAG_QUIET, FLAG_HELP };

struct merge_options {
    const char *out;
    bool quiet, help;
};

static int parse(int argc, char **argv, struct merge_options *options, struct error *error)
{
    static const struct option long_flags[] = {{"output", required_argument, NULL, FLAG_OUT},
                                               {"quiet", no_argument, NULL, FLAG_QUIET},
                                               {"help", no_argument, NULL, FLAG_HELP},
                                               {0}};
    struct arguments arguments = {argc, argv, ":ho:q", long_flags};
    const char *value;
    int flag = arguments_next(&arguments, true, &value, error);
    for (; flag > 0; flag = arguments_next(&arguments, false, &value, error)) {
        if (flag == 'o' || flag == FLAG_OUT)
            options->out = value;
        else if (flag == 'q' || flag == FLAG_QUIET)
            options->quiet = true;
        else
            options->help = true;
    }
    if (flag < 0)
        return flag;
    if (!options->help && optind == argc)
        return error_usage(error, "which results files? (attnbench merge FILE... -o OUT)");
    return 0;
}

static int add_files(struct merge *merge, char **paths, int count, struct error *error)
{
    for (int i = 0; i < count; i++) {
        bool torn;
        int code = merge_add(merge, paths[i], &torn, error);
        if (code)
            return code;
        if (torn)
            fprintf(stderr, "%s: the last line is torn (the run was killed) and left out\n", paths[i]);
    }
    return 0;
}

static int write_merged(const struct merge *merge, const char *out, struct error *error)
{
    struct whole_file file;
    if (!out) {
        merge_write(merge, stdout);
        return output_flush(stdout, "results", error);
    }
    int code = whole_file_open(out, &file, error);
    if (code == 0) {
        merge_write(merge, file.stream);
        code = whole_file_commit(&file, error);
    }
    return code ? error_prefix(error, code, "-o") : 0;
}

static void tell(const struct merge *merge, int files)
{
    struct merge_counts counts;
    merge_count(merge, &counts);
    fprintf(stderr, "%d file%s: %zu machine%s, %zu run%s, %zu record%s; %zu duplicate%s dropped\n", files,
            files == 1 ? "" : "s", counts.machines, counts.machines == 1 ? "" : "s", counts.runs,
            counts.runs == 1 ? "" : "s", counts.records, counts.records == 1 ? "" : "s", counts.dropped,
            counts.dropped == 1 ? "" : "s");
    if (counts.different > 0)
        fprintf(stderr,
                "warning: %zu of the dropped differ from the record of the same run and point that was met first "
                "and is kept; first at %s\n",
                counts.different, counts.where);
}

int command_merge(int argc, char **argv, struct error *error)
{
    struct merge_options options = {0};
    int code = parse(argc, argv, &options, error);
    if (code)
        return code;
    if (options.help) {
        fputs(help, stdout);
        return output_flush(stdout, "output", error);
    }
    struct merge *merge = merge_create();
    if (!merge)
        return error_system(error, ENOMEM, "merge");
    code = add_files(merge, argv + optind, argc - optind, error);
    if (code == 0)
        code = write_merged(merge, options.out, error);
    if (code == 0 && !options.quiet)
        tell(merge, argc - optind);
    merge_release(merge);
    return code;
}
