/* SPDX-License-Identifier: Apache-2.0
 *
 * The report's headline, first part: the machines, and what was run on them.
 */
#include <stdlib.h>
#include <string.h>

#include "json_util.h"
#include "report_html.h"
#include "report_parts.h"

/* "2 cores, 4 hardware threads, 1 NUMA node", as far as it is known. malloc'd. */
static char *topology_text(const json_t *topology)
{
    static const struct {
        const char *key, *name;
    } counts[] = {{"packages", "socket"},
                  {"numa_nodes", "NUMA node"},
                  {"l3_domains", "L3 cache"},
                  {"cores", "core"},
                  {"pus", "hardware thread"}};
    char *text = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&text, &length);
    if (!file)
        abort();
    const char *gap = "";
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        int64_t count = json_get_int(topology, counts[i].key, -1);
        if (count < 0)
            continue;
        fputs(gap, file);
        report_count((size_t)count, counts[i].name, file);
        gap = ", ";
    }
    fclose(file);
    return text;
}

static void put_caches(const json_t *topology, FILE *page)
{
    size_t index;
    const json_t *cache;
    const char *gap = "";
    json_array_foreach((json_t *)json_object_get(topology, "caches"), index, cache)
    {
        const char *type = json_get_string(cache, "type", "");
        int64_t level = json_get_int(cache, "level", -1), size = json_get_int(cache, "size", -1);
        if (level < 0 || size < 0 || strcmp(type, "instruction") == 0)
            continue;
        bool is_large = size % (1 << 20) == 0;
        html_format(page, "%sL%lld %lld × %lld %s", gap, (long long)level, (long long)json_get_int(cache, "count", 1),
                    (long long)(is_large ? size >> 20 : size >> 10), is_large ? "MiB" : "KiB");
        gap = ", ";
    }
    if (!*gap)
        fputs("unknown", page);
}

/* The instruction sets that CPU and system both allow. */
static void put_isa(const json_t *isa, FILE *page)
{
    const char *name, *gap = "";
    const json_t *known;
    json_object_foreach((json_t *)isa, name, known)
    {
        if (!json_is_true(json_object_get(known, "cpu")) || !json_is_true(json_object_get(known, "os")))
            continue;
        html_format(page, "%s%s", gap, name);
        gap = ", ";
    }
    if (!*gap)
        fputs("none of AVX2 and beyond", page);
}

static void put_fact(FILE *page, const char *name, const char *value)
{
    fprintf(page, "\n<div><dt>%s</dt><dd>", name);
    html_text(page, value && value[0] ? value : "unknown");
    fputs("</dd></div>", page);
}

static void put_build(const struct report_source *source, FILE *page)
{
    bool is_known = strcmp(source->build, "?") != 0;
    bool is_dirty = strchr(source->build, '+') != NULL;
    html_format(page, "%.12s", is_known ? source->build : "unknown commit");
    fputs(is_dirty ? " with changes of its own" : "", page);
    html_format(page, ", %s", json_get_string(source->context, "compiler", "unknown compiler"));
}

static void put_machine(const struct report_source *source, FILE *page)
{
    const json_t *context = source->context, *topology = json_object_get(context, "topology");
    char memory[64];
    int64_t bytes = json_get_int(context, "memory_bytes", -1);
    snprintf(memory, sizeof memory, "%.1f GB", (double)bytes / 1e9);
    char *counts = topology_text(topology);
    fputs("<dl class=\"facts\">", page);
    put_fact(page, "CPU", json_get_string(context, "cpu_model", NULL));
    put_fact(page, "Topology", counts);
    fputs("\n<div><dt>Caches</dt><dd>", page);
    put_caches(topology, page);
    fputs("</dd></div>\n<div><dt>Instruction sets</dt><dd>", page);
    put_isa(json_object_get(context, "isa"), page);
    fputs("</dd></div>", page);
    put_fact(page, "Memory", bytes >= 0 ? memory : NULL);
    put_fact(page, "Host", json_get_string(context, "host", NULL));
    const char *hypervisor = json_get_string(context, "hypervisor", NULL);
    put_fact(page, "Runs on", hypervisor ? hypervisor : "the bare machine, as far as it tells");
    put_fact(page, "Linux", json_get_string(context, "kernel_release", NULL));
    fputs("\n<div><dt>attnbench</dt><dd>", page);
    put_build(source, page);
    fputs("</dd></div>\n</dl>\n", page);
    free(counts);
}

static void put_machines(const struct report *report, FILE *page)
{
    static const char *const titles[] = {"source",     "file", "CPU",       "topology",
                                         "#memory GB", "host", "attnbench", "#records"};
    html_table_begin(page, "Where the results come from", titles, sizeof titles / sizeof titles[0]);
    for (size_t i = 0; i < report->source_count; i++) {
        const struct report_source *source = &report->sources[i];
        const json_t *context = source->context;
        char figure[64];
        char *counts = topology_text(json_object_get(context, "topology"));
        html_row(page);
        html_cell(page, source->label);
        html_cell(page, source->path);
        html_cell(page, json_get_string(context, "cpu_model", "unknown"));
        html_cell(page, counts);
        snprintf(figure, sizeof figure, "%.1f", (double)json_get_int(context, "memory_bytes", 0) / 1e9);
        html_figure(page, json_get_int(context, "memory_bytes", -1) >= 0 ? figure : "-");
        html_cell(page, json_get_string(context, "host", "unknown"));
        fputs("<td>", page);
        put_build(source, page);
        snprintf(figure, sizeof figure, "%zu", source->records);
        html_figure(page, figure);
        free(counts);
    }
    html_table_end(page);
}

static void put_counts(const struct report *report, FILE *page)
{
    size_t counts[RECORD_STATUS_COUNT] = {0};
    for (size_t i = 0; i < report->record_count; i++)
        counts[report->records[i].status]++;
    fputs("<p>", page);
    report_count(report->record_count, "point", page);
    fputs(" of ", page);
    report_count(report->kernel_count, "kernel", page);
    fputs(" on ", page);
    report_count(report->problem_count, "problem", page);
    fprintf(page, ": %zu ok, %zu skipped, %zu wrong, %zu failed.</p>\n", counts[RECORD_OK], counts[RECORD_SKIPPED],
            counts[RECORD_WRONG], counts[RECORD_FAILED]);
}

void report_portrait(const struct report *report, FILE *page)
{
    if (report->source_count == 1)
        put_machine(&report->sources[0], page);
    else
        put_machines(report, page);
    put_counts(report, page);
    for (size_t i = 0; i < report->source_count; i++) {
        const json_t *context = report->sources[i].context;
        const char *config = json_get_string(context, "config", NULL);
        fputs("<p class=\"run\">", page);
        if (report->source_count > 1)
            html_format(page, "%s: ", report->sources[i].label);
        if (config)
            html_format(page, "config %s, ", config);
        html_format(page, "%s, seed %lld.", json_get_string(context, "time_utc", "at an unknown time"),
                    (long long)json_get_int(context, "seed", 0));
        fputs("</p>\n", page);
    }
}
