/* SPDX-License-Identifier: Apache-2.0
 *
 * One kernel among those that take turns over a problem: its turns, its samples, its noise.
 */
#ifndef HARNESS_CONTESTANT_H
#define HARNESS_CONTESTANT_H

#include <jansson.h>

#include "counters.h"
#include "environment.h"
#include "member.h"
#include "roof.h"

/* The sets of operands that calls rotate over: one when warm, enough to exceed the caches when cold. */
struct rotation {
    struct operands operands;
    struct attn_args *args;     /* [count]; args[0] is the operands' own */
    struct attn_tensor *params; /* [count][ATTN_MOST_PARAMS] what args[c].param points to */
    int64_t count, next;
    struct memory_block copies;
};
int rotation_create(const struct problem_spec *spec, enum cache_state cache, double llc_bytes, int threads,
                    struct rotation *rotation, struct error *error);
void rotation_release(struct rotation *rotation);
/* Fills every copy with data set 0 or 1. */
void rotation_fill(struct rotation *rotation, uint32_t set, int threads);
/* The operands' inputs into every other copy; outputs poisoned. */
void rotation_spread(struct rotation *rotation, int threads);
/* Poisons every output. */
void rotation_poison(struct rotation *rotation, int threads);

struct series {
    double *values;
    size_t count, capacity;
};
/* Appends; 0 or -ENOMEM. */
int series_add(struct series *series, double value);

struct contestant {
    int index; /* in the request */
    const char *kernel, *schedule;
    const char *region;     /* the point's id, interned: how counters name what they count */
    struct member member;   /* empty for a peer */
    struct peer_seat *seat; /* NULL: the kernel runs in this process; see peer_seat.h */
    const char *failure;    /* NULL: in the race; interned */
    double call_ns;         /* of the qualifying call, then of the latest sample */
    int64_t calls_per_sample;
    int64_t calls_wanted;        /* of each sample; 0: chosen in the first turn, to samples of 0.3 to 1 ms */
    struct series samples;       /* ns of one call */
    struct series ratios;        /* roof time / median time of each turn */
    struct series roof_ns;       /* roof time of each turn */
    double turn_median_ns;       /* of the latest turn */
    double clocked_ns, spent_ns; /* clocked; in turns altogether */
    double busy_sum_ns;          /* of all threads, over the clocked samples */
    int64_t clocked_calls;
    int threads;                  /* of the team */
    double *thread_busy_ns;       /* [threads] over the clocked samples */
    double phase_ns[ATTN_PHASES]; /* of a layer, over the clocked samples */
    struct noise_reading noise;   /* sums over the clocked samples */
    struct counters *counters;    /* the worker's; NULL: nothing is counted */
    double *counted;              /* [counters_columns] sums over the clocked samples */
    int64_t migrations;
    int64_t retaken; /* samples in which a thread lost its CPU, taken again */
    bool changed_float_mode;
};

/* The first call: what crashes or hangs stops here. Also sets call_ns and calls_per_sample, checks that inputs and the
 * memory around outputs and workspace are as they were. Sets failure where not. */
void contestant_qualify(struct contestant *contestant, struct rotation *rotation);

/* One turn: at least one call and 2 ms unclocked, then `samples` clocked ones; with `last`, the output is poisoned
 * before the last of them, and *out tells where that call's output lies. Sets failure where a call fails. */
void contestant_turn(struct contestant *contestant, struct rotation *rotation, struct team *team, int samples,
                     bool last, const void **out);

/* Forgets what was measured (before measuring again). */
void contestant_forget(struct contestant *contestant);
void contestant_release(struct contestant *contestant);

#endif
