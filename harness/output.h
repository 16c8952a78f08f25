/* SPDX-License-Identifier: Apache-2.0
 *
 * What the user sees: the table of records, the summary under it, and progress on stderr.
 */
#ifndef HARNESS_OUTPUT_H
#define HARNESS_OUTPUT_H

#include <jansson.h>
#include <stdio.h>

#include "options.h"

/* The table that `run` prints and `show` prints again: one row a record, grouped by problem. 80 columns unless wide. */
void table_print(FILE *file, const json_t *records, bool wide, bool color);
/* Counts by status, and the best kernel of each problem with its ratio to the next and its fraction of the roof. */
void summary_print(FILE *file, const json_t *records, bool color);

/* Writes records in one of table, jsonl, csv, json, md, with context. -EINVAL: unknown format (message names it). */
int export_write(FILE *file, const char *format, const json_t *contexts, const json_t *records, bool wide, bool color,
                 struct error *error);

/* Progress on stderr: a bar with point i of n and ETA on a terminal, one plain line a point otherwise; quiet: nothing. */
struct progress;
struct progress *progress_begin(size_t points, bool quiet);
void progress_activity(struct progress *progress, const char *text); /* what is under way (terminal only) */
void progress_point(struct progress *progress, const json_t *record); /* a point has ended */
void progress_end(struct progress *progress);

/* NO_COLOR, CLICOLOR_FORCE, --color and whether file is a terminal. */
bool color_wanted(enum color_mode mode, FILE *file);

#endif
