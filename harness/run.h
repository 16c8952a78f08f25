/* SPDX-License-Identifier: Apache-2.0
 *
 * A sweep under way, and the running of one group of it: the points of one problem, cache state, thread count and
 * placement, whose kernels take turns in one worker.
 */
#ifndef HARNESS_RUN_H
#define HARNESS_RUN_H

#include <signal.h>

#include "crew.h"
#include "journal.h"
#include "output.h"
#include "sweep.h"

struct run {
    struct crew crew;
    const struct topology *topology;
    const struct effort *effort;
    const char *run_id;
    struct journal *journal;
    struct progress *progress;
    json_t *records; /* array: all that this run knows of, resumed ones included */
    uint64_t seed;
    const volatile sig_atomic_t *interrupts; /* how many SIGINTs came */
};

/* Measures, verifies and records points[0..count), which belong to one group and have no skip_reason. A point that
 * fails or is wrong is a record like any other. -errno only when results can't be written. */
int group_run(struct run *run, const struct point *const *points, size_t count, struct error *error);

/* Whether b may take turns with a. */
bool group_same(const struct point *a, const struct point *b);

/* Bytes that measuring points[0..count) of a group needs in worker, peers and referee together. */
double group_bytes(const struct run *run, const struct point *points, size_t count);

/* Appends a record to the journal, the run's records and the progress. Steals the record. */
int run_record(struct run *run, json_t *record, struct error *error);

#endif
