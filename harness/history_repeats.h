/* SPDX-License-Identifier: Apache-2.0
 *
 * Several verdicts on one thing within one run (duet --repeat): one point of its series.
 *
 * A change needs several runs at its new level, since what is not seen within a run (the hour, the neighbours, where
 * the pages lie) shifts all that is measured in it. So repeats count as launches of `run` do: they make the run's
 * figure more exact, and are no further runs.
 */
#ifndef HARNESS_HISTORY_REPEATS_H
#define HARNESS_HISTORY_REPEATS_H

#include <jansson.h>
#include <stdint.h>

/* What a series gets of a run. */
struct history_ratio {
    double log_ratio;      /* log(current / anchor) */
    double standard_error; /* NaN: unknown */
    int64_t processes;     /* of all repeats; -1: none tells */
    const char *verdict;   /* "mixed" where they differ; borrowed from them; NULL: none has one */
};

/*
 * The mean of the repeats' "log_ratio", weighted by w = 1 / "se"^2; where one has no standard error, or 0, it gets the
 * largest that is known; where none is known all weigh the same, and that of the mean is unknown, too. Else it is
 * 1 / sqrt(sum w), or sqrt(sum w d^2 / (n - 1) / sum w) with d the distances from the mean, whichever is larger:
 * repeats may be farther apart than their own errors say (Birge, Physical Review 40, 1932). One alone stays as it is.
 * repeats: array of at least one, each with a number "log_ratio".
 */
void history_pool_repeats(const json_t *repeats, struct history_ratio *pooled);

#endif
