/* SPDX-License-Identifier: Apache-2.0
 *
 * A peer: a process that runs kernels which this one must not, spoken to by JSON lines (the protocol stands in
 * kernels/README.md). Libraries with threads of their own, plug-ins and programs in other languages are peers, so that
 * neither a crash nor a pool of spinning threads of theirs reaches a kernel measured beside them: between requests a
 * peer is stopped.
 */
#ifndef HARNESS_PEER_H
#define HARNESS_PEER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "child.h"
#include "error.h"
#include "operands.h"
#include "team.h"

struct peer {
    struct child child;
    int threads;
    const int32_t *cpus; /* [threads] of the placement, owned by the team; NULL: unbound */
    pid_t *working;      /* [threads] the threads that do the work, once they are known; 0: fewer worked */
    int32_t *actual;     /* [threads] where each was seen last; -1: nowhere yet */
    bool short_lived;    /* its threads end with each call: they are held to the placement's CPUs, not each to one */
    double ended_ms, first_ms; /* at the mark: time that threads ran which had ended, and the first thread */
    int64_t migrations;
    double memory_limit; /* bytes resident; beyond it the peer is killed */
};

/* Peers that a worker keeps between problems, since some take seconds to start; plug-ins are never kept, for what one
 * problem did to their process must not reach the next. */
enum { PEER_POOL = 32 };
struct peer_pool {
    struct {
        const char *command; /* as JSON text, interned; NULL: free */
        struct peer peer;
    } kept[PEER_POOL];
};

/* What a peer's threads used so far. */
struct peer_usage {
    double cpu_ns; /* -1: unknown */
    int64_t involuntary_switches;
};

/* Starts command (array of strings; "@peer" first: this program) on the team's CPUs. team NULL: anywhere, one thread.
 * memory_limit: bytes. */
int peer_start(const json_t *command, const struct team *team, double memory_limit, struct peer *peer,
               struct error *error);

/*
 * Lets the peer run, sends the request (stolen), waits for the answer, stops the peer. NULL and a message if it died,
 * took longer than timeout_s, or more memory than it may have (then it is killed), or if the answer is no JSON. An
 * answer "refused" or "failed" is an answer. limit: whose timeout_s is, for the message: PEER_POINT_TIMEOUT where the
 * user sets it.
 */
#define PEER_POINT_TIMEOUT "--point-timeout"
json_t *peer_ask(struct peer *peer, json_t *request, double timeout_s, const char *limit, struct error *error);

/* A kept peer of this command, or a new one. As peer_start. */
int peer_pool_take(struct peer_pool *pool, const json_t *command, const struct team *team, double memory_limit,
                   struct peer *peer, struct error *error);
/* Keeps a peer that has closed its problem, if it lives and may be kept; else ends it. */
void peer_pool_give(struct peer_pool *pool, const json_t *command, struct peer *peer);
void peer_pool_release(struct peer_pool *pool);

/* Kills and reaps; a peer that is not running is left alone. */
void peer_end(struct peer *peer);

struct peer_usage peer_usage(const struct peer *peer);
/* Largest resident size so far, bytes; -1: unknown. */
double peer_peak_rss(const struct peer *peer);

/* Before the turn that shows which threads work. */
void peer_threads_mark(struct peer *peer);
/* After a turn of at least 50 ms: takes its first thread and those others that ran longest for the ones that work, and
 * binds each to its CPU of the placement. 0; -EXDEV: a mask did not stay. */
int peer_threads_bind(struct peer *peer, struct error *error);
/* Reads back where the working threads are, and that each is bound as it was; -EXDEV and a message where not. */
int peer_threads_inspect(struct peer *peer, struct error *error);
/* Threads that the peer has now. */
int peer_threads_count(const struct peer *peer);

/* The tensors of a problem in POSIX shared memory, for all peers of a contest. */
struct peer_memory {
    int fd;
    void *base;
    size_t bytes;
    const char *path; /* interned: how another process opens it */
    json_t *tensors;  /* name -> offset, dtype, shape, strides */
};
/* Room for the operands' tensors, laid out as they are. */
int peer_memory_create(const struct operands *operands, struct peer_memory *memory, struct error *error);
void peer_memory_release(struct peer_memory *memory);
/* Inputs from the operands into the memory; outputs there become NaN. */
void peer_memory_load(const struct peer_memory *memory, const struct operands *operands);
/* Output and weights from the memory into the operands. */
void peer_memory_fetch(const struct peer_memory *memory, const struct operands *operands);

/* The peer's side: maps what `path` names; base NULL and -errno if it can't. */
int peer_memory_map(const char *path, size_t bytes, void **base);

/* The protocol's "problem" of these operands. */
json_t *peer_problem(const struct operands *operands);

/* "open" of a warm problem with one copy of its inputs; others add to it. */
json_t *peer_open_request(const char *kernel, const char *schedule, const struct team *team,
                          const struct operands *operands, const struct peer_memory *memory);

/* Where a tensor of the operands lies: "q", "k", "v", "out", "weights", "bias", "mask", "param0" ... index runs from 0;
 * false beyond the last. *input: it is read by kernels. Absent tensors have block->data NULL. */
struct peer_tensor {
    const char *name, *dtype;
    const struct attn_tensor *view;
    const struct memory_block *block;
    bool input;
};
bool peer_tensor_at(const struct operands *operands, int index, struct peer_tensor *tensor);

#endif
