/* SPDX-License-Identifier: Apache-2.0
 *
 * LIKWID's affinity domains from hwloc's objects; see likwid_domain.h.
 */
#include "likwid_domain.h"

#include <string.h>

static const struct {
    char letter;
    const char *name;
} kinds[] = {{'N', "machine"}, {'S', "socket"}, {'D', "die"}, {'C', "last-level cache"}, {'M', "NUMA node"}};

bool likwid_is_domain(char letter)
{
    return letter && strchr("NSDCM", letter);
}

const char *likwid_domain_name(char letter)
{
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        if (kinds[k].letter == letter)
            return kinds[k].name;
    return "domain";
}

static hwloc_obj_t outermost_cache(const struct topology_pu *pu)
{
    hwloc_obj_t found = NULL;
    for (hwloc_obj_t o = pu->object; o; o = o->parent)
        if (hwloc_obj_type_is_dcache(o->type))
            found = o;
    return found;
}

/* Goes through the last-level caches; those who share one are neighbours in logical order. The PUs of the index-th go
 * into set (NULL: none wanted). Returns how many there are. */
static int last_level_caches(const struct topology *topology, int index, hwloc_bitmap_t set)
{
    int count = 0;
    hwloc_obj_t last = NULL;
    for (int i = 0; i < topology->pu_count; i++) {
        hwloc_obj_t cache = outermost_cache(&topology->pus[i]);
        count += cache && cache != last;
        if (cache && set && count - 1 == index)
            hwloc_bitmap_set(set, (unsigned)topology->pus[i].os);
        last = cache;
    }
    return count;
}

/* Where hwloc tells of no dies or caches, LIKWID has one in each socket. */
static hwloc_obj_type_t type_of(const struct topology *topology, char letter)
{
    if (letter == 'M')
        return HWLOC_OBJ_NUMANODE;
    if (letter == 'D' && topology_domain_count(topology, HWLOC_OBJ_DIE) > 0)
        return HWLOC_OBJ_DIE;
    return HWLOC_OBJ_PACKAGE;
}

int likwid_domain_count(const struct topology *topology, char letter)
{
    if (letter == 'N')
        return 1;
    const int caches = letter == 'C' ? last_level_caches(topology, -1, NULL) : 0;
    return caches > 0 ? caches : topology_domain_count(topology, type_of(topology, letter));
}

void likwid_domain_pus(const struct topology *topology, char letter, int index, bool once, hwloc_bitmap_t set)
{
    hwloc_bitmap_zero(set);
    if (letter == 'N') {
        hwloc_bitmap_copy(set, topology->usable);
    } else if (letter == 'M' && once) {
        for (int i = 0; i < topology->pu_count; i++)
            if (topology->pus[i].numa == index)
                hwloc_bitmap_set(set, (unsigned)topology->pus[i].os);
    } else if (letter != 'C' || last_level_caches(topology, index, set) == 0) {
        hwloc_obj_t object = topology_domain(topology, type_of(topology, letter), index);
        if (object)
            hwloc_bitmap_and(set, object->cpuset, topology->usable);
    }
}
