/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of export_write (output.h) that have files of their own.
 */
#ifndef HARNESS_EXPORT_H
#define HARNESS_EXPORT_H

#include <jansson.h>
#include <stdio.h>

#include "record_text.h"

/* RFC 4180, lines end with a newline: a header, one row a record. Nested objects become columns "noise.quality", arrays
 * are joined with ';', null is empty. Columns: those of the contract in its order and the machine_key of the record's
 * context, then others as they first appear. */
void export_csv(FILE *file, const json_t *contexts, const json_t *records);
/* One field of that. */
void export_csv_value(FILE *file, const json_t *value);

/* GitHub Markdown: the machine, how it was measured, a table a problem. */
void export_markdown(FILE *file, const json_t *contexts, const json_t *records);
/* Text from a file, with what Markdown or HTML would take for its own made harmless. */
void export_markdown_text(FILE *file, const char *text);

/*
 * The formats below know a point from run to run by its name: one entry a point, from the record that record_latest
 * chooses, named by record_names.
 */

/* The input of github-action-benchmark's tool customSmallerIsBetter: an array of {name, unit "ns", value, range,
 * extra}, value the median; points that are ok. */
void export_github(FILE *file, const json_t *contexts, const json_t *records);
/* The points that it has no place for, those without a time: how many of each status. */
void export_github_left_out(const json_t *contexts, const json_t *records, size_t counts[RECORD_STATUS_COUNT]);

/* JUnit's XML: a suite a machine, a case a point: classname the problem, time the median of one call in seconds; wrong
 * and failed are failures, skipped is skipped, each with its reason. */
void export_junit(FILE *file, const json_t *contexts, const json_t *records);

/*
 * The JSON of Google Benchmark, for its tools/compare.py: every sample an iteration, with mean, median and standard
 * deviation as aggregates. cpu_time is the time over wall_over_cpu of the whole point, since samples have no CPU time
 * of their own. Beyond that format, beside the benchmarks: "skipped" and "errors", points without a time and their
 * reasons. The context is that of the first run. What was not recorded: mhz_per_cpu null, load_avg empty.
 */
void export_google_benchmark(FILE *file, const json_t *contexts, const json_t *records);

#endif
