/* SPDX-License-Identifier: Apache-2.0
 *
 * Comparing two kernels so that the verdict holds on a noisy machine: fresh process after fresh process, each an
 * interleaved measurement of both (worker_duet.c) that comes to one log-ratio, until the stop rule of sequential.h is
 * satisfied.
 */
#ifndef HARNESS_DUET_H
#define HARNESS_DUET_H

#include <jansson.h>
#include <signal.h>

#include "crew.h"
#include "sequential.h"

enum duet_side { DUET_A, DUET_B, DUET_SIDES };

/* What is compared at a point. Strings are interned. */
struct duet_pair {
    const struct point *point; /* problem, schedule, threads, placement, cache */
    struct {
        const char *kernel;  /* without a library: of this build; with one: its name there */
        const char *library; /* path of a shared object, or NULL */
        const char *label;   /* as messages and records call it */
        const char *digest;  /* which build it is, wherever that lies: see duet_pairs.h; NULL: unknown */
    } side[DUET_SIDES];
    bool lost; /* it is skipped because of side B alone */
};

struct duet_run {
    struct crew crew;
    double tau;                  /* of every point, a share; 0: the point's own, or DUET_TAU */
    struct sequential_rule rule; /* for the point under way */
    size_t exactly;              /* so many processes, whatever they tell; 0: until the rule stops them */
    bool one_sided;              /* the rule of gate, not of duet */
    double seconds;              /* of paired samples a process */
    double warm_s;               /* alternating calls before */
    double timeout_s;            /* of one side's turn */
    double deadline_ns;          /* on clock_ns; INFINITY: none */
    uint64_t seed;
    uint64_t processes; /* started so far: each draws its own order and offsets */
    const volatile sig_atomic_t *interrupts;
};

/* Seconds of pairs (1, or what ATTNBENCH_DUET_SECONDS says: for trying things out), warm-up, tau (0: as the points
 * say). Then set what differs, and release with duet_run_release. */
int duet_run_create(const struct topology *topology, double tau, struct duet_run *run, struct error *error);
void duet_run_release(struct duet_run *run);

#define DUET_TAU 0.02 /* where neither run nor point says another */
/* The slowdown that matters at a point, a share: the run's, else the point's, else DUET_TAU. */
double duet_tau(const struct duet_run *run, const struct point *point);

/* Which side a duet's process, counted from 0, loads first, and which it opens first: random, but each of the four ways
 * once in processes 4n to 4n + 3, and each side as often first in every two. Looks are at multiples of four, so that
 * what comes first has no luck that a verdict could rest on. */
void duet_order(uint64_t seed, uint64_t process, enum duet_side *loaded, enum duet_side *opened);

/*
 * Runs one process of the pair, number `process` of its duet from 0. *result: its "duet" event (worker_duet.c), with
 * "wrong_a"/"wrong_b": reason where an output did not pass the oracle, and "err_over_bound_a/_b"; or, where a side
 * can't do the problem, nothing but "refused_a"/"refused_b": reason. 0; -EIO and a message that names the side: a side
 * failed (crashed, hung, returned an error, could not be loaded, wrote where it must not, left its process changed);
 * -EINTR: interrupted; -ETIME: run->deadline_ns came while it ran.
 */
int duet_process(struct duet_run *run, const struct duet_pair *pair, size_t process, json_t **result,
                 struct error *error);

/* What every record of a pair holds: the point's fields, "a", "b", "status", and "reason" (may be NULL). */
json_t *duet_record(const struct duet_pair *pair, const char *status, const char *reason);

/*
 * Processes until the verdict, or until run->deadline_ns. The record (attnbench.duet/1, one point): the point's fields,
 * "a", "b", "status" ok | wrong | failed | skipped (a side can't do it; "lost" true: side B alone) | unreached,
 * "reason", "verdict", "ratio", "ratio_low", "ratio_high" (time B / time A), "log_ratio", "se", "processes",
 * "confidence", "tau", "judged_by" cpu | wall, "smallest_detectable", "p_slower", "p_faster", "a_digest", "b_digest",
 * "page_mode" (of all processes; "mixed" where they differ), "spent_s" (of the clock); and, an entry a process,
 * "log_ratios_cpu", "log_ratios_wall", medians, "calls_a" and "calls_b" of a sample, and noise ("migrations" null where
 * threads are not bound). Never NULL but when out of memory.
 */
json_t *duet_decide(struct duet_run *run, const struct duet_pair *pair);

/*
 * More processes for a record of duet_decide, until they are `processes` in all. Its verdict and figures are then those
 * of a single look at all of them, whose p-values are valid as they stand. -ETIME: run->deadline_ns came before, and
 * they are as they were. -EIO: a process failed, was wrong, or was interrupted; the status says it.
 */
int duet_run_on(struct duet_run *run, const struct duet_pair *pair, json_t *record, size_t processes);

/* Whether a point's verdict rests on CPU time: one thread does everything, so time that others took does not count. */
bool duet_judges_cpu(const struct point *point);

/* The log-ratios of a record that its verdict rests on: malloc'd, *count of them; NULL: none, or no memory. */
double *duet_log_ratios(const json_t *record, size_t *count);

#endif
