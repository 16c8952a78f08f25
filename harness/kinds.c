/* SPDX-License-Identifier: Apache-2.0
 *
 * Kinds of core; see kinds.h. hwloc makes a kind of whatever differs in a frequency, so that homogeneous machines have
 * up to nine of them, and a machine of two designs five.
 */
#include "topology.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "intern.h"

/* What is known of one of hwloc's kinds. Sizes and widths are those of its first PU's core; 0: unknown. */
struct evidence {
    hwloc_bitmap_t pus;
    const char *core_type;
    double max_mhz, base_mhz, capacity;
    size_t l1, l2;
    int width;
    int group;
};

static size_t cache_above(const struct topology *topology, hwloc_obj_t pu, hwloc_obj_type_t type)
{
    hwloc_obj_t cache = hwloc_get_ancestor_obj_by_type(topology->hwloc, type, pu);
    return cache ? (size_t)cache->attr->cache.size : 0;
}

static void read_core(const struct topology *topology, struct evidence *kind)
{
    hwloc_obj_t pu = hwloc_get_pu_obj_by_os_index(topology->hwloc, (unsigned)hwloc_bitmap_first(kind->pus));
    if (!pu)
        return;
    hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(topology->hwloc, HWLOC_OBJ_CORE, pu);
    kind->l1 = cache_above(topology, pu, HWLOC_OBJ_L1CACHE);
    kind->l2 = cache_above(topology, pu, HWLOC_OBJ_L2CACHE);
    kind->width = core ? hwloc_bitmap_weight(core->cpuset) : 0;
}

static int read_kind(const struct topology *topology, unsigned index, struct evidence *kind)
{
    unsigned count = 0;
    struct hwloc_info_s *infos = NULL;
    *kind = (struct evidence){.pus = hwloc_bitmap_alloc(), .group = (int)index};
    if (!kind->pus || hwloc_cpukinds_get_info(topology->hwloc, index, kind->pus, NULL, &count, &infos, 0) != 0)
        return -ENOMEM;
    hwloc_bitmap_and(kind->pus, kind->pus, hwloc_topology_get_topology_cpuset(topology->hwloc));
    for (unsigned i = 0; i < count; i++) {
        const double value = strtod(infos[i].value, NULL);
        if (strcmp(infos[i].name, "CoreType") == 0)
            kind->core_type = intern(infos[i].value);
        else if (strcmp(infos[i].name, "FrequencyMaxMHz") == 0)
            kind->max_mhz = value;
        else if (strcmp(infos[i].name, "FrequencyBaseMHz") == 0)
            kind->base_mhz = value;
        else if (strcmp(infos[i].name, "LinuxCapacity") == 0)
            kind->capacity = value;
    }
    read_core(topology, kind);
    return 0;
}

/* 1: close, 0: apart, -1: not known of both. */
static int close_by(double a, double b)
{
    if (!(a > 0 && b > 0))
        return -1;
    return a < KIND_NOISE * b && b < KIND_NOISE * a;
}

static bool same_silicon(const struct evidence *a, const struct evidence *b)
{
    if (a->l1 != b->l1 || a->l2 != b->l2 || a->width != b->width)
        return false;
    if (a->core_type && b->core_type)
        return a->core_type == b->core_type;
    if (a->core_type || b->core_type)
        return false;
    int close = close_by(a->max_mhz, b->max_mhz);
    if (close < 0)
        close = close_by(a->capacity, b->capacity);
    if (close < 0)
        close = close_by(a->base_mhz, b->base_mhz);
    return close == 1; /* without any sign of noise hwloc has the last word */
}

static void join(struct evidence *kinds, int count)
{
    for (int a = 0; a < count; a++)
        for (int b = a + 1; b < count; b++) {
            const int from = kinds[a].group, to = kinds[b].group;
            if (from != to && same_silicon(&kinds[a], &kinds[b]))
                for (int k = 0; k < count; k++)
                    if (kinds[k].group == from)
                        kinds[k].group = to;
        }
}

static int add_kind(struct topology *topology, const struct evidence *kinds, int count, int group)
{
    struct topology_kind kind = {.pus = hwloc_bitmap_alloc(), .usable = hwloc_bitmap_alloc()};
    if (!kind.pus || !kind.usable) {
        hwloc_bitmap_free(kind.pus);
        hwloc_bitmap_free(kind.usable);
        return -ENOMEM;
    }
    for (int k = 0; k < count; k++)
        if (kinds[k].group == group) {
            hwloc_bitmap_or(kind.pus, kind.pus, kinds[k].pus);
            kind.core_type = kinds[k].core_type;
            kind.max_mhz = kinds[k].max_mhz > kind.max_mhz ? kinds[k].max_mhz : kind.max_mhz;
            kind.joined++;
        }
    hwloc_bitmap_and(kind.usable, kind.pus, topology->usable);
    topology->kinds[topology->kind_count++] = kind;
    return 0;
}

int kinds_find(struct topology *topology)
{
    const int count = hwloc_cpukinds_get_nr(topology->hwloc, 0);
    if (count <= 0)
        return 0;
    struct evidence *kinds = calloc((size_t)count, sizeof *kinds);
    topology->kinds = calloc((size_t)count, sizeof *topology->kinds);
    int code = kinds && topology->kinds ? 0 : -ENOMEM;
    for (int k = 0; k < count && !code; k++)
        code = read_kind(topology, (unsigned)k, &kinds[k]);
    if (!code)
        join(kinds, count);
    /* A group bears the number of its fastest kind, so counting up sorts them. */
    for (int group = 0; group < count && !code; group++)
        if (kinds[group].group == group)
            code = add_kind(topology, kinds, count, group);
    for (int k = 0; kinds && k < count; k++)
        hwloc_bitmap_free(kinds[k].pus);
    free(kinds);
    return code;
}

void kinds_release(struct topology *topology)
{
    for (int k = 0; k < topology->kind_count; k++) {
        hwloc_bitmap_free(topology->kinds[k].pus);
        hwloc_bitmap_free(topology->kinds[k].usable);
    }
    free(topology->kinds);
}

static const char *not_hybrid(const struct topology *topology)
{
    const int told = hwloc_cpukinds_get_nr(topology->hwloc, 0);
    if (told <= 0)
        return "this machine is not hybrid: hwloc tells of no kinds of core";
    if (told == 1)
        return "this machine is not hybrid: hwloc tells of one kind of core";
    return intern_format("this machine is not hybrid: hwloc's %d kinds of core are one design", told);
}

hwloc_bitmap_t kinds_usable(const struct topology *topology, bool performance, const char **reason)
{
    const int fastest = topology->kind_count - 1;
    if (topology->kind_count < 2) {
        *reason = not_hybrid(topology);
        return NULL;
    }
    int efficiency = -1; /* hwloc ranks all kinds or none */
    if (hwloc_cpukinds_get_info(topology->hwloc, 0, NULL, &efficiency, NULL, NULL, 0) != 0 || efficiency < 0) {
        *reason = "hwloc can't tell which of this machine's kinds of core is the faster one";
        return NULL;
    }
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    for (int k = performance ? fastest : 0; set && k < (performance ? fastest + 1 : fastest); k++)
        hwloc_bitmap_or(set, set, topology->kinds[k].usable);
    if (!set || hwloc_bitmap_iszero(set)) {
        hwloc_bitmap_free(set);
        *reason = performance ? "no performance core may be used (affinity, cpuset or restriction)"
                              : "no efficiency core may be used (affinity, cpuset or restriction)";
        return NULL;
    }
    return set;
}

static json_t *list_of(hwloc_const_bitmap_t set)
{
    json_t *list = json_array();
    for (int os = hwloc_bitmap_first(set); os >= 0; os = hwloc_bitmap_next(set, os))
        json_array_append_new(list, json_integer(os));
    return list;
}

json_t *kinds_to_json(const struct topology *topology)
{
    json_t *list = json_array();
    for (int k = 0; k < topology->kind_count; k++) {
        const struct topology_kind *kind = &topology->kinds[k];
        if (hwloc_bitmap_iszero(kind->usable))
            continue;
        json_t *entry = json_pack("{s:i, s:o, s:i, s:o, s:o}", "efficiency", k, "cpus", list_of(kind->usable), "cores",
                                  topology_cores_within(topology, kind->usable), "core_type",
                                  kind->core_type ? json_string(kind->core_type) : json_null(), "max_mhz",
                                  kind->max_mhz > 0 ? json_real(kind->max_mhz) : json_null());
        json_object_set_new(entry, "caches", topology_caches_to_json(topology, kind->usable));
        json_array_append_new(list, entry);
    }
    return list;
}

json_t *kinds_of_hwloc_to_json(const struct topology *topology)
{
    json_t *list = json_array();
    const int count = hwloc_cpukinds_get_nr(topology->hwloc, 0);
    hwloc_bitmap_t pus = hwloc_bitmap_alloc();
    for (int k = 0; pus && k < count; k++) {
        int efficiency = -1;
        unsigned info_count = 0;
        struct hwloc_info_s *infos = NULL;
        if (hwloc_cpukinds_get_info(topology->hwloc, (unsigned)k, pus, &efficiency, &info_count, &infos, 0) != 0)
            continue;
        json_t *facts = json_object();
        for (unsigned i = 0; i < info_count; i++)
            json_object_set_new(facts, infos[i].name, json_string_nocheck(infos[i].value));
        hwloc_bitmap_and(pus, pus, hwloc_topology_get_topology_cpuset(topology->hwloc));
        json_array_append_new(list, json_pack("{s:o, s:o, s:o}", "efficiency",
                                              efficiency < 0 ? json_null() : json_integer(efficiency), "cpus",
                                              list_of(pus), "infos", facts));
    }
    hwloc_bitmap_free(pus);
    return list;
}
