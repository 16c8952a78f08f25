/* SPDX-License-Identifier: Apache-2.0
 *
 * Results as GitHub Markdown; see export.h.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "export.h"
#include "json_util.h"
#include "machines.h"
#include "output.h"
#include "record_text.h"

void export_markdown_text(FILE *file, const char *text)
{
    for (; *text; text++) {
        if (*text == '&')
            fputs("&amp;", file);
        else if (*text == '<')
            fputs("&lt;", file);
        else if (strchr("\\|`*_[]#~", *text))
            fprintf(file, "\\%c", *text);
        else
            fputc((unsigned char)*text < ' ' ? ' ' : *text, file);
    }
}

static void put_item(FILE *file, const char *name, const char *value)
{
    fprintf(file, "| %s | ", name);
    export_markdown_text(file, value ? value : "unknown");
    fputs(" |\n", file);
}

/* Values of any type: strings bare, others as JSON, null as unknown. */
static void put_json_item(FILE *file, const char *name, const json_t *value)
{
    if (!value || json_is_null(value)) {
        put_item(file, name, NULL);
    } else if (json_is_string(value)) {
        put_item(file, name, json_string_value(value));
    } else if (json_is_boolean(value)) {
        put_item(file, name, json_is_true(value) ? "on" : "off");
    } else {
        char *text = json_dumps(value, JSON_LINE_FLAGS | JSON_ENCODE_ANY);
        put_item(file, name, text);
        free(text);
    }
}

static void put_topology(FILE *file, const json_t *topology)
{
    char text[256];
    static const char *const keys[] = {"packages", "numa_nodes", "l3_domains", "cores", "pus"};
    static const char *const names[] = {"packages", "NUMA nodes", "L3 domains", "cores", "hardware threads"};
    size_t used = 0;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        int64_t count = json_get_int(topology, keys[i], -1);
        if (count >= 0)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld %s", used ? ", " : "", (long long)count,
                                     names[i]);
    }
    put_item(file, "topology", used ? text : NULL);
}

static void put_machine(FILE *file, const json_t *context)
{
    static const char *const keys[] = {"hypervisor", "governor", "turbo", "smt", "thp", "kernel_release", "compiler"};
    static const char *const names[] = {
        "hypervisor", "frequency governor", "turbo", "SMT", "transparent huge pages", "Linux", "compiler"};
    char text[128];
    fputs("| machine | |\n| --- | --- |\n", file);
    put_json_item(file, "CPU", json_object_get(context, "cpu_model"));
    put_topology(file, json_object_get(context, "topology"));
    int64_t bytes = json_get_int(context, "memory_bytes", -1);
    snprintf(text, sizeof text, "%.1f GB", (double)bytes / 1e9);
    put_item(file, "memory", bytes >= 0 ? text : NULL);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        put_json_item(file, names[i], json_object_get(context, keys[i]));
    const char *commit = json_get_string(context, "build_commit", NULL);
    const json_t *dirty = json_object_get(context, "build_dirty");
    if (commit)
        snprintf(text, sizeof text, "%.40s%s", commit, json_is_true(dirty) ? " with changes" : "");
    put_item(file, "attnbench", commit && commit[0] ? text : NULL);
    fputc('\n', file);
}

/* One line a run: when, and the command that made it. */
static void put_run(FILE *file, const json_t *context)
{
    size_t index;
    json_t *word;
    fputs("Run ", file);
    export_markdown_text(file, json_get_string(context, "run_id", "?"));
    fputs(" at ", file);
    export_markdown_text(file, json_get_string(context, "time_utc", "an unknown time"));
    fprintf(file, ", seed %lld:", (long long)json_get_int(context, "seed", 0));
    json_array_foreach(json_object_get(context, "command"), index, word)
    {
        const char *text = json_is_string(word) ? json_string_value(word) : "";
        fputc(' ', file);
        export_markdown_text(file, text);
    }
    fputs("\n\n", file);
}

static void put_contexts(FILE *file, const json_t *contexts)
{
    json_t *context;
    size_t index;
    json_array_foreach((json_t *)contexts, index, context)
    {
        if (index == 0)
            put_machine(file, context);
        put_run(file, context);
    }
}

static void put_row(FILE *file, const json_t *record)
{
    enum record_status status = record_status(record);
    for (size_t i = 0; i < record_column_count; i++) {
        char cell[256];
        if (record_columns[i].wide_only || !record_columns[i].title[0])
            continue;
        fputs("| ", file);
        record_columns[i].cell(record, cell, sizeof cell);
        export_markdown_text(file, status != RECORD_OK && i >= RECORD_WHO_COLUMNS ? "-" : cell);
        fputc(' ', file);
    }
    fputs("| ", file);
    if (status != RECORD_OK) {
        fprintf(file, "%s: ", record_status_name(status));
        export_markdown_text(file, json_get_string(record, "reason", "no reason recorded"));
    } else {
        fputs(record_noisy(record) ? "noisy" : "ok", file);
    }
    fputs(" |\n", file);
}

static void put_problem(FILE *file, const struct record_group *group)
{
    size_t index;
    json_t *record;
    fputs("### ", file);
    export_markdown_text(file, group->problem);
    fputs("\n\n", file);
    for (size_t i = 0; i < record_column_count; i++) {
        if (!record_columns[i].wide_only && record_columns[i].title[0])
            fprintf(file, "| %s ", record_columns[i].title);
    }
    fputs("| status |\n", file);
    for (size_t i = 0; i < record_column_count; i++) {
        if (!record_columns[i].wide_only && record_columns[i].title[0])
            fputs(record_columns[i].is_text ? "| :--- " : "| ---: ", file);
    }
    fputs("| :--- |\n", file);
    json_array_foreach(group->records, index, record) put_row(file, record);
    fputc('\n', file);
}

void export_markdown(FILE *file, const json_t *contexts, const json_t *records)
{
    size_t count;
    struct machine *machines = machines_split(contexts, records, &count);
    fputs("# attnbench results\n\n", file);
    for (size_t m = 0; m < count; m++) {
        char title[256];
        size_t problems;
        struct record_group *groups = record_groups(machines[m].records, &problems);
        machine_title(&machines[m], title, sizeof title);
        if (count > 1) {
            fputs("## ", file);
            export_markdown_text(file, title);
            fputs("\n\n", file);
        }
        put_contexts(file, machines[m].contexts);
        for (size_t i = 0; i < problems; i++)
            put_problem(file, &groups[i]);
        record_groups_release(groups, problems);
    }
    fputs("Time is the median of one call, ±% half its 95 % interval by order statistics. GFLOP/s counts the FLOPs "
          "left by\n"
          "causal line, window and lengths; GB/s the least bytes that the problem must move. Roof is the share of the "
          "best that\n"
          "this machine, measured in the same run, could do on the problem, and bound what sets that best. Every timed "
          "output\n"
          "was held against a float64 reference: err is the largest error over its derived bound. `-` is unknown.\n",
          file);
    machines_release(machines, count);
}
