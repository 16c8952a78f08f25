/* SPDX-License-Identifier: Apache-2.0
 *
 * The flags of commands by argp: those of keys.h, which go into the request, and those of the commands themselves; see
 * options.h.
 */
#include "options.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "foreign.h"
#include "keys.h"

enum command {
    COMMAND_RUN = 1,
    COMMAND_VERIFY = 2,
    COMMAND_DUET = 4,
    COMMAND_GATE = 8,
    COMMAND_PAIRS = COMMAND_DUET | COMMAND_GATE,
    COMMAND_ALL = COMMAND_RUN | COMMAND_VERIFY | COMMAND_PAIRS
};
static const struct command_words {
    enum command command;
    const char *name, *arguments, *doc;
    const char *config; /* where no problem is named */
} command_words[] = {
    {COMMAND_RUN, "run", "[MODEL ...]",
     "Verify and time every point of a sweep; without flags: --config quick.\v"
     "Lists are 1,8,32; ranges 128-4096x2 or 128-1024+128; 2k is 2048. Every combination is a point. "
     "A flag given twice: the last counts (--plugin: all of them).",
     "quick"},
    {COMMAND_VERIFY, "verify", "[MODEL ...]",
     "Hold every kernel against the float64 reference: seeded problems, those of the flags, or a case "
     "folder.\vLists are 1,8,32; ranges 128-4096x2 or 128-1024+128; 2k is 2048.",
     NULL},
    {COMMAND_DUET, "duet", "A B [MODEL ...]",
     "Compare two kernels, interleaved in one process, process after process, until a verdict holds: is B slower, "
     "faster, or the same? A and B: kernels (list kernels), or FILE.so[:KERNEL] (make kernels builds such a file). "
     "Without flags: --config ci.\vExit codes: 0 any verdict, 1 a wrong result or failure, 4 inconclusive.",
     "ci"},
    {COMMAND_GATE, "gate", "BASE.so [NEW.so] [MODEL ...]",
     "Compare the kernels of two builds over a config, with a verdict for CI. Without flags: --config ci. NEW is the "
     "libattnkernels.so beside the program (make kernels builds it) where it is left out.\v"
     "Exit codes: 0 no regression, 1 a wrong result or failure, 3 regression confirmed, 4 inconclusive, too noisy, out "
     "of time or not comparable.",
     "ci"},
};

/* Flag codes: a letter where it has one, beyond the characters else. Keys of keys.h come last. */
enum flag_code {
    FLAG_HELP = 256,
    FLAG_CONFIG,
    FLAG_OUT,
    FLAG_RESUME,
    FLAG_RETRY_FAILED,
    FLAG_DRY_RUN,
    FLAG_WIDE,
    FLAG_COLOR,
    FLAG_TOPOLOGY,
    FLAG_RESTRICT,
    FLAG_CASE,
    FLAG_DUMP,
    FLAG_CASES,
    FLAG_TAU,
    FLAG_PROCESSES,
    FLAG_REPEAT,
    FLAG_ONE_SIDED,
    FLAG_LABEL,
    FLAG_JSON,
    FLAG_MARKDOWN,
    FLAG_JUNIT,
    FLAG_KEYS
};

enum { GROUP_OUTPUT = KEY_GROUP_EFFORT + 1, GROUP_OTHER };

static const struct own_flag {
    struct argp_option option;
    enum command commands;
} own_flags[] = {
    {{"config", FLAG_CONFIG, "NAME|FILE", 0,
      "A sweep from a file (list configs, or any other); flags override its keys", GROUP_OUTPUT},
     COMMAND_ALL},
    {{"out", FLAG_OUT, "FILE", 0, "Where the journal of results goes", GROUP_OUTPUT}, COMMAND_RUN | COMMAND_PAIRS},
    {{NULL, 'o', "table,jsonl,csv,json,md,github,junit,google-benchmark", 0, "What stdout shows (table)", GROUP_OUTPUT},
     COMMAND_RUN},
    {{NULL, 'o', "table,json", 0, "What stdout shows (table)", GROUP_OUTPUT}, COMMAND_PAIRS},
    {{"tau", FLAG_TAU, "SHARE", 0, "The slowdown that matters (as the config says, or 2%)", GROUP_OUTPUT},
     COMMAND_PAIRS},
    {{"processes", FLAG_PROCESSES, "N", 0, "Exactly so many processes a point, with a verdict only at the end",
      GROUP_OUTPUT},
     COMMAND_DUET},
    {{"repeat", FLAG_REPEAT, "N", 0, "Verdicts a point, each from processes of its own (1)", GROUP_OUTPUT},
     COMMAND_DUET},
    {{"one-sided", FLAG_ONE_SIDED, NULL, 0, "Stop as gate does: as soon as a slowdown is excluded", GROUP_OUTPUT},
     COMMAND_DUET},
    {{"label", FLAG_LABEL, "TEXT", 0, "Goes into every record: what was special about this run", GROUP_OUTPUT},
     COMMAND_DUET},
    {{"json", FLAG_JSON, "FILE", 0, "The verdict and all points as JSON", GROUP_OUTPUT}, COMMAND_GATE},
    {{"markdown", FLAG_MARKDOWN, "FILE", 0, "What changed, for a job's summary", GROUP_OUTPUT}, COMMAND_GATE},
    {{"junit", FLAG_JUNIT, "FILE", 0, "A test a point, as JUnit's XML", GROUP_OUTPUT}, COMMAND_GATE},
    {{"resume", FLAG_RESUME, "FILE", 0, "Go on with an interrupted run: finished points are kept", GROUP_OUTPUT},
     COMMAND_RUN},
    {{"retry-failed", FLAG_RETRY_FAILED, NULL, 0, "With --resume: measure failed points again", GROUP_OUTPUT},
     COMMAND_RUN},
    {{"dry-run", FLAG_DRY_RUN, NULL, 0, "Show the plan: points, bytes, expected time; nothing is timed", GROUP_OUTPUT},
     COMMAND_RUN},
    {{"wide", FLAG_WIDE, NULL, 0, "All columns of the table, wider than 80", GROUP_OUTPUT}, COMMAND_RUN},
    {{"quiet", 'q', NULL, 0, "Only errors: no progress, no table unless -o asks for it", GROUP_OUTPUT}, COMMAND_ALL},
    {{"color", FLAG_COLOR, "auto,always,never", 0, "Colours (auto: on a terminal)", GROUP_OUTPUT}, COMMAND_ALL},
    {{"case", FLAG_CASE, "DIR", 0, "Check kernels on the tensors of a case folder", GROUP_OUTPUT}, COMMAND_VERIFY},
    {{"dump", FLAG_DUMP, "DIR", 0, "Write the first failing case there, as a case folder", GROUP_OUTPUT},
     COMMAND_VERIFY},
    {{"cases", FLAG_CASES, "N", 0, "How many seeded problems of each rule (400 of scaled_dot_product, 100 of others)",
      GROUP_OUTPUT},
     COMMAND_VERIFY},
    {{"topology", FLAG_TOPOLOGY, "FILE|SYNTHETIC", 0, "Plan on another machine's topology; timing is refused",
      GROUP_OTHER},
     COMMAND_ALL},
    {{"restrict", FLAG_RESTRICT, "LIST", 0, "Use only these CPUs", GROUP_OTHER}, COMMAND_ALL},
    {{"help", FLAG_HELP, NULL, 0, "This list", GROUP_OTHER}, COMMAND_ALL},
};
enum { OWN_FLAGS = sizeof own_flags / sizeof own_flags[0], HEADINGS = 6 };

static const struct argp_option headings[HEADINGS] = {
    {NULL, 0, NULL, 0, "Problem (any of these without --config is a sweep of its own):", KEY_GROUP_PROBLEM},
    {NULL, 0, NULL, 0, "Masks and scores:", KEY_GROUP_SEMANTICS},
    {NULL, 0, NULL, 0, "Data:", KEY_GROUP_DATA},
    {NULL, 0, NULL, 0, "What runs, and where:", KEY_GROUP_RUN},
    {NULL, 0, NULL, 0, "Measuring effort:", KEY_GROUP_EFFORT},
    {NULL, 0, NULL, 0, "Files and output:", GROUP_OUTPUT},
};

/* The flag table of one command, and what its parsing leaves. */
struct parsing {
    struct options *options;
    struct error *error;
    struct argp_option flags[HEADINGS + OWN_FLAGS + KEY_COUNT + 1];
    char models[256]; /* positional names, joined by commas */
    int scanned;      /* first argument behind the last flag that was understood */
    enum command command;
    bool help;
    int code;
};

static int key_code(enum key_id id)
{
    return keys[id].name[1] ? FLAG_KEYS + (int)id : keys[id].name[0];
}

/* verify times nothing, and how much a duet measures follows from its rule of stopping: only its end can be set. */
static bool takes_key(enum command command, enum key_id id)
{
    return keys[id].group != KEY_GROUP_EFFORT || command == COMMAND_RUN ||
           ((command & COMMAND_PAIRS) && id == KEY_MAX_TIME);
}

static void list_flags(struct parsing *parsing, enum command command)
{
    struct argp_option *at = parsing->flags;
    for (int i = 0; i < HEADINGS; i++)
        *at++ = headings[i];
    for (int id = 0; id < KEY_COUNT; id++) {
        if (!takes_key(command, (enum key_id)id))
            continue;
        int arguments = keys[id].argument ? 0 : OPTION_ARG_OPTIONAL;
        *at++ = (struct argp_option){.name = keys[id].name[1] ? keys[id].name : NULL,
                                     .key = key_code((enum key_id)id),
                                     .arg = keys[id].argument ? keys[id].argument : "true,false",
                                     .flags = arguments,
                                     .doc = keys[id].help,
                                     .group = keys[id].group};
    }
    for (int i = 0; i < OWN_FLAGS; i++)
        if (own_flags[i].commands & command)
            *at++ = own_flags[i].option;
}

static int set_color(struct options *options, const char *name, struct error *error)
{
    static const char *const modes[] = {"auto", "always", "never"};
    char shown[QUOTED_BYTES];
    for (int i = 0; i < 3; i++)
        if (strcmp(name, modes[i]) == 0) {
            options->color = (enum color_mode)i;
            return 0;
        }
    return error_usage(error, "--color: %s is not one of auto, always, never", quoted(name, shown));
}

/* A count of at least 1. */
static int set_count(int64_t *count, const char *text, const char *flag, struct error *error)
{
    int code = value_size(text, count, error);
    if (!code && *count == 0)
        code = error_usage(error, "'0' is less than 1");
    return code ? error_prefix(error, code, "%s", flag) : 0;
}

static int set_tau(struct options *options, const char *text, struct error *error)
{
    int code = value_share(text, &options->tau, error);
    return code ? error_prefix(error, code, "--tau") : 0;
}

static int add_model(struct parsing *parsing, const char *name)
{
    size_t used = strlen(parsing->models);
    int length = snprintf(parsing->models + used, sizeof parsing->models - used, "%s%s", used ? "," : "", name);
    char shown[QUOTED_BYTES];
    if (length < 0 || (size_t)length >= sizeof parsing->models - used)
        return error_usage(parsing->error, "model %s: too many names", quoted(name, shown));
    return request_set(parsing->options->request, "model", parsing->models, "model", parsing->error);
}

/* The sides of a comparison come first. gate's second may be left out: it is known by its name. */
static int add_argument(struct parsing *parsing, char *argument)
{
    struct options *options = parsing->options;
    const bool is_pair = parsing->command & COMMAND_PAIRS;
    const int side = options->sides[0] ? 1 : 0;
    if (!is_pair || options->sides[side] ||
        (side == 1 && parsing->command == COMMAND_GATE && !foreign_library_suffix(argument)))
        return add_model(parsing, argument);
    options->sides[side] = argument;
    return 0;
}

static int set_own(struct parsing *parsing, int flag, char *argument)
{
    struct options *options = parsing->options;
    switch (flag) {
    case FLAG_HELP:
        parsing->help = true;
        return 0;
    case FLAG_CONFIG:
        options->config_name = argument;
        return request_load_config(options->request, argument, parsing->error);
    case FLAG_OUT:
        options->out = argument;
        return 0;
    case 'o':
        options->formats = argument;
        return 0;
    case FLAG_RESUME:
        options->resume = argument;
        return 0;
    case FLAG_RETRY_FAILED:
        options->retry_failed = true;
        return 0;
    case FLAG_DRY_RUN:
        options->dry_run = true;
        return 0;
    case FLAG_WIDE:
        options->wide = true;
        return 0;
    case 'q':
        options->quiet = true;
        return 0;
    case FLAG_COLOR:
        return set_color(options, argument, parsing->error);
    case FLAG_TOPOLOGY:
        options->topology = argument;
        return 0;
    case FLAG_RESTRICT:
        options->restrict_list = argument;
        return 0;
    case FLAG_CASE:
        options->case_dir = argument;
        return 0;
    case FLAG_DUMP:
        options->dump_dir = argument;
        return 0;
    case FLAG_CASES:
        return set_count(&options->cases, argument, "--cases", parsing->error);
    case FLAG_PROCESSES:
        return set_count(&options->processes, argument, "--processes", parsing->error);
    case FLAG_REPEAT:
        return set_count(&options->repeats, argument, "--repeat", parsing->error);
    case FLAG_ONE_SIDED:
        options->one_sided = true;
        return 0;
    case FLAG_LABEL:
        options->label = argument;
        return 0;
    case FLAG_TAU:
        return set_tau(options, argument, parsing->error);
    case FLAG_JSON:
        options->json = argument;
        return 0;
    case FLAG_MARKDOWN:
        options->markdown = argument;
        return 0;
    case FLAG_JUNIT:
        options->junit = argument;
        return 0;
    default:
        return add_argument(parsing, argument);
    }
}

static bool is_own(int flag)
{
    for (int i = 0; i < OWN_FLAGS; i++)
        if (own_flags[i].option.key == flag)
            return true;
    return flag == ARGP_KEY_ARG;
}

static error_t parse_one(int flag, char *argument, struct argp_state *state)
{
    struct parsing *parsing = state->input;
    int id = 0;
    while (id < KEY_COUNT && key_code((enum key_id)id) != flag)
        id++;
    if (id == KEY_COUNT && !is_own(flag))
        return ARGP_ERR_UNKNOWN;
    parsing->code = id < KEY_COUNT ? request_set(parsing->options->request, keys[id].name, argument ? argument : "true",
                                                 key_flag((enum key_id)id), parsing->error)
                                   : set_own(parsing, flag, argument);
    if (flag != ARGP_KEY_ARG)
        parsing->scanned = state->next;
    return parsing->code ? ECANCELED : 0;
}

static const struct argp_option *find_flag(const struct parsing *parsing, const char *text, size_t length)
{
    for (const struct argp_option *flag = parsing->flags; flag->key || flag->doc; flag++) {
        bool same = text[1] == '-'
                        ? flag->name && strncmp(flag->name, text + 2, length - 2) == 0 && !flag->name[length - 2]
                        : flag->key && flag->key == text[1];
        if (same)
            return flag;
    }
    return NULL;
}

/* argp was stopped by a flag that it does not understand: the first behind the last one that it did. */
static int flag_error(struct parsing *parsing, const char *command, int argc, char **argv)
{
    char shown[QUOTED_BYTES];
    int i = parsing->scanned;
    while (i < argc - 1 && (argv[i][0] != '-' || !argv[i][1]))
        i++;
    size_t length = argv[i][1] == '-' ? strcspn(argv[i], "=") : 2;
    const struct argp_option *flag = find_flag(parsing, argv[i], length);
    if (flag && flag->arg && !(flag->flags & OPTION_ARG_OPTIONAL))
        return error_usage(parsing->error, "%.*s: needs a value (%s)", (int)length, argv[i], flag->arg);
    if (flag && !flag->arg)
        return error_usage(parsing->error, "%.*s: takes no value", (int)length, argv[i]);
    return error_usage(parsing->error, "unknown flag %s (attnbench %s --help)", quoted(argv[i], shown), command);
}

static int parse(const struct command_words *words, int argc, char **argv, struct parsing *parsing)
{
    struct argp argp = {
        .options = parsing->flags,
        .parser = parse_one,
        .args_doc = words->arguments,
        .doc = words->doc,
    };
    list_flags(parsing, words->command);
    error_t failed = argp_parse(&argp, argc, argv, ARGP_NO_ERRS | ARGP_NO_EXIT | ARGP_NO_HELP, NULL, parsing);
    if (parsing->help) {
        char name[64];
        snprintf(name, sizeof name, "attnbench %s", words->name);
        argp_help(&argp, stdout, ARGP_HELP_SHORT_USAGE | ARGP_HELP_PRE_DOC | ARGP_HELP_LONG | ARGP_HELP_POST_DOC, name);
        return 0;
    }
    if (parsing->code)
        return parsing->code;
    if (failed)
        return flag_error(parsing, words->name, argc, argv);
    struct options *options = parsing->options;
    options->request_is_default = !options->config_name && !request_names_problem(options->request);
    if (options->retry_failed && !options->resume)
        return error_usage(parsing->error, "--retry-failed: needs --resume FILE");
    if ((words->command & COMMAND_PAIRS) && !options->sides[words->command == COMMAND_DUET])
        return error_usage(parsing->error, "what is to be compared? (attnbench %s %s)", words->name, words->arguments);
    return words->config && options->request_is_default
               ? request_load_config(options->request, words->config, parsing->error)
               : 0;
}

static const struct command_words *words_of(const char *command)
{
    const struct command_words *words = command_words;
    while (strcmp(words->name, command) != 0)
        words++;
    return words;
}

int options_parse(const char *command, int argc, char **argv, struct options *options, bool *done, struct error *error)
{
    const struct command_words *words = words_of(command);
    *options = (struct options){.request = request_create(), .cases = -1, .repeats = 1};
    *done = false;
    struct parsing *parsing = calloc(1, sizeof *parsing);
    int code;
    if (parsing && options->request) {
        *parsing = (struct parsing){.options = options, .error = error, .scanned = 1, .command = words->command};
        code = parse(words, argc, argv, parsing);
        *done = parsing->help;
    } else {
        code = error_system(error, ENOMEM, "the command line");
    }
    free(parsing);
    if (code)
        options_release(options);
    return code;
}

void options_release(struct options *options)
{
    request_destroy(options->request);
    options->request = NULL;
}
