/* SPDX-License-Identifier: Apache-2.0
 *
 * The measuring of gate; see gate_run.h.
 */
#include "gate_run.h"

#include <errno.h>
#include <string.h>

#include "clock.h"
#include "json_util.h"

/* Processes that must still run before a slower one of these records counts: of a change that is clear at first looks.
 * More are taken from what time is left. */
static size_t owed(const struct duet_session *session)
{
    const size_t all = gate_stage_first(GATE_SUSPECTED) + gate_stage_first(GATE_CONFIRMING);
    size_t i, sum = 0;
    const json_t *record;
    json_array_foreach(session->records, i, record)
    {
        const char *suspected = json_get_string(record, "suspected", "");
        if (strcmp(suspected, "slower") == 0)
            sum += all - (size_t)json_get_int(record, "processes", 0);
    }
    return sum;
}

/* Points get what time is left once those that look slower have been seen to the end. */
static double deadline_of_points(const struct duet_session *session, const struct gate_run *gate, double deadline_ns)
{
    const uint64_t processes = session->run.processes;
    const double each_ns = processes ? (clock_ns() - gate->began_ns) / (double)processes : 0;
    return deadline_ns - each_ns * (double)owed(session);
}

/* After an error nothing more: half a line may stand at the end, and the verdict needs no journal. */
static void write_record(struct duet_session *session, struct gate_run *gate, const json_t *record)
{
    if (gate->unwritten == 0)
        gate->unwritten = duet_session_write(session, record, &gate->write_error);
}

/* What is known of a suspect, in case that the run is killed before the rest is. */
static void write_provisional(struct duet_session *session, struct gate_run *gate, const json_t *record)
{
    json_t *line = json_copy((json_t *)record);
    json_object_set_new(line, "provisional", json_true());
    write_record(session, gate, line);
    json_decref(line);
}

static void run_points(struct duet_session *session, struct gate_run *gate)
{
    const size_t count = session->pairs.count;
    const double deadline_ns = session->run.deadline_ns;
    for (size_t p = 0; p < count && !duet_session_interrupted(); p++) {
        session->run.deadline_ns = deadline_of_points(session, gate, deadline_ns);
        json_t *record = duet_session_judge(session, &session->pairs.pairs[p]);
        json_object_set_new(record, "class", json_string(gate_class(&session->pairs.pairs[p])));
        json_array_append_new(session->records, record);
        duet_session_tell(session, p, count, record);
        const bool suspected = gate_suspect(record);
        gate_conclude_so_far(record);
        if (suspected)
            write_provisional(session, gate, record);
        else
            write_record(session, gate, record);
    }
    session->run.deadline_ns = deadline_ns;
}

/* Look after look, until it is clear, or time is up. */
static void run_on(struct duet_session *session, size_t pair, enum gate_stage_name stage, json_t *record,
                   const char *suspicion, double enough)
{
    size_t processes = gate_stage_next(stage, record, suspicion, enough);
    while (processes > 0 && duet_run_on(&session->run, &session->pairs.pairs[pair], record, processes) == 0)
        processes = gate_stage_next(stage, record, suspicion, enough);
}

/* Clear is what is flagged even if it is the only one. */
static void run_suspects_on(struct duet_session *session, const char *suspicion)
{
    const double enough = GATE_FALSE_DISCOVERY_RATE / (double)session->pairs.count;
    size_t p;
    json_t *record;
    json_array_foreach(session->records, p, record)
    {
        if (!duet_session_interrupted() && strcmp(json_get_string(record, "suspected", ""), suspicion) == 0)
            run_on(session, p, GATE_SUSPECTED, record, suspicion, enough);
    }
}

static void confirm(struct duet_session *session, const char *suspicion)
{
    size_t p;
    json_t *record;
    json_array_foreach(session->records, p, record)
    {
        if (duet_session_interrupted() || !gate_is_flagged(record, suspicion) ||
            json_object_get(record, "confirmation"))
            continue;
        session->run.exactly = gate_stage_first(GATE_CONFIRMING);
        json_t *again = duet_decide(&session->run, &session->pairs.pairs[p]);
        session->run.exactly = 0;
        if (strcmp(json_get_string(again, "status", ""), "ok") == 0)
            run_on(session, p, GATE_CONFIRMING, again, suspicion, GATE_CONFIRMING_P);
        gate_note_confirmation(record, again);
        json_decref(again);
    }
}

static void write_suspects(struct duet_session *session, struct gate_run *gate)
{
    size_t i;
    const json_t *record;
    json_array_foreach(session->records, i, record)
    {
        if (json_get_string(record, "suspected", NULL))
            write_record(session, gate, record);
    }
}

int gate_run_all(struct duet_session *session, struct gate_run *gate, struct error *error)
{
    static const char *const suspicions[] = {"slower", "faster"};
    *gate = (struct gate_run){.controls = json_array(), .began_ns = clock_ns()};
    session->run.one_sided = true;
    int rc = gate_controls_run(session, gate->controls, error);
    if (rc == 0)
        run_points(session, gate);
    for (int s = 0; s < 2 && rc == 0; s++) {
        run_suspects_on(session, suspicions[s]);
        if (gate_flag(session->records) < 0)
            rc = error_system(error, ENOMEM, "the verdicts of many points");
        else /* slower ones once more: a point that failed meanwhile leaves the others fewer */
            for (int again = 0; again <= s; again++)
                confirm(session, suspicions[again]);
    }
    gate->spent_s = (clock_ns() - gate->began_ns) / 1e9;
    if (rc < 0)
        return rc;
    gate_conclude(session->records, gate->controls, &gate->result);
    write_suspects(session, gate);
    return 0;
}

void gate_run_release(struct gate_run *gate)
{
    json_decref(gate->controls);
    gate->controls = NULL;
}
