/* SPDX-License-Identifier: Apache-2.0
 *
 * Running the processes of a duet; see duet.h. From results to a verdict: duet_verdict.c.
 */
#include "duet.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "fill.h"
#include "intern.h"
#include "json_util.h"
#include "values.h"

enum { POLL_MS = 200, PROCESS_STRIDE = 1000003 };
static const double pair_seconds = 1, warm_share = 0.3, point_timeout_s = 60; /* warm-up: of the seconds of pairs */
static const double oracle_flops = 4e9; /* of the reference, for each problem: about a second */

static int read_seconds(double *seconds, struct error *error)
{
    const char *text = getenv("ATTNBENCH_DUET_SECONDS");
    *seconds = pair_seconds;
    int rc = text ? value_duration(text, seconds, error) : 0;
    return rc < 0 ? error_prefix(error, rc, "ATTNBENCH_DUET_SECONDS") : 0;
}

int duet_run_create(const struct topology *topology, double tau, struct duet_run *run, struct error *error)
{
    double seconds;
    int rc = read_seconds(&seconds, error);
    if (rc < 0)
        return rc;
    *run = (struct duet_run){
        .tau = tau,
        .rule = sequential_rule_for(tau > 0 ? tau : DUET_TAU),
        .seconds = seconds,
        .warm_s = warm_share * seconds,
        .timeout_s = point_timeout_s,
        .deadline_ns = INFINITY,
        .seed = 1,
    };
    return crew_create(topology, &run->crew, error);
}

void duet_run_release(struct duet_run *run)
{
    if (run->crew.exchange.mailbox)
        crew_release(&run->crew);
}

void duet_order(uint64_t seed, uint64_t process, enum duet_side *loaded, enum duet_side *opened)
{
    const uint64_t pair = process / 2, two_pairs = process / 4;
    const uint64_t one_first = (process ^ fill_bits(seed, 2, FILL_K, pair)) & 1;
    const uint64_t other_first = (one_first ^ pair ^ fill_bits(seed, 2, FILL_V, two_pairs)) & 1;
    *loaded = (enum duet_side)one_first;
    *opened = (enum duet_side)other_first;
}

static json_t *side_json(const struct duet_pair *pair, enum duet_side side)
{
    return json_pack("{s:s,s:s?,s:s}", "kernel", pair->side[side].kernel, "library", pair->side[side].library, "label",
                     pair->side[side].label);
}

static json_t *duet_request(struct duet_run *run, const struct duet_pair *pair, size_t process)
{
    const struct point *point = pair->point;
    const uint64_t seed = run->seed + PROCESS_STRIDE * ++run->processes;
    enum duet_side loaded, opened;
    duet_order(run->seed, process, &loaded, &opened);
    return json_pack("{s:s,s:o,s:s,s:s,s:[o,o],s:i,s:i,s:f,s:f,s:I}", "op", "duet", "spec", spec_to_json(&point->spec),
                     "cache", cache_name(point->cache), "schedule", point->schedule_requested, "sides",
                     side_json(pair, DUET_A), side_json(pair, DUET_B), "load_first", (int)loaded, "open_first",
                     (int)opened, "seconds", run->seconds, "warm_s", run->warm_s, "seed", (json_int_t)seed);
}

static json_t *problem_request(const struct duet_pair *pair, const char *op)
{
    return json_pack("{s:s,s:o,s:i,s:f}", "op", op, "spec", spec_to_json(&pair->point->spec), "set", 1, "budget_flops",
                     oracle_flops);
}

/* An output: judged, and what is wrong with it noted in result. */
static int on_output(struct duet_run *run, const struct duet_pair *pair, struct crew_worker *worker,
                     const json_t *event, json_t *result, struct error *error)
{
    static const char *const wrong[] = {"wrong_a", "wrong_b"}, *const ratio[] = {"err_over_bound_a",
                                                                                 "err_over_bound_b"};
    const int64_t side = json_get_int(event, "member", 0);
    json_t *request = problem_request(pair, "judge");
    json_object_set(request, "segment", json_object_get(event, "segment"));
    json_object_set(request, "out_bytes", json_object_get(event, "out_bytes"));
    json_object_set(request, "weights_bytes", json_object_get(event, "weights_bytes"));
    json_t *judgement = crew_ask_referee(&run->crew, request, error);
    if (!judgement)
        return error_prefix(error, -EIO, "%s could not be verified", pair->side[side].label);
    json_object_set(result, ratio[side], json_object_get(judgement, "err_over_bound"));
    if (json_is_true(json_object_get(judgement, "wrong")))
        json_object_set_new(result, wrong[side], json_string(json_get_string(judgement, "reason", "wrong result")));
    json_decref(judgement);
    return child_send(&worker->child, json_pack("{s:s}", "op", "continue"));
}

static int interrupted(const struct duet_run *run, struct error *error)
{
    return run->interrupts && *run->interrupts > 0 ? error_system(error, EINTR, "interrupted") : 0;
}

/* Whose code ran when the worker died or was given up. */
static const char *guilty(const struct duet_run *run, const struct duet_pair *pair)
{
    const int turn = atomic_load(&run->crew.exchange.mailbox->turn);
    return turn == DUET_A || turn == DUET_B ? pair->side[turn].label : "one of both";
}

static int on_silence(struct duet_run *run, const struct duet_pair *pair, struct error *error)
{
    const struct mailbox *mailbox = run->crew.exchange.mailbox;
    int rc = interrupted(run, error);
    if (rc == 0 && atomic_load(&mailbox->turn) >= 0 &&
        clock_ns() - (double)atomic_load(&mailbox->turn_began_ns) > 1e9 * run->timeout_s)
        rc = error_wrong(error, EIO, "%s was still running after %g s; killed", guilty(run, pair), run->timeout_s);
    if (rc == 0 && clock_ns() > run->deadline_ns)
        rc = error_wrong(error, ETIME, "--max-time was over");
    return rc;
}

/* A side can't do the problem: noted in result. */
static void on_refusal(const json_t *event, json_t *result)
{
    static const char *const refused[] = {"refused_a", "refused_b"};
    json_object_set(result, refused[json_get_int(event, "member", 0)], json_object_get(event, "text"));
}

static bool is_whole(const json_t *result)
{
    return json_object_get(result, "log_ratio_wall") || json_object_get(result, "refused_a") ||
           json_object_get(result, "refused_b");
}

static int converse(struct duet_run *run, const struct duet_pair *pair, size_t process, struct crew_worker *worker,
                    json_t *result, struct error *error)
{
    atomic_store(&run->crew.exchange.mailbox->turn, -1);
    int rc = child_send(&worker->child, duet_request(run, pair, process));
    for (bool over = false; rc == 0 && !over;) {
        json_t *event = NULL;
        rc = lines_read(&worker->child.from, POLL_MS, &event);
        if (rc == -ETIMEDOUT || rc == -EINTR) {
            rc = on_silence(run, pair, error);
            if (rc < 0)
                return rc;
            continue;
        }
        if (rc < 0)
            break;
        const char *kind = json_get_string(event, "event", "");
        over = strcmp(kind, "done") == 0 || strcmp(kind, "error") == 0;
        if (strcmp(kind, "output") == 0) {
            rc = on_output(run, pair, worker, event, result, error);
            if (rc == -EIO) {
                json_decref(event);
                return rc;
            }
        } else if (strcmp(kind, "duet") == 0) {
            json_object_update(result, event);
        } else if (strcmp(kind, "refused") == 0) {
            on_refusal(event, result);
        } else if (strcmp(kind, "error") == 0) {
            json_object_set(result, "error", json_object_get(event, "text"));
        }
        json_decref(event);
    }
    if (rc < 0) {
        const char *name = guilty(run, pair);
        return error_wrong(error, EIO, "%s: the process was %s", name, crew_bury(worker, rc == -EPROTO));
    }
    const char *failure = json_get_string(result, "error", NULL);
    if (failure)
        return error_wrong(error, EIO, "%s", failure);
    return is_whole(result) ? 0 : error_wrong(error, EIO, "the process told no ratio");
}

int duet_process(struct duet_run *run, const struct duet_pair *pair, size_t process, json_t **result,
                 struct error *error)
{
    *result = NULL;
    int rc = interrupted(run, error);
    if (rc < 0)
        return rc;
    /* The reference is computed before anything is timed, and once a problem. */
    json_t *ready = crew_ask_referee(&run->crew, problem_request(pair, "prepare"), error);
    if (!ready)
        return -EIO;
    json_decref(ready);
    struct crew_worker *worker = crew_worker(&run->crew, pair->point, error);
    if (!worker)
        return -EIO;
    *result = json_object();
    rc = converse(run, pair, process, worker, *result, error);
    if (worker->placement) /* each process is a replicate: the next one is a fresh one */
        crew_bury(worker, true);
    if (rc < 0) {
        json_decref(*result);
        *result = NULL;
    }
    return rc;
}
