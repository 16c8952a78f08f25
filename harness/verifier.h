/* SPDX-License-Identifier: Apache-2.0
 *
 * Checking kernels without timing them: one problem at a time, run by a worker, judged by the referee, counted by
 * kernel.
 */
#ifndef HARNESS_VERIFIER_H
#define HARNESS_VERIFIER_H

#include <stdio.h>

#include "crew.h"
#include "sweep.h"

enum { VERIFIER_MOST_MEMBERS = 256, VERIFIER_MOST_KERNELS = 256 };

struct verifier_member {
    const char *kernel, *schedule; /* interned */
};

struct verifier_task {
    struct problem_spec spec;
    const char *case_dir;     /* inputs from this folder instead of the spec's fill; NULL: none */
    bool far;                 /* k and v beyond 32-bit element offsets */
    const struct point *seat; /* threads, placement and cpus of the worker */
    size_t count;
    struct verifier_member members[VERIFIER_MOST_MEMBERS];
};

struct verifier_tally {
    const char *kernel;
    int64_t checked, wrong, failed, skipped;
    double err_over_bound; /* the largest */
};

struct verifier {
    struct crew crew;
    const struct topology *topology;
    double timeout_s, memory_limit; /* of one kernel; bytes, 0: what is available */
    const char *dump_dir;
    FILE *report; /* wrong and failed checks, and the counts */
    int64_t problems, dumped;
    size_t kernels;
    struct verifier_tally tallies[VERIFIER_MOST_KERNELS];
};

/* dump_dir: NULL, or where failing problems are written as case folders. */
int verifier_create(const struct topology *topology, const struct effort *effort, const char *dump_dir, FILE *report,
                    struct verifier *verifier, struct error *error);
void verifier_release(struct verifier *verifier);

/* Checks one problem with all of the task's members. A wrong result is counted, not an error. */
int verifier_check(struct verifier *verifier, const struct verifier_task *task, struct error *error);

/* Prints the counts unless quiet; returns the exit code: 0, 1 if anything was wrong or failed, 77 if nothing could be
 * checked. */
int verifier_report(const struct verifier *verifier, bool quiet);

#endif
