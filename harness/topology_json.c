/* SPDX-License-Identifier: Apache-2.0
 *
 * A topology as JSON, and what looks wrong about it. Domains are counted among those with a usable PU.
 */
#include <string.h>

#include "intern.h"
#include "topology.h"

static json_t *pus_of(hwloc_const_bitmap_t set)
{
    json_t *list = json_array();
    for (int os = hwloc_bitmap_first(set); os >= 0; os = hwloc_bitmap_next(set, os))
        json_array_append_new(list, json_integer(os));
    return list;
}

static json_t *usable_pus_of(const struct topology *topology, hwloc_obj_t object)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    hwloc_bitmap_and(set, object->cpuset, topology->usable);
    json_t *list = pus_of(set);
    hwloc_bitmap_free(set);
    return list;
}

static int usable_weight(const struct topology *topology, hwloc_obj_t object)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    hwloc_bitmap_and(set, object->cpuset, topology->usable);
    int weight = hwloc_bitmap_weight(set);
    hwloc_bitmap_free(set);
    return weight;
}

/* Adds one to the entry of caches like this one, or a new entry. */
static void count_cache(json_t *caches, int level, const char *type, json_int_t size, int shared_by)
{
    size_t i;
    json_t *entry;
    json_array_foreach(caches, i, entry)
    {
        json_t *known_size = json_object_get(entry, "size"), *count = json_object_get(entry, "count");
        if (json_integer_value(json_object_get(entry, "level")) == level &&
            strcmp(json_string_value(json_object_get(entry, "type")), type) == 0 &&
            (json_is_null(known_size) ? 0 : json_integer_value(known_size)) == size &&
            json_integer_value(json_object_get(entry, "shared_by")) == shared_by) {
            json_integer_set(count, json_integer_value(count) + 1);
            return;
        }
    }
    json_array_append_new(caches,
                          json_pack("{s:i, s:s, s:o, s:i, s:i}", "level", level, "type", type, "size",
                                    size ? json_integer(size) : json_null(), "count", 1, "shared_by", shared_by));
}

/* [{level, type, size (bytes, null: unknown), count, shared_by (usable PUs)}]: one entry for each kind of cache. */
static json_t *caches_to_json(const struct topology *topology)
{
    json_t *caches = json_array();
    for (hwloc_obj_type_t type = HWLOC_OBJ_L1CACHE; hwloc_obj_type_is_cache(type); type++)
        for (int i = 0; i < hwloc_get_nbobjs_by_type(topology->hwloc, type); i++) {
            hwloc_obj_t cache = hwloc_get_obj_by_type(topology->hwloc, type, (unsigned)i);
            int shared_by = usable_weight(topology, cache);
            if (shared_by == 0)
                continue;
            const hwloc_obj_cache_type_t kind = cache->attr->cache.type;
            count_cache(caches, (int)cache->attr->cache.depth,
                        kind == HWLOC_OBJ_CACHE_DATA          ? "data"
                        : kind == HWLOC_OBJ_CACHE_INSTRUCTION ? "instruction"
                                                              : "unified",
                        (json_int_t)cache->attr->cache.size, shared_by);
        }
    return caches;
}

/* [[PUs], ...] of each domain of a type. */
static json_t *domains_to_json(const struct topology *topology, hwloc_obj_type_t type)
{
    json_t *list = json_array();
    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(topology->hwloc, type, o));)
        if (topology_is_domain(topology, o))
            json_array_append_new(list, usable_pus_of(topology, o));
    return list;
}

static json_t *numa_to_json(const struct topology *topology, int *without_cpus)
{
    json_t *list = json_array();
    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(topology->hwloc, HWLOC_OBJ_NUMANODE, o));) {
        const json_int_t bytes = (json_int_t)o->attr->numanode.local_memory;
        *without_cpus += hwloc_bitmap_iszero(o->cpuset);
        if (topology_is_domain(topology, o))
            json_array_append_new(list, json_pack("{s:i, s:o, s:o}", "node", (int)o->os_index, "cpus",
                                                  usable_pus_of(topology, o), "memory_bytes",
                                                  bytes ? json_integer(bytes) : json_null()));
    }
    return list;
}

json_t *topology_to_json(const struct topology *topology)
{
    hwloc_bitmap_t rest = hwloc_bitmap_dup(hwloc_topology_get_topology_cpuset(topology->hwloc));
    hwloc_bitmap_andnot(rest, rest, topology->usable);
    int widest = 0, narrowest = topology->pu_count, without_cpus = 0;
    for (int i = 0; i < topology->pu_count; i++) {
        const int width = topology->pus[i].sibling + 1;
        const bool last = i + 1 == topology->pu_count || topology->pus[i + 1].core != topology->pus[i].core;
        if (last && width > widest)
            widest = width;
        if (last && width < narrowest)
            narrowest = width;
    }
    const char *warnings[8];
    const int warning_count = topology_warnings(topology, warnings, 8);
    json_t *texts = json_array(), *nodes = numa_to_json(topology, &without_cpus);
    for (int i = 0; i < warning_count; i++)
        json_array_append_new(texts, json_string(warnings[i]));
    json_t *object = json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:{s:i, s:i}, s:b, s:o, s:o, s:o}", "packages",
                               topology_domain_count(topology, HWLOC_OBJ_PACKAGE), "numa_nodes",
                               (int)json_array_size(nodes), "numa_nodes_without_cpus", without_cpus, "l3_domains",
                               topology_domain_count(topology, HWLOC_OBJ_L3CACHE), "cores", topology->core_count, "pus",
                               topology->pu_count, "pus_per_core", "min", narrowest, "max", widest, "this_system",
                               topology->this_system, "caches", caches_to_json(topology), "allowed_pus",
                               pus_of(topology->usable), "disallowed_pus", pus_of(rest));
    json_object_set_new(object, "cpu_quota", topology->cpu_quota > 0 ? json_real(topology->cpu_quota) : json_null());
    json_object_set_new(object, "package_pus", domains_to_json(topology, HWLOC_OBJ_PACKAGE));
    json_object_set_new(object, "numa", nodes);
    json_object_set_new(object, "l3_pus", domains_to_json(topology, HWLOC_OBJ_L3CACHE));
    json_object_set_new(object, "warnings", texts);
    hwloc_bitmap_free(rest);
    return object;
}

int topology_warnings(const struct topology *topology, const char **warnings, int max)
{
    hwloc_topology_t hwloc = topology->hwloc;
    int count = 0;
    const int cores = hwloc_get_nbobjs_by_type(hwloc, HWLOC_OBJ_CORE);
    const int l1s = hwloc_get_nbobjs_by_type(hwloc, HWLOC_OBJ_L1CACHE);
    hwloc_obj_t first_core = cores > 0 ? hwloc_get_obj_by_type(hwloc, HWLOC_OBJ_CORE, 0) : NULL;
    if (first_core && count < max) {
        int inside = hwloc_get_nbobjs_inside_cpuset_by_type(hwloc, first_core->cpuset, HWLOC_OBJ_L1CACHE);
        if (inside > 1)
            warnings[count++] = intern_format("hwloc tells of %d cores but %d L1 caches: a core can't hold %d of them, "
                                              "so its cores are probably clusters of cores",
                                              cores, l1s, inside);
    }
    if (cores <= 0 && count < max)
        warnings[count++] = "hwloc tells of no cores: each hardware thread is taken for a core";
    int without_numa = 0;
    for (int i = 0; i < topology->pu_count; i++)
        without_numa += topology->pus[i].numa < 0;
    if (without_numa > 0 && count < max)
        warnings[count++] = intern_format("%d hardware threads belong to no NUMA node", without_numa);
    return count;
}
