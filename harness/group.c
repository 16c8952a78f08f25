/* SPDX-License-Identifier: Apache-2.0
 *
 * Running one group: requests to the worker, verdicts from the referee, blame for crashes and hangs; see run.h.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cause.h"
#include "clock.h"
#include "environment.h"
#include "intern.h"
#include "json_util.h"
#include "operands.h"
#include "record.h"
#include "registry.h"
#include "run.h"
#include "work.h"

/* Deaths of a worker that no kernel can be blamed for, before the group is given up. */
enum { DEATHS_MOST = 5, POLL_MS = 200 };
/* Reference FLOPs for each second of --min-time: about what the referee computes in the time that the problem's kernels
 * are measured, so that verification costs no more than measuring. */
static const double oracle_flops_per_s = 4e9;

struct entrant {
    const struct point *point;
    json_t *results;   /* one event a launch */
    json_t *judgement; /* the worst so far */
    const char *failure;
    const char *refused; /* by its peer, for a reason that only it could know */
    int strikes;         /* workers that were killed in its turn */
    int launches;        /* finished */
};

struct group {
    struct run *run;
    struct entrant *entrants;
    size_t count;
    size_t *seated; /* request member -> entrant */
    size_t seats;
    int deaths;
};

bool group_same(const struct point *a, const struct point *b)
{
    if (a->cache != b->cache || a->threads != b->threads || a->placement != b->placement || a->mem != b->mem)
        return false;
    return spec_digest(&a->spec) == spec_digest(&b->spec);
}

double group_bytes(const struct run *run, const struct point *points, size_t count)
{
    const struct point *point = points;
    size_t peers = 0;
    for (size_t i = 0; i < count; i++)
        peers += registry_origin(points[i].kernel)->command != NULL;
    struct work work;
    work_count(&point->spec, &work);
    double operands = operands_bytes(&point->spec);
    double cold = point->cache == CACHE_COLD ? 4 * (double)topology_llc_total_bytes(run->topology) : 0;
    double probe = work.working_set > cold ? work.working_set : cold;
    /* Worker's and referee's operands, the copies, the roof's buffer; each peer has operands and copies of its own. */
    return 2 * operands + cold + probe + (double)peers * (operands + cold) + (peers ? operands : 0);
}

int run_record(struct run *run, json_t *record, struct error *error)
{
    int rc = journal_append(run->journal, record, error);
    progress_point(run->progress, record);
    json_array_append_new(run->records, record);
    return rc;
}

static json_t *problem_request(const struct group *group, const char *op)
{
    const struct effort *effort = group->run->effort;
    double seconds = effort->quick_check ? 0.02 : effort->min_time_s;
    return json_pack("{s:s,s:o,s:i,s:f}", "op", op, "spec", spec_to_json(&group->entrants[0].point->spec), "set", 1,
                     "budget_flops", oracle_flops_per_s * seconds);
}

static json_t *measure_request(struct group *group)
{
    const struct effort *effort = group->run->effort;
    const struct point *point = group->entrants[0].point;
    json_t *members = json_array();
    group->seats = 0;
    for (size_t i = 0; i < group->count; i++) {
        struct entrant *entrant = &group->entrants[i];
        if (entrant->failure || json_array_size(entrant->results) > (size_t)entrant->launches)
            continue;
        group->seated[group->seats++] = i;
        json_t *member = json_pack("{s:s,s:s,s:s}", "kernel", entrant->point->kernel, "schedule",
                                   entrant->point->schedule_requested, "point_id", point_id(entrant->point));
        const struct registry_origin *origin = registry_origin(entrant->point->kernel);
        if (origin->command)
            json_object_set(member, "peer", origin->command);
        json_array_append_new(members, member);
    }
    return json_pack("{s:s,s:o,s:s,s:o,s:s,s:f,s:I,s:f,s:f,s:b,s:I}", "op", "measure", "spec",
                     spec_to_json(&point->spec), "cache", cache_name(point->cache), "members", members, "counters",
                     effort->counters, "min_time_s", effort->min_time_s, "samples", (json_int_t)effort->samples,
                     "point_timeout_s", effort->point_timeout_s, "memory_limit",
                     environment_memory_limit(effort->memory_limit), "quick_check", (int)effort->quick_check, "seed",
                     (json_int_t)group->run->seed);
}

static bool worse(const json_t *a, const json_t *b)
{
    bool wrong_a = json_is_true(json_object_get(a, "wrong")), wrong_b = json_is_true(json_object_get(b, "wrong"));
    if (wrong_a != wrong_b)
        return wrong_a;
    return json_get_number(a, "err_over_bound", 0) > json_get_number(b, "err_over_bound", 0);
}

/* The worker has put an output into the exchange: have it judged, let the worker go on. */
static int on_output(struct group *group, struct crew_worker *worker, const json_t *event)
{
    struct entrant *entrant = &group->entrants[group->seated[json_get_int(event, "member", 0)]];
    struct error why;
    json_t *request = problem_request(group, "judge");
    json_object_set(request, "segment", json_object_get(event, "segment"));
    json_object_set(request, "out_bytes", json_object_get(event, "out_bytes"));
    json_object_set(request, "weights_bytes", json_object_get(event, "weights_bytes"));
    json_t *judgement = crew_ask_referee(&group->run->crew, request, &why);
    if (!judgement) {
        entrant->failure = intern_format("not verified: %s", why.text);
    } else if (!entrant->judgement || worse(judgement, entrant->judgement)) {
        json_decref(entrant->judgement);
        entrant->judgement = judgement;
    } else {
        json_decref(judgement);
    }
    return child_send(&worker->child, json_pack("{s:s}", "op", "continue"));
}

static void on_result(struct group *group, const json_t *event)
{
    struct entrant *entrant = &group->entrants[group->seated[json_get_int(event, "member", 0)]];
    const char *failure = json_get_string(event, "failure", NULL);
    const char *refused = json_get_string(event, "refused", NULL);
    entrant->refused = refused ? intern(refused) : NULL;
    if (failure)
        entrant->failure = intern(failure);
    else
        json_array_append(entrant->results, (json_t *)event);
}

static void fail_seated(struct group *group, const char *reason)
{
    for (size_t s = 0; s < group->seats; s++) {
        struct entrant *entrant = &group->entrants[group->seated[s]];
        if (!entrant->failure && json_array_size(entrant->results) == (size_t)entrant->launches)
            entrant->failure = reason;
    }
}

/* The kernel in whose turn the worker died is blamed, unless the kill may have come from outside: then it gets one more
 * chance. Without a turn the whole group does. */
static void on_death(struct group *group, const char *epitaph)
{
    int turn = atomic_load(&group->run->crew.exchange.mailbox->turn);
    if (turn < 0 || (size_t)turn >= group->seats) {
        if (++group->deaths > DEATHS_MOST)
            fail_seated(group, intern_format("the worker process died again and again: %s", epitaph));
        return;
    }
    struct entrant *entrant = &group->entrants[group->seated[turn]];
    bool outside = strstr(epitaph, "signal 9 ") != NULL || strstr(epitaph, "signal 15 ") != NULL;
    if (!outside || ++entrant->strikes > 1)
        entrant->failure = intern_format("the worker process was %s while this kernel ran", epitaph);
}

/* Kills a worker whose kernel has been running for longer than a point may take. True if it did. */
static bool end_hang(struct group *group, struct crew_worker *worker)
{
    const struct mailbox *mailbox = group->run->crew.exchange.mailbox;
    int turn = atomic_load(&mailbox->turn);
    double limit_s = group->run->effort->point_timeout_s;
    if (turn < 0 || (size_t)turn >= group->seats ||
        clock_ns() - (double)atomic_load(&mailbox->turn_began_ns) < 1e9 * limit_s)
        return false;
    group->entrants[group->seated[turn]].failure =
        intern_format("still running after --point-timeout %g s; killed", limit_s);
    crew_bury(worker, true);
    return true;
}

/* One request to one worker until "done", or until the worker is gone. */
static void converse(struct group *group, struct crew_worker *worker)
{
    struct run *run = group->run;
    int seen = *run->interrupts;
    atomic_store(&run->crew.exchange.mailbox->turn, -1);
    atomic_store(&run->crew.exchange.mailbox->stop, seen > 0);
    int rc = child_send(&worker->child, measure_request(group));
    while (rc == 0) {
        json_t *event = NULL;
        rc = lines_read(&worker->child.from, POLL_MS, &event);
        if (rc == -ETIMEDOUT || rc == -EINTR) {
            if (*run->interrupts > 1) {
                crew_bury(worker, true);
                fail_seated(group, "interrupted");
                return;
            }
            if (*run->interrupts > 0)
                atomic_store(&run->crew.exchange.mailbox->stop, 1);
            if (end_hang(group, worker))
                return;
            rc = 0;
            continue;
        }
        if (rc < 0)
            break;
        const char *kind = json_get_string(event, "event", "");
        bool over = strcmp(kind, "done") == 0 || strcmp(kind, "error") == 0;
        if (strcmp(kind, "output") == 0)
            rc = on_output(group, worker, event);
        else if (strcmp(kind, "result") == 0)
            on_result(group, event);
        else if (strcmp(kind, "error") == 0)
            fail_seated(group, intern(json_get_string(event, "text", "the worker failed")));
        json_decref(event);
        if (over)
            return;
    }
    on_death(group, crew_bury(worker, rc == -EPROTO));
}

static bool unfinished(const struct group *group)
{
    for (size_t i = 0; i < group->count; i++) {
        const struct entrant *entrant = &group->entrants[i];
        if (!entrant->failure && json_array_size(entrant->results) == (size_t)entrant->launches)
            return true;
    }
    return false;
}

static void launch(struct group *group)
{
    const struct point *point = group->entrants[0].point;
    while (unfinished(group)) {
        struct error why;
        struct crew_worker *worker = crew_worker(&group->run->crew, point, &why);
        if (!worker) {
            group->seats = 0;
            for (size_t i = 0; i < group->count; i++)
                group->seated[group->seats++] = i;
            fail_seated(group, intern(why.text));
            return;
        }
        converse(group, worker);
    }
    for (size_t i = 0; i < group->count; i++)
        group->entrants[i].launches++;
}

static json_t *entrant_record(const struct group *group, const struct entrant *entrant)
{
    const struct run *run = group->run;
    json_t *record = record_create(entrant->point, run->run_id);
    if (run->effort->quick_check)
        json_object_set_new(record, "rough", json_true());
    if (entrant->refused)
        record_set_status(record, "skipped", entrant->refused);
    else if (entrant->failure)
        record_set_status(record, "failed", entrant->failure);
    else
        record_result(record, entrant->point, entrant->results, entrant->judgement, run->topology);
    cause_annotate(record, entrant->point, run->records, run->topology);
    return record;
}

int group_run(struct run *run, const struct point *const *points, size_t count, struct error *error)
{
    struct group group = {.run = run, .count = count};
    int rc = 0;
    group.entrants = calloc(count, sizeof *group.entrants);
    group.seated = calloc(count, sizeof *group.seated);
    if (!group.entrants || !group.seated) {
        rc = error_system(error, ENOMEM, "a group of %zu points", count);
        goto cleanup;
    }
    for (size_t i = 0; i < count; i++)
        group.entrants[i] = (struct entrant){.point = points[i], .results = json_array()};
    /* The reference is computed before anything is timed: nothing else may run then. */
    struct error why;
    json_t *ready = crew_ask_referee(&run->crew, problem_request(&group, "prepare"), &why);
    for (size_t i = 0; i < count && !ready; i++)
        group.entrants[i].failure = intern_format("not verified: %s", why.text);
    json_decref(ready);
    for (int l = 0; l < run->effort->launches && *run->interrupts == 0; l++) {
        if (l > 0) { /* a launch is a process of its own */
            struct crew_worker *worker = crew_worker(&run->crew, points[0], &why);
            if (worker)
                crew_bury(worker, true);
        }
        launch(&group);
    }
    for (size_t i = 0; i < count && rc == 0; i++) {
        bool nothing = !group.entrants[i].failure && json_array_size(group.entrants[i].results) == 0;
        bool cut_off = *run->interrupts > 1 && group.entrants[i].failure;
        if (!nothing && !cut_off) /* an interrupted point has no record, so that --resume measures it */
            rc = run_record(run, entrant_record(&group, &group.entrants[i]), error);
    }
cleanup:
    for (size_t i = 0; group.entrants && i < count; i++) {
        json_decref(group.entrants[i].results);
        json_decref(group.entrants[i].judgement);
    }
    free(group.entrants);
    free(group.seated);
    return rc;
}
