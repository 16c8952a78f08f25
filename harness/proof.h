/* SPDX-License-Identifier: Apache-2.0
 *
 * The gate's error rates, measured: log-ratios of identical code, process by process, recorded on a machine at rest or
 * under load; the stop rule replayed on block-bootstrapped draws from them (bootstrap.h); and live verdicts beside, to
 * see that the replay tells the truth.
 *
 * Both are duet records (attnbench.duet/1, one a line) that scripts/prove-gate made, told apart by their label:
 *   "CLASS LOAD aa"            a batch of processes of identical code: its log_ratios_cpu and log_ratios_wall count
 *   "CLASS LOAD live EFFECT"   one live verdict on a planted slowdown of EFFECT (0: identical code)
 *   "CLASS LOAD size EFFECT"   a long duet that measured what the planted slowdown really is
 * CLASS is compute or memory, LOAD quiet or busy, as the recorder calls them.
 */
#ifndef HARNESS_PROOF_H
#define HARNESS_PROOF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "sequential.h"

enum { PROOF_MOST_SERIES = 16, PROOF_MOST_EFFECTS = 8, PROOF_VERDICTS = SEQUENTIAL_INCONCLUSIVE + 1 };

/* Verdicts on one effect. */
struct proof_counts {
    double effect;
    uint64_t by_verdict[PROOF_VERDICTS], verdicts, processes; /* processes of all together */
    double *spent_s;                                          /* [timed] of those verdicts that tell what they took */
    size_t timed;
};

struct proof_series {
    const char *workload, *load; /* interned */
    double *cpu, *wall;          /* [count] log-ratios in the order recorded */
    size_t count, room;
    uint64_t failed; /* batches and verdicts that ended as wrong or failed */
    struct proof_counts live[PROOF_MOST_EFFECTS];
    size_t live_count;
    struct {
        double effect, ratio, low, high;
    } sizes[PROOF_MOST_EFFECTS];
    size_t size_count;
};

struct proof {
    struct proof_series series[PROOF_MOST_SERIES];
    size_t count;
    const char *machine; /* of the first context: CPU and key; interned; NULL: none */
    bool mixed;          /* contexts of several machines */
};

/* Adds a file's records. A torn last line is left out. -EINVAL with file and line for what is none of these records. */
int proof_read(const char *path, struct proof *proof, struct error *error);
void proof_release(struct proof *proof);

/* What a replay of many verdicts came to. */
struct proof_rates {
    double tau, effect;
    uint64_t verdicts, slower, same, inconclusive; /* faster counts as same: nothing got slower */
    double mean_processes;
};
/* Replays the gate's rule on the series (by CPU time or wall time) with effect added. 0 or -errno with message. */
int proof_replay(const struct proof_series *series, bool by_cpu, double tau, double effect, uint64_t verdicts,
                 struct proof_rates *rates, struct error *error);

/* Whole gate runs, replayed: suites of `points` points, drawn from the given series in turn, through gate.h's rule,
 * its flagging among many and its confirmation. One point, of each series in turn, is slowed by effect (0: identical
 * code like the others). */
struct proof_suites {
    uint64_t suites, alarmed; /* with any regression among the points of identical code */
    uint64_t detected;        /* with a regression at the slowed point */
    uint64_t inconclusive;    /* points of identical code, of suites x points */
    uint64_t points;
};
int proof_suites(const struct proof_series *const *series, size_t count, bool by_cpu, double tau, double effect,
                 uint64_t suites, size_t points, struct proof_suites *result, struct error *error);

#endif
