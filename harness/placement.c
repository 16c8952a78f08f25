/* SPDX-License-Identifier: Apache-2.0
 *
 * From a placement's name to CPUs in thread order, by the table of usable PUs alone: never by PU numbers. Binding
 * itself is in affinity.c.
 */
#include "placement.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "intern.h"
#include "likwid_expression.h"
#include "pu_order.h"

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
/* Names that stand alone; those of kinds and of one core per domain where there are such. */
static const char *const alone[] = {"compact", "scatter", "smt",     "all",       "none",
                                    "pcores",  "ecores",  "l3:each", "numa:each", "socket:each"};
enum { ALONE = sizeof alone / sizeof alone[0], ALWAYS = 5 };
#define ONE_A_CORE "/nosmt"

static int domain_count(const struct topology *topology, const struct domain_kind *kind)
{
    return kind->type == HWLOC_OBJ_CORE ? topology->core_count : topology_domain_count(topology, kind->type);
}

/* The first usable PU of each domain that is the innermost around it. */
static int one_of_each(const struct topology *topology, hwloc_obj_type_t type, int32_t *cpus)
{
    hwloc_bitmap_t seen = hwloc_bitmap_alloc();
    int used = 0;
    for (int i = 0; i < topology->pu_count; i++) {
        const struct topology_pu *pu = &topology->pus[i];
        const int32_t domain = type == HWLOC_OBJ_L3CACHE    ? pu->l3
                               : type == HWLOC_OBJ_NUMANODE ? pu->numa
                               : type == HWLOC_OBJ_PACKAGE  ? pu->package
                                                            : pu->core;
        if (domain < 0 || hwloc_bitmap_isset(seen, (unsigned)domain))
            continue;
        hwloc_bitmap_set(seen, (unsigned)domain);
        cpus[used++] = pu->os;
    }
    hwloc_bitmap_free(seen);
    return used;
}

/* The PUs of one core. The table is sorted by core. */
static int core_cpus(const struct topology *topology, int core, int32_t *cpus)
{
    int low = 0, high = topology->pu_count, used = 0;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (topology->pus[middle].core < core)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < topology->pu_count && topology->pus[low].core == core; low++)
        cpus[used++] = topology->pus[low].os;
    return used;
}

/* The PUs of "kind:I" or "kind:each". Returns how many, or -EINVAL. */
static int domain_cpus(const struct topology *topology, const char *expression, const struct domain_kind *kind,
                       int32_t *cpus, struct error *error)
{
    const char *digits = expression + strlen(kind->prefix);
    const size_t length = strlen(digits);
    const int count = domain_count(topology, kind);
    const bool each = strcmp(digits, "each") == 0;
    if (!each && (length == 0 || length > 9 || strspn(digits, "0123456789") != length))
        return error_usage(error, "placement '%.200s': %sI takes the number of a %s, or each", expression, kind->prefix,
                           kind->one);
    if (count == 0)
        return error_usage(error, "placement '%s': hwloc knows of no usable %s here", expression, kind->one);
    if (each)
        return one_of_each(topology, kind->type, cpus);
    const int index = atoi(digits);
    if (index >= count)
        return error_usage(error, "placement '%s': there %s %d usable %s here, counted from 0", expression,
                           count == 1 ? "is" : "are", count, count == 1 ? kind->one : kind->many);
    if (kind->type == HWLOC_OBJ_CORE)
        return core_cpus(topology, index, cpus);
    return order_cores_first(topology, topology_domain(topology, kind->type, index)->cpuset, cpus);
}

static int kind_cpus(const struct topology *topology, const char *expression, int32_t *cpus, struct error *error)
{
    const char *reason;
    hwloc_bitmap_t set = kinds_usable(topology, strcmp(expression, "pcores") == 0, &reason);
    if (!set)
        return error_usage(error, "placement '%s': %s", expression, reason);
    const int count = order_cores_first(topology, set, cpus);
    hwloc_bitmap_free(set);
    return count;
}

static int named_cpus(const struct topology *topology, const char *expression, int32_t *cpus, struct error *error)
{
    if (strcmp(expression, "compact") == 0 || strcmp(expression, "all") == 0)
        return order_cores_first(topology, NULL, cpus);
    if (strcmp(expression, "smt") == 0)
        return order_siblings_first(topology, NULL, cpus);
    if (strcmp(expression, "scatter") == 0) {
        int count = order_scatter(topology, cpus);
        return count < 0 ? error_system(error, -count, "placement '%s'", expression) : count;
    }
    if (strcmp(expression, "pcores") == 0 || strcmp(expression, "ecores") == 0)
        return kind_cpus(topology, expression, cpus, error);
    for (int i = 0; i < DOMAIN_KINDS; i++)
        if (strncmp(expression, domain_kinds[i].prefix, strlen(domain_kinds[i].prefix)) == 0)
            return domain_cpus(topology, expression, &domain_kinds[i], cpus, error);
    if (strcmp(expression, LADDER) == 0)
        return error_usage(error, "placement 'ladder' is a series of placements, not one");
    return error_usage(error, "placement '%.200s' is not one of those that attnbench list placements tells",
                       expression);
}

/* Fills *cpus (malloc'd) with all that the expression has. Returns how many, or -errno. */
static int all_cpus(const struct topology *topology, const char *expression, int32_t **cpus, const char **warning,
                    struct error *error)
{
    if (likwid_is_expression(expression))
        return likwid_resolve(topology, expression, cpus, warning, error);
    *cpus = malloc((size_t)topology->pu_count * sizeof **cpus);
    if (!*cpus)
        return error_system(error, ENOMEM, "placement '%.200s'", expression);
    const size_t length = strlen(expression), suffix = strlen(ONE_A_CORE);
    if (length <= suffix || strcmp(expression + length - suffix, ONE_A_CORE) != 0)
        return named_cpus(topology, expression, *cpus, error);
    const char *base = intern_format("%.*s", (int)(length - suffix), expression);
    const int count = named_cpus(topology, base, *cpus, error);
    return count < 0 ? error_prefix(error, count, "%.200s", expression)
                     : order_keep_one_per_core(topology, *cpus, count);
}

int placement_resolve(const struct topology *topology, const char *expression, int threads, struct placement *placement,
                      struct error *error)
{
    *placement = (struct placement){.name = intern(expression)};
    const bool unbound = strcmp(expression, "none") == 0;
    int32_t *cpus = NULL;
    int have = unbound ? topology->pu_count : all_cpus(topology, expression, &cpus, &placement->warning, error);
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
        error_machine(error, "%d threads asked for, but placement '%.200s' has %d CPU%s", threads, expression, have,
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

/* Whether alone[index] means something here. */
static bool exists(const struct topology *topology, int index)
{
    const char *name = alone[index], *reason;
    if (index < ALWAYS)
        return true;
    for (int i = 0; i < DOMAIN_KINDS; i++)
        if (strncmp(name, domain_kinds[i].prefix, strlen(domain_kinds[i].prefix)) == 0)
            return domain_count(topology, &domain_kinds[i]) > 0;
    hwloc_bitmap_t set = kinds_usable(topology, strcmp(name, "pcores") == 0, &reason);
    hwloc_bitmap_free(set);
    return set != NULL;
}

const char *placement_name(const struct topology *topology, int index)
{
    for (int i = 0; i < ALONE && index >= 0; i++)
        if (exists(topology, i) && index-- == 0)
            return alone[i];
    for (int i = 0; i < DOMAIN_KINDS && index >= 0; i++) {
        int count = domain_count(topology, &domain_kinds[i]);
        if (index < count)
            return intern_format("%s%d", domain_kinds[i].prefix, index);
        index -= count;
    }
    return NULL;
}
