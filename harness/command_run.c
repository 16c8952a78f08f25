/* SPDX-License-Identifier: Apache-2.0
 *
 * `attnbench run`: plan, measure group by group, keep the journal, print the table.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "commands.h"
#include "dry_run.h"
#include "environment.h"
#include "intern.h"
#include "json_util.h"
#include "record.h"
#include "run.h"
#include "run_context.h"
#include "work.h"

static volatile sig_atomic_t interrupts;

static void on_interrupt(int number)
{
    (void)number;
    interrupts++;
}

static void catch_interrupts(void)
{
    struct sigaction action = {.sa_handler = on_interrupt}; /* without SA_RESTART: waits end at once */
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* results/local/ where it can be (a checkout), else the current folder. */
static const char *default_out(const json_t *context)
{
    const char *config = json_get_string(context, "config", "sweep");
    const char *name = strrchr(config, '/') ? strrchr(config, '/') + 1 : config;
    const char *run_id = json_get_string(context, "run_id", "");
    struct stat status;
    bool checkout = stat("results", &status) == 0 && S_ISDIR(status.st_mode) && stat("configs", &status) == 0;
    if (checkout && (mkdir("results/local", 0777) == 0 || errno == EEXIST))
        return intern_format("results/local/%s-%s.jsonl", name, run_id);
    return intern_format("attnbench-%s-%s.jsonl", name, run_id);
}

/* Ids of points that a resumed journal has already. Failed ones that are to be measured again leave the records. */
static json_t *finished_ids(json_t *records, bool retry_failed)
{
    json_t *ids = json_object();
    for (size_t i = 0; i < json_array_size(records);) {
        json_t *record = json_array_get(records, i);
        if (retry_failed && strcmp(json_get_string(record, "status", ""), "failed") == 0) {
            json_array_remove(records, i);
            continue;
        }
        json_object_set_new(ids, json_get_string(record, "point_id", ""), json_true());
        i++;
    }
    return ids;
}

static size_t count_unfinished(const struct plan *plan, const json_t *ids)
{
    size_t count = 0;
    for (size_t i = 0; i < plan->count; i++)
        count += json_object_get(ids, point_id(&plan->points[i])) == NULL;
    return count;
}

/* Points from the first on that belong to its group. */
static size_t group_size(const struct plan *plan, size_t first)
{
    size_t size = 1;
    while (first + size < plan->count && group_same(&plan->points[first], &plan->points[first + size]))
        size++;
    return size;
}

/* Why a group that kernels and placement could do can't be measured here; NULL: it can. */
static const char *late_reason(const struct run *run, const struct point *points, size_t count)
{
    struct work work;
    work_count(&points->spec, &work);
    if (work.pairs_useful == 0 && points->spec.rule != ATTN_MATMUL)
        return "no query may see any key: nothing to measure";
    return environment_memory_refusal(group_bytes(run, points, count), run->effort->memory_limit);
}

static int record_skip(struct run *run, const struct point *point, const char *reason, struct error *error)
{
    json_t *record = record_create(point, run->run_id);
    record_set_status(record, "skipped", reason);
    return run_record(run, record, error);
}

/* Runs the plan's points that are not in ids, group by group. *unreached: points that --max-time or an interrupt left.
 */
static int sweep(struct run *run, const struct plan *plan, const json_t *ids, size_t *unreached, struct error *error)
{
    double deadline = run->effort->max_time_s > 0 ? clock_ns() + 1e9 * run->effort->max_time_s : INFINITY;
    const struct point **group = calloc(plan->count ? plan->count : 1, sizeof(struct point *));
    int rc = 0;
    if (!group)
        return error_system(error, ENOMEM, "a plan of %zu points", plan->count);
    for (size_t first = 0, next; first < plan->count && rc == 0; first = next) {
        size_t members = 0;
        const char *late = NULL;
        bool asked = false;
        for (next = first; next < plan->count && group_same(&plan->points[first], &plan->points[next]) && rc == 0;
             next++) {
            const struct point *point = &plan->points[next];
            if (json_object_get(ids, point_id(point)))
                continue;
            if (interrupts > 0 || clock_ns() > deadline) {
                ++*unreached;
                continue;
            }
            if (!point->skip_reason && !asked) {
                late = late_reason(run, &plan->points[first], group_size(plan, first));
                asked = true;
            }
            const char *reason = point->skip_reason ? point->skip_reason : late;
            if (reason)
                rc = record_skip(run, point, reason, error);
            else
                group[members++] = point;
        }
        if (members && rc == 0) {
            size_t before = json_array_size(run->records);
            rc = group_run(run, group, members, error);
            *unreached += members - (json_array_size(run->records) - before);
        }
    }
    free(group);
    return rc;
}

static int verdict(const json_t *records)
{
    size_t i, ran = 0, bad = 0;
    json_t *record;
    json_array_foreach(records, i, record)
    {
        const char *status = json_get_string(record, "status", "");
        ran += strcmp(status, "skipped") != 0;
        bad += strcmp(status, "wrong") == 0 || strcmp(status, "failed") == 0;
    }
    if (bad)
        return EXIT_WRONG;
    return ran || json_array_size(records) == 0 ? EXIT_OK : EXIT_NOTHING_RAN;
}

/* What stdout shows: each format of -o in turn. */
static int show_results(const struct options *options, const json_t *context, const json_t *records,
                        struct error *error)
{
    /* --quiet leaves out what nobody asked for; a format that was named is data, and stays. */
    char *formats = strdup(options->formats ? options->formats : options->quiet ? "" : "table"), *rest = NULL;
    const struct output_style style = output_style(options->color, options->wide, stdout);
    json_t *contexts = json_pack("[O]", context);
    int rc = 0;
    for (char *format = strtok_r(formats, ",", &rest); format && rc == 0; format = strtok_r(NULL, ",", &rest)) {
        rc = export_write(stdout, format, contexts, records, &style, error);
        if (rc == 0 && strcmp(format, "table") == 0 && !options->quiet)
            summary_print(stdout, records, &style);
    }
    json_decref(contexts);
    free(formats);
    return rc;
}

/* An unknown format must be found before an hour of measuring, not after. */
static int check_formats(const struct options *options, struct error *error)
{
    char *formats = strdup(options->formats ? options->formats : "table"), *rest = NULL;
    json_t *nothing = json_array();
    char *text = NULL;
    size_t size = 0;
    FILE *sink = open_memstream(&text, &size);
    int rc = formats && sink ? 0 : error_system(error, ENOMEM, "-o");
    for (char *format = rc ? NULL : strtok_r(formats, ",", &rest); format && rc == 0;
         format = strtok_r(NULL, ",", &rest))
        rc = export_write(sink, format, nothing, nothing, &(struct output_style){0}, error);
    if (sink)
        fclose(sink);
    free(text);
    free(formats);
    json_decref(nothing);
    return rc < 0 ? error_prefix(error, rc, "-o") : 0;
}

static int open_journal(const struct options *options, const json_t *context, struct run *run, const char **path,
                        struct error *error)
{
    if (options->resume) {
        *path = options->resume;
        return journal_resume(options->resume, context, &run->journal, &run->records, error);
    }
    *path = options->out ? options->out : default_out(context);
    run->records = json_array();
    return journal_create(*path, context, &run->journal, error);
}

static int run_plan(int argc, char **argv, const struct options *options, struct plan *plan,
                    const struct topology *topology, struct error *error)
{
    json_t *context =
        run_context(argc, argv, options->config_name ? options->config_name : plan->name, plan->seed, topology);
    struct run run = {.topology = topology,
                      .effort = &plan->effort,
                      .run_id = json_get_string(context, "run_id", ""),
                      .seed = plan->seed,
                      .interrupts = &interrupts};
    json_t *ids = NULL;
    const char *path = NULL;
    size_t unreached = 0;
    int rc = open_journal(options, context, &run, &path, error);
    if (rc < 0)
        goto cleanup;
    rc = crew_create(topology, &run.crew, error);
    if (rc < 0)
        goto cleanup;
    ids = finished_ids(run.records, options->retry_failed);
    catch_interrupts();
    run.progress = progress_begin(count_unfinished(plan, ids), options->quiet);
    rc = sweep(&run, plan, ids, &unreached, error);
    progress_end(run.progress);
    if (rc < 0) { /* what was written stays; what was measured is shown */
        struct error other;
        show_results(options, context, run.records, &other);
        goto cleanup;
    }
    rc = show_results(options, context, run.records, error);
    if (rc < 0)
        goto cleanup;
    if (unreached)
        fprintf(stderr, "attnbench run: %zu of %zu points were not reached; attnbench run --resume %s goes on\n",
                unreached, plan->count, path);
    if (!options->quiet)
        fprintf(stderr, "results: %s\n", path);
    rc = interrupts ? EXIT_INTERRUPTED : verdict(run.records);
cleanup:
    journal_close(run.journal);
    if (run.crew.exchange.mailbox)
        crew_release(&run.crew);
    json_decref(run.records);
    json_decref(ids);
    json_decref(context);
    return rc;
}

/* `run --resume FILE` alone goes on with the command that the file's first line tells; what was typed now comes after
 * it, so that it has the last word. Returns the arguments (interned; free the array) or NULL with a message. */
static char **resumed_arguments(const char *path, int argc, char **argv, int *count, struct error *error)
{
    struct results results;
    char **arguments = NULL;
    if (results_read(path, &results, error) < 0)
        return NULL;
    const json_t *command = json_object_get(json_array_get(results.contexts, 0), "command");
    size_t words = json_array_size(command);
    if (words < 2) {
        error_usage(error, "--resume: %s does not tell the command that made it", path);
    } else {
        arguments = calloc(words + (size_t)argc, sizeof *arguments);
        *count = 0;
        for (size_t i = 1; arguments && i < words; i++) {
            const char *word = json_string_value(json_array_get(command, i));
            if (word && (strcmp(word, "--out") == 0 || strcmp(word, "--resume") == 0))
                i++;
            else if (word && strncmp(word, "--out=", 6) != 0 && strncmp(word, "--resume=", 9) != 0)
                arguments[(*count)++] = (char *)intern(word);
        }
        for (int i = 1; arguments && i < argc; i++)
            arguments[(*count)++] = argv[i];
    }
    results_release(&results);
    return arguments;
}

int command_run(int argc, char **argv, struct error *error)
{
    struct options options = {0};
    struct topology topology = {0};
    struct plan plan = {0};
    char **resumed = NULL;
    bool done = false;
    int rc = options_parse("run", argc, argv, &options, &done, error);
    if (rc == 0 && !done && options.resume && options.request_is_default) {
        int count = 0;
        resumed = resumed_arguments(options.resume, argc, argv, &count, error);
        options_release(&options);
        rc = resumed ? options_parse("run", count, resumed, &options, &done, error) : -EINVAL;
    }
    if (rc < 0 || done)
        goto cleanup;
    if (options.out && options.resume) {
        rc = error_usage(error, "--out and --resume exclude each other: a resumed run goes on in its own file");
        goto cleanup;
    }
    rc = check_formats(&options, error);
    if (rc == 0)
        rc = topology_load(options.topology, options.restrict_list, &topology, error);
    if (rc == 0)
        rc = request_plan(options.request, &topology, false, &plan, error);
    if (rc < 0)
        goto cleanup;
    for (size_t w = 0; w < plan.warning_count && !options.quiet; w++)
        fprintf(stderr, "attnbench run: warning: %s\n", plan.warnings[w]);
    if (options.dry_run) {
        rc = dry_run_print(stdout, &plan, options.formats, error);
    } else if (!topology.this_system) {
        rc = error_usage(error, "--topology: timing on another machine's topology is refused; --dry-run plans on it");
    } else {
        rc = run_plan(argc, argv, &options, &plan, &topology, error);
    }
cleanup:
    plan_release(&plan);
    topology_release(&topology);
    options_release(&options);
    free(resumed);
    return rc;
}
