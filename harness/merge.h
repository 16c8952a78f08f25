/* SPDX-License-Identifier: Apache-2.0
 *
 * Results files put together: machine by machine, each run's context followed by its records, every line the bytes that
 * stood in its file.
 */
#ifndef HARNESS_MERGE_H
#define HARNESS_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "error.h"

struct merge;

struct merge_counts {
    size_t machines, runs, records;
    size_t dropped;   /* records that stood there already: same run, same point */
    size_t different; /* of these: those that differ from what was kept, which is the first */
    char where[512];  /* FILE:LINE of the first that differs */
};

/* NULL: no memory. */
struct merge *merge_create(void);
void merge_release(struct merge *merge);

/* Adds a file. *torn: its last line was, and is left out. Bad lines, and records without a context before them, are
 * errors that name file and line; so is another context under a run_id that is known. */
int merge_add(struct merge *merge, const char *path, bool *torn, struct error *error);

/* Machines, runs of a machine and records of a run stand in the order in which they were first met. The stream's error
 * flag tells what could not be written. */
void merge_write(const struct merge *merge, FILE *file);
void merge_count(const struct merge *merge, struct merge_counts *counts);

#endif
