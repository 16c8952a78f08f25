/* SPDX-License-Identifier: Apache-2.0
 *
 * The machine as text; see topo_tree.h. It is made from topology_to_json's document and the table of PUs, so that text
 * and --json can't differ.
 */
#include "topo_tree.h"

#include <stdlib.h>

#include "cpu_list.h"
#include "json_util.h"

static int integer(const json_t *object, const char *key)
{
    return (int)json_integer_value(json_object_get(object, key));
}

static void print_bytes(FILE *file, const json_t *bytes)
{
    const double value = (double)json_integer_value(bytes), kib = 1024, mib = 1024 * kib, gib = 1024 * mib;
    if (!json_is_integer(bytes))
        fprintf(file, "unknown size");
    else if (value >= gib)
        fprintf(file, "%.4g GiB", value / gib);
    else if (value >= mib)
        fprintf(file, "%.4g MiB", value / mib);
    else
        fprintf(file, "%.5g KiB", value / kib);
}

static void print_cpus(FILE *file, const json_t *list)
{
    const int count = (int)json_array_size(list);
    int32_t *cpus = calloc(count > 0 ? (size_t)count : 1, sizeof *cpus);
    for (int i = 0; cpus && i < count; i++)
        cpus[i] = (int32_t)json_integer_value(json_array_get(list, (size_t)i));
    char *text = cpu_list_format(cpus, cpus ? count : 0);
    fprintf(file, "CPU%s %s", count == 1 ? "" : "s", text ? text : "");
    free(text);
    free(cpus);
}

static void print_count(FILE *file, int count, const char *name)
{
    fprintf(file, "%d %s%s", count, name, count == 1 ? "" : "s");
}

static void print_caches(FILE *file, const json_t *caches, const char *indent)
{
    size_t i;
    json_t *cache;
    json_array_foreach(caches, i, cache)
    {
        const char *type = json_get_string(cache, "type", "");
        fprintf(file, "%sL%d%s: %d x ", indent, integer(cache, "level"),
                *type == 'd'   ? "d"
                : *type == 'i' ? "i"
                               : "",
                integer(cache, "count"));
        print_bytes(file, json_object_get(cache, "size"));
        fprintf(file, ", shared by ");
        print_count(file, integer(cache, "shared_by"), "CPU");
        fputc('\n', file);
    }
}

static void print_kinds(FILE *file, const json_t *kinds)
{
    size_t i;
    json_t *kind;
    const size_t count = json_array_size(kinds);
    if (count < 2)
        return;
    json_array_foreach(kinds, i, kind)
    {
        const char *type = json_get_string(kind, "core_type", NULL);
        const double mhz = json_number_value(json_object_get(kind, "max_mhz"));
        fprintf(file, "kind %d%s: ", integer(kind, "efficiency"),
                i == 0           ? " (slowest)"
                : i + 1 == count ? " (fastest)"
                                 : "");
        print_count(file, integer(kind, "cores"), "core");
        if (type)
            fprintf(file, ", %s", type);
        if (mhz > 0)
            fprintf(file, ", up to %.0f MHz", mhz);
        fprintf(file, ", ");
        print_cpus(file, json_object_get(kind, "cpus"));
        fputc('\n', file);
        print_caches(file, json_object_get(kind, "caches"), "  ");
    }
}

static void print_summary(FILE *file, const struct topology *topology, const json_t *document)
{
    static const struct {
        const char *key, *name;
    } counts[] = {{"cores", "core"},
                  {"pus", "hardware thread"},
                  {"packages", "socket"},
                  {"numa_nodes", "NUMA node"},
                  {"l3_domains", "L3 domain"}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        fprintf(file, "%s", i ? ", " : "");
        print_count(file, integer(document, counts[i].key), counts[i].name);
    }
    fprintf(file, "%s\n", topology->this_system ? "" : " (not this machine: planning only)");
    const json_t *width = json_object_get(document, "pus_per_core");
    if (json_is_integer(json_object_get(width, "max")) && integer(width, "max") > 1) {
        if (integer(width, "min") == integer(width, "max"))
            fprintf(file, "%d hardware threads a core\n", integer(width, "max"));
        else
            fprintf(file, "%d to %d hardware threads a core\n", integer(width, "min"), integer(width, "max"));
    }
    if (integer(document, "numa_nodes_without_cpus") > 0) {
        print_count(file, integer(document, "numa_nodes_without_cpus"), "NUMA node");
        fprintf(file, " without CPUs\n");
    }
    const json_t *rest = json_object_get(document, "disallowed_pus");
    if (json_array_size(rest) > 0) {
        fprintf(file, "not to be used (affinity, cpuset or restriction): ");
        print_cpus(file, rest);
        fputc('\n', file);
    }
    if (topology->cpu_quota > 0)
        fprintf(file, "CPU quota: %.2f CPUs by cgroup; --threads max is %d\n", topology->cpu_quota,
                topology_max_threads(topology));
    print_kinds(file, json_object_get(document, "kinds"));
    if (json_array_size(json_object_get(document, "kinds")) < 2)
        print_caches(file, json_object_get(document, "caches"), "");
}

static void print_socket(FILE *file, int index, const json_t *socket)
{
    const json_t *bytes = json_object_get(socket, "l3_bytes");
    const int cores = integer(socket, "cores"), l3s = integer(socket, "l3_domains");
    fprintf(file, "socket:%d  ", index);
    print_count(file, cores, "core");
    fprintf(file, ", ");
    print_cpus(file, json_object_get(socket, "cpus"));
    if (l3s > 1 && json_is_integer(bytes)) {
        fprintf(file, ", %d L3 caches of ", l3s);
        print_bytes(file, bytes);
        fprintf(file, " in all");
    }
    fputc('\n', file);
}

static void print_node(FILE *file, int index, const json_t *node)
{
    fprintf(file, "  numa:%d  node %d, ", index, integer(node, "node"));
    if (json_is_integer(json_object_get(node, "memory_bytes"))) {
        print_bytes(file, json_object_get(node, "memory_bytes"));
        fprintf(file, ", ");
    }
    print_count(file, integer(node, "cores"), "core");
    fprintf(file, ", ");
    print_cpus(file, json_object_get(node, "cpus"));
    fputc('\n', file);
}

static void print_l3(FILE *file, int index, const json_t *cache)
{
    if (!cache) {
        fprintf(file, "    no L3\n");
        return;
    }
    fprintf(file, "    l3:%d  ", index);
    print_bytes(file, json_object_get(cache, "size"));
    fprintf(file, ", ");
    print_count(file, integer(cache, "cores"), "core");
    fprintf(file, ", ");
    print_cpus(file, json_object_get(cache, "cpus"));
    fputc('\n', file);
}

static void print_core(FILE *file, const struct topology *topology, int first)
{
    const struct topology_pu *pu = &topology->pus[first];
    fprintf(file, "      core:%d  CPU%s", pu->core,
            first + 1 < topology->pu_count && pu[1].core == pu->core ? "s" : "");
    for (int i = first; i < topology->pu_count && topology->pus[i].core == pu->core; i++)
        fprintf(file, "%s%d", i == first ? " " : ",", topology->pus[i].os);
    fputc('\n', file);
}

/* Where each NUMA node comes by first: nodes are no parents in hwloc's tree. calloc'd, [nodes]. */
static int *first_pus_of_nodes(const struct topology *topology)
{
    const struct topology_domains *nodes = &topology->domains[DOMAINS_NUMA];
    int *first = calloc((size_t)nodes->count + 1, sizeof *first);
    for (int n = 0; first && n < nodes->count; n++) {
        hwloc_const_bitmap_t set = nodes->objects[n]->cpuset;
        first[n] = topology->pu_count;
        for (int os = hwloc_bitmap_first(set); os >= 0; os = hwloc_bitmap_next(set, os)) {
            const struct topology_pu *pu = topology_pu(topology, os);
            const int at = pu ? (int)(pu - topology->pus) : topology->pu_count;
            first[n] = at < first[n] ? at : first[n];
        }
    }
    return first;
}

static void print_tree(FILE *file, const struct topology *topology, const json_t *document)
{
    const json_t *sockets = json_object_get(document, "sockets"), *nodes = json_object_get(document, "numa");
    const json_t *l3s = json_object_get(document, "l3");
    int *first = first_pus_of_nodes(topology);
    int32_t package = -2, l3 = -2;
    for (int i = 0; first && i < topology->pu_count; i++) {
        const struct topology_pu *pu = &topology->pus[i];
        if (pu->package != package) {
            package = pu->package;
            if (package >= 0)
                print_socket(file, package, json_array_get(sockets, (size_t)package));
            else
                fprintf(file, "no socket\n");
        }
        for (size_t n = 0; pu->sibling == 0 && n < json_array_size(nodes); n++)
            if (first[n] == i)
                print_node(file, (int)n, json_array_get(nodes, n));
        if (pu->l3 != l3 || i == 0) {
            l3 = pu->l3;
            print_l3(file, l3, l3 >= 0 ? json_array_get(l3s, (size_t)l3) : NULL);
        }
        if (pu->sibling == 0)
            print_core(file, topology, i);
    }
    free(first);
}

void topo_tree_print(FILE *file, const struct topology *topology)
{
    json_t *document = topology_to_json(topology);
    print_summary(file, topology, document);
    fputc('\n', file);
    print_tree(file, topology, document);
    json_decref(document);
}
