/* SPDX-License-Identifier: Apache-2.0
 *
 * The machine as nested boxes, for the scaling section. Everything is taken from the topology that a context recorded:
 * sockets, NUMA nodes, L3 caches, cores and CPUs as sets of OS indices; a box stands in the smallest one that holds it.
 */
#include <hwloc.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_list.h"
#include "json_util.h"
#include "report_html.h"
#include "report_plot_scaling.h"

enum { PLACEMENTS = 12, CPUS_MOST = 4096 };

/* From the outermost: of two equal sets the one that stands first is outside. */
enum box_kind { BOX_SOCKET, BOX_NUMA, BOX_L3, BOX_CORE, BOX_KINDS };
static const char *const box_lists[BOX_KINDS] = {"sockets", "numa", "l3", "core_cpus"};
static const char *const box_classes[BOX_KINDS] = {"socket", "node", "cache", "core"};

struct box {
    enum box_kind kind;
    int index;
    hwloc_bitmap_t cpus;
    const json_t *json; /* the entry of its list */
    long parent;        /* -1: none */
};

struct machine {
    struct box *boxes; /* outer before inner */
    size_t count;
    hwloc_bitmap_t cpus;
    long *home; /* [CPUs] of each CPU's innermost box, -1: none */
    bool cores; /* which CPUs share a core is known */
};

static hwloc_bitmap_t set_of(const json_t *list)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    size_t i;
    json_t *cpu;
    json_array_foreach((json_t *)list, i, cpu)
    {
        const json_int_t os = json_is_integer(cpu) ? json_integer_value(cpu) : -1;
        if (os >= 0 && os <= CPU_LIST_MAX)
            hwloc_bitmap_set(set, (unsigned)os);
    }
    return set;
}

static int outer_first(const void *left, const void *right)
{
    const struct box *a = left, *b = right;
    const int weight = hwloc_bitmap_weight(a->cpus), other = hwloc_bitmap_weight(b->cpus);
    if (weight != other)
        return weight > other ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return a->index - b->index;
}

static void add_box(struct machine *machine, enum box_kind kind, int index, hwloc_bitmap_t cpus, const json_t *json)
{
    machine->boxes = realloc(machine->boxes, (machine->count + 1) * sizeof *machine->boxes);
    if (!machine->boxes)
        abort();
    machine->boxes[machine->count++] = (struct box){kind, index, cpus, json, -1};
}

/* The innermost box among the first `count` that holds the set. */
static long innermost(const struct machine *machine, size_t count, hwloc_const_bitmap_t cpus)
{
    for (size_t i = count; i-- > 0;)
        if (hwloc_bitmap_isincluded(cpus, machine->boxes[i].cpus))
            return (long)i;
    return -1;
}

static void add_boxes(struct machine *machine, const json_t *topology)
{
    machine->cores = json_is_array(json_object_get(topology, box_lists[BOX_CORE]));
    for (enum box_kind kind = 0; kind < BOX_KINDS; kind++) {
        size_t i;
        json_t *entry;
        json_array_foreach(json_object_get(topology, box_lists[kind]), i, entry)
        {
            hwloc_bitmap_t cpus = set_of(json_is_array(entry) ? entry : json_object_get(entry, "cpus"));
            if (hwloc_bitmap_iszero(cpus))
                hwloc_bitmap_free(cpus);
            else
                add_box(machine, kind, (int)i, cpus, entry);
        }
    }
    /* Older files do not tell which CPUs share a core; where each core has one that needs no telling. */
    const json_t *per_core = json_object_get(topology, "pus_per_core");
    if (!machine->cores && json_get_int(per_core, "max", 0) == 1) {
        int os;
        machine->cores = true;
        hwloc_bitmap_foreach_begin(os, machine->cpus) add_box(machine, BOX_CORE, os, hwloc_bitmap_alloc(), NULL);
        hwloc_bitmap_only(machine->boxes[machine->count - 1].cpus, (unsigned)os);
        hwloc_bitmap_foreach_end();
    }
}

static void machine_read(const json_t *topology, struct machine *machine)
{
    *machine = (struct machine){.cpus = set_of(json_object_get(topology, "allowed_pus"))};
    add_boxes(machine, topology);
    if (machine->count)
        qsort(machine->boxes, machine->count, sizeof *machine->boxes, outer_first);
    for (size_t i = 0; i < machine->count; i++)
        machine->boxes[i].parent = innermost(machine, i, machine->boxes[i].cpus);
    const int last = hwloc_bitmap_last(machine->cpus);
    machine->home = calloc((size_t)last + 2, sizeof *machine->home);
    hwloc_bitmap_t one = hwloc_bitmap_alloc();
    int os;
    hwloc_bitmap_foreach_begin(os, machine->cpus) hwloc_bitmap_only(one, (unsigned)os);
    machine->home[os] = innermost(machine, machine->count, one);
    hwloc_bitmap_foreach_end();
    hwloc_bitmap_free(one);
}

static void machine_release(struct machine *machine)
{
    for (size_t i = 0; i < machine->count; i++)
        hwloc_bitmap_free(machine->boxes[i].cpus);
    free(machine->boxes);
    free(machine->home);
    hwloc_bitmap_free(machine->cpus);
}

/* ---- drawing ---- */

static void put_bytes(FILE *page, const json_t *bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = json_number_value(bytes);
    int unit = 0;
    for (; value >= 1024 && unit < 4; unit++)
        value /= 1024;
    if (value > 0)
        html_format(page, " %.3g %s", value, units[unit]);
}

static void put_name(const struct box *box, FILE *page)
{
    fputs("<span>", page);
    if (box->kind == BOX_SOCKET) {
        html_format(page, "socket %d", box->index);
    } else if (box->kind == BOX_NUMA) {
        html_format(page, "NUMA node %lld", (long long)json_get_int(box->json, "node", box->index));
        put_bytes(page, json_object_get(box->json, "memory_bytes"));
    } else {
        fputs("L3", page);
        put_bytes(page, json_object_get(box->json, "size"));
    }
    fputs("</span>", page);
}

/* A box, or all of the machine (-1), with what stands in it. marked: NULL: CPUs with their numbers; else small, with
 * the CPUs of the set filled. */
static void put_box(const struct machine *machine, long index, hwloc_const_bitmap_t marked, FILE *page)
{
    const struct box *box = index >= 0 ? &machine->boxes[index] : NULL;
    int os;
    if (box) {
        fprintf(page, "<div class=\"box %s\">", box_classes[box->kind]);
        if (!marked && box->kind != BOX_CORE)
            put_name(box, page);
    }
    for (size_t i = (size_t)(index + 1); i < machine->count; i++)
        if (machine->boxes[i].parent == index)
            put_box(machine, (long)i, marked, page);
    hwloc_bitmap_foreach_begin(os, box ? box->cpus : machine->cpus)
    {
        if (!hwloc_bitmap_isset(machine->cpus, (unsigned)os) || machine->home[os] != index)
            continue;
        if (marked)
            fputs(hwloc_bitmap_isset(marked, (unsigned)os) ? "<b></b>" : "<i></i>", page);
        else
            fprintf(page, "<i>%d</i>", os);
    }
    hwloc_bitmap_foreach_end();
    if (box)
        fputs("</div>", page);
}

static void put_machine(const struct machine *machine, hwloc_const_bitmap_t marked, const char *label, FILE *page)
{
    fputs(marked ? "<div class=\"machine small\" role=\"img\" aria-label=\""
                 : "<div class=\"machine\" role=\"img\" "
                   "aria-label=\"",
          page);
    html_text(page, label);
    fputs("\">", page);
    put_box(machine, -1, marked, page);
    fputs("</div>\n", page);
}

/* ---- placements ---- */

static void placement_key(const struct report *report, const struct report_record *record, const void *context,
                          FILE *key)
{
    static const char *const fields[] = {"placement", "threads", NULL};
    const char *machine = context;
    if (strcmp(report->sources[record->source].machine, machine) == 0 &&
        json_array_size(json_object_get(record->json, "cpus")) > 0)
        plot_key_fields(record->json, fields, key);
}

static int narrower(const void *left, const void *right)
{
    const struct plot_group *a = left, *b = right;
    return a->count != b->count ? a->count < b->count ? -1 : 1 : strcmp(a->key, b->key);
}

/* Puts those of fewer threads first. */
static void order_placements(const struct report *report, struct plot_group *groups, size_t count)
{
    for (size_t g = 0; g < count; g++) /* of a group its first record alone is needed: its count tells the threads */
        groups[g].count = (size_t)json_get_int(report->records[groups[g].records[0]].json, "threads", 0);
    if (count)
        qsort(groups, count, sizeof *groups, narrower);
}

static void put_placements(const struct report *report, const struct machine *machine, const char *key, FILE *page)
{
    size_t count;
    struct plot_group *groups = plot_groups(report, NULL, 0, placement_key, key, &count);
    order_placements(report, groups, count);
    fputs("<div class=\"panels\">", page);
    for (size_t g = 0; g < count && g < PLACEMENTS; g++) {
        const struct report_record *record = &report->records[groups[g].records[0]];
        hwloc_bitmap_t marked = set_of(json_object_get(record->json, "cpus"));
        char *where = plot_where(record), *list = NULL, *label;
        hwloc_bitmap_list_asprintf(&list, marked);
        if (asprintf(&label, "%s: CPU %s", where, list ? list : "?") < 0)
            abort();
        fputs("<div class=\"placement\"><h4>", page);
        html_text(page, label);
        fputs("</h4>", page);
        put_machine(machine, marked, label, page);
        fputs("</div>\n", page);
        hwloc_bitmap_free(marked);
        free(where);
        free(list);
        free(label);
    }
    fputs("</div>\n", page);
    if (count > PLACEMENTS)
        html_format(page, "%zu placements on more threads are not drawn; the table of all records has their CPUs.",
                    count - PLACEMENTS);
    plot_groups_release(groups, count);
}

static void put_source(const struct report *report, const struct report_source *source, FILE *page)
{
    const json_t *topology = json_object_get(source->context, "topology");
    const char *model = json_get_string(source->context, "cpu_model", "?");
    struct machine machine;
    machine_read(topology, &machine);
    const int cpus = hwloc_bitmap_weight(machine.cpus);
    fputs("<figure class=\"plot\"><h3>", page);
    html_format(page, "The machine: %s", model);
    if (report->source_count > 1) /* models may be alike */
        html_format(page, " (%s)", json_get_string(source->context, "host", "?"));
    fputs("</h3>\n", page);
    if (cpus <= 0 || cpus > CPUS_MOST) {
        html_format(page, "The file tells of %d CPUs, so the machine is not drawn.", cpus < 0 ? 0 : cpus);
    } else {
        put_machine(&machine, NULL, model, page);
        put_placements(report, &machine, source->machine, page);
        fputs("<figcaption>Sockets, NUMA nodes, L3 caches, cores and CPUs (by their OS numbers) as hwloc tells of "
              "them, cut "
              "to what the run might use; below, filled, the CPUs that the threads of each placement were seen on.",
              page);
        if (!machine.cores)
            fputs(" Which CPUs share a core is not in this file.", page);
        fputs("</figcaption>", page);
    }
    fputs("</figure>\n", page);
    machine_release(&machine);
}

void report_plot_topology(const struct report *report, FILE *page)
{
    for (size_t s = 0; s < report->source_count; s++) {
        bool seen = false;
        for (size_t before = 0; before < s; before++)
            seen = seen || strcmp(report->sources[before].machine, report->sources[s].machine) == 0;
        if (!seen)
            put_source(report, &report->sources[s], page);
    }
}
