/* SPDX-License-Identifier: Apache-2.0
 *
 * From a placement's name to CPUs in thread order, by the table of usable PUs alone: never by PU numbers. Binding
 * itself is in affinity.c.
 */
#include "placement.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_list.h"
#include "intern.h"

/* Placements named after an object. Cores are counted by the table, since a PU may stand for its core. */
static const struct domain_kind {
    const char *prefix, *one, *many;
    hwloc_obj_type_t type;
} domain_kinds[] = {
    {"core:", "core", "cores", HWLOC_OBJ_CORE},
    {"l3:", "L3 cache", "L3 caches", HWLOC_OBJ_L3CACHE},
    {"numa:", "NUMA node", "NUMA nodes", HWLOC_OBJ_NUMANODE},
    {"socket:", "socket", "sockets", HWLOC_OBJ_PACKAGE},
};
enum { DOMAIN_KINDS = sizeof domain_kinds / sizeof domain_kinds[0] };
static const char *const whole_machine[] = {"compact", "scatter", "smt", "all", "none"};
enum { WHOLE_MACHINE = sizeof whole_machine / sizeof whole_machine[0] };

static int domain_count(const struct topology *topology, const struct domain_kind *kind)
{
    return kind->type == HWLOC_OBJ_CORE ? topology->core_count : topology_domain_count(topology, kind->type);
}

/* Is this PU inside domain (an object, or the core of that number where object is NULL)? */
static bool inside(const struct topology_pu *pu, hwloc_obj_t object, int core)
{
    return object ? hwloc_bitmap_isset(object->cpuset, (unsigned)pu->os) : core < 0 || pu->core == core;
}

/* The PUs of a domain, one of each core first, then second siblings and so on. Returns how many. */
static int one_per_core_first(const struct topology *topology, hwloc_obj_t object, int core, int32_t *cpus)
{
    int used = 0;
    for (int sibling = 0, found = 1; found; sibling++) {
        found = 0;
        for (int i = 0; i < topology->pu_count; i++)
            if (topology->pus[i].sibling == sibling) {
                found = 1;
                if (inside(&topology->pus[i], object, core))
                    cpus[used++] = topology->pus[i].os;
            }
    }
    return used;
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

static int scatter(const struct topology *topology, int32_t *cpus)
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

/* The PUs of "kind:I". Returns how many, or -EINVAL. */
static int domain_cpus(const struct topology *topology, const char *expression, const struct domain_kind *kind,
                       int32_t *cpus, struct error *error)
{
    const char *digits = expression + strlen(kind->prefix);
    const size_t length = strlen(digits);
    if (length == 0 || length > 9 || strspn(digits, "0123456789") != length)
        return error_usage(error, "placement '%s': %sI takes the number of a %s", expression, kind->prefix, kind->one);
    const int index = atoi(digits), count = domain_count(topology, kind);
    if (count == 0)
        return error_usage(error, "placement '%s': hwloc knows of no usable %s here", expression, kind->one);
    if (index >= count)
        return error_usage(error, "placement '%s': there %s %d usable %s here, counted from 0", expression,
                           count == 1 ? "is" : "are", count, count == 1 ? kind->one : kind->many);
    if (kind->type == HWLOC_OBJ_CORE)
        return one_per_core_first(topology, NULL, index, cpus);
    return one_per_core_first(topology, topology_domain(topology, kind->type, index), -1, cpus);
}

static int list_cpus(const struct topology *topology, const char *expression, int32_t **cpus, struct error *error)
{
    int count, code = cpu_list_parse(expression, cpus, &count, error);
    if (code)
        return error_prefix(error, code, "placement");
    for (int i = 0; i < count; i++)
        if (!hwloc_bitmap_isset(topology->usable, (unsigned)(*cpus)[i]))
            return error_usage(error, "placement '%s': CPU %d %s", expression, (*cpus)[i],
                               hwloc_get_pu_obj_by_os_index(topology->hwloc, (unsigned)(*cpus)[i])
                                   ? "may not be used (affinity, cpuset or restriction)"
                                   : "does not exist here");
    return count;
}

/* Fills *cpus (malloc'd) with all that the expression has. Returns how many, or -errno. */
static int all_cpus(const struct topology *topology, const char *expression, int32_t **cpus, struct error *error)
{
    if (isdigit((unsigned char)*expression))
        return list_cpus(topology, expression, cpus, error);
    *cpus = malloc((size_t)topology->pu_count * sizeof **cpus);
    if (!*cpus)
        return error_system(error, ENOMEM, "placement '%s'", expression);
    if (strcmp(expression, "compact") == 0 || strcmp(expression, "all") == 0)
        return one_per_core_first(topology, NULL, -1, *cpus);
    if (strcmp(expression, "smt") == 0) {
        for (int i = 0; i < topology->pu_count; i++)
            (*cpus)[i] = topology->pus[i].os;
        return topology->pu_count;
    }
    if (strcmp(expression, "scatter") == 0) {
        int count = scatter(topology, *cpus);
        return count < 0 ? error_system(error, -count, "placement '%s'", expression) : count;
    }
    for (int i = 0; i < DOMAIN_KINDS; i++)
        if (strncmp(expression, domain_kinds[i].prefix, strlen(domain_kinds[i].prefix)) == 0)
            return domain_cpus(topology, expression, &domain_kinds[i], *cpus, error);
    return error_usage(error,
                       "placement '%s' is not known to this version: compact, scatter, smt, all, none, core:I, l3:I, "
                       "numa:I, socket:I or a list of CPUs like 0,2-5",
                       expression);
}

int placement_resolve(const struct topology *topology, const char *expression, int threads, struct placement *placement,
                      struct error *error)
{
    *placement = (struct placement){.name = intern(expression)};
    const bool unbound = strcmp(expression, "none") == 0;
    int32_t *cpus = NULL;
    int have = unbound ? topology->pu_count : all_cpus(topology, expression, &cpus, error);
    if (have < 0) {
        free(cpus);
        return have;
    }
    if (threads == 0) {
        const bool up_to_max = unbound || strcmp(expression, "compact") == 0 || strcmp(expression, "scatter") == 0;
        threads = up_to_max ? topology_max_threads(topology) : have;
    }
    if (threads < 0 || threads > have) {
        free(cpus);
        error_machine(error, "%d threads asked for, but placement '%s' has %d CPU%s", threads, expression, have,
                      have == 1 ? "" : "s");
        return -ERANGE;
    }
    placement->bound = !unbound;
    placement->threads = threads;
    placement->cpus = cpus;
    return 0;
}

void placement_release(struct placement *placement)
{
    free(placement->cpus);
    *placement = (struct placement){0};
}

const char *placement_name(const struct topology *topology, int index)
{
    if (index >= 0 && index < WHOLE_MACHINE)
        return whole_machine[index];
    index -= WHOLE_MACHINE;
    for (int i = 0; i < DOMAIN_KINDS && index >= 0; i++) {
        int count = domain_count(topology, &domain_kinds[i]);
        if (index < count)
            return intern_format("%s%d", domain_kinds[i].prefix, index);
        index -= count;
    }
    return NULL;
}
