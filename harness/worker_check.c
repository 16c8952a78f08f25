/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker's "check": each kernel runs a problem, here or in its peer, and shows its output to the referee.
 */
#include <errno.h>
#include <string.h>

#include "check.h"
#include "intern.h"
#include "json_util.h"
#include "worker.h"

/* What checking a member came to. */
struct finding_of_member {
    const char *failure; /* NULL: it ran */
    const char *refused; /* NULL, or why a peer can't do the problem */
};

/* Asks a peer; files its refusal or failure. */
static bool ask(struct peer *peer, json_t *request, double timeout_s, struct finding_of_member *found)
{
    struct error why;
    json_t *answer = peer_ask(peer, request, timeout_s, PEER_POINT_TIMEOUT, &why);
    if (!answer) {
        found->failure = intern(why.text);
        return false;
    }
    const char *event = json_get_string(answer, "event", "");
    const char *reason = intern(json_get_string(answer, "reason", "it does not say why"));
    if (strcmp(event, "refused") == 0)
        found->refused = reason;
    else if (strcmp(event, "failed") == 0)
        found->failure = reason;
    json_decref(answer);
    return !found->failure && !found->refused;
}

/* attnbench's own peers can do all that a worker does: guard pages, case folders, far tensors. */
static bool check_in_own_peer(const json_t *opening, const json_t *request, struct peer *peer, double timeout_s,
                              struct finding_of_member *found)
{
    static const char *const fields[] = {"case", "set", "far"};
    json_t *ours = json_deep_copy(opening);
    json_object_set_new(ours, "op", json_string("check"));
    json_object_set(ours, "spec", json_object_get(request, "spec"));
    for (size_t f = 0; f < sizeof fields / sizeof *fields; f++)
        if (json_object_get(request, fields[f]))
            json_object_set(ours, fields[f], json_object_get(request, fields[f]));
    return ask(peer, ours, timeout_s, found);
}

static json_t *simple(const char *op)
{
    return json_pack("{s:s}", "op", op);
}

/* Other programs get a problem as when they are timed: opened, loaded, one call. */
static bool check_in_program(const json_t *opening, struct peer *peer, double timeout_s,
                             struct finding_of_member *found)
{
    return ask(peer, json_deep_copy(opening), timeout_s, found) && ask(peer, simple("load"), timeout_s, found) &&
           ask(peer,
               json_pack("{s:s,s:f,s:i,s:i,s:f,s:b}", "op", "turn", "warm_ns", 0.0, "samples", 1, "calls_per_sample", 1,
                         "aim_ns", 5e5, "last", 1),
               timeout_s, found) &&
           ask(peer, simple("close"), timeout_s, found);
}

static void check_in_peer(struct worker *worker, const json_t *request, const json_t *member, struct check *check,
                          struct finding_of_member *found)
{
    const json_t *command = json_object_get(member, "peer");
    const double timeout_s = json_get_number(request, "point_timeout_s", 60);
    const bool ours = strcmp(json_string_value(json_array_get(command, 0)), "@peer") == 0;
    struct peer peer = {0};
    struct peer_memory memory;
    struct error why;
    if (json_is_true(json_object_get(request, "far")) && !ours) {
        found->refused = "tensors spread over more than 2^31 elements don't go through shared memory";
        return;
    }
    if (peer_memory_create(&check->operands, &memory, &why) < 0) {
        found->failure = intern(why.text);
        return;
    }
    peer_memory_load(&memory, &check->operands);
    if (peer_pool_take(&worker->peers, command, &worker->team, json_get_number(request, "memory_limit", 0), &peer,
                       &why) < 0) {
        found->failure = intern(why.text);
    } else {
        json_t *opening =
            peer_open_request(json_get_string(member, "kernel", ""), json_get_string(member, "schedule", "auto"),
                              &worker->team, &check->operands, &memory);
        const bool ran = ours ? check_in_own_peer(opening, request, &peer, timeout_s, found)
                              : check_in_program(opening, &peer, timeout_s, found);
        if (ran)
            peer_memory_fetch(&memory, &check->operands);
        json_decref(opening);
        if (found->failure)
            peer_end(&peer);
        else
            peer_pool_give(&worker->peers, command, &peer);
    }
    peer_memory_release(&memory);
}

static int tell(struct worker *worker, int member, const struct finding_of_member *found)
{
    json_t *event = json_pack("{s:s,s:i,s:s?,s:s?}", "event", "result", "member", member, "failure", found->failure,
                              "refused", found->refused);
    return worker_tell(worker, event);
}

int worker_check(struct worker *worker, const json_t *request, struct error *error)
{
    const json_t *members = json_object_get(request, "members");
    struct check check;
    int rc = check_prepare(request, worker->team.threads, &check, error);
    for (size_t i = 0; i < json_array_size(members) && rc == 0; i++) {
        const json_t *member = json_array_get(members, i);
        struct finding_of_member found = {0};
        if (json_object_get(member, "peer")) {
            check_in_peer(worker, request, member, &check, &found);
        } else {
            worker_turn(worker, (int)i);
            found.failure = check_once(&check, json_get_string(member, "kernel", ""),
                                       json_get_string(member, "schedule", "auto"), &worker->team);
            worker_turn(worker, -1);
        }
        if (!found.failure && !found.refused)
            rc = worker_show_output(worker, (int)i, &check.operands, check.operands.out.data);
        if (rc == 0)
            rc = tell(worker, (int)i, &found);
        if (rc < 0)
            error_system(error, -rc, "checking");
    }
    check_release(&check);
    return rc;
}
