/* SPDX-License-Identifier: Apache-2.0
 *
 * attnbench duet: a verdict on two kernels at every point of a sweep.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "commands.h"
#include "duet_pairs.h"
#include "duet_table.h"
#include "journal.h"
#include "json_util.h"
#include "run_context.h"

static volatile sig_atomic_t interrupts;

static void on_interrupt(int number)
{
    (void)number;
    interrupts++;
}

static void catch_interrupts(void)
{
    struct sigaction action = {.sa_handler = on_interrupt};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static json_t *skipped(const struct duet_pair *pair)
{
    json_t *record =
        json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s}", "schema", "attnbench.duet/1", "a", pair->side[DUET_A].label, "b",
                  pair->side[DUET_B].label, "status", "skipped", "reason", pair->point->skip_reason, "kernel",
                  pair->point->kernel, "schedule", pair->point->schedule_requested);
    json_t *spec = spec_to_json(&pair->point->spec);
    json_object_update(record, spec);
    json_decref(spec);
    json_object_set_new(record, "threads", json_integer(pair->point->threads));
    json_object_set_new(record, "cache", json_string(cache_name(pair->point->cache)));
    return record;
}

static void tell(size_t index, size_t count, const json_t *record)
{
    char *line = duet_line(record);
    fprintf(stderr, "[%zu/%zu] %s\n", index + 1, count, line ? line : "");
    free(line);
}

static int show(const struct options *options, const json_t *context, const json_t *records, struct error *error)
{
    const struct output_style style = output_style(options->color, options->wide, stdout);
    const char *format = options->formats ? options->formats : options->quiet ? "" : "table";
    if (strcmp(format, "table") == 0) {
        duet_table_print(stdout, records, &style);
    } else if (strcmp(format, "json") == 0) {
        json_t *whole = json_pack("{s:O,s:O}", "context", context, "points", records);
        json_dumpf(whole, stdout, JSON_INDENT(2));
        fputc('\n', stdout);
        json_decref(whole);
    }
    return output_flush(stdout, "verdicts", error);
}

static int exit_code(const json_t *records)
{
    size_t i, bad = 0, open = 0, judged = 0;
    const json_t *record;
    json_array_foreach(records, i, record)
    {
        const char *status = json_get_string(record, "status", "");
        const char *verdict = json_get_string(record, "verdict", "");
        bad += strcmp(status, "wrong") == 0 || strcmp(status, "failed") == 0;
        open += strcmp(status, "unreached") == 0 || strcmp(verdict, "inconclusive") == 0;
        judged += strcmp(status, "skipped") != 0;
    }
    return interrupts ? EXIT_INTERRUPTED
           : bad      ? EXIT_WRONG
           : open     ? EXIT_INCONCLUSIVE
           : judged   ? EXIT_OK
                      : EXIT_NOTHING_RAN;
}

static int compare(int argc, char **argv, const struct options *options, const struct duet_pairs *pairs,
                   const struct topology *topology, struct error *error)
{
    struct duet_run run;
    struct journal *journal = NULL;
    json_t *records = json_array();
    json_t *context = run_context(argc, argv, options->config_name ? options->config_name : pairs->plan.name,
                                  pairs->plan.seed, topology);
    int rc = duet_run_create(topology, options->tau, &run, error);
    if (rc == 0 && options->out)
        rc = journal_create(options->out, context, &journal, error);
    run.seed = pairs->plan.seed;
    run.interrupts = &interrupts;
    run.exactly = (size_t)options->processes;
    run.one_sided = options->one_sided;
    run.timeout_s = pairs->plan.effort.point_timeout_s;
    if (pairs->plan.effort.max_time_s > 0)
        run.deadline_ns = clock_ns() + 1e9 * pairs->plan.effort.max_time_s;
    catch_interrupts();
    const size_t repeats = (size_t)options->repeats;
    for (size_t v = 0; v < pairs->count * repeats && rc == 0 && !interrupts; v++) {
        const struct duet_pair *pair = &pairs->pairs[v / repeats];
        json_t *record = pair->point->skip_reason ? skipped(pair) : duet_decide(&run, pair);
        if (options->label)
            json_object_set_new(record, "label", json_string(options->label));
        if (!options->quiet)
            tell(v, pairs->count * repeats, record);
        json_array_append_new(records, record);
        if (journal)
            rc = journal_append(journal, record, error);
    }
    if (rc == 0)
        rc = show(options, context, records, error);
    if (rc == 0)
        rc = exit_code(records);
    journal_close(journal);
    duet_run_release(&run);
    json_decref(context);
    json_decref(records);
    return rc;
}

int command_duet(int argc, char **argv, struct error *error)
{
    struct options options = {0};
    struct topology topology = {0};
    struct duet_pairs pairs = {0};
    bool done = false;
    int rc = options_parse("duet", argc, argv, &options, &done, error);
    if (rc < 0 || done)
        goto cleanup;
    if (options.formats && strcmp(options.formats, "table") != 0 && strcmp(options.formats, "json") != 0) {
        rc = error_usage(error, "-o: '%s' is neither table nor json", options.formats);
        goto cleanup;
    }
    rc = topology_load(options.topology, options.restrict_list, &topology, error);
    if (rc == 0)
        rc = duet_pairs_make(&options, &topology, &pairs, error);
    if (rc == 0 && !topology.this_system)
        rc = error_usage(error, "--topology: timing on another machine's topology is refused");
    if (rc == 0)
        rc = compare(argc, argv, &options, &pairs, &topology, error);
cleanup:
    duet_pairs_release(&pairs);
    topology_release(&topology);
    options_release(&options);
    return rc;
}
