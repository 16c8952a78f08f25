/* SPDX-License-Identifier: Apache-2.0
 *
 * attnbench show: a results file as the table that `run` printed; one point whole.
 */
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "commands.h"
#include "journal.h"
#include "json_util.h"
#include "output.h"
#include "record_repro.h"

static const char help[] = "Usage: attnbench show [--wide] [--color WHEN] FILE\n"
                           "       attnbench show FILE --point ID\n"
                           "\n"
                           "Prints a results file as the table that `attnbench run` printed, with its\n"
                           "summary; of a merged file one table a machine.\n"
                           "\n"
                           "  --point ID    one point whole: its record as JSON, then the command that\n"
                           "                repeats it; the first digits of an ID are enough where no\n"
                           "                other begins so; `attnbench show FILE ID` is short for it\n"
                           "  --wide        all columns, whole reasons\n"
                           "  --color WHEN  auto (the default), always or never\n"
                           "  --help        this text\n"
                           "\n"
                           "Exit codes: 0 ok, 2 usage or bad file, 5 the output could not be written.\n";

enum { FLAG_POINT = ARGUMENTS_LONG_ONLY, FLAG_WIDE, FLAG_COLOR, FLAG_HELP };

struct show_options {
    const char *file, *point;
    bool wide, help;
    enum color_mode color;
};

static int parse(int argc, char **argv, struct show_options *options, struct error *error)
{
    static const struct option long_flags[] = {
        {"point", required_argument, NULL, FLAG_POINT},
        {"wide", no_argument, NULL, FLAG_WIDE},
        {"color", optional_argument, NULL, FLAG_COLOR},
        {"help", no_argument, NULL, FLAG_HELP},
        {0},
    };
    struct arguments arguments = {argc, argv, ":h", long_flags};
    const char *value;
    int code, flag = arguments_next(&arguments, true, &value, error);
    for (; flag > 0; flag = arguments_next(&arguments, false, &value, error)) {
        if (flag == FLAG_POINT)
            options->point = value;
        else if (flag == FLAG_WIDE)
            options->wide = true;
        else if (flag == 'h' || flag == FLAG_HELP)
            options->help = true;
        else if ((code = arguments_color(&arguments, value, &options->color, error)))
            return code;
    }
    if (flag < 0)
        return flag;
    if (options->help)
        return 0;
    if (optind == argc)
        return error_usage(error, "which results file? (attnbench show FILE)");
    options->file = argv[optind++];
    if (!options->point && optind < argc)
        options->point = argv[optind++];
    if (optind < argc)
        return error_usage(error, "one results file at a time: what is %.200s?", argv[optind]);
    return 0;
}

/* One field a line: samples would fill a screen with one number a line. */
static void print_point(FILE *file, const json_t *record)
{
    const char *key, *gap = "";
    json_t *value;
    fputs("{\n", file);
    json_object_foreach((json_t *)record, key, value)
    {
        if (strcmp(key, "repro") == 0) /* stands below, as it is typed */
            continue;
        json_t *name = json_string(key);
        fprintf(file, "%s  ", gap);
        json_dumpf(name, file, JSON_ENCODE_ANY);
        fputs(": ", file);
        json_dumpf(value, file, JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
        json_decref(name);
        gap = ",\n";
    }
    fputs("\n}\n", file);
    char *repro = record_repro(record);
    if (repro)
        fprintf(file, "\nreproduce: %s\n", repro);
    free(repro);
}

static int show_point(FILE *file, const struct show_options *options, const json_t *records, struct error *error)
{
    const char *id = NULL;
    size_t index, length = strlen(options->point);
    json_t *record;
    json_array_foreach((json_t *)records, index, record)
    {
        const char *candidate = json_get_string(record, "point_id", "");
        if (length == 0 || strncmp(candidate, options->point, length) != 0)
            continue;
        if (id && strcmp(id, candidate) != 0)
            return error_usage(error, "--point %.100s: more than one point begins so (%s, %s)", options->point, id,
                               candidate);
        id = candidate;
    }
    if (!id)
        return error_usage(error, "--point %.100s: no such point in %.500s", options->point, options->file);
    json_array_foreach((json_t *)records, index, record)
    {
        if (strcmp(json_get_string(record, "point_id", ""), id) == 0)
            print_point(file, record);
    }
    return 0;
}

int command_show(int argc, char **argv, struct error *error)
{
    struct show_options options = {.color = COLOR_AUTO};
    struct results results;
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
    if (options.point) {
        code = show_point(stdout, &options, results.records, error);
    } else {
        const struct output_style style = output_style(options.color, options.wide, stdout);
        machines_print(stdout, results.contexts, results.records, &style, true);
    }
    results_release(&results);
    return code ? code : output_flush(stdout, "output", error);
}
