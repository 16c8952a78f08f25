/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker process: runs kernels for the coordinator and tells what it saw.
 *
 * Requests (one JSON object a line), each answered by events that end in "done" or "error":
 *   {"op":"setup","threads":2,"cpus":[0,1]|null,"llc_bytes":N,
 *    "mem":null|{"interleave":true,"nodes":[0]}}
 *   {"op":"measure","spec":{},"cache":"warm","members":[{"kernel":"avx2","schedule":"auto","point_id":"..."}
 *    with "peer":["program", ...] where a peer runs it],
 *    "counters":"none","min_time_s":0.2,"samples":0,"point_timeout_s":60,"memory_limit":bytes,
 *    "quick_check":false,"seed":1}
 *   {"op":"peak","levels":[levels_to_json],"repeats":9,"clocked_ns":2e6}
 *   {"op":"peak_nodes","level":{},"nodes":[OS indices],"repeats":9,"clocked_ns":2e6}
 *   {"op":"check","spec":{}|"case":"DIR","set":1,"far":false,"members":[...]}
 *   {"op":"duet","spec":{},"cache":"warm","schedule":"auto",
 *    "sides":[{"kernel":"avx512","library":"FILE.so"|null,"label":"FILE.so:avx512"},{}],"load_first":0,"open_first":1,
 *    "seconds":1,"warm_s":0.3,"seed":1}   (once a process)
 * Events: {"event":"output","member":0,"segment":N,"out_bytes":N,"weights_bytes":N} (the result lies in that segment;
 * the worker waits for
 * {"op":"continue"}), {"event":"result","member":0,...}, {"event":"stage","text":"..."} (what is measured next),
 * {"event":"peak","part":"compute","result":[]} (parts: compute, functions, team; memory and node: one level each),
 * {"event":"duet",...} (worker_duet.c), or {"event":"refused","member":0,"text":"..."} where a side of one can't do the
 * problem, {"event":"done"}, {"event":"error","text":"..."}.
 */
#ifndef HARNESS_WORKER_H
#define HARNESS_WORKER_H

#include <jansson.h>
#include <stdbool.h>

#include "counters.h"
#include "error.h"
#include "exchange.h"
#include "lines.h"
#include "operands.h"
#include "peer.h"
#include "roof.h"
#include "team.h"

struct worker {
    struct lines in;
    int out;
    struct exchange exchange;
    struct team team;
    struct roof_peaks peaks;
    const char *counted;       /* what counters were opened for, interned; NULL: for nothing yet */
    struct counters *counters; /* for the team; NULL: nothing is counted */
    struct peer_pool peers;    /* set up for this team */
    double llc_bytes;          /* last-level caches of the machine, all together */
};

/* Sends an event (steals it). 0, or -errno: the coordinator is gone. */
int worker_tell(struct worker *worker, json_t *event);

/* Puts the operands' output into the exchange, tells so, waits for "continue". */
int worker_show_output(struct worker *worker, int member, const struct operands *operands, const void *out);

/* Marks in the mailbox whose code runs from here on; -1: the harness's own. */
void worker_turn(struct worker *worker, int member);

/* The operations; each tells its events but for the final "done". 0 or -errno with the message in error. */
int worker_measure(struct worker *worker, const json_t *request, struct error *error);
int worker_check(struct worker *worker, const json_t *request, struct error *error);
int worker_duet(struct worker *worker, const json_t *request, struct error *error);
int worker_peak(struct worker *worker, const json_t *request, struct error *error);
int worker_peak_nodes(struct worker *worker, const json_t *request, struct error *error);

#endif
