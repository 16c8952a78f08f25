/* SPDX-License-Identifier: Apache-2.0
 *
 * A topology as JSON. Domains are counted among those with a usable PU.
 */
#include <string.h>

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

static int shared_weight(hwloc_obj_t object, hwloc_const_bitmap_t set)
{
    hwloc_bitmap_t both = hwloc_bitmap_alloc();
    hwloc_bitmap_and(both, object->cpuset, set);
    int weight = hwloc_bitmap_weight(both);
    hwloc_bitmap_free(both);
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

json_t *topology_caches_to_json(const struct topology *topology, hwloc_const_bitmap_t set)
{
    json_t *caches = json_array();
    for (hwloc_obj_type_t type = HWLOC_OBJ_L1CACHE; hwloc_obj_type_is_cache(type); type++)
        for (hwloc_obj_t cache = NULL; (cache = hwloc_get_next_obj_by_type(topology->hwloc, type, cache));) {
            if (shared_weight(cache, set) == 0)
                continue;
            const hwloc_obj_cache_type_t kind = cache->attr->cache.type;
            count_cache(caches, (int)cache->attr->cache.depth,
                        kind == HWLOC_OBJ_CACHE_DATA          ? "data"
                        : kind == HWLOC_OBJ_CACHE_INSTRUCTION ? "instruction"
                                                              : "unified",
                        (json_int_t)cache->attr->cache.size, shared_weight(cache, topology->usable));
        }
    return caches;
}

static json_t *bytes_or_null(json_int_t bytes)
{
    return bytes > 0 ? json_integer(bytes) : json_null();
}

/* The L3 caches that serve a set, together; unknown sizes count 0. */
static void sum_l3(const struct topology *topology, hwloc_const_bitmap_t set, int *count, json_int_t *bytes)
{
    *count = 0;
    *bytes = 0;
    for (int i = 0; i < topology_domain_count(topology, HWLOC_OBJ_L3CACHE); i++) {
        hwloc_obj_t cache = topology_domain(topology, HWLOC_OBJ_L3CACHE, i);
        if (hwloc_bitmap_intersects(cache->cpuset, set)) {
            ++*count;
            *bytes += (json_int_t)cache->attr->cache.size;
        }
    }
}

/* [{cpus, cores, l3_domains, l3_bytes (all of them together)}] */
static json_t *sockets_to_json(const struct topology *topology)
{
    json_t *list = json_array();
    for (int i = 0; i < topology_domain_count(topology, HWLOC_OBJ_PACKAGE); i++) {
        hwloc_obj_t package = topology_domain(topology, HWLOC_OBJ_PACKAGE, i);
        hwloc_bitmap_t usable = hwloc_bitmap_dup(package->cpuset);
        int count;
        json_int_t bytes;
        hwloc_bitmap_and(usable, usable, topology->usable);
        sum_l3(topology, usable, &count, &bytes);
        json_array_append_new(list, json_pack("{s:o, s:i, s:i, s:o}", "cpus", pus_of(usable), "cores",
                                              topology_cores_within(topology, usable), "l3_domains", count, "l3_bytes",
                                              bytes_or_null(bytes)));
        hwloc_bitmap_free(usable);
    }
    return list;
}

/* [{cpus, cores, size}] */
static json_t *l3_to_json(const struct topology *topology)
{
    json_t *list = json_array();
    for (int i = 0; i < topology_domain_count(topology, HWLOC_OBJ_L3CACHE); i++) {
        hwloc_obj_t cache = topology_domain(topology, HWLOC_OBJ_L3CACHE, i);
        json_array_append_new(list, json_pack("{s:o, s:i, s:o}", "cpus", usable_pus_of(topology, cache), "cores",
                                              topology_cores_within(topology, cache->cpuset), "size",
                                              bytes_or_null((json_int_t)cache->attr->cache.size)));
    }
    return list;
}

/* [{node (OS index), cpus, cores, memory_bytes}] of the nodes with a usable PU. */
static json_t *numa_to_json(const struct topology *topology)
{
    json_t *list = json_array();
    for (int i = 0; i < topology_domain_count(topology, HWLOC_OBJ_NUMANODE); i++) {
        hwloc_obj_t node = topology_domain(topology, HWLOC_OBJ_NUMANODE, i);
        json_array_append_new(list, json_pack("{s:i, s:o, s:i, s:o}", "node", (int)node->os_index, "cpus",
                                              usable_pus_of(topology, node), "cores",
                                              topology_cores_within(topology, node->cpuset), "memory_bytes",
                                              bytes_or_null((json_int_t)node->attr->numanode.local_memory)));
    }
    return list;
}

static int nodes_without_cpus(const struct topology *topology)
{
    int count = 0;
    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(topology->hwloc, HWLOC_OBJ_NUMANODE, o));)
        count += hwloc_bitmap_iszero(o->cpuset);
    return count;
}

/* [[OS indices of a core's usable PUs]] in logical order; null where hwloc tells of no cores. */
static json_t *core_cpus(const struct topology *topology)
{
    if (hwloc_get_nbobjs_by_type(topology->hwloc, HWLOC_OBJ_CORE) <= 0)
        return json_null();
    json_t *list = json_array();
    for (int i = 0; i < topology->pu_count; i++) {
        if (topology->pus[i].sibling == 0)
            json_array_append_new(list, json_array());
        json_array_append_new(json_array_get(list, json_array_size(list) - 1), json_integer(topology->pus[i].os));
    }
    return list;
}

/* {min, max} usable PUs of a core; null where hwloc tells of no cores. */
static json_t *pus_per_core(const struct topology *topology)
{
    int widest = 0, narrowest = topology->pu_count;
    for (int i = 0; i < topology->pu_count; i++) {
        const int width = topology->pus[i].sibling + 1;
        if (i + 1 < topology->pu_count && topology->pus[i + 1].core == topology->pus[i].core)
            continue;
        widest = width > widest ? width : widest;
        narrowest = width < narrowest ? width : narrowest;
    }
    const bool known = hwloc_get_nbobjs_by_type(topology->hwloc, HWLOC_OBJ_CORE) > 0;
    return json_pack("{s:o, s:o}", "min", known ? json_integer(narrowest) : json_null(), "max",
                     known ? json_integer(widest) : json_null());
}

json_t *topology_to_json(const struct topology *topology)
{
    hwloc_bitmap_t rest = hwloc_bitmap_dup(hwloc_topology_get_topology_cpuset(topology->hwloc));
    hwloc_bitmap_andnot(rest, rest, topology->usable);
    const char *warnings[TOPOLOGY_WARNINGS_MAX];
    const int warning_count = topology_warnings(topology, warnings, TOPOLOGY_WARNINGS_MAX);
    json_t *texts = json_array();
    for (int i = 0; i < warning_count; i++)
        json_array_append_new(texts, json_string(warnings[i]));
    json_t *object =
        json_pack("{s:i, s:i, s:i, s:i, s:i, s:i}", "packages", topology_domain_count(topology, HWLOC_OBJ_PACKAGE),
                  "numa_nodes", topology_domain_count(topology, HWLOC_OBJ_NUMANODE), "numa_nodes_without_cpus",
                  nodes_without_cpus(topology), "l3_domains", topology_domain_count(topology, HWLOC_OBJ_L3CACHE),
                  "cores", topology->core_count, "pus", topology->pu_count);
    json_object_set_new(object, "pus_per_core", pus_per_core(topology));
    json_object_set_new(object, "core_cpus", core_cpus(topology));
    json_object_set_new(object, "this_system", json_boolean(topology->this_system));
    json_object_set_new(object, "cpu_quota", topology->cpu_quota > 0 ? json_real(topology->cpu_quota) : json_null());
    json_object_set_new(object, "allowed_pus", pus_of(topology->usable));
    json_object_set_new(object, "disallowed_pus", pus_of(rest));
    json_object_set_new(object, "kinds", kinds_to_json(topology));
    json_object_set_new(object, "hwloc_kinds", kinds_of_hwloc_to_json(topology));
    json_object_set_new(object, "caches", topology_caches_to_json(topology, topology->usable));
    json_object_set_new(object, "sockets", sockets_to_json(topology));
    json_object_set_new(object, "numa", numa_to_json(topology));
    json_object_set_new(object, "l3", l3_to_json(topology));
    json_object_set_new(object, "warnings", texts);
    hwloc_bitmap_free(rest);
    return object;
}
