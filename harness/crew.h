/* SPDX-License-Identifier: Apache-2.0
 *
 * The coordinator's children: one worker per placement and thread count, and the referee. Starts them when they are
 * first needed and anew when they have died.
 */
#ifndef HARNESS_CREW_H
#define HARNESS_CREW_H

#include "child.h"
#include "spec.h"
#include "topology.h"

/* Workers kept alive at once; the one used longest ago makes room. */
enum { CREW_WORKERS = 4 };

struct crew_worker {
    struct child child;
    const char *placement; /* interned; NULL: free */
    const char *mem;       /* as struct point's */
    int threads;
    uint64_t used;
};

struct crew {
    const struct topology *topology;
    struct crew_worker workers[CREW_WORKERS];
    struct child referee;
    struct exchange exchange; /* one for all: only one worker runs at a time */
    int referee_threads;
    uint64_t clock;
};

int crew_create(const struct topology *topology, struct crew *crew, struct error *error);
void crew_release(struct crew *crew);

/* A worker set up for the point's placement and threads. NULL and a message where it can't be had. */
struct crew_worker *crew_worker(struct crew *crew, const struct point *point, struct error *error);
/* Gives up on a worker: kills it if it lives; tells how it ended. Interned. */
const char *crew_bury(struct crew_worker *worker, bool kill_it);

/* Asks the referee (request is stolen). NULL and a message if it fails even after a fresh start. */
json_t *crew_ask_referee(struct crew *crew, json_t *request, struct error *error);

#endif
