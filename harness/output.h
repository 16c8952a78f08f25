/* SPDX-License-Identifier: Apache-2.0
 *
 * What the user sees: the table of records, the summary under it, and progress on stderr.
 */
#ifndef HARNESS_OUTPUT_H
#define HARNESS_OUTPUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "options.h"

/* How text for a reader looks on a stream. */
struct output_style {
    bool wide;  /* all columns, whole reasons, titles in full */
    bool color; /* color_wanted */
    bool ascii; /* the user's locale is not UTF-8: nothing beyond ASCII */
    bool bars;  /* shares are drawn too: for eyes that look on, at a terminal or where colour is forced */
};
struct output_style output_style(enum color_mode mode, bool wide, FILE *file);

/* By LC_ALL, LC_CTYPE or LANG, whichever is set first. */
bool locale_is_utf8(void);

/* The table that `run` prints and `show` prints again: one row a record, grouped by problem. 80 columns unless wide. */
void table_print(FILE *file, const json_t *records, const struct output_style *style);
/* After an empty line: counts by status, and the best kernel of each problem with its ratio to the next and its
 * fraction of the roof, and which of these are farthest from it. */
void summary_print(FILE *file, const json_t *records, const struct output_style *style);
/* The table of each machine, and its summary where wanted; under the machine's name where there are several. */
void machines_print(FILE *file, const json_t *contexts, const json_t *records, const struct output_style *style,
                    bool with_summary);

#define EXPORT_FORMATS "table, csv, json, jsonl, md, github, junit, google-benchmark"
bool export_knows(const char *format);

/* Writes records in one of EXPORT_FORMATS (table: without the summary), with context, and flushes. -EINVAL: unknown
 * format (message names it). What cannot be written is an error with exit_code EXIT_UNWRITTEN. */
int export_write(FILE *file, const char *format, const json_t *contexts, const json_t *records,
                 const struct output_style *style, struct error *error);

/* Flushes, and tells what could not be written since the file was opened: exit_code EXIT_UNWRITTEN. */
int output_flush(FILE *file, const char *what, struct error *error);

/* Progress on stderr: a bar with point i of n and ETA on a terminal, one plain line a point otherwise; quiet: only
 * points that are wrong or failed. */
struct progress;
struct progress *progress_begin(size_t points, bool quiet);
void progress_activity(struct progress *progress, const char *text);  /* what is under way (terminal only) */
void progress_point(struct progress *progress, const json_t *record); /* a point has ended */
void progress_end(struct progress *progress);

/* NO_COLOR, CLICOLOR_FORCE, --color and whether file is a terminal. */
bool color_wanted(enum color_mode mode, FILE *file);

#endif
