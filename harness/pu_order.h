/* SPDX-License-Identifier: Apache-2.0
 *
 * Orders in which the usable PUs of a set can be taken. cpus has room for every usable PU; each function returns how
 * many OS indices it wrote.
 */
#ifndef HARNESS_PU_ORDER_H
#define HARNESS_PU_ORDER_H

#include "topology.h"

/* set NULL: all that may be used. */
/* One of each core first, then second siblings and so on. What counts as first: the first usable one. */
int order_cores_first(const struct topology *topology, hwloc_const_bitmap_t set, int32_t *cpus);
/* Logical order: siblings side by side. */
int order_siblings_first(const struct topology *topology, hwloc_const_bitmap_t set, int32_t *cpus);
/* Round robin over sockets, then NUMA nodes, then L3 caches; second siblings when every core has a thread. -ENOMEM. */
int order_scatter(const struct topology *topology, int32_t *cpus);
/* The first PU of each core that a list has, in its order; in place. */
int order_keep_one_per_core(const struct topology *topology, int32_t *cpus, int count);

#endif
