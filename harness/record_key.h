/* SPDX-License-Identifier: Apache-2.0
 *
 * Which point a record is of, across runs and files, and the one record that stands for each point of a file.
 */
#ifndef HARNESS_RECORD_KEY_H
#define HARNESS_RECORD_KEY_H

#include <jansson.h>
#include <stdio.h>

/* What may differ between records that still count as one point. */
enum record_key_any { RECORD_KEY_ANY_DTYPE = 1, RECORD_KEY_ANY_SEED = 2 };

/* What makes the problem, as "rule="scaled_dot_product";B=8;...", without what is null or left out. */
void record_key_write_problem(FILE *text, const json_t *record, unsigned any);

/*
 * Problem, kernel, schedule asked for, placement, threads, cache state and memory policy as one text, equal for records
 * of the same point and for no others. Unlike point_id it leaves out the source, in which paths and versions stand.
 * any: the fields left out besides, from enum record_key_any. malloc'd.
 */
char *record_key(const json_t *record, unsigned any);

/*
 * One record for each point of each machine, in the order in which the points first stand: the latest that is ok; if
 * none is, the latest. A wrong one after the latest ok one takes its place: a later run does not hide that, and a crash
 * or a skip does not hide a figure. New array.
 */
json_t *record_latest(const json_t *contexts, const json_t *records);

#endif
