/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker's request loop; see worker.h for the protocol.
 */
#include "worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "child.h"
#include "clock.h"
#include "isa.h"
#include "memory_policy.h"

int worker_tell(struct worker *worker, json_t *event)
{
    return lines_write(worker->out, event);
}

void worker_turn(struct worker *worker, int member)
{
    atomic_store(&worker->exchange.mailbox->turn_began_ns, (int64_t)clock_ns());
    atomic_store(&worker->exchange.mailbox->turn, member);
}

int worker_show_output(struct worker *worker, int member, const struct operands *operands, const void *out)
{
    int segment =
        exchange_put(&worker->exchange, out, operands->out.bytes, operands->weights.data, operands->weights.bytes);
    if (segment < 0)
        return segment;
    int rc = worker_tell(worker, json_pack("{s:s,s:i,s:i,s:I,s:I}", "event", "output", "member", member, "segment",
                                           segment, "out_bytes", (json_int_t)operands->out.bytes, "weights_bytes",
                                           (json_int_t)operands->weights.bytes));
    json_t *answer = NULL;
    if (rc == 0)
        rc = lines_read(&worker->in, -1, &answer);
    json_decref(answer);
    exchange_drop(&worker->exchange);
    return rc;
}

static int setup(struct worker *worker, const json_t *request, struct error *error)
{
    int threads = (int)json_integer_value(json_object_get(request, "threads"));
    const json_t *list = json_object_get(request, "cpus");
    int32_t *cpus = NULL;
    if (threads < 1 || (json_is_array(list) && json_array_size(list) != (size_t)threads))
        return error_usage(error, "setup: %d threads on %zu CPUs", threads, json_array_size(list));
    if (json_is_array(list)) {
        cpus = malloc((size_t)threads * sizeof *cpus);
        if (!cpus)
            return error_system(error, ENOMEM, "setup");
        for (int i = 0; i < threads; i++)
            cpus[i] = (int32_t)json_integer_value(json_array_get(list, (size_t)i));
    }
    counters_close(worker->counters);
    worker->counters = NULL;
    worker->counted = NULL;
    peer_pool_release(&worker->peers);
    team_release(&worker->team);
    int rc = team_create(threads, cpus, &worker->team, error);
    free(cpus);
    worker->llc_bytes = json_number_value(json_object_get(request, "llc_bytes"));
    if (rc == 0)
        rc = memory_policy_adopt(json_object_get(request, "mem"), error);
    worker->peaks = (struct roof_peaks){0}; /* those of another team */
    return rc;
}

static int serve(struct worker *worker, const json_t *request, struct error *error)
{
    const char *op = json_string_value(json_object_get(request, "op"));
    if (op && strcmp(op, "setup") == 0)
        return setup(worker, request, error);
    if (!worker->team.threads)
        return error_usage(error, "a worker must be set up first");
    if (op && strcmp(op, "measure") == 0)
        return worker_measure(worker, request, error);
    if (op && strcmp(op, "check") == 0)
        return worker_check(worker, request, error);
    if (op && strcmp(op, "duet") == 0)
        return worker_duet(worker, request, error);
    if (op && strcmp(op, "peak") == 0)
        return worker_peak(worker, request, error);
    if (op && strcmp(op, "peak_nodes") == 0)
        return worker_peak_nodes(worker, request, error);
    return error_usage(error, "unknown request '%s'", op ? op : "");
}

int worker_main(int in, int out, int segment)
{
    struct worker worker = {.in = {.fd = in}, .out = out};
    struct error error = {0};
    json_t *request = NULL;
    int rc = exchange_attach(segment, &worker.exchange, &error);
    if (rc < 0)
        return 1;
    while (lines_read(&worker.in, -1, &request) == 0) {
        rc = serve(&worker, request, &error);
        worker_turn(&worker, -1);
        json_decref(request);
        json_t *last =
            rc < 0 ? json_pack("{s:s,s:s}", "event", "error", "text", error.text) : json_pack("{s:s}", "event", "done");
        if (worker_tell(&worker, last) < 0)
            break;
    }
    counters_close(worker.counters);
    peer_pool_release(&worker.peers);
    team_release(&worker.team);
    lines_release(&worker.in);
    exchange_release(&worker.exchange);
    return 0;
}
