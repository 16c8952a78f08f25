/* SPDX-License-Identifier: Apache-2.0
 *
 * Loading a topology and asking it what may be used. Everything follows from hwloc's objects and cpusets: PU numbers
 * have gaps, siblings need not be adjacent, and any level may be missing for some PUs or for all. Disallowed objects
 * are loaded too (so that they can be told), and left out by intersection with `usable`; hwloc's own restriction is
 * not used, since it fails on some machines without a change.
 */
#include "topology.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cpu_list.h"
#include "environment.h"

/* As many PUs as a Linux kernel takes. hwloc's time grows with the square of it, to minutes beyond. */
enum { SYNTHETIC_PUS_MAX = 1 << 13 };

/* The product of the arities of a synthetic string; attributes in parentheses do not count. */
static double synthetic_pus(const char *text)
{
    double product = 1;
    for (const char *at = text; *at; at++) {
        if (*at == '(')
            at += strcspn(at, ")");
        if (!*at)
            break;
        if (isdigit((unsigned char)*at) && (at == text || at[-1] == ':' || at[-1] == ' ')) {
            char *end;
            product *= strtod(at, &end);
            at = end - 1;
        }
    }
    return product;
}

/* Tells hwloc where to take the topology from. what: how to name the source in messages. */
static int set_source(hwloc_topology_t hwloc, const char *source, const char *what, bool may_be_synthetic,
                      bool may_be_file, struct error *error)
{
    struct stat status;
    if (may_be_file && stat(source, &status) == 0) {
        if (!S_ISREG(status.st_mode))
            return error_usage(error, "%s '%s' is not a regular file", what, source);
        if (hwloc_topology_set_xml(hwloc, source) != 0)
            return error_usage(error, "%s '%s' can't be read as hwloc XML: %s", what, source, strerror(errno));
        return 0;
    }
    if (!may_be_synthetic)
        return error_usage(error, "%s '%s': %s", what, source, strerror(ENOENT));
    if (synthetic_pus(source) > SYNTHETIC_PUS_MAX)
        return error_usage(error, "%s '%s' has more than %d hardware threads", what, source, SYNTHETIC_PUS_MAX);
    if (hwloc_topology_set_synthetic(hwloc, source) != 0)
        return error_usage(error, "%s '%s' is %s a synthetic topology (like 'pack:2 core:4 pu:2')", what, source,
                           may_be_file ? "neither a file nor" : "not");
    return 0;
}

/* As the number of the domain that object belongs to: a new one where it differs from the last seen. */
static int32_t number_of(hwloc_obj_t object, hwloc_obj_t *last, int32_t *count)
{
    if (!object)
        return -1;
    if (object != *last) {
        *last = object;
        ++*count;
    }
    return *count - 1;
}

static const hwloc_obj_type_t domain_types[DOMAINS_TYPES] = {
    [DOMAINS_PACKAGE] = HWLOC_OBJ_PACKAGE,
    [DOMAINS_DIE] = HWLOC_OBJ_DIE,
    [DOMAINS_NUMA] = HWLOC_OBJ_NUMANODE,
    [DOMAINS_L3] = HWLOC_OBJ_L3CACHE,
};

static int fill_domains(struct topology *topology)
{
    for (int t = 0; t < DOMAINS_TYPES; t++) {
        struct topology_domains *domains = &topology->domains[t];
        int all = 0;
        for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(topology->hwloc, domain_types[t], o));)
            all++;
        domains->objects = calloc(all > 0 ? (size_t)all : 1, sizeof(hwloc_obj_t));
        if (!domains->objects)
            return -ENOMEM;
        for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(topology->hwloc, domain_types[t], o));)
            if (topology_is_domain(topology, o))
                domains->objects[domains->count++] = o;
    }
    return 0;
}

static int assign_numa(struct topology *topology)
{
    const struct topology_domains *nodes = &topology->domains[DOMAINS_NUMA];
    int *weight = calloc(nodes->count > 0 ? (size_t)nodes->count : 1, sizeof *weight);
    if (!weight)
        return -ENOMEM;
    for (int n = 0; n < nodes->count; n++) {
        hwloc_const_bitmap_t cpuset = nodes->objects[n]->cpuset;
        weight[n] = hwloc_bitmap_weight(cpuset);
        for (int os = hwloc_bitmap_first(cpuset); os >= 0; os = hwloc_bitmap_next(cpuset, os)) {
            struct topology_pu *pu =
                os < topology->os_count && topology->pu_by_os[os] >= 0 ? &topology->pus[topology->pu_by_os[os]] : NULL;
            if (pu && (pu->numa < 0 || weight[n] < weight[pu->numa]))
                pu->numa = n;
        }
    }
    free(weight);
    return 0;
}

static int index_by_os(struct topology *topology)
{
    topology->os_count = hwloc_bitmap_last(topology->usable) + 1;
    topology->pu_by_os = malloc((size_t)(topology->os_count + 1) * sizeof *topology->pu_by_os);
    if (!topology->pu_by_os)
        return -ENOMEM;
    for (int os = 0; os < topology->os_count; os++)
        topology->pu_by_os[os] = -1;
    for (int i = 0; i < topology->pu_count; i++)
        topology->pu_by_os[topology->pus[i].os] = i;
    return 0;
}

/* The table of usable PUs. PUs of one core, L3, package are neighbours in logical order, so counting changes numbers
 * the domains. */
static int fill_pus(struct topology *topology)
{
    hwloc_topology_t hwloc = topology->hwloc;
    const int all = hwloc_get_nbobjs_by_type(hwloc, HWLOC_OBJ_PU);
    hwloc_obj_t last_core = NULL, last_l3 = NULL, last_package = NULL;
    int32_t cores = 0, l3s = 0, packages = 0;
    topology->pus = calloc(all > 0 ? (size_t)all : 1, sizeof *topology->pus);
    if (!topology->pus)
        return -ENOMEM;
    for (int i = 0; i < all; i++) {
        hwloc_obj_t object = hwloc_get_obj_by_type(hwloc, HWLOC_OBJ_PU, (unsigned)i);
        if (!hwloc_bitmap_isset(topology->usable, object->os_index))
            continue;
        hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(hwloc, HWLOC_OBJ_CORE, object);
        hwloc_obj_t l3 = hwloc_get_ancestor_obj_by_type(hwloc, HWLOC_OBJ_L3CACHE, object);
        hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(hwloc, HWLOC_OBJ_PACKAGE, object);
        struct topology_pu *pu = &topology->pus[topology->pu_count];
        pu->object = object;
        pu->os = (int32_t)object->os_index;
        pu->core = number_of(core ? core : object, &last_core, &cores);
        pu->l3 = number_of(l3, &last_l3, &l3s);
        pu->package = number_of(package, &last_package, &packages);
        pu->numa = -1;
        if (topology->pu_count > 0 && pu[-1].core == pu->core)
            pu->sibling = pu[-1].sibling + 1;
        topology->pu_count++;
    }
    topology->core_count = cores;
    return 0;
}

/* All that is worked out once, from `usable`. */
static int fill_tables(struct topology *topology)
{
    int code = fill_pus(topology);
    code = code ? code : index_by_os(topology);
    code = code ? code : fill_domains(topology);
    code = code ? code : assign_numa(topology);
    return code ? code : kinds_find(topology);
}

static int cut_to(hwloc_bitmap_t usable, const char *restrict_list, struct error *error)
{
    int32_t *cpus;
    int count, code = cpu_list_parse(restrict_list, &cpus, &count, error);
    if (code)
        return error_prefix(error, code, "restriction");
    hwloc_bitmap_t kept = hwloc_bitmap_alloc();
    for (int i = 0; i < count; i++)
        hwloc_bitmap_set(kept, (unsigned)cpus[i]);
    hwloc_bitmap_and(usable, usable, kept);
    hwloc_bitmap_free(kept);
    free(cpus);
    return 0;
}

int topology_load(const char *source, const char *restrict_list, struct topology *topology, struct error *error)
{
    int code = 0;
    const char *what = "topology", *xml = getenv("HWLOC_XMLFILE"), *synthetic = getenv("HWLOC_SYNTHETIC");
    bool may_be_synthetic = true, may_be_file = true;
    memset(topology, 0, sizeof *topology);
    /* hwloc would fall back to this machine without a word where a variable means nothing; so they are read here, in
     * its order. */
    if (!source && synthetic && *synthetic) {
        source = synthetic;
        what = "HWLOC_SYNTHETIC";
        may_be_file = false;
    } else if (!source && xml && *xml) {
        source = xml;
        what = "HWLOC_XMLFILE";
        may_be_synthetic = false;
    }
    if (hwloc_topology_init(&topology->hwloc) != 0)
        return error_system(error, errno ? errno : ENOMEM, "hwloc can't be set up");
    if (source && (code = set_source(topology->hwloc, source, what, may_be_synthetic, may_be_file, error)))
        goto failed;
    if (hwloc_topology_set_flags(topology->hwloc, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0 ||
        hwloc_topology_load(topology->hwloc) != 0) {
        code = source ? error_usage(error, "%s '%s': hwloc can't load it (damaged, or of a newer format)", what, source)
                      : error_system(error, errno, "hwloc can't load this machine's topology");
        goto failed;
    }
    topology->this_system = hwloc_topology_is_thissystem(topology->hwloc);
    topology->usable = hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(topology->hwloc));
    if (topology->this_system) {
        hwloc_bitmap_and(topology->usable, topology->usable, affinity_at_start());
        topology->cpu_quota = environment_cpu_quota();
    }
    if (restrict_list && (code = cut_to(topology->usable, restrict_list, error)))
        goto failed;
    if (hwloc_bitmap_iszero(topology->usable)) {
        code = error_usage(error, "no usable hardware thread is left%s%s", restrict_list ? " by restriction to " : "",
                           restrict_list ? restrict_list : "");
        goto failed;
    }
    if ((code = fill_tables(topology)) != 0) {
        code = error_system(error, -code, "topology");
        goto failed;
    }
    if (topology->pu_count > 0)
        return 0;
    code = error_usage(error, "%s '%s' has no usable hardware thread", what, source ? source : "of this machine");
failed:
    topology_release(topology);
    return code;
}

void topology_release(struct topology *topology)
{
    kinds_release(topology);
    for (int t = 0; t < DOMAINS_TYPES; t++)
        free(topology->domains[t].objects);
    free(topology->pu_by_os);
    free(topology->pus);
    hwloc_bitmap_free(topology->usable);
    if (topology->hwloc)
        hwloc_topology_destroy(topology->hwloc);
    memset(topology, 0, sizeof *topology);
}

bool topology_is_domain(const struct topology *topology, hwloc_obj_t object)
{
    if (!hwloc_bitmap_intersects(object->cpuset, topology->usable))
        return false;
    return object->type != HWLOC_OBJ_NUMANODE ||
           hwloc_bitmap_isset(hwloc_topology_get_allowed_nodeset(topology->hwloc), object->os_index);
}

static const struct topology_domains *domains_of(const struct topology *topology, hwloc_obj_type_t type)
{
    static const struct topology_domains none;
    for (int t = 0; t < DOMAINS_TYPES; t++)
        if (domain_types[t] == type)
            return &topology->domains[t];
    return &none;
}

int topology_domain_count(const struct topology *topology, hwloc_obj_type_t type)
{
    return domains_of(topology, type)->count;
}

hwloc_obj_t topology_domain(const struct topology *topology, hwloc_obj_type_t type, int index)
{
    const struct topology_domains *domains = domains_of(topology, type);
    return index >= 0 && index < domains->count ? domains->objects[index] : NULL;
}

const struct topology_pu *topology_pu(const struct topology *topology, int32_t os)
{
    const int32_t i = os >= 0 && os < topology->os_count ? topology->pu_by_os[os] : -1;
    return i < 0 ? NULL : &topology->pus[i];
}

int topology_cores_within(const struct topology *topology, hwloc_const_bitmap_t set)
{
    hwloc_bitmap_t cores = hwloc_bitmap_alloc();
    for (int os = hwloc_bitmap_first(set); os >= 0; os = hwloc_bitmap_next(set, os)) {
        const struct topology_pu *pu = topology_pu(topology, os);
        if (pu)
            hwloc_bitmap_set(cores, (unsigned)pu->core);
    }
    const int count = hwloc_bitmap_weight(cores);
    hwloc_bitmap_free(cores);
    return count;
}

int topology_usable_cores(const struct topology *topology)
{
    return topology->core_count;
}

int topology_usable_pus(const struct topology *topology)
{
    return topology->pu_count;
}

int topology_max_threads(const struct topology *topology)
{
    int threads = topology->core_count;
    if (topology->cpu_quota > 0 && topology->cpu_quota < threads)
        threads = (int)topology->cpu_quota;
    return threads > 1 ? threads : 1;
}

size_t topology_cache_bytes(const struct topology *topology, int level)
{
    static const hwloc_obj_type_t types[] = {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE};
    if (level < 1 || level > 3)
        return 0;
    hwloc_obj_t cache = hwloc_get_ancestor_obj_by_type(topology->hwloc, types[level - 1], topology->pus[0].object);
    return cache ? (size_t)cache->attr->cache.size : 0;
}

size_t topology_llc_total_bytes(const struct topology *topology)
{
    size_t total = 0;
    hwloc_obj_t last = NULL;
    for (int i = 0; i < topology->pu_count; i++) {
        hwloc_obj_t outermost = NULL;
        for (hwloc_obj_t o = topology->pus[i].object; o; o = o->parent)
            if (hwloc_obj_type_is_dcache(o->type))
                outermost = o;
        if (outermost && outermost != last) /* sharers are neighbours in logical order */
            total += (size_t)outermost->attr->cache.size;
        last = outermost;
    }
    return total;
}
