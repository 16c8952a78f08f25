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
#include "topo_tree.h"

static const char help[] = "Usage: attnbench topo [--topology FILE|SYNTHETIC] [--restrict LIST]\n"
                           "                      [--place EXPR]... [--threads N] [--json]\n"
                           "\n"
                           "Shows the packages, NUMA nodes, L3 domains and cores that may be used, and\n"
                           "which CPUs each placement takes. CPUs are numbered as the operating system\n"
                           "does, all else by hwloc's logical order among what may be used.\n"
                           "\n"
                           "  --topology SOURCE  another machine: an XML file of lstopo, or a synthetic\n"
                           "                     string such as 'pack:2 numa:2 l3:2 core:4 pu:2'; default:\n"
                           "                     this machine\n"
                           "  --restrict LIST    only these CPUs, such as 0,2-5\n"
                           "  --place EXPR       what this placement resolves to (repeatable): a name of\n"
                           "                     list placements, ladder (each of its steps), or an\n"
                           "                     expression of LIKWID such as 0,2-5 or S0:0-3\n"
                           "  --threads N        only the first N threads of each placement; max: as run\n"
                           "                     --threads max\n"
                           "  --json             the same as one JSON object\n"
                           "  --help             this text\n"
                           "\n"
                           "Exit codes: 0 ok, 2 usage, no such placement, or a topology that can't be\n"
                           "loaded.\n";

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

/* The names to show: those asked for with the ladder written out, else all named placements and what the ladder has
 * besides. Interned names in *names, malloc'd. Returns how many, or -errno. */
static int names_to_show(const struct topology *topology, const struct topo_options *options, const char ***names,
                         struct error *error)
{
    const char *ladder[LADDER_MAX];
    const int steps = placement_ladder(topology, ladder, error);
    int room = options->place_count, count = 0;
    if (steps < 0)
        return steps;
    while (options->place_count == 0 && placement_name(topology, room))
        room++;
    *names = calloc((size_t)(room + 1) * LADDER_MAX, sizeof **names);
    if (!*names)
        return error_system(error, ENOMEM, "placements");
    for (int i = 0; i < options->place_count; i++) {
        const bool series = strcmp(options->places[i], LADDER) == 0;
        for (int s = 0; s < (series ? steps : 1); s++)
            (*names)[count++] = series ? ladder[s] : options->places[i];
    }
    for (int i = 0; options->place_count == 0 && i < room; i++)
        (*names)[count++] = placement_name(topology, i);
    for (int s = 0; options->place_count == 0 && s < steps; s++) {
        bool known = false;
        for (int i = 0; i < room; i++)
            known |= strcmp((*names)[i], ladder[s]) == 0;
        if (!known)
            (*names)[count++] = ladder[s];
    }
    return count;
}

/* One that has fewer CPUs than --threads comes with 0 threads and the reason, as its points would be skipped. */
static int resolve(const struct topology *topology, const struct topo_options *options, const char *name,
                   struct placement *placement, const char **reason, struct error *error)
{
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

static json_t *entry_of(const struct placement *placement, const char *reason)
{
    json_t *cpus = json_array();
    for (int t = 0; placement->bound && t < placement->threads; t++)
        json_array_append_new(cpus, json_integer(placement->cpus[t]));
    json_t *entry = json_pack("{s:s, s:i, s:o}", "name", placement->name, "threads", placement->threads, "cpus", cpus);
    if (reason)
        json_object_set_new(entry, "reason", json_string(reason));
    if (placement->warning)
        json_object_set_new(entry, "warning", json_string(placement->warning));
    return entry;
}

/* Before anything is printed: a refusal stands alone. */
static int check(const struct topology *topology, const struct topo_options *options, const char **names, int count,
                 struct error *error)
{
    int code = 0;
    for (int i = 0; i < count && code == 0; i++) {
        struct placement placement;
        const char *reason;
        code = resolve(topology, options, names[i], &placement, &reason, error);
        if (code == 0)
            placement_release(&placement);
    }
    return code;
}

/* Adds each placement to list (--json), or prints its line. */
static int show(const struct topology *topology, const struct topo_options *options, const char **names, int count,
                json_t *list, struct error *error)
{
    for (int i = 0; i < count; i++) {
        struct placement placement;
        const char *reason;
        const int code = resolve(topology, options, names[i], &placement, &reason, error);
        if (code)
            return code;
        if (placement.warning)
            fprintf(stderr, "attnbench topo: warning: %s\n", placement.warning);
        if (list) {
            json_array_append_new(list, entry_of(&placement, reason));
        } else if (options->place_count > 0 || strncmp(names[i], "core:", 5) != 0 || strchr(names[i], '/')) {
            char *cpus = cpu_list_format(placement.cpus, placement.bound ? placement.threads : 0);
            const char *shown = placement.bound ? cpus : "not bound";
            printf("%-14s %7d  %s\n", placement.name, placement.threads, reason ? reason : shown);
            free(cpus);
        }
        placement_release(&placement);
    }
    return 0;
}

static json_t *ladder_to_json(const struct topology *topology)
{
    const char *ladder[LADDER_MAX];
    struct error error;
    const int steps = placement_ladder(topology, ladder, &error);
    json_t *list = json_array();
    for (int s = 0; s < steps; s++)
        json_array_append_new(list, json_string(ladder[s]));
    return list;
}

static int print_json(const struct topology *topology, const struct topo_options *options, const char **names,
                      int count, struct error *error)
{
    json_t *list = json_array();
    const int code = show(topology, options, names, count, list, error);
    if (code == 0) {
        json_t *document = topology_to_json(topology);
        json_object_set(document, "placements", list);
        json_object_set_new(document, "ladder", ladder_to_json(topology));
        json_dumpf(document, stdout, JSON_INDENT(2));
        putchar('\n');
        json_decref(document);
    }
    json_decref(list);
    return code;
}

static int print_text(const struct topology *topology, const struct topo_options *options, const char **names,
                      int count, struct error *error)
{
    if (options->place_count > 0)
        return show(topology, options, names, count, NULL, error);
    topo_tree_print(stdout, topology);
    printf("\n%-14s %7s  CPUs in thread order (core:I: as above)\n", "placement", "threads");
    const int code = show(topology, options, names, count, NULL, error);
    const char *ladder[LADDER_MAX];
    const int steps = code ? 0 : placement_ladder(topology, ladder, error);
    for (int s = 0; s < steps; s++)
        printf("%s%s", s ? ", " : "\nladder: ", ladder[s]);
    printf("%s", steps > 0 ? "\n" : "");
    return code;
}

/* Where hwloc is wrong, whoever reads only the placements must know it too. */
static void print_warnings(const struct topology *topology)
{
    const char *warnings[TOPOLOGY_WARNINGS_MAX];
    const int count = topology_warnings(topology, warnings, TOPOLOGY_WARNINGS_MAX);
    for (int i = 0; i < count; i++)
        fprintf(stderr, "attnbench topo: warning: %s\n", warnings[i]);
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
    const char **names = NULL;
    const int count = names_to_show(&topology, &options, &names, error);
    code = count < 0 ? count : check(&topology, &options, names, count, error);
    if (code == 0) {
        print_warnings(&topology);
        code = options.json ? print_json(&topology, &options, names, count, error)
                            : print_text(&topology, &options, names, count, error);
    }
    free(names);
    topology_release(&topology);
    return code ? code : output_flush(stdout, "output", error);
}
