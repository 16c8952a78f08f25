/* SPDX-License-Identifier: Apache-2.0
 *
 * Where hwloc is wrong about a machine, or tells what one would not expect: what it says, and what is made of it.
 */
#include "intern.h"
#include "topology.h"

struct list {
    const char **texts;
    int count, room;
};

static void warn(struct list *list, const char *text)
{
    if (list->count < list->room)
        list->texts[list->count++] = text;
}

/* A core has one L1 data cache. */
static void cores_that_are_clusters(const struct topology *topology, struct list *list)
{
    int clusters = 0, most = 0;
    for (hwloc_obj_t core = NULL; (core = hwloc_get_next_obj_by_type(topology->hwloc, HWLOC_OBJ_CORE, core));) {
        const int inside = hwloc_get_nbobjs_inside_cpuset_by_type(topology->hwloc, core->cpuset, HWLOC_OBJ_L1CACHE);
        clusters += inside > 1;
        most = inside > most ? inside : most;
    }
    if (clusters > 0)
        warn(list,
             intern_format("hwloc tells of %d cores but %d L1 caches, %d in one core: %d of its cores are probably "
                           "clusters of cores, and are still placed as cores",
                           hwloc_get_nbobjs_by_type(topology->hwloc, HWLOC_OBJ_CORE),
                           hwloc_get_nbobjs_by_type(topology->hwloc, HWLOC_OBJ_L1CACHE), most, clusters));
}

static void pus_outside(const struct topology *topology, struct list *list)
{
    int numa = 0, l3 = 0, package = 0;
    for (int i = 0; i < topology->pu_count; i++) {
        numa += topology->pus[i].numa < 0;
        l3 += topology->pus[i].l3 < 0;
        package += topology->pus[i].package < 0;
    }
    if (numa > 0)
        warn(list, intern_format("%d hardware threads belong to no NUMA node: numa:I leaves them out", numa));
    if (l3 > 0 && l3 < topology->pu_count)
        warn(list, intern_format("%d hardware threads have no L3 cache: l3:I leaves them out", l3));
    if (package > 0 && package < topology->pu_count)
        warn(list, intern_format("%d hardware threads belong to no socket: socket:I leaves them out", package));
}

static void nodes(const struct topology *topology, struct list *list)
{
    const int count = topology_domain_count(topology, HWLOC_OBJ_NUMANODE);
    hwloc_bitmap_t innermost = hwloc_bitmap_alloc();
    for (int i = 0; i < topology->pu_count; i++)
        if (topology->pus[i].numa >= 0)
            hwloc_bitmap_set(innermost, (unsigned)topology->pus[i].numa);
    const int distinct = hwloc_bitmap_weight(innermost);
    hwloc_bitmap_free(innermost);
    if (distinct < count)
        warn(list, intern_format("%d of %d NUMA nodes have the CPUs of other nodes (a second kind of memory): scatter, "
                                 "numa:each and M:scatter leave them out",
                                 count - distinct, count));
}

static void kinds(const struct topology *topology, struct list *list)
{
    const int told = hwloc_cpukinds_get_nr(topology->hwloc, 0);
    if (told > topology->kind_count)
        warn(list,
             intern_format("hwloc tells of %d kinds of core, of which some differ by less than %.0f %% in frequency "
                           "alone: taken as %d",
                           told, 100 * (KIND_NOISE - 1), topology->kind_count));
}

int topology_warnings(const struct topology *topology, const char **warnings, int max)
{
    struct list list = {warnings, 0, max};
    cores_that_are_clusters(topology, &list);
    if (hwloc_get_nbobjs_by_type(topology->hwloc, HWLOC_OBJ_CORE) <= 0)
        warn(&list, "hwloc tells of no cores: each hardware thread is taken for a core");
    pus_outside(topology, &list);
    nodes(topology, &list);
    kinds(topology, &list);
    return list.count;
}
