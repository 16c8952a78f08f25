/* SPDX-License-Identifier: Apache-2.0
 *
 * `run --dry-run`: the plan, its bytes and its expected time; nothing is timed.
 */
#ifndef HARNESS_DRY_RUN_H
#define HARNESS_DRY_RUN_H

#include <stdio.h>

#include "sweep.h"

/* formats: NULL or "table": a line a point; "json" or "jsonl": a JSON object a point (spec, kernel, schedule_requested,
 * threads, placement, cpus, cache, bytes, reason). Returns 0 or -EINVAL for another format. */
int dry_run_print(FILE *file, const struct plan *plan, const char *formats, struct error *error);

#endif
