/* SPDX-License-Identifier: Apache-2.0
 *
 * attnbench doctor: what about this machine will disturb a measurement, and how to mend it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "arguments.h"
#include "color.h"
#include "commands.h"
#include "environment.h"
#include "output.h"

static const char help[] = "Usage: attnbench doctor [--json] [--color WHEN]\n"
                           "\n"
                           "Looks at this machine and tells what will disturb a measurement, and how to\n"
                           "mend it. Takes a fifth of a second, and changes nothing.\n"
                           "\n"
                           "  --json        {\"findings\": [{topic, level, state, why, mend}]}\n"
                           "  --color WHEN  auto, always or never\n"
                           "  --help        this text\n"
                           "\n"
                           "Levels: ok; note (good to know); warn (mend it before you trust a figure);\n"
                           "unknown.\n"
                           "Exit codes: 0 whatever was found, 2 usage.\n";

enum { FLAG_JSON = ARGUMENTS_LONG_ONLY, FLAG_COLOR, FLAG_HELP };
enum { FINDINGS_MAX = 64 };

static const char *const level_names[] = {
    [FINDING_OK] = "ok", [FINDING_NOTE] = "note", [FINDING_WARN] = "warn", [FINDING_UNKNOWN] = "unknown"};
static const enum paint level_paints[] = {[FINDING_OK] = PAINT_GOOD,
                                          [FINDING_NOTE] = PAINT_PLAIN,
                                          [FINDING_WARN] = PAINT_WARNING,
                                          [FINDING_UNKNOWN] = PAINT_FAINT};

struct doctor_options {
    bool json, help;
    enum color_mode color;
};

static int parse(int argc, char **argv, struct doctor_options *options, struct error *error)
{
    static const struct option long_flags[] = {
        {"json", no_argument, NULL, FLAG_JSON},
        {"color", optional_argument, NULL, FLAG_COLOR},
        {"help", no_argument, NULL, FLAG_HELP},
        {0},
    };
    struct arguments arguments = {argc, argv, ":h", long_flags};
    const char *value;
    int flag = arguments_next(&arguments, true, &value, error), code = 0;
    for (; flag > 0 && code == 0; flag = code ? code : arguments_next(&arguments, false, &value, error)) {
        if (flag == FLAG_JSON)
            options->json = true;
        else if (flag == FLAG_COLOR)
            code = arguments_color(&arguments, value, &options->color, error);
        else
            options->help = true;
    }
    if (code || flag < 0)
        return code ? code : flag;
    if (optind < argc && !options->help)
        return error_usage(error, "what is '%.200s'? (attnbench doctor takes flags alone)", argv[optind]);
    return 0;
}

static void print_json(const struct finding *findings, int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:o}", "topic", findings[i].topic, "level",
                                              level_names[findings[i].level], "state", findings[i].state, "why",
                                              findings[i].why, "mend",
                                              findings[i].mend ? json_string(findings[i].mend) : json_null()));
    json_t *document = json_pack("{s:o}", "findings", list);
    json_dumpf(document, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(document);
}

static void print_table(const struct finding *findings, int count, bool color)
{
    for (int i = 0; i < count; i++) {
        const struct finding *f = &findings[i];
        printf("%s%-7s%s  %-11s  %s\n", paint(color, level_paints[f->level]), level_names[f->level],
               paint(color, PAINT_PLAIN), f->topic, f->state);
        if (f->level == FINDING_NOTE || f->level == FINDING_WARN)
            printf("%22s%s%s%s\n", "", paint(color, PAINT_FAINT), f->why, paint(color, PAINT_PLAIN));
        if (f->mend)
            printf("%22s%s-> %s%s\n", "", paint(color, PAINT_FAINT), f->mend, paint(color, PAINT_PLAIN));
    }
}

int command_doctor(int argc, char **argv, struct error *error)
{
    struct doctor_options options = {.color = COLOR_AUTO};
    struct topology topology;
    struct finding findings[FINDINGS_MAX];
    int code = parse(argc, argv, &options, error);
    if (code)
        return code;
    if (options.help) {
        fputs(help, stdout);
        return output_flush(stdout, "output", error);
    }
    code = topology_load(NULL, NULL, &topology, error);
    if (code)
        return code;
    int count = doctor_examine(&topology, findings, FINDINGS_MAX);
    topology_release(&topology);
    if (options.json)
        print_json(findings, count);
    else
        print_table(findings, count, color_wanted(options.color, stdout));
    return output_flush(stdout, "output", error);
}
