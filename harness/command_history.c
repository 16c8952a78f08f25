/* SPDX-License-Identifier: Apache-2.0
 *
 * attnbench history: results over time in SQLite.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "arguments.h"
#include "commands.h"
#include "history_import.h"
#include "history_print.h"
#include "history_sql.h"
#include "output.h"

static const char help_head[] = "Usage: attnbench history [import|list|show|changes|sql] [ARGUMENT...]\n"
                                "\n"
                                "Keeps results over time in one SQLite database and finds where they changed.\n"
                                "What is compared forms a series: one problem, kernel, schedule, placement,\n"
                                "thread count and cache state on one machine, compiler and flags, kernel release\n"
                                "and page mode. Times are never compared across series, and a ratio only to its\n"
                                "own anchor: a kernel of one build, known by what its file holds.\n";

static const char help_import[] = "Adds results files of run and files of duet and gate; a point of a run that is\n"
                                  "there already is not added twice. Several verdicts of one duet on a point\n"
                                  "(--repeat) become one, weighted by their standard errors. A file is added\n"
                                  "whole or not at all, and several may be added at once by several processes.\n"
                                  "A FILE of - is standard input.\n"
                                  "\n"
                                  "  -q, --quiet     only errors and warnings on standard error\n";

static const char help_list[] = "Lists the series: how many runs, the newest value, and how it came there.\n"
                                "\n"
                                "  --limit N       only the N series with the newest runs\n";

static const char help_show[] = "Shows one series, run by run; the first digits of its key are enough where no\n"
                                "other begins so. Of a series of times the interval is the run's own; of ratios\n"
                                "to an anchor it is 1.96 standard errors.\n"
                                "\n";

static const char help_changes[] = "Tells at which commits series became slower or faster for good: change points at\n"
                                   "p <= 0.001 with at least 3 runs before and after, those of one commit together.\n"
                                   "\n"
                                   "  --fail-on slower|any\n"
                                   "                  slower: exit 3 if the newest change of a series of ratios\n"
                                   "                  made it slower; any: exit 3 if one has a change at all;\n"
                                   "                  4 if no series of ratios has the 6 runs it takes\n"
                                   "  --times         --fail-on counts series of times, too: of launches one\n"
                                   "                  after the other, which differ with nothing changed\n";

static const char help_sql[] = "Runs one query that only reads. Tables: run, series, result, ratio; the view\n"
                               "point has one row a run and series, and in its column value the natural\n"
                               "logarithm of the median time in ns, or of the ratio to the anchor.\n"
                               "\n";

static const char help_filters[] = "  --kernel GLOB   only kernels of such names\n"
                                   "  --machine KEY   only the machine whose key begins so\n";
static const char help_format[] = "  -o table|json|csv|jsonl\n"
                                  "                  what standard output shows; default: table\n"
                                  "  --color WHEN    auto (the default), always or never\n";
static const char help_tail[] = "  --db FILE       the database; default: results/history.db in a checkout. Not\n"
                                "                  on a network file system.\n"
                                "  --help          this text; behind import, list and so on: of that alone\n"
                                "\n"
                                "Exit codes: 0 ok, 2 usage, a bad file or a database that is none or too new,\n"
                                "3 --fail-on found what it names, 4 it found no series that could tell, 5 the\n"
                                "database or the output could not be written.\n";

enum {
    FLAG_DB = ARGUMENTS_LONG_ONLY,
    FLAG_KERNEL,
    FLAG_MACHINE,
    FLAG_LIMIT,
    FLAG_FAIL_ON,
    FLAG_TIMES,
    FLAG_FORMAT,
    FLAG_QUIET,
    FLAG_COLOR,
    FLAG_HELP
};

struct history_options {
    const char *db, *format, *fail_on;
    struct history_filter filter;
    bool times, quiet, help;
    enum color_mode color;
    char **operands;
    int count;
};

/* One of `attnbench history NAME`. flags: those that it takes besides --db and --help, as FLAG_... up to 0. */
struct part {
    const char *name, *usage, *help;
    bool filters, shows;       /* takes those flags, and tells of them */
    int flags[7], least, most; /* operands; most -1: any number */
    const char *missing;       /* what to ask where there are too few */
    int (*run)(struct history *history, const struct history_options *options, struct error *error);
    enum history_access access;
};

/* ---- import ------------------------------------------------------------------------------------------------------ */

static void tell(const char *path, const struct history *history, const struct history_imported *imported, bool quiet)
{
    const char *name = strcmp(path, "-") ? path : "standard input";
    if (imported->torn)
        fprintf(stderr, "%s: the last line is torn (the run was killed) and left out\n", name);
    if (imported->different > 0)
        fprintf(stderr,
                "%s: warning: %zu of the points that are in %s already have another figure there, which is kept\n",
                name, imported->different, history->path);
    if (quiet)
        return;
    fprintf(stderr, "%s: %zu point%s added", name, imported->added, imported->added == 1 ? "" : "s");
    if (imported->untimed > 0)
        fprintf(stderr, " (%zu without a time)", imported->untimed);
    if (imported->present > 0)
        fprintf(stderr, "; %zu in %s already", imported->present, history->path);
    fputc('\n', stderr);
}

static int run_import(struct history *history, const struct history_options *options, struct error *error)
{
    for (int i = 0; i < options->count; i++) {
        struct history_imported imported;
        int code = history_import(history, options->operands[i], &imported, error);
        if (code)
            return code;
        tell(options->operands[i], history, &imported, options->quiet);
    }
    return 0;
}

/* ---- list, show, changes, sql ------------------------------------------------------------------------------------ */

static bool wants_table(const struct history_options *options)
{
    return strcmp(options->format, "table") == 0;
}

static int run_list(struct history *history, const struct history_options *options, struct error *error)
{
    const struct output_style style = output_style(options->color, false, stdout);
    struct history_rows rows;
    int code = history_list(history, &options->filter, &rows, error);
    if (code == 0 && wants_table(options))
        code = history_print_list(stdout, history, &rows, &style, error);
    else if (code == 0)
        history_rows_write(stdout, options->format, &rows, &style);
    history_rows_release(&rows);
    return code;
}

static int run_show(struct history *history, const struct history_options *options, struct error *error)
{
    const struct output_style style = output_style(options->color, false, stdout);
    struct history_rows series, points = {0};
    struct history_changes changes = {0};
    int code = history_find(history, options->operands[0], &series, error);
    if (code == 0)
        code = history_points(history, history_rows_text(&series, 0, "series"), &points, error);
    if (code == 0)
        code = history_changes_add(&changes, &series, 0, &points, error);
    if (code == 0 && wants_table(options))
        history_print_series(stdout, &series, &points, &changes, &style);
    else if (code == 0)
        history_rows_write(stdout, options->format, &points, &style);
    history_changes_release(&changes);
    history_rows_release(&points);
    history_rows_release(&series);
    return code;
}

static int find_changes(const struct history *history, const struct history_rows *series,
                        struct history_changes *changes, struct error *error)
{
    int code = 0;
    for (size_t row = 0; code == 0 && row < json_array_size(series->rows); row++) {
        struct history_rows points;
        code = history_points(history, history_rows_text(series, row, "series"), &points, error);
        if (code == 0)
            code = history_changes_add(changes, series, row, &points, error);
        history_rows_release(&points);
    }
    history_changes_sort(changes);
    return code;
}

/* What was measured one launch after the other decides only where that was asked for. */
static int judge_changes(const struct history_rows *series, const struct history_changes *changes,
                         const struct history_options *options)
{
    const bool any = strcmp(options->fail_on, "any") == 0;
    size_t brief;
    const size_t judged = history_changes_judged(series, options->times, &brief);
    if (judged == 0)
        fputs("--fail-on: no series of ratios to an anchor (attnbench duet --out); those of times count with --times\n",
              stderr);
    if (brief > 0)
        fprintf(stderr, "--fail-on: %zu of %zu series tell nothing: a change takes %d runs\n", brief, judged,
                HISTORY_CHANGES_RUNS);
    if (judged == brief)
        return EXIT_INCONCLUSIVE;
    if (history_changes_failing(changes, any, options->times))
        return EXIT_REGRESSION;
    if (history_changes_failing(changes, any, true))
        fputs("--fail-on: changes of times alone, which count with --times\n", stderr);
    return EXIT_OK;
}

static void tell_no_change(const struct history_rows *series)
{
    size_t brief, all = history_changes_judged(series, true, &brief);
    fprintf(stderr, "no change in %zu series", all);
    if (brief > 0)
        fprintf(stderr, ", of which %zu have fewer than the %d runs that one takes", brief, HISTORY_CHANGES_RUNS);
    fputc('\n', stderr);
}

static int run_changes(struct history *history, const struct history_options *options, struct error *error)
{
    const struct output_style style = output_style(options->color, false, stdout);
    struct history_rows series, rows;
    struct history_changes changes = {0};
    int code = history_list(history, &options->filter, &series, error);
    if (code == 0)
        code = find_changes(history, &series, &changes, error);
    if (code == 0 && wants_table(options)) {
        history_print_changes(stdout, &changes, &style);
        if (changes.count == 0)
            tell_no_change(&series);
    } else if (code == 0) {
        history_changes_rows(&changes, strcmp(options->format, "csv") != 0, &rows);
        history_rows_write(stdout, options->format, &rows, &style);
        history_rows_release(&rows);
    }
    if (code == 0 && options->fail_on)
        code = judge_changes(&series, &changes, options);
    history_changes_release(&changes);
    history_rows_release(&series);
    return code;
}

static int run_sql(struct history *history, const struct history_options *options, struct error *error)
{
    const struct output_style style = output_style(options->color, false, stdout);
    struct history_rows rows;
    int code = history_sql(history, options->operands[0], &rows, error);
    if (code == 0)
        history_rows_write(stdout, options->format, &rows, &style);
    history_rows_release(&rows);
    return code;
}

/* ---- the command line -------------------------------------------------------------------------------------------- */

static const struct part parts[] = {
    {.name = "import",
     .usage = "FILE...",
     .help = help_import,
     .flags = {FLAG_QUIET},
     .least = 1,
     .most = -1,
     .missing = "which results files? (attnbench history import FILE...)",
     .run = run_import,
     .access = HISTORY_WRITE},
    {.name = "list",
     .usage = "[FLAG...]",
     .help = help_list,
     .filters = true,
     .shows = true,
     .flags = {FLAG_KERNEL, FLAG_MACHINE, FLAG_LIMIT, FLAG_FORMAT, FLAG_COLOR},
     .run = run_list},
    {.name = "show",
     .usage = "SERIES",
     .help = help_show,
     .shows = true,
     .flags = {FLAG_FORMAT, FLAG_COLOR},
     .least = 1,
     .most = 1,
     .missing = "which series? (attnbench history list tells their keys)",
     .run = run_show},
    {.name = "changes",
     .usage = "[FLAG...]",
     .help = help_changes,
     .filters = true,
     .shows = true,
     .flags = {FLAG_KERNEL, FLAG_MACHINE, FLAG_FAIL_ON, FLAG_TIMES, FLAG_FORMAT, FLAG_COLOR},
     .run = run_changes},
    {.name = "sql",
     .usage = "QUERY",
     .help = help_sql,
     .shows = true,
     .flags = {FLAG_FORMAT, FLAG_COLOR},
     .least = 1,
     .most = 1,
     .missing = "which query? (attnbench history sql 'SELECT ...')",
     .run = run_sql},
};
enum { PARTS = sizeof parts / sizeof parts[0] };

static void print_part(const struct part *part)
{
    fputs(part->help, stdout);
    fputs(part->filters ? help_filters : "", stdout);
    fputs(part->shows ? help_format : "", stdout);
}

static void print_help(const struct part *part)
{
    if (part) {
        printf("Usage: attnbench history %s %s\n\n", part->name, part->usage);
        print_part(part);
        fputs(help_tail, stdout);
        return;
    }
    fputs(help_head, stdout);
    for (int i = 0; i < PARTS; i++) {
        printf("\n %s %s:\n", parts[i].name, parts[i].usage);
        print_part(&parts[i]);
    }
    fputs("\n all of them:\n", stdout);
    fputs(help_tail, stdout);
}

static int parse_limit(const char *value, int64_t *limit, struct error *error)
{
    char *end;
    errno = 0;
    intmax_t number = strtoimax(value, &end, 10);
    if (errno || *end || end == value || number < 1)
        return error_usage(error, "--limit %.100s: a number of series, at least 1", value);
    *limit = (int64_t)number;
    return 0;
}

static int take_flag(int flag, const char *value, const struct arguments *arguments, struct history_options *options,
                     struct error *error)
{
    switch (flag) {
    case FLAG_DB:
        options->db = value;
        return *value ? 0 : error_usage(error, "--db: an empty name");
    case FLAG_KERNEL:
        options->filter.kernel = value;
        return 0;
    case FLAG_MACHINE:
        options->filter.machine = value;
        return 0;
    case FLAG_LIMIT:
        return parse_limit(value, &options->filter.limit, error);
    case FLAG_FAIL_ON:
        options->fail_on = value;
        if (strcmp(value, "slower") != 0 && strcmp(value, "any") != 0)
            return error_usage(error, "--fail-on %.100s: slower or any", value);
        return 0;
    case FLAG_TIMES:
        options->times = true;
        return 0;
    case FLAG_FORMAT:
        options->format = value;
        return history_rows_check_format(value, error);
    case FLAG_QUIET:
        options->quiet = true;
        return 0;
    case FLAG_COLOR:
        return arguments_color(arguments, value, &options->color, error);
    default:
        options->help = true;
        return 0;
    }
}

static bool takes(const struct part *part, int flag)
{
    bool found = flag == FLAG_DB || flag == FLAG_HELP;
    for (size_t i = 0; i < sizeof part->flags / sizeof part->flags[0]; i++)
        found |= part->flags[i] == flag;
    return found;
}

static const struct option long_flags[] = {{"db", required_argument, NULL, FLAG_DB},
                                           {"kernel", required_argument, NULL, FLAG_KERNEL},
                                           {"machine", required_argument, NULL, FLAG_MACHINE},
                                           {"limit", required_argument, NULL, FLAG_LIMIT},
                                           {"fail-on", required_argument, NULL, FLAG_FAIL_ON},
                                           {"times", no_argument, NULL, FLAG_TIMES},
                                           {"quiet", no_argument, NULL, FLAG_QUIET},
                                           {"color", optional_argument, NULL, FLAG_COLOR},
                                           {"help", no_argument, NULL, FLAG_HELP},
                                           {0}};

static const char *flag_name(int flag)
{
    for (size_t i = 0; long_flags[i].name; i++) {
        if (long_flags[i].val == flag)
            return long_flags[i].name;
    }
    return "o";
}

/* argv[0] is what errors about flags call the command: "history import". */
static int parse(const struct part *part, int argc, char **argv, struct history_options *options, struct error *error)
{
    struct arguments arguments = {argc, argv, ":ho:q", long_flags};
    const char *value;
    int flag = arguments_next(&arguments, true, &value, error);
    for (; flag > 0; flag = arguments_next(&arguments, false, &value, error)) {
        flag = flag == 'h' ? FLAG_HELP : flag == 'o' ? FLAG_FORMAT : flag == 'q' ? FLAG_QUIET : flag;
        if (!takes(part, flag))
            return error_usage(error, "%s%s: %s takes no such flag (attnbench history %s --help lists them)",
                               flag == FLAG_FORMAT ? "-" : "--", flag_name(flag), part->name, part->name);
        int code = take_flag(flag, value, &arguments, options, error);
        if (code)
            return code;
    }
    if (flag < 0)
        return flag;
    options->operands = argv + optind;
    options->count = argc - optind;
    if (options->help)
        return 0;
    if (options->times && !options->fail_on)
        return error_usage(error, "--times: counts for --fail-on only");
    if (options->count < part->least)
        return error_usage(error, "%s", part->missing);
    if (part->most >= 0 && options->count > part->most)
        return error_usage(error, "%s: what is '%.200s'?", part->name, options->operands[part->most]);
    return 0;
}

/* results/history.db where that can be told to be a checkout's, as run keeps its journals. */
static int choose_database(struct history_options *options, struct error *error)
{
    struct stat status;
    if (options->db)
        return 0;
    if (stat("results", &status) != 0 || !S_ISDIR(status.st_mode) || stat("configs", &status) != 0)
        return error_usage(error, "--db: which database? (this folder is no checkout, where it is results/history.db)");
    options->db = "results/history.db";
    return 0;
}

static const struct part *find_part(const char *name)
{
    for (int i = 0; i < PARTS; i++) {
        if (strcmp(parts[i].name, name) == 0)
            return &parts[i];
    }
    return NULL;
}

static int run_part(const struct part *part, struct history_options *options, struct error *error)
{
    struct history history;
    int code = choose_database(options, error);
    if (code == 0)
        code = history_open(options->db, part->access, &history, error);
    if (code)
        return code;
    code = part->run(&history, options, error);
    history_close(&history);
    return code;
}

int command_history(int argc, char **argv, struct error *error)
{
    struct history_options options = {.format = "table", .color = COLOR_AUTO, .filter = {.limit = -1}};
    char name[32];
    bool is_flag = argc > 1 && argv[1][0] == '-';
    const struct part *part = argc > 1 ? find_part(argv[1]) : NULL;
    int code = 0;
    if (is_flag && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        options.help = true;
    } else if (!part) {
        return error_usage(error, "%s%.200s%simport, list, show, changes or sql? (attnbench history --help)",
                           argc > 1 ? "what is '" : "", argc > 1 ? argv[1] : "", argc > 1 ? "'? " : "");
    } else {
        snprintf(name, sizeof name, "history %s", part->name);
        argv[1] = name;
        code = parse(part, argc - 1, argv + 1, &options, error);
    }
    if (code)
        return code;
    if (options.help)
        print_help(part);
    else
        code = run_part(part, &options, error);
    if (code < 0)
        return code;
    int flushed = output_flush(stdout, "output", error);
    return flushed ? flushed : code;
}
