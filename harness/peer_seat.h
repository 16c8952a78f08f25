/* SPDX-License-Identifier: Apache-2.0
 *
 * A peer's place among the kernels that take turns over a problem: what contestant.h does for a kernel of this process,
 * done by requests.
 */
#ifndef HARNESS_PEER_SEAT_H
#define HARNESS_PEER_SEAT_H

#include "contestant.h"
#include "peer.h"

/* What all peers of a contest have in common. */
struct peer_table {
    struct peer_pool *pool;
    struct team *team;
    struct rotation *rotation;
    struct peer_memory memory; /* made with the first peer */
    enum cache_state cache;
    double llc_bytes, timeout_s, memory_limit;
    uint64_t seed;
};
void peer_table_release(struct peer_table *table);

struct peer_seat {
    struct peer_table *table;
    json_t *command;
    struct peer peer;
    const char *schedule; /* that it told; interned */
    const char *refused;  /* why it can't do the problem; interned, NULL: it can */
    json_t *told;         /* its latest answers, later fields over earlier ones */
    struct peer_usage before;
};

/* Starts the peer and has it open the problem. Sets the contestant's failure, or the seat's refused (and failure),
 * where it can't. command: array of strings. */
void peer_seat_take(struct contestant *contestant, const json_t *command, struct peer_table *table);

/* As contestant_qualify; besides, the peer's threads are found and bound. */
void peer_seat_qualify(struct contestant *contestant);
/* The inputs have changed: the peer copies them anew. */
void peer_seat_load(struct contestant *contestant);
/* As contestant_turn; with `last` the output is in the rotation's operands. */
void peer_seat_turn(struct contestant *contestant, int samples, bool last);
/* Has the peer close the problem: one that dies of it fails. */
void peer_seat_leave(struct contestant *contestant);
/* The ISA of the kernel's own file where the peer tells one (a plug-in); -1: it does not. */
int64_t peer_seat_isa(const struct contestant *contestant);
/* Fields of the contestant's "result" that only the peer knows. */
void peer_seat_tell(const struct contestant *contestant, json_t *event);
void peer_seat_release(struct contestant *contestant);

#endif
