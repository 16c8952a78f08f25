/* SPDX-License-Identifier: Apache-2.0
 *
 * On which NUMA nodes a point's memory lies: --mem local (first touch), interleave (page by page over all nodes) or
 * node:I. The coordinator resolves what was asked for; the worker binds every huge-page block to it before first touch.
 */
#ifndef HARNESS_MEMORY_POLICY_H
#define HARNESS_MEMORY_POLICY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "error.h"
#include "topology.h"

/* Whether text is a policy by its form. */
bool memory_policy_is_one(const char *text);

/* The NUMA nodes with memory that may be used, CPUs or not, in hwloc's logical order: node:I counts them. NULL beyond
 * the last. */
hwloc_obj_t memory_node(const struct topology *topology, int index);

/* What a policy means on this topology. *reason: NULL, or why this system cannot bind memory so (interned). -EINVAL: no
 * such node. */
int memory_policy_check(const struct topology *topology, const char *policy, const char **reason, struct error *error);

/* For the worker's setup request: null for local (or NULL), else {"interleave":bool,"nodes":[OS indices]}. */
json_t *memory_policy_to_json(const struct topology *topology, const char *policy);

/* The worker's side: what memory_policy_to_json made holds for the whole process from here on. 0, or -errno and a
 * message. */
int memory_policy_adopt(const json_t *policy, struct error *error);

/* Binds memory that nobody has touched yet as adopted; nothing under local. 0 or an errno value. */
int memory_policy_bind(void *base, size_t bytes);

/* The NUMA nodes where the pages of this memory lie, as a list of OS indices; NULL: not known. The caller owns it. */
json_t *memory_policy_found(const void *base, size_t bytes);

#endif
