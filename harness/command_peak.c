/* SPDX-License-Identifier: Apache-2.0
 *
 * attnbench peak: what this machine reaches at best, per placement and thread count.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "arguments.h"
#include "commands.h"
#include "crew.h"
#include "environment.h"
#include "intern.h"
#include "json_util.h"
#include "key_readers.h"
#include "levels.h"
#include "memory_policy.h"
#include "output.h"
#include "peak_table.h"
#include "placement.h"

static const char help[] = "Usage: attnbench peak [--place PLACE,...] [--threads N,...] [--mem POLICY]\n"
                           "                      [--quick] [--json]\n"
                           "\n"
                           "Measures this machine's ceilings: multiply+add per instruction set and element\n"
                           "type, exp and tanh, read, write and copy bandwidth and load latency of each\n"
                           "cache and of memory, fork-join and barrier of the thread team, and bandwidth\n"
                           "from each NUMA node's CPUs to each node's memory.\n"
                           "\n"
                           "  --place PLACE    where threads are bound: a name, ladder, or CPUs 0,2-5\n"
                           "                   (compact; list placements)\n"
                           "  --threads N,max  how many threads (1 and all of the placement; ladder: all)\n"
                           "  --mem POLICY     memory on NUMA nodes: local (first touch), interleave,\n"
                           "                   node:I (local)\n"
                           "  --quick          fewer and shorter repeats\n"
                           "  --json           everything as one JSON object; units stand in the names\n"
                           "  --color WHEN     auto, always or never\n"
                           "  --help           this text\n"
                           "\n"
                           "Figures are medians of repeats; +-% is the median deviation from it. Rates are\n"
                           "of all threads together: Gop/s counts multiplications and additions, a copy\n"
                           "counts bytes read and bytes written. Buffers: half of each cache, four times\n"
                           "the last one for dram. Latency is one thread's, alone, of dependent loads.\n"
                           "Exit codes: 0 ok, 1 a placement failed, 2 usage, 77 nothing could be measured\n"
                           "here.\n";

enum { FLAG_PLACE = ARGUMENTS_LONG_ONLY, FLAG_THREADS, FLAG_MEM, FLAG_QUICK, FLAG_JSON, FLAG_COLOR, FLAG_HELP };
/* Silence of a worker that is taken for a hang: linking a chain through a gigabyte takes seconds. */
enum { SILENCE_MS = 120000 };

static const double lost_share = 0.7; /* of memory's latency */

struct peak_options {
    struct value_list places, threads; /* threads: a number, THREADS_MAX, or 0: all of the placement */
    const char *mem;                   /* NULL: local */
    bool threads_given, quick, json, help;
    enum color_mode color;
};

struct peak {
    const struct topology *topology;
    const struct peak_options *options;
    struct crew crew;
    json_t *document;
    int measured, failed;
};

static int take_flag(int flag, const char *value, const struct arguments *arguments, struct peak_options *options,
                     struct error *error)
{
    struct value_list policy = {0};
    int rc = 0;
    switch (flag) {
    case FLAG_PLACE:
        return key_read(KEY_PLACE, value, "--place", &options->places, error);
    case FLAG_THREADS:
        options->threads_given = true;
        return key_read(KEY_THREADS, value, "--threads", &options->threads, error);
    case FLAG_MEM:
        rc = key_read(KEY_MEM, value, "--mem", &policy, error);
        if (rc == 0 && policy.count > 1)
            rc = error_usage(error, "--mem %.100s: one policy at a time", value);
        if (rc == 0)
            options->mem = strcmp(policy.items[0].text, "local") == 0 ? NULL : policy.items[0].text;
        value_list_release(&policy);
        return rc;
    case FLAG_QUICK:
        options->quick = true;
        return 0;
    case FLAG_JSON:
        options->json = true;
        return 0;
    case FLAG_COLOR:
        return arguments_color(arguments, value, &options->color, error);
    default:
        options->help = true;
        return 0;
    }
}

static int parse(int argc, char **argv, struct peak_options *options, struct error *error)
{
    static const struct option long_flags[] = {
        {"place", required_argument, NULL, FLAG_PLACE}, {"threads", required_argument, NULL, FLAG_THREADS},
        {"mem", required_argument, NULL, FLAG_MEM},     {"quick", no_argument, NULL, FLAG_QUICK},
        {"json", no_argument, NULL, FLAG_JSON},         {"color", optional_argument, NULL, FLAG_COLOR},
        {"help", no_argument, NULL, FLAG_HELP},         {0},
    };
    struct arguments arguments = {argc, argv, ":h", long_flags};
    const char *value;
    int flag = arguments_next(&arguments, true, &value, error), rc = 0;
    for (; flag > 0 && rc == 0; flag = rc ? rc : arguments_next(&arguments, false, &value, error))
        rc = take_flag(flag, value, &arguments, options, error);
    if (rc || flag < 0)
        return rc ? rc : flag;
    if (optind < argc && !options->help)
        return error_usage(error, "what is '%.200s'? (attnbench peak takes flags alone)", argv[optind]);
    if (!options->places.count)
        rc = value_list_add(&options->places, (struct value){.text = intern("compact"), .where = "--place"}, error);
    for (int64_t threads = 1; threads >= 0 && rc == 0 && !options->threads_given; threads--)
        rc = value_list_add(&options->threads, (struct value){.integer = threads, .where = "--threads"}, error);
    return rc;
}

/* Asks a worker and takes its "peak" events into entry: "memory" and "node" grow arrays, other parts are set. */
static int converse(struct crew_worker *worker, json_t *request, json_t *entry, struct error *error)
{
    int rc = child_send(&worker->child, request);
    while (rc == 0) {
        json_t *event = NULL;
        rc = lines_read(&worker->child.from, SILENCE_MS, &event);
        if (rc == -EINTR) {
            rc = 0;
            continue;
        }
        if (rc < 0)
            break;
        const char *kind = json_get_string(event, "event", ""), *part = json_get_string(event, "part", "");
        const bool done = strcmp(kind, "done") == 0;
        json_t *result = json_object_get(event, "result");
        if (strcmp(kind, "error") == 0)
            rc = error_machine(error, "%s", json_get_string(event, "text", "the worker failed"));
        else if (strcmp(kind, "peak") == 0 && (strcmp(part, "memory") == 0 || strcmp(part, "node") == 0))
            json_array_append(json_object_get(entry, "memory"), result);
        else if (strcmp(kind, "peak") == 0)
            json_object_set(entry, part, result);
        json_decref(event);
        if (done || rc == -ENOTSUP)
            return rc;
    }
    if (rc == -ETIMEDOUT) {
        crew_bury(worker, true);
        return error_system(error, ETIMEDOUT, "the worker was silent for %d s and was killed", SILENCE_MS / 1000);
    }
    return error_machine(error, "the worker process was %s", crew_bury(worker, false));
}

/* One request on the CPUs of a placement by a fresh worker, with the levels of those CPUs. */
static int measure(struct peak *peak, const struct point *point, const char *op, json_t *nodes, json_t *entry,
                   struct error *error)
{
    struct level levels[LEVELS_MOST];
    const int count = levels_find(peak->topology, point->cpus, point->threads, levels);
    if (count < 0) {
        json_decref(nodes);
        return error_system(error, -count, "levels of %d threads", point->threads);
    }
    json_t *request = json_pack("{s:s,s:i,s:f}", "op", op, "repeats", peak->options->quick ? 3 : 11, "clocked_ns",
                                peak->options->quick ? 5e5 : 2e6);
    json_t *list = levels_to_json(levels, count, point->threads);
    if (nodes) {
        json_object_set_new(request, "nodes", nodes);
        json_object_set(request, "level", json_array_get(list, (size_t)count - 1));
        json_decref(list);
    } else {
        json_object_set_new(request, "levels", list);
    }
    levels_release(levels, count);
    struct crew_worker *worker = crew_worker(&peak->crew, point, error);
    if (!worker) {
        json_decref(request);
        return -ENOTSUP;
    }
    int rc = converse(worker, request, entry, error);
    if (worker->child.pid > 0)
        crew_bury(worker, true);
    return rc;
}

static json_t *cpus_to_json(const struct point *point)
{
    json_t *cpus = json_array();
    for (int t = 0; point->cpus && t < point->threads; t++)
        json_array_append_new(cpus, json_integer(point->cpus[t]));
    return cpus;
}

static json_t *entry_create(const struct point *point)
{
    return json_pack("{s:s,s:i,s:o,s:s,s:s,s:n,s:n,s:n,s:[],s:n}", "placement", point->placement, "threads",
                     point->threads, "cpus", cpus_to_json(point), "mem", point->mem ? point->mem : "local", "status",
                     "ok", "reason", "compute", "functions", "memory", "team");
}

static void set_status(json_t *entry, const char *status, const char *reason)
{
    json_object_set_new(entry, "status", json_string(status));
    json_object_set_new(entry, "reason", json_string(reason));
}

/* A cache that answers about as late as memory is not this process's: neighbours use it, or there is less of it than
 * the system tells (shared hosts do both). */
static void note_lost_caches(json_t *entry)
{
    json_t *levels = json_object_get(entry, "memory"), *level;
    const size_t last = json_array_size(levels) - 1;
    const double memory = json_get_number(json_object_get(json_array_get(levels, last), "latency_ns"), "median", 0);
    size_t i;
    json_array_foreach(levels, i, level)
    {
        const double own = json_get_number(json_object_get(level, "latency_ns"), "median", 0);
        const bool lost = i < last && memory > 0 && own > lost_share * memory;
        json_object_set_new(level, "note",
                            lost ? json_string("loads take about as long as from memory: "
                                               "little of this cache is ours")
                                 : json_null());
    }
}

static bool is_known(const json_t *entries, const char *placement, int threads)
{
    size_t i;
    json_t *entry;
    json_array_foreach(entries, i, entry)
    {
        if (strcmp(json_get_string(entry, "placement", ""), placement) == 0 &&
            json_get_int(entry, "threads", 0) == threads)
            return true;
    }
    return false;
}

/* Measures one placement at one width, once. -errno: the placement means nothing here. */
static int take_placement(struct peak *peak, const char *name, int64_t asked, struct error *error)
{
    json_t *entries = json_object_get(peak->document, "placements");
    struct point point = {.placement = intern(name), .mem = peak->options->mem};
    struct placement placement = {0};
    struct error why;
    point.threads = asked == THREADS_MAX ? topology_max_threads(peak->topology) : (int)asked;
    int rc = placement_resolve(peak->topology, name, point.threads, &placement, error);
    if (rc < 0 && rc != -ERANGE)
        return error_prefix(error, rc, "--place");
    if (rc == 0) {
        point.threads = placement.threads;
        point.cpus = placement.cpus;
    }
    if (is_known(entries, point.placement, point.threads)) {
        placement_release(&placement);
        return 0;
    }
    json_t *entry = entry_create(&point);
    const char *unbindable = NULL;
    memory_policy_check(peak->topology, point.mem, &unbindable, &why);
    if (rc == -ERANGE || unbindable) {
        set_status(entry, "skipped", unbindable ? unbindable : error->text);
    } else if (measure(peak, &point, "peak", NULL, entry, &why) < 0) {
        set_status(entry, "failed", why.text);
        peak->failed++;
    } else {
        note_lost_caches(entry);
        peak->measured++;
    }
    json_array_append_new(entries, entry);
    fprintf(stderr, "%s, %d thread%s: %s\n", name, point.threads, point.threads == 1 ? "" : "s",
            json_get_string(entry, "status", ""));
    placement_release(&placement);
    return 0;
}

/* Cores of a NUMA node, as many as may run at once. */
static int node_threads(const struct topology *topology, int node)
{
    int cores = 0;
    for (int i = 0; i < topology->pu_count; i++)
        cores += topology->pus[i].numa == node && topology->pus[i].sibling == 0;
    const int most = topology_max_threads(topology);
    return cores > most ? most : cores;
}

/* From the CPUs of each NUMA node to the memory of each: rows of the document's "nodes". Nodes without cores of their
 * own are columns alone. */
static void take_nodes(struct peak *peak)
{
    json_t *rows = json_object_get(peak->document, "nodes");
    hwloc_obj_t node;
    for (int n = 0; (node = topology_domain(peak->topology, HWLOC_OBJ_NUMANODE, n)); n++) {
        const int threads = node_threads(peak->topology, n);
        struct point point = {.placement = intern_format("numa:%d", n)};
        struct placement placement = {0};
        struct error why;
        const char *unbindable = NULL;
        if (threads == 0)
            continue;
        int rc = placement_resolve(peak->topology, point.placement, threads, &placement, &why);
        point.threads = placement.threads;
        point.cpus = placement.cpus;
        if (rc == 0)
            rc = memory_policy_check(peak->topology, "node:0", &unbindable, &why);
        json_t *row = json_pack("{s:i,s:s,s:i,s:o,s:n,s:[]}", "node", (int)node->os_index, "placement", point.placement,
                                "threads", point.threads, "cpus", cpus_to_json(&point), "reason", "memory");
        json_t *memory_nodes = json_array();
        hwloc_obj_t memory;
        for (int m = 0; (memory = memory_node(peak->topology, m)); m++)
            json_array_append_new(memory_nodes, json_integer(memory->os_index));
        if (rc == 0 && !unbindable)
            rc = measure(peak, &point, "peak_nodes", json_incref(memory_nodes), row, &why);
        if (rc < 0 || unbindable)
            json_object_set_new(row, "reason", json_string(unbindable ? unbindable : why.text));
        json_decref(memory_nodes);
        json_array_append_new(rows, row);
        placement_release(&placement);
        fprintf(stderr, "memory from the CPUs of NUMA node %u: %s\n", node->os_index,
                json_get_string(row, "reason", "ok"));
    }
}

static json_t *document_create(const struct topology *topology)
{
    time_t now = time(NULL);
    struct tm utc;
    char stamp[32];
    gmtime_r(&now, &utc);
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return json_pack("{s:s,s:s,s:o,s:[],s:[]}", "schema", "attnbench.peak/1", "time_utc", stamp, "machine",
                     environment_context(topology), "placements", "nodes");
}

static int take_widths(struct peak *peak, const char *name, struct error *error)
{
    int rc = 0;
    for (size_t t = 0; t < peak->options->threads.count && rc == 0; t++)
        rc = take_placement(peak, name, peak->options->threads.items[t].integer, error);
    return rc;
}

/* Each step of the ladder with all of its threads, unless --threads asks for others. */
static int take_ladder(struct peak *peak, struct error *error)
{
    const char *names[LADDER_MAX];
    int count = placement_ladder(peak->topology, names, error), rc = count < 0 ? count : 0;
    for (int n = 0; n < count && rc == 0; n++)
        rc = peak->options->threads_given ? take_widths(peak, names[n], error)
                                          : take_placement(peak, names[n], 0, error);
    return rc;
}

static int take_all(struct peak *peak, struct error *error)
{
    const struct peak_options *options = peak->options;
    const char *unbindable;
    int rc = memory_policy_check(peak->topology, options->mem, &unbindable, error);
    for (size_t p = 0; p < options->places.count && rc == 0; p++)
        rc = strcmp(options->places.items[p].text, LADDER) == 0
                 ? take_ladder(peak, error)
                 : take_widths(peak, options->places.items[p].text, error);
    if (rc < 0)
        return rc;
    if (peak->measured)
        take_nodes(peak);
    if (options->json) {
        json_dumpf(peak->document, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
        putchar('\n');
    } else {
        peak_table_print(stdout, peak->document, color_wanted(options->color, stdout));
    }
    rc = output_flush(stdout, "output", error);
    if (rc < 0)
        return rc;
    return peak->failed ? EXIT_WRONG : peak->measured ? EXIT_OK : EXIT_NOTHING_RAN;
}

int command_peak(int argc, char **argv, struct error *error)
{
    struct peak_options options = {.color = COLOR_AUTO};
    struct topology topology = {0};
    struct peak peak = {.topology = &topology, .options = &options, .crew = {.exchange = {.segment = -1}}};
    int rc = parse(argc, argv, &options, error);
    if (rc == 0 && options.help) {
        fputs(help, stdout);
        rc = output_flush(stdout, "output", error);
        goto cleanup;
    }
    if (rc == 0)
        rc = topology_load(NULL, NULL, &topology, error);
    if (rc == 0 && !topology.this_system)
        rc = error_usage(error, "HWLOC_XMLFILE, HWLOC_SYNTHETIC: measuring on another machine's topology is refused");
    if (rc == 0)
        rc = crew_create(&topology, &peak.crew, error);
    if (rc == 0) {
        peak.document = document_create(&topology);
        rc = take_all(&peak, error);
        crew_release(&peak.crew);
    }
cleanup:
    json_decref(peak.document);
    topology_release(&topology);
    value_list_release(&options.places);
    value_list_release(&options.threads);
    return rc;
}
