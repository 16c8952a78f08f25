/* SPDX-License-Identifier: Apache-2.0
 *
 * The stop rule of duet and gate: after 8, 12, 16, 20 and 24 processes the Hodges-Lehmann estimate of log(time B / time
 * A) and its 99 % signed-rank interval [low, high] are looked at, until something can be said.
 *
 * With T = log(1 + tau) and m = log(1 + tau / 4), the tests of a look, in this order:
 *
 *   gate   High < T               same: B is not slower by tau or more (faster where, besides, low <= -T, High' < -m)
 *          high < T               go on
 *          Low' > m               slower
 *   duet   -T < Low, High < T     same
 *          -T < low, high < T     go on
 *          Low' > m               slower
 *          High' < -m             faster
 *
 * [Low, High], which same rests on, and [Low', High'], which a change does, spend their levels over the looks, most of
 * it where no later look can make up for what this one leaves open. One-sided, and added up (Bonferroni), so that they
 * hold however many looks a verdict takes:
 *
 *   processes      8      12     16     20     24     sum
 *   same         0.39 % 0.05 % 0.05 % 0.15 % 0.35 %  1.0 %   of a pass where B is slower by tau
 *   a change     0.39 % 0.2 %  0.2 %  0.4 %  1.3 %   2.5 %   of "slower" where B is slower by no more than tau / 4
 *
 * (8 processes cannot be wrong in fewer than 1 of 256 cases.) Five looks at 99 % each would spend as much on a change
 * and more than twice as much on a pass, and would yet leave more open.
 *
 * Nothing fits: go on; at the last look: inconclusive. As the tests for same come first, nothing is called slower while
 * high < T, or faster while low > -T. Swapping A and B (negating the values) swaps slower and faster in duet. A gate
 * stops as soon as a slowdown of tau is excluded, so it finds a speed-up only by the way.
 *
 * The interval that is told holds its level at that look alone, and a p-value at a stop that depended on the data is
 * not valid as it stands. Two ways to a valid one: divide it by the look's share of alpha (many_tests_spend); or, if
 * the verdict is slower, run on to the last look and test all of those values (signed_rank_test against m), with p = 1
 * for all other verdicts: that number of processes does not depend on the data, so nothing need be spent. The second is
 * the one for many points: at 8 processes no p-value is below 1/256, which no single point of a hundred can be flagged
 * with.
 */
#ifndef HARNESS_SEQUENTIAL_H
#define HARNESS_SEQUENTIAL_H

#include <stddef.h>

enum { SEQUENTIAL_LOOKS = 5 };

enum sequential_decision {
    SEQUENTIAL_GO_ON, /* more processes are needed: next_look in all */
    SEQUENTIAL_SAME,
    SEQUENTIAL_SLOWER,
    SEQUENTIAL_FASTER,
    SEQUENTIAL_INCONCLUSIVE
};

struct sequential_rule {
    double tau;                                 /* relative: 0.02 is 2 % */
    double confidence;                          /* of the two-sided interval that is told */
    double same_confidence[SEQUENTIAL_LOOKS];   /* of [Low, High] */
    double change_confidence[SEQUENTIAL_LOOKS]; /* of [Low', High'] */
    size_t looks[SEQUENTIAL_LOOKS];             /* ascending numbers of processes */
    size_t look_count;
};

struct sequential_verdict {
    enum sequential_decision decision;
    size_t look;                /* index of the look it is about; 0 where there was none yet */
    size_t processes;           /* of that look; 0 where there was none yet: the figures below are then NaN */
    size_t next_look;           /* GO_ON: number of processes to have; else 0 */
    double estimate, low, high; /* of log(time B / time A) */
    double told_low, told_high; /* the interval that the decision rests on; where it is open, [low, high] */
    double p_slower, p_faster;  /* one-sided, of "slower by at most tau / 4", "faster by at most tau / 4" */
    /* The least relative estimate that would have been told as a change, were the intervals as wide as these and even
     * about it: Low' beyond m, high beyond T. A true change of this size is told about every second time. INFINITY
     * without an interval. */
    double smallest_detectable;
};

/* The rule of the project for a tau: 99 %, and the levels above; looks at 8, 12, 16, 20, 24. */
struct sequential_rule sequential_rule_for(double tau);

/* log_ratios: log(time B / time A) of n processes in the order in which they ran; B slower is positive. Values after
 * the look that stops are not used. 0, -EINVAL (a value that is not finite; tau or confidence out of range; looks that
 * do not ascend from 1) or -ENOMEM. */
int sequential_gate(const double *log_ratios, size_t n, const struct sequential_rule *rule,
                    struct sequential_verdict *verdict);
int sequential_duet(const double *log_ratios, size_t n, const struct sequential_rule *rule,
                    struct sequential_verdict *verdict);

/* "go on", "same", "slower", "faster", "inconclusive". */
const char *sequential_decision_name(enum sequential_decision decision);

#endif
