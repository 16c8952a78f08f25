/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeping workers and the referee; see crew.h.
 */
#include "crew.h"

#include <errno.h>
#include <string.h>

#include "counters_marker.h"
#include "intern.h"
#include "json_util.h"
#include "memory_policy.h"

int crew_create(const struct topology *topology, struct crew *crew, struct error *error)
{
    *crew = (struct crew){.topology = topology, .exchange = {.segment = -1}};
    crew->referee_threads = topology_max_threads(topology);
    return exchange_create(&crew->exchange, error);
}

/* A worker holds nothing that is worth a farewell, but for regions that likwid-perfctr waits for. */
static void dismiss(struct crew_worker *worker)
{
    if (marker_wanted())
        child_stop(&worker->child);
    else
        child_kill(&worker->child);
}

void crew_release(struct crew *crew)
{
    for (int w = 0; w < CREW_WORKERS; w++)
        dismiss(&crew->workers[w]);
    child_kill(&crew->referee);
    exchange_release(&crew->exchange);
}

static int set_up(struct crew *crew, struct crew_worker *worker, const struct point *point, struct error *error)
{
    int rc = child_start(CHILD_WORKER, &crew->exchange, &worker->child, error);
    if (rc < 0)
        return rc;
    json_t *cpus = point->cpus ? json_array() : json_null();
    for (int i = 0; point->cpus && i < point->threads; i++)
        json_array_append_new(cpus, json_integer(point->cpus[i]));
    json_t *request = json_pack("{s:s,s:i,s:o,s:f,s:o}", "op", "setup", "threads", point->threads, "cpus", cpus,
                                "llc_bytes", (double)topology_llc_total_bytes(crew->topology), "mem",
                                memory_policy_to_json(crew->topology, point->mem));
    json_t *answer = NULL;
    rc = child_send(&worker->child, request);
    while (rc == 0 && (rc = lines_read(&worker->child.from, -1, &answer)) == -EINTR)
        rc = 0;
    if (rc < 0) {
        rc = error_system(error, -rc, "a worker of %d threads %s", point->threads, child_epitaph(&worker->child));
    } else if (strcmp(json_get_string(answer, "event", ""), "done") != 0) {
        rc = error_machine(error, "%s", json_get_string(answer, "text", "the worker could not be set up"));
        child_kill(&worker->child);
    }
    json_decref(answer);
    return rc;
}

struct crew_worker *crew_worker(struct crew *crew, const struct point *point, struct error *error)
{
    struct crew_worker *oldest = &crew->workers[0];
    for (int w = 0; w < CREW_WORKERS; w++) {
        struct crew_worker *worker = &crew->workers[w];
        if (worker->placement == point->placement && worker->mem == point->mem && worker->threads == point->threads) {
            worker->used = ++crew->clock;
            return worker;
        }
        if (worker->used < oldest->used)
            oldest = worker;
    }
    dismiss(oldest);
    *oldest = (struct crew_worker){0};
    int rc = set_up(crew, oldest, point, error);
    if (rc == -EPIPE) /* it died before any kernel ran: killed from outside, or of something that will not come again */
        rc = set_up(crew, oldest, point, error);
    if (rc < 0)
        return NULL;
    oldest->placement = point->placement;
    oldest->mem = point->mem;
    oldest->threads = point->threads;
    oldest->used = ++crew->clock;
    return oldest;
}

const char *crew_bury(struct crew_worker *worker, bool kill_it)
{
    const char *epitaph = "killed";
    if (kill_it)
        child_kill(&worker->child);
    else
        epitaph = child_epitaph(&worker->child);
    *worker = (struct crew_worker){0};
    return epitaph;
}

static json_t *ask(struct crew *crew, json_t *request, struct error *error)
{
    json_t *answer = NULL;
    if (crew->referee.pid <= 0 && child_start(CHILD_REFEREE, &crew->exchange, &crew->referee, error) < 0) {
        json_decref(request);
        return NULL;
    }
    int rc = child_send(&crew->referee, request);
    while (rc == 0 && (rc = lines_read(&crew->referee.from, -1, &answer)) == -EINTR)
        rc = 0;
    if (rc < 0) {
        error_system(error, -rc, "the referee process %s", child_epitaph(&crew->referee));
        return NULL;
    }
    const char *text = json_get_string(answer, "error", NULL);
    if (text) {
        error_machine(error, "%s", text);
        json_decref(answer);
        return NULL;
    }
    return answer;
}

json_t *crew_ask_referee(struct crew *crew, json_t *request, struct error *error)
{
    json_object_set_new(request, "threads", json_integer(crew->referee_threads));
    json_t *answer = ask(crew, json_incref(request), error);
    if (!answer && crew->referee.pid <= 0) /* it died: perhaps of something that will not come again */
        answer = ask(crew, json_incref(request), error);
    json_decref(request);
    return answer;
}
