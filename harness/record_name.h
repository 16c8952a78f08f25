/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of points for other tools, which know a measurement from run to run by its name alone.
 */
#ifndef HARNESS_RECORD_NAME_H
#define HARNESS_RECORD_NAME_H

#include <jansson.h>

/* "scaled_dot_product/f32/B:8/H:12/S:128/D:64/causal:top_left": the words of record_problem and a seed other than 1.
 * malloc'd. */
char *record_problem_name(const json_t *record);
/* "tiled/auto/threads:2/compact": kernel, schedule asked for, threads, placement, memory policy if not local. malloc'd.
 */
char *record_who_name(const json_t *record);

/*
 * Names of records, an array of strings in their order: problem and who. They follow from the point and nothing else,
 * with "/machine:KEY" after it where the contexts are of several machines, and "/point:ID" where two points still have
 * one name. records: no point of a machine twice, as record_latest gives them.
 */
json_t *record_names(const json_t *contexts, const json_t *records);

#endif
