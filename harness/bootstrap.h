/* SPDX-License-Identifier: Apache-2.0
 *
 * Error rates of the stop rule, by replaying it on draws from recorded log-ratios: the moving-block bootstrap (Kuensch
 * 1989), which keeps what neighbouring processes have in common within a block.
 *
 * Draws come from a counter: the same seed gives the same outcomes on every machine, and verdict i alone can be
 * replayed.
 */
#ifndef HARNESS_BOOTSTRAP_H
#define HARNESS_BOOTSTRAP_H

#include <stddef.h>
#include <stdint.h>

#include "sequential.h"

enum bootstrap_rule { BOOTSTRAP_GATE, BOOTSTRAP_DUET };

struct bootstrap_request {
    const double *recorded; /* log(time B / time A) of identical code, in the order recorded; used as it is: its own
                               bias, if it has one, belongs to what is measured */
    size_t n;
    double effect;       /* true relative change to add: log(1 + effect) is added to every draw; above -1 */
    size_t block_length; /* 0: bootstrap_block_length(n) */
    const struct sequential_rule *rule;
    enum bootstrap_rule which;
    uint64_t verdicts, seed;
};

struct bootstrap_counts {
    uint64_t verdicts, slower, same, faster, inconclusive; /* the four add up to verdicts */
    double mean_processes;                                 /* a verdict; NaN without verdicts */
};

/* The smallest whole number whose cube is at least n: the rate n^(1/3) that is best for a variance (Hall, Horowitz and
 * Jing 1995). */
size_t bootstrap_block_length(size_t n);

/* One series of `count` draws, those of verdict number `verdict`: blocks of consecutive values from starts that are
 * uniform over the places where a whole block fits, the last one cut. `recorded` must hold at least one block. */
void bootstrap_draw(const struct bootstrap_request *request, uint64_t verdict, size_t count, double *draws);

/* Replays `verdicts` verdicts. 0, -EINVAL (a value or an effect that is not finite, no values, a block longer than the
 * record, a rule that does not hold) or -ENOMEM. Takes some tens of microseconds a verdict. */
int bootstrap_replay(const struct bootstrap_request *request, struct bootstrap_counts *counts);

#endif
