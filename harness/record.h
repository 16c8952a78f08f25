/* SPDX-License-Identifier: Apache-2.0
 *
 * From what worker and referee told to one record of the results file.
 */
#ifndef HARNESS_RECORD_H
#define HARNESS_RECORD_H

#include <jansson.h>

#include "spec.h"
#include "topology.h"

/* A record with everything that is known before measuring, all measured fields null, status "skipped". */
json_t *record_create(const struct point *point, const char *run_id);

/* Skipped or failed: status and reason. */
void record_set_status(json_t *record, const char *status, const char *reason);

/*
 * Merges the results of one point's launches (array of worker "result" events, at least one, none failed) and the worst
 * of its judgements: samples, medians, interval, rates, roof, noise. A wrong result gets no rates. launches: 1: the
 * interval is within_process; more: across_processes, from one median a launch.
 */
void record_result(json_t *record, const struct point *point, const json_t *results, const json_t *judgement,
                   const struct topology *topology);

#endif
