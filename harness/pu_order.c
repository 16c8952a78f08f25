/* SPDX-License-Identifier: Apache-2.0
 *
 * Orders of the usable PUs; see pu_order.h.
 */
#include "pu_order.h"

#include <errno.h>
#include <stdlib.h>

static bool has(hwloc_const_bitmap_t set, const struct topology_pu *pu)
{
    return !set || hwloc_bitmap_isset(set, (unsigned)pu->os);
}

int order_cores_first(const struct topology *topology, hwloc_const_bitmap_t set, int32_t *cpus)
{
    int used = 0;
    /* A sibling's rank counts those within the set alone, so that each core has one of rank 0. */
    for (int wanted = 0, found = 1; found; wanted++) {
        found = 0;
        for (int i = 0, rank = 0; i < topology->pu_count; i++) {
            if (i > 0 && topology->pus[i].core != topology->pus[i - 1].core)
                rank = 0;
            if (!has(set, &topology->pus[i]))
                continue;
            if (rank == wanted)
                cpus[used++] = topology->pus[i].os;
            found |= rank++ > wanted;
        }
    }
    return used;
}

int order_siblings_first(const struct topology *topology, hwloc_const_bitmap_t set, int32_t *cpus)
{
    int used = 0;
    for (int i = 0; i < topology->pu_count; i++)
        if (has(set, &topology->pus[i]))
            cpus[used++] = topology->pus[i].os;
    return used;
}

int order_keep_one_per_core(const struct topology *topology, int32_t *cpus, int count)
{
    hwloc_bitmap_t cores = hwloc_bitmap_alloc();
    int kept = 0;
    for (int c = 0; c < count; c++) {
        const struct topology_pu *pu = topology_pu(topology, cpus[c]);
        if (!pu || hwloc_bitmap_isset(cores, (unsigned)pu->core))
            continue;
        hwloc_bitmap_set(cores, (unsigned)pu->core);
        cpus[kept++] = cpus[c];
    }
    hwloc_bitmap_free(cores);
    return kept;
}

/* Round robin, from the inside out: cores take turns over the L3s of a NUMA node, these sequences over the NUMA nodes
 * of a socket, and those over the sockets. A turn is a core's rank within its group. */
struct turn {
    int32_t package, numa, l3, pu, rank;
};

/* -1, in no such domain, comes last. */
static int difference(int32_t a, int32_t b)
{
    return ((uint32_t)a > (uint32_t)b) - ((uint32_t)a < (uint32_t)b);
}

static int by_numa_rank_l3(const void *left, const void *right)
{
    const struct turn *a = left, *b = right;
    int d = difference(a->package, b->package);
    d = d ? d : difference(a->numa, b->numa);
    d = d ? d : difference(a->rank, b->rank);
    d = d ? d : difference(a->l3, b->l3);
    return d ? d : difference(a->pu, b->pu);
}

static int by_package_rank_numa(const void *left, const void *right)
{
    const struct turn *a = left, *b = right;
    int d = difference(a->package, b->package);
    d = d ? d : difference(a->rank, b->rank);
    d = d ? d : difference(a->numa, b->numa);
    return d ? d : difference(a->pu, b->pu);
}

static int by_rank_package(const void *left, const void *right)
{
    const struct turn *a = left, *b = right;
    int d = difference(a->rank, b->rank);
    d = d ? d : difference(a->package, b->package);
    return d ? d : difference(a->pu, b->pu);
}

static int by_l3(const void *left, const void *right)
{
    const struct turn *a = left, *b = right;
    int d = difference(a->package, b->package);
    d = d ? d : difference(a->numa, b->numa);
    d = d ? d : difference(a->l3, b->l3);
    return d ? d : difference(a->pu, b->pu);
}

/* Ranks restart where the group (the first `levels` of package, numa, l3) changes. */
static void rank_within_groups(struct turn *turns, int count, int levels)
{
    for (int i = 0; i < count; i++) {
        bool same = i > 0 && turns[i].package == turns[i - 1].package &&
                    (levels < 2 || turns[i].numa == turns[i - 1].numa) &&
                    (levels < 3 || turns[i].l3 == turns[i - 1].l3);
        turns[i].rank = same ? turns[i - 1].rank + 1 : 0;
    }
}

int order_scatter(const struct topology *topology, int32_t *cpus)
{
    struct turn *turns = malloc((size_t)topology->core_count * sizeof *turns);
    int cores = 0, used = 0;
    if (!turns)
        return -ENOMEM;
    for (int i = 0; i < topology->pu_count; i++) {
        const struct topology_pu *pu = &topology->pus[i];
        if (pu->sibling == 0)
            turns[cores++] = (struct turn){pu->package, pu->numa, pu->l3, i, 0};
    }
    qsort(turns, (size_t)cores, sizeof *turns, by_l3);
    rank_within_groups(turns, cores, 3);
    qsort(turns, (size_t)cores, sizeof *turns, by_numa_rank_l3);
    rank_within_groups(turns, cores, 2);
    qsort(turns, (size_t)cores, sizeof *turns, by_package_rank_numa);
    rank_within_groups(turns, cores, 1);
    qsort(turns, (size_t)cores, sizeof *turns, by_rank_package);
    for (int sibling = 0; used < topology->pu_count; sibling++)
        for (int c = 0; c < cores; c++) {
            int i = turns[c].pu + sibling; /* a core's PUs are neighbours in the table */
            if (i < topology->pu_count && topology->pus[i].core == topology->pus[turns[c].pu].core)
                cpus[used++] = topology->pus[i].os;
        }
    free(turns);
    return used;
}
