/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the worker's "duet" share: measuring (worker_duet.c), loading (worker_duet_load.c), and looking at
 * what the calls computed and what else they did (worker_duet_check.c).
 */
#ifndef HARNESS_WORKER_DUET_H
#define HARNESS_WORKER_DUET_H

#include "contestant.h"
#include "worker.h"

enum { A, B, SIDES };

struct side {
    const char *kernel; /* as the registry has it: of a library, behind its prefix */
    const char *label;  /* as messages call it */
    struct member member;
    int64_t calls; /* of a sample */
    struct series wall, cpu;
};

struct duet {
    struct worker *worker;
    struct rotation rotation;
    struct memory_block out, weights; /* the second ones, where calls do not rotate over copies */
    struct attn_args args[SIDES];     /* of the two outputs */
    struct side sides[SIDES];
    bool swapped; /* A writes to the second output now, in B's workspace */
    uint64_t seed, draws;
    void *offset;          /* moves the heap */
    int threads;           /* of this process, before any kernel was opened */
    uint64_t input_digest; /* of the inputs, as no kernel may change them */
};

/* The next of this process's 64 random bits. */
uint64_t worker_duet_draw(struct duet *duet);

/* Loads the libraries that the request's "sides" name, the one of "load_first" first, at addresses of chance, and notes
 * kernels and labels. 0 or -errno and a message. */
int worker_duet_load(struct duet *duet, const json_t *request, struct error *error);

/* One call of each, before any is timed: what crashes, hangs, writes where it must not, or leaves its process changed
 * ends here, and the message names the side. 0 or -errno. */
int worker_duet_qualify(struct duet *duet, struct error *error);

/* What is judged is what was timed: on the second data set, into poisoned outputs, each shown to the referee. A call is
 * looked at as in worker_duet_qualify. */
int worker_duet_show(struct duet *duet, struct error *error);

/* What the calls of a side (-1: of both) did since it was last looked: canaries, inputs, floating-point modes, threads
 * and their masks, which are then as they should be. 0, or -errno and a message that names the side. */
int worker_duet_inspect(struct duet *duet, int side, struct error *error);

/* Of that only threads, processes and files: after a side was opened. */
int worker_duet_trespass(const struct duet *duet, int side, struct error *error);

/* Calls of a sample, from the times of single ones: samples of 0.3 to 1 ms. As many for both sides, unless one takes
 * over twice as long: the first call after a change of sides meets caches full of the other's code and data, which
 * weighs the more the fewer calls there are. */
void worker_duet_batches(const double call_ns[SIDES], int64_t calls[SIDES]);

#endif
