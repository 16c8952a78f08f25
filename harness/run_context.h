/* SPDX-License-Identifier: Apache-2.0
 *
 * The first line of every results file: what ran, when, and on what.
 */
#ifndef HARNESS_RUN_CONTEXT_H
#define HARNESS_RUN_CONTEXT_H

#include <jansson.h>
#include <stdint.h>

#include "topology.h"

/* A context of schema attnbench.context/1 with a run_id of its own. argv: as typed, without the program's name. config:
 * its name, or NULL. */
json_t *run_context(int argc, char **argv, const char *config, uint64_t seed, const struct topology *topology);

#endif
