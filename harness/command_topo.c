/* SPDX-License-Identifier: Apache-2.0
 *
 * attnbench topo: the machine as hwloc sees it, and the placements that follow from it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "commands.h"
#include "cpu_list.h"
#include "output.h"
#include "placement.h"

static const char help[] =
    "Usage: attnbench topo [--topology FILE|SYNTHETIC] [--restrict LIST] [--place EXPR]...\n"
    "                      [--threads N] [--json]\n"
    "\n"
    "Shows the packages, NUMA nodes, L3 domains and cores that may be used, and which CPUs each\n"
    "placement takes. CPUs are numbered as the operating system does, all else by hwloc's logical order\n"
    "among what may be used.\n"
    "\n"
    "  --topology SOURCE  another machine: an XML file of lstopo, or a synthetic string such as\n"
    "                     'pack:2 numa:2 l3:2 core:4 pu:2'; default: this machine\n"
    "  --restrict LIST    only these CPUs, such as 0,2-5\n"
    "  --place EXPR       what this placement resolves to (repeatable): compact, scatter, smt, all,\n"
    "                     none, core:I, l3:I, numa:I, socket:I or a list of CPUs\n"
    "  --threads N        only the first N threads of each placement; max: as run --threads max\n"
    "  --json             the same as one JSON object\n"
    "  --help             this text\n"
    "\n"
    "Exit codes: 0 ok, 2 usage, no such placement, or a topology that can't be loaded.\n";

enum { FLAG_TOPOLOGY = ARGUMENTS_LONG_ONLY, FLAG_RESTRICT, FLAG_PLACE, FLAG_THREADS, FLAG_JSON, FLAG_HELP };
enum { PLACES_MAX = 256 };

struct topo_options {
    const char *source, *restrict_list, *places[PLACES_MAX];
    int place_count, threads; /* threads 0: all that the placement has; -1: max */
    bool json, help;
};

static int parse_threads(const char *value, int *threads, struct error *error)
{
    char *end;
    if (strcmp(value, "max") == 0) {
        *threads = -1;
        return 0;
    }
    errno = 0;
    intmax_t number = strtoimax(value, &end, 10);
    if (errno || *end || end == value || number < 1 || number > INT32_MAX)
        return error_usage(error, "--threads %.100s: a number of threads, or max", value);
    *threads = (int)number;
    return 0;
}

static int take_flag(int flag, const char *value, struct topo_options *options, struct error *error)
{
    switch (flag) {
    case FLAG_TOPOLOGY:
        options->source = value;
        return 0;
    case FLAG_RESTRICT:
        options->restrict_list = value;
        return 0;
    case FLAG_PLACE:
        if (options->place_count == PLACES_MAX)
            return error_usage(error, "--place %.100s: more than %d placements", value, PLACES_MAX);
        options->places[options->place_count++] = value;
        return 0;
    case FLAG_THREADS:
        return parse_threads(value, &options->threads, error);
    case FLAG_JSON:
        options->json = true;
        return 0;
    default:
        options->help = true;
        return 0;
    }
}

static int parse(int argc, char **argv, struct topo_options *options, struct error *error)
{
    static const struct option long_flags[] = {
        {"topology", required_argument, NULL, FLAG_TOPOLOGY},
        {"restrict", required_argument, NULL, FLAG_RESTRICT},
        {"place", required_argument, NULL, FLAG_PLACE},
        {"threads", required_argument, NULL, FLAG_THREADS},
        {"json", no_argument, NULL, FLAG_JSON},
        {"help", no_argument, NULL, FLAG_HELP},
        {0},
    };
    struct arguments arguments = {argc, argv, ":h", long_flags};
    const char *value;
    int flag = arguments_next(&arguments, true, &value, error);
    for (; flag > 0; flag = arguments_next(&arguments, false, &value, error)) {
        int code = take_flag(flag, value, options, error);
        if (code)
            return code;
    }
    if (flag < 0)
        return flag;
    if (optind < argc && !options->help)
        return error_usage(error, "what is '%.200s'? (attnbench topo takes flags alone)", argv[optind]);
    return 0;
}

/* Resolves the index-th placement to show: of those asked for, or of all named ones. 0; 1: no more; -errno. One that
 * has fewer CPUs than --threads comes with 0 threads and the reason, as its points would be skipped. */
static int next_placement(const struct topology *topology, const struct topo_options *options, int index,
                          struct placement *placement, const char **reason, struct error *error)
{
    const char *name = options->place_count == 0      ? placement_name(topology, index)
                       : index < options->place_count ? options->places[index]
                                                      : NULL;
    if (!name)
        return 1;
    int threads = options->threads < 0 ? topology_max_threads(topology) : options->threads;
    int code = placement_resolve(topology, name, threads, placement, error);
    *reason = NULL;
    if (code == -ERANGE) {
        *placement = (struct placement){.name = name};
        *reason = error->text;
        return 0;
    }
    return code ? error_prefix(error, code, "--place") : 0;
}

static int print_json(const struct topology *topology, const struct topo_options *options, struct error *error)
{
    json_t *document = topology_to_json(topology), *list = json_array();
    struct placement placement;
    const char *reason;
    int code;
    json_object_set_new(document, "placements", list);
    for (int i = 0; (code = next_placement(topology, options, i, &placement, &reason, error)) == 0; i++) {
        json_t *cpus = json_array();
        for (int t = 0; placement.bound && t < placement.threads; t++)
            json_array_append_new(cpus, json_integer(placement.cpus[t]));
        json_t *entry =
            json_pack("{s:s, s:i, s:o}", "name", placement.name, "threads", placement.threads, "cpus", cpus);
        if (reason)
            json_object_set_new(entry, "reason", json_string(reason));
        json_array_append_new(list, entry);
        placement_release(&placement);
    }
    if (code > 0) {
        json_dumpf(document, stdout, JSON_INDENT(2));
        putchar('\n');
    }
    json_decref(document);
    return code < 0 ? code : 0;
}

static void print_usable(const struct topology *topology, hwloc_const_bitmap_t set)
{
    hwloc_bitmap_t usable = hwloc_bitmap_alloc();
    char *text = NULL;
    hwloc_bitmap_and(usable, set, topology->usable);
    if (hwloc_bitmap_list_asprintf(&text, usable) >= 0)
        printf("CPUs %s", text);
    free(text);
    hwloc_bitmap_free(usable);
}

static void print_bytes(double bytes)
{
    if (bytes >= 1024.0 * 1024 * 1024)
        printf("%.1f GiB", bytes / (1024.0 * 1024 * 1024));
    else if (bytes >= 1024 * 1024)
        printf("%.4g MiB", bytes / (1024 * 1024));
    else
        printf("%.4g KiB", bytes / 1024);
}

/* NUMA nodes are no parents in hwloc's tree, so each is shown where its first PU comes by. */
static void print_nodes_from(const struct topology *topology, int pu)
{
    for (int n = 0;; n++) {
        hwloc_obj_t node = topology_domain(topology, HWLOC_OBJ_NUMANODE, n);
        if (!node)
            return;
        int first = 0;
        while (first < topology->pu_count && !hwloc_bitmap_isset(node->cpuset, (unsigned)topology->pus[first].os))
            first++;
        if (first != pu)
            continue;
        printf("  numa:%d  node %u, ", n, node->os_index);
        if (node->attr->numanode.local_memory) {
            print_bytes((double)node->attr->numanode.local_memory);
            printf(", ");
        }
        print_usable(topology, node->cpuset);
        putchar('\n');
    }
}

static void print_core(const struct topology *topology, int first)
{
    const struct topology_pu *pu = &topology->pus[first];
    printf("      core:%d  CPU%s", pu->core, first + 1 < topology->pu_count && pu[1].core == pu->core ? "s" : "");
    for (int i = first; i < topology->pu_count && topology->pus[i].core == pu->core; i++)
        printf("%s%d", i == first ? " " : ",", topology->pus[i].os);
    putchar('\n');
}

static void print_tree(const struct topology *topology)
{
    int32_t package = -2, l3 = -2;
    for (int i = 0; i < topology->pu_count; i++) {
        const struct topology_pu *pu = &topology->pus[i];
        if (pu->package != package) {
            package = pu->package;
            hwloc_obj_t object = topology_domain(topology, HWLOC_OBJ_PACKAGE, package);
            if (object) {
                printf("socket:%d  ", package);
                print_usable(topology, object->cpuset);
                putchar('\n');
            } else {
                printf("no socket\n");
            }
        }
        print_nodes_from(topology, i);
        if (pu->l3 != l3 || i == 0) {
            l3 = pu->l3;
            hwloc_obj_t cache = topology_domain(topology, HWLOC_OBJ_L3CACHE, l3);
            printf(cache ? "    l3:%d  " : "    no L3\n", l3);
            if (cache) {
                if (cache->attr->cache.size) {
                    print_bytes((double)cache->attr->cache.size);
                    printf(", ");
                }
                print_usable(topology, cache->cpuset);
                putchar('\n');
            }
        }
        if (pu->sibling == 0)
            print_core(topology, i);
    }
}

static void print_summary(const struct topology *topology)
{
    const struct {
        int count;
        const char *name;
    } counts[] = {
        {topology->core_count, "core"},
        {topology->pu_count, "hardware thread"},
        {topology_domain_count(topology, HWLOC_OBJ_PACKAGE), "socket"},
        {topology_domain_count(topology, HWLOC_OBJ_NUMANODE), "NUMA node"},
        {topology_domain_count(topology, HWLOC_OBJ_L3CACHE), "L3 domain"},
    };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        printf("%s%d %s%s", i ? ", " : "", counts[i].count, counts[i].name, counts[i].count == 1 ? "" : "s");
    printf("%s\n", topology->this_system ? "" : " (not this machine: planning only)");
    const int all = hwloc_bitmap_weight(hwloc_topology_get_topology_cpuset(topology->hwloc));
    if (all > topology->pu_count)
        printf("%d more hardware threads may not be used (affinity, cpuset or restriction)\n",
               all - topology->pu_count);
    if (topology->cpu_quota > 0)
        printf("CPU quota: %.2f CPUs by cgroup; --threads max is %d\n", topology->cpu_quota,
               topology_max_threads(topology));
    const char *warnings[8];
    const int count = topology_warnings(topology, warnings, 8);
    for (int i = 0; i < count; i++)
        printf("warning: %s\n", warnings[i]);
}

static int print_text(const struct topology *topology, const struct topo_options *options, struct error *error)
{
    struct placement placement;
    const char *reason;
    int code;
    if (options->place_count == 0) {
        print_summary(topology);
        putchar('\n');
        print_tree(topology);
        printf("\n%-12s %7s  CPUs in thread order (core:I: as above)\n", "placement", "threads");
    }
    for (int i = 0; (code = next_placement(topology, options, i, &placement, &reason, error)) == 0; i++) {
        const bool in_tree = options->place_count == 0 && strncmp(placement.name, "core:", 5) == 0;
        char *cpus = cpu_list_format(placement.cpus, placement.bound ? placement.threads : 0);
        const char *shown = placement.bound ? cpus : "not bound";
        if (!in_tree)
            printf("%-12s %7d  %s\n", placement.name, placement.threads, reason ? reason : shown);
        free(cpus);
        placement_release(&placement);
    }
    return code < 0 ? code : 0;
}

int command_topo(int argc, char **argv, struct error *error)
{
    struct topo_options options = {0};
    struct topology topology;
    int code = parse(argc, argv, &options, error);
    if (code)
        return code;
    if (options.help) {
        fputs(help, stdout);
        return output_flush(stdout, "output", error);
    }
    code = topology_load(options.source, options.restrict_list, &topology, error);
    if (code)
        return code;
    code = options.json ? print_json(&topology, &options, error) : print_text(&topology, &options, error);
    topology_release(&topology);
    return code ? code : output_flush(stdout, "output", error);
}
