/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of kernels, as `attnbench list kernels` and the shell's completion show it.
 */
#ifndef HARNESS_KERNELS_LIST_H
#define HARNESS_KERNELS_LIST_H

#include <jansson.h>

/* An object with "name" and "summary" (NULL: null). */
json_t *list_entry(const char *name, const char *summary);

/* Every kernel once: name, summary, source, isa, rules, dtypes, runs_here, reason. Nothing foreign is asked: runs_here
 * of a peer is null. */
json_t *kernels_list(void);

/* Has each peer of the list say whether it can run here ("runs": what does, or "reason": why not). Takes as long as
 * loading their libraries does. */
void kernels_list_ask_peers(json_t *kernels);

#endif
