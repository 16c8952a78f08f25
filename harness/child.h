/* SPDX-License-Identifier: Apache-2.0
 *
 * Child processes: attnbench executes itself as workers (which run kernels) and as the referee (which judges what they
 * returned), so that a crash, a hang or an out-of-memory kill costs one point and never the run.
 */
#ifndef HARNESS_CHILD_H
#define HARNESS_CHILD_H

#include <jansson.h>
#include <sys/types.h>

#include "error.h"
#include "exchange.h"
#include "lines.h"

enum child_role { CHILD_WORKER, CHILD_REFEREE, CHILD_PROGRAM };

struct child {
    pid_t pid; /* 0: not running */
    enum child_role role;
    int to;            /* requests */
    struct lines from; /* replies */
};

/*
 * Starts a child that shares exchange. Its environment has every OMP_*, GOMP_* and KMP_* variable removed and waiting
 * set to spin shortly, then sleep; its stdin is /dev/null and its stdout goes to our stderr, so that a library that
 * prints can't break the protocol. It ends when this process ends. Under user-mode emulation it is forked, not
 * executed.
 */
int child_start(enum child_role role, const struct exchange *exchange, struct child *child, struct error *error);

/* How a program that is not this one is started. */
struct child_program {
    char *const *argv;     /* argv[0] is the program; "@peer": this one, with the rest of argv behind it */
    const int32_t *cpus;   /* [threads] the CPUs that it may use; NULL: those of the caller */
    int threads;           /* tells its OpenMP runtime how many it gets */
    const char *peer_path; /* value of ATTNBENCH_PEER_PATH; NULL: as it is */
};

/*
 * Starts a program that reads requests from its stdin and writes answers to its stdout; its stderr is ours. The
 * environment is cleaned as for child_start. A program that can't be executed ends with status 127.
 */
int child_spawn(const struct child_program *program, struct child *child, struct error *error);

/* Sends a request (steals it). 0 or -EPIPE. */
int child_send(struct child *child, json_t *request);

/* Kills and reaps. */
void child_kill(struct child *child);
/* Closes the request pipe, which ends a sound child, and reaps. */
void child_stop(struct child *child);
/* Reaps a child that has closed its end: "killed by signal 11 (Segmentation fault)", "ended with status 1". Interned.
 */
const char *child_epitaph(struct child *child);

/* What main calls when argv[1] names a role ("@worker FD FD SEGMENT"): never returns to the commands. -1: not a child.
 */
int child_main(int argc, char **argv);

/* Bodies of the roles: loop over requests from in until it ends. Return an exit status. */
int worker_main(int in, int out, int segment);
int referee_main(int in, int out, int segment);
/* "@peer --plugin FILE ...": argv begins behind "@peer"; requests come from stdin. */
int peer_main(int argc, char **argv);

#endif
