/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker's part of `attnbench peak`: the ceilings of its team, and of its team with memory on given NUMA nodes.
 */
#include <errno.h>

#include "json_util.h"
#include "memory_policy.h"
#include "peaks.h"
#include "worker.h"

static struct peak_effort effort_of(const json_t *request)
{
    struct peak_effort effort = {.repeats = (int)json_get_int(request, "repeats", 9),
                                 .clocked_ns = json_get_number(request, "clocked_ns", 2e6)};
    if (effort.repeats > PEAK_REPEATS_MOST)
        effort.repeats = PEAK_REPEATS_MOST;
    return effort;
}

/* Tells what comes next, so that the coordinator sees life. */
static int stage(struct worker *worker, const char *text)
{
    return worker_tell(worker, json_pack("{s:s,s:s}", "event", "stage", "text", text));
}

/* Steals result. */
static int tell(struct worker *worker, const char *part, json_t *result)
{
    if (!result)
        return -ENOMEM;
    return worker_tell(worker, json_pack("{s:s,s:s,s:o}", "event", "peak", "part", part, "result", result));
}

static int ended(int rc, struct error *error)
{
    return rc < 0 ? error_system(error, -rc, "measuring ceilings") : 0;
}

int worker_peak(struct worker *worker, const json_t *request, struct error *error)
{
    const struct peak_effort effort = effort_of(request);
    struct level levels[LEVELS_MOST];
    int count = levels_from_json(json_object_get(request, "levels"), worker->team.threads, levels);
    if (count < 0)
        return ended(count, error);
    int rc = stage(worker, "compute");
    if (rc == 0)
        rc = tell(worker, "compute", peak_compute(&worker->team, &effort));
    if (rc == 0)
        rc = stage(worker, "exp and tanh");
    if (rc == 0)
        rc = tell(worker, "functions", peak_functions(&worker->team, &effort));
    for (int l = 0; l < count && rc == 0; l++) {
        rc = stage(worker, levels[l].name);
        if (rc == 0)
            rc = tell(worker, "memory", peak_level(&worker->team, &levels[l], &effort));
    }
    if (rc == 0)
        rc = stage(worker, "fork, join, barrier");
    if (rc == 0)
        rc = tell(worker, "team", peak_team(&worker->team, &effort));
    levels_release(levels, count);
    return rc < 0 ? ended(rc, error) : team_inspect(&worker->team, error);
}

/* One level with its memory on one node. */
static json_t *on_node(const struct worker *worker, const struct level *level, json_int_t node,
                       const struct peak_effort *effort, struct error *error)
{
    json_t *policy = json_pack("{s:b,s:[I]}", "interleave", 0, "nodes", node);
    int rc = memory_policy_adopt(policy, error);
    json_decref(policy);
    if (rc < 0)
        return NULL;
    json_t *result = peak_level(&worker->team, level, effort);
    json_object_set_new(result, "node", json_integer(node));
    return result;
}

int worker_peak_nodes(struct worker *worker, const json_t *request, struct error *error)
{
    const struct peak_effort effort = effort_of(request);
    struct level levels[LEVELS_MOST];
    size_t i;
    json_t *node;
    json_t *array = json_pack("[O]", json_object_get(request, "level"));
    int count = levels_from_json(array, worker->team.threads, levels), rc = 0;
    json_decref(array);
    if (count < 0)
        return ended(count, error);
    json_array_foreach(json_object_get(request, "nodes"), i, node)
    {
        if (rc == 0)
            rc = stage(worker, "memory of a NUMA node");
        json_t *result = rc == 0 ? on_node(worker, levels, json_integer_value(node), &effort, error) : NULL;
        if (rc == 0)
            rc = result ? tell(worker, "node", result) : -ENOTSUP;
    }
    levels_release(levels, count);
    memory_policy_adopt(NULL, error);
    return rc == -ENOTSUP ? rc : ended(rc, error);
}
