/* SPDX-License-Identifier: Apache-2.0
 *
 * A run of duet or gate; see duet_session.h.
 */
#include "duet_session.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "duet_table.h"
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

bool duet_session_interrupted(void)
{
    return interrupts > 0;
}

int duet_session_parse(const char *command, int argc, char **argv, struct duet_session *session, bool *done,
                       struct error *error)
{
    *session = (struct duet_session){0};
    int rc = options_parse(command, argc, argv, &session->options, done, error);
    const char *format = session->options.formats;
    if (rc == 0 && format && strcmp(format, "table") != 0 && strcmp(format, "json") != 0)
        rc = error_usage(error, "-o: '%s' is neither table nor json", format);
    return rc;
}

static void set_run(struct duet_session *session)
{
    const struct options *options = &session->options;
    const struct plan *plan = &session->pairs.plan;
    struct duet_run *run = &session->run;
    run->seed = plan->seed;
    run->interrupts = &interrupts;
    run->exactly = (size_t)options->processes;
    run->one_sided = options->one_sided;
    run->timeout_s = plan->effort.point_timeout_s;
    if (plan->effort.max_time_s > 0)
        run->deadline_ns = clock_ns() + 1e9 * plan->effort.max_time_s;
}

int duet_session_begin(int argc, char **argv, struct duet_session *session, struct error *error)
{
    const struct options *options = &session->options;
    int rc = topology_load(options->topology, options->restrict_list, &session->topology, error);
    if (rc == 0)
        rc = duet_pairs_make(options, &session->topology, &session->pairs, error);
    if (rc == 0 && !session->topology.this_system)
        rc = error_usage(error, "--topology: timing on another machine's topology is refused");
    if (rc < 0)
        return rc;
    for (int s = 0; s < DUET_SIDES; s++)
        if (session->pairs.only_in[s] && !options->quiet)
            fprintf(stderr, "attnbench: %s has nothing to compare these with: %s\n", options->sides[!s],
                    session->pairs.only_in[s]);
    session->records = json_array();
    session->context = run_context(argc, argv, options->config_name ? options->config_name : session->pairs.plan.name,
                                   session->pairs.plan.seed, &session->topology);
    rc = duet_run_create(&session->topology, options->tau, &session->run, error);
    if (rc == 0 && options->out)
        rc = journal_create(options->out, session->context, &session->journal, error);
    set_run(session);
    catch_interrupts();
    return rc;
}

void duet_session_end(struct duet_session *session)
{
    journal_close(session->journal);
    duet_run_release(&session->run);
    json_decref(session->context);
    json_decref(session->records);
    duet_pairs_release(&session->pairs);
    topology_release(&session->topology);
    options_release(&session->options);
}

json_t *duet_session_judge(struct duet_session *session, const struct duet_pair *pair)
{
    const char *skipped = pair->point->skip_reason;
    json_t *record = skipped ? duet_record(pair, "skipped", skipped) : duet_decide(&session->run, pair);
    if (pair->lost)
        json_object_set_new(record, "lost", json_true());
    if (session->options.label)
        json_object_set_new(record, "label", json_string(session->options.label));
    return record;
}

void duet_session_tell(const struct duet_session *session, size_t index, size_t count, const json_t *record)
{
    if (session->options.quiet)
        return;
    char *line = duet_line(record);
    fprintf(stderr, "[%zu/%zu] %s\n", index + 1, count, line ? line : "");
    free(line);
}

int duet_session_write(struct duet_session *session, const json_t *record, struct error *error)
{
    return session->journal ? journal_append(session->journal, record, error) : 0;
}

json_t *duet_session_document(const struct duet_session *session)
{
    return json_pack("{s:s,s:O,s:O}", "schema", "attnbench.duet/1", "context", session->context, "points",
                     session->records);
}
