/* SPDX-License-Identifier: Apache-2.0
 *
 * Printing ceilings; see peak_table.h. Medians, each followed by the median deviation of its repeats in per cent.
 */
#include "peak_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "color.h"
#include "cpu_list.h"
#include "json_util.h"

enum { FIGURE_BYTES = 32 };

/* A median in about four digits, "-" where there is none. */
static const char *median_text(const json_t *summary, char text[FIGURE_BYTES])
{
    double median = json_get_number(summary, "median", NAN);
    if (!isfinite(median))
        return "-";
    snprintf(text, FIGURE_BYTES, "%.*f", median < 10 ? 2 : median < 1000 ? 1 : 0, median);
    return text;
}

static const char *spread_text(const json_t *summary, char text[FIGURE_BYTES])
{
    double spread = 100 * json_get_number(summary, "mad", NAN) / json_get_number(summary, "median", NAN);
    if (!isfinite(spread))
        return "-";
    snprintf(text, FIGURE_BYTES, "%.*f", spread < 9.95 ? 1 : 0, spread);
    return text;
}

static void print_summary(FILE *file, const json_t *summary)
{
    char median[FIGURE_BYTES], spread[FIGURE_BYTES];
    fprintf(file, " %10s %3s", median_text(summary, median), spread_text(summary, spread));
}

static const char *bytes_text(double bytes, char text[FIGURE_BYTES])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    int unit = 0;
    for (; unit < 3 && bytes >= 1024; unit++)
        bytes /= 1024;
    snprintf(text, FIGURE_BYTES, "%.*f %s", bytes < 10 && unit ? 1 : 0, bytes, units[unit]);
    return text;
}

static void heading(FILE *file, bool color, const char *text)
{
    fprintf(file, "%s%s%s\n", paint(color, PAINT_HEADING), text, paint(color, PAINT_PLAIN));
}

static void print_title(FILE *file, const json_t *entry, bool color)
{
    const json_t *list = json_object_get(entry, "cpus");
    const int threads = (int)json_get_int(entry, "threads", 0), count = (int)json_array_size(list);
    int32_t *cpus = calloc(count ? (size_t)count : 1, sizeof *cpus);
    for (int i = 0; cpus && i < count; i++)
        cpus[i] = (int32_t)json_integer_value(json_array_get(list, (size_t)i));
    char *text = cpus && count ? cpu_list_format(cpus, count) : NULL;
    fprintf(file, "%s%s, %d thread%s", paint(color, PAINT_HEADING), json_get_string(entry, "placement", ""), threads,
            threads == 1 ? "" : "s");
    if (text)
        fprintf(file, " on CPU%s %.200s", threads == 1 ? "" : "s", text);
    fprintf(file, ", memory %s%s\n", json_get_string(entry, "mem", ""), paint(color, PAINT_PLAIN));
    free(text);
    free(cpus);
}

/* Rows of one kind: two names, a rate with its spread. */
static void print_rates(FILE *file, const json_t *rows, const char *first, const char *second, const char *rate)
{
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row)
    {
        const json_t *summary = json_object_get(row, rate);
        if (!json_is_object(summary)) /* this machine lacks the instructions: --json has the reason */
            continue;
        fprintf(file, "    %-5s %-17s", json_get_string(row, first, ""), json_get_string(row, second, ""));
        print_summary(file, summary);
        fputc('\n', file);
    }
}

static void print_compute(FILE *file, const json_t *entry, bool color)
{
    heading(file, color, "  compute                      Gop/s  +-%");
    print_rates(file, json_object_get(entry, "compute"), "element", "name", "giga_ops_per_s");
    heading(file, color, "  functions of f32          Gvalue/s  +-%");
    print_rates(file, json_object_get(entry, "functions"), "function", "vector", "giga_per_s");
}

static void print_memory(FILE *file, const json_t *entry, bool color)
{
    static const struct {
        const char *key, *title;
    } columns[] = {{"read_gb_per_s", "read GB/s"},
                   {"write_gb_per_s", "write GB/s"},
                   {"copy_gb_per_s", "copy GB/s"},
                   {"latency_ns", "load ns"}};
    enum { COLUMNS = sizeof columns / sizeof *columns };
    char bytes[FIGURE_BYTES];
    size_t i;
    json_t *level;
    fprintf(file, "%s  %-6s %8s", paint(color, PAINT_HEADING), "memory", "buffer");
    for (int c = 0; c < COLUMNS; c++)
        fprintf(file, " %10s %3s", columns[c].title, "+-%");
    fprintf(file, "%s\n", paint(color, PAINT_PLAIN));
    json_array_foreach(json_object_get(entry, "memory"), i, level)
    {
        const char *reason = json_get_string(level, "reason", NULL), *note = json_get_string(level, "note", NULL);
        fprintf(file, "    %-4s %8s", json_get_string(level, "level", ""),
                bytes_text(json_get_number(level, "bytes", NAN), bytes));
        if (reason)
            fprintf(file, "  %s", reason);
        for (int c = 0; c < COLUMNS && !reason; c++)
            print_summary(file, json_object_get(level, columns[c].key));
        fputc('\n', file);
        if (note)
            fprintf(file, "         %s\n", note);
    }
}

static void print_team(FILE *file, const json_t *entry)
{
    const json_t *team = json_object_get(entry, "team");
    const json_t *outermost =
        json_array_get(json_object_get(entry, "memory"), json_array_size(json_object_get(entry, "memory")) - 1);
    char fork[FIGURE_BYTES], barrier[FIGURE_BYTES], spread[2][FIGURE_BYTES];
    const json_t *forks = json_object_get(team, "fork_join_ns"), *barriers = json_object_get(team, "barrier_ns");
    fprintf(file, "  fork and join %s ns (+-%s %%), barrier %s ns (+-%s %%); %s pages\n", median_text(forks, fork),
            spread_text(forks, spread[0]), median_text(barriers, barrier), spread_text(barriers, spread[1]),
            json_get_string(outermost, "page_mode", "unknown"));
}

static void print_nodes(FILE *file, const json_t *nodes, bool color)
{
    static const struct {
        const char *key, *title;
    } matrices[] = {{"read_gb_per_s", "read GB/s"}, {"write_gb_per_s", "write GB/s"}, {"latency_ns", "load ns"}};
    size_t row, column;
    json_t *from, *cell;
    char median[FIGURE_BYTES];
    for (int m = 0; m < 3; m++) {
        fprintf(file, "%s%-20s", paint(color, PAINT_HEADING), matrices[m].title);
        json_array_foreach(json_object_get(json_array_get(nodes, 0), "memory"), column, cell)
            fprintf(file, " memory %2d", (int)json_get_int(cell, "node", -1));
        fprintf(file, "%s\n", paint(color, PAINT_PLAIN));
        json_array_foreach(nodes, row, from)
        {
            fprintf(file, "  CPUs of node %-5d", (int)json_get_int(from, "node", -1));
            json_array_foreach(json_object_get(from, "memory"), column, cell)
                fprintf(file, " %9s", median_text(json_object_get(cell, matrices[m].key), median));
            fputc('\n', file);
        }
    }
    json_array_foreach(nodes, row, from)
    {
        const char *reason = json_get_string(from, "reason", NULL);
        if (reason)
            fprintf(file, "CPUs of node %d: %s\n", (int)json_get_int(from, "node", -1), reason);
        json_array_foreach(json_object_get(from, "memory"), column, cell)
        {
            reason = json_get_string(cell, "reason", NULL);
            if (reason)
                fprintf(file, "memory %d from node %d: %s\n", (int)json_get_int(cell, "node", -1),
                        (int)json_get_int(from, "node", -1), reason);
        }
    }
}

void peak_table_print(FILE *file, const json_t *document, bool color)
{
    size_t i;
    json_t *entry;
    json_array_foreach(json_object_get(document, "placements"), i, entry)
    {
        const char *reason = json_get_string(entry, "reason", NULL);
        print_title(file, entry, color);
        if (reason) {
            fprintf(file, "  %s: %s\n\n", json_get_string(entry, "status", ""), reason);
            continue;
        }
        print_compute(file, entry, color);
        print_memory(file, entry, color);
        print_team(file, entry);
        fputc('\n', file);
    }
    const json_t *nodes = json_object_get(document, "nodes");
    if (json_array_size(nodes))
        print_nodes(file, nodes, color);
}
