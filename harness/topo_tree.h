/* SPDX-License-Identifier: Apache-2.0
 *
 * The machine as text for people: counts, kinds of core, caches, and the tree of what may be used.
 */
#ifndef HARNESS_TOPO_TREE_H
#define HARNESS_TOPO_TREE_H

#include <stdio.h>

#include "topology.h"

void topo_tree_print(FILE *file, const struct topology *topology);

#endif
