/* SPDX-License-Identifier: Apache-2.0
 *
 * Records as CSV; see export.h.
 */
#include <stdlib.h>
#include <string.h>

#include "export.h"
#include "json_util.h"
#include "machines.h"
#include "spec.h"

/* Which machine it was stands in the context, not in the record. */
static const char machine_column[] = "machine_key";

/* Columns that stand in every export, in this order, so that files with different records still line up. */
static const char *const fixed_columns[] = {
    "run_id",
    "point_id",
    "status",
    "reason",
    "rule",
    "kernel",
    "schedule",
    "schedule_requested",
    "source",
    "dtype",
    "layout",
    "B",
    "H",
    "H_kv",
    "S_q",
    "S_kv",
    "D",
    "D_v",
    "scale",
    "causal",
    "kv_lengths",
    "mask",
    "bias",
    "window",
    "softcap",
    "weights",
    "alias",
    "fill",
    "threads",
    "placement",
    "cpus",
    "cache",
    "flops_useful",
    "flops_dense",
    "tanh_count",
    "bytes_min",
    "workspace_bytes",
    "peak_rss_bytes",
    "page_mode",
    "calls_per_sample",
    "median_ns",
    "ci95_low_ns",
    "ci95_high_ns",
    "ci_scope",
    "min_ns",
    "mad_ns",
    "gflops",
    "gb_per_s",
    "tokens_per_s",
    "roof_bound",
    "roof_gflops",
    "roof_fraction",
    "isa_roof_gflops",
    "cause",
    "imbalance",
    "gflops_per_core",
    "parallel_efficiency",
    "verified",
    "rows_checked",
    "max_abs_err",
    "rms_err",
    "err_over_bound",
    "noise.quality",
    "noise.wall_over_cpu",
    "noise.steal_ns",
    "noise.involuntary_switches",
    "noise.migrations",
    "noise.throttled_ns",
    "noise.clock_drift",
    "samples_ns",
    machine_column,
};

/* Puts quotes around what a reader could not take bare. */
static void put_field(FILE *file, const char *text)
{
    if (!strpbrk(text, ",\"\r\n") && text[0] != ' ' && (text[0] == '\0' || text[strlen(text) - 1] != ' ')) {
        fputs(text, file);
        return;
    }
    fputc('"', file);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', file);
        fputc(*text, file);
    }
    fputc('"', file);
}

static void write_scalar(FILE *text, const json_t *value)
{
    char number[32];
    if (json_is_string(value))
        fputs(json_string_value(value), text);
    else if (json_is_integer(value))
        fprintf(text, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        fputs(number_text(json_real_value(value), number), text);
    else if (json_is_boolean(value))
        fputs(json_is_true(value) ? "true" : "false", text);
    else if (!json_is_null(value))
        json_dumpf(value, text, JSON_LINE_FLAGS);
}

void export_csv_value(FILE *file, const json_t *value)
{
    char *field = NULL;
    size_t size = 0, index;
    json_t *element;
    FILE *text = open_memstream(&field, &size);
    if (!text)
        abort(); /* memory is exhausted; a file with a field left out would be worse than none */
    if (json_is_array(value)) {
        json_array_foreach((json_t *)value, index, element)
        {
            if (index > 0)
                fputc(';', text);
            write_scalar(text, element);
        }
    } else if (value) {
        write_scalar(text, value);
    }
    fclose(text);
    put_field(file, field);
    free(field);
}

/* Adds the path of every value within object that is not null to columns, an object used as an ordered set. */
static void collect_columns(json_t *columns, const json_t *object, const char *prefix)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        size_t size = strlen(prefix) + strlen(key) + 2;
        char *path = malloc(size);
        if (!path)
            abort();
        snprintf(path, size, "%s%s", prefix, key);
        if (json_is_object(value)) {
            strcat(path, ".");
            collect_columns(columns, value, path);
        } else if (!json_is_null(value)) {
            json_object_set_new(columns, path, json_null());
        }
        free(path);
    }
}

/* The rows carry their schema by being rows. */
static json_t *columns_of(const json_t *records)
{
    json_t *columns = json_object(), *record;
    size_t index;
    for (size_t i = 0; i < sizeof fixed_columns / sizeof fixed_columns[0]; i++)
        json_object_set_new(columns, fixed_columns[i], json_null());
    json_array_foreach((json_t *)records, index, record) collect_columns(columns, record, "");
    json_object_del(columns, "schema");
    return columns;
}

/* The value at "noise.quality" and the like. A key may hold dots itself, so every cut is tried. */
static const json_t *value_at(const json_t *object, const char *path)
{
    const json_t *value = json_object_get(object, path);
    if (value)
        return json_is_object(value) ? NULL : value;
    for (const char *dot = strchr(path, '.'); dot; dot = strchr(dot + 1, '.')) {
        const json_t *inner = json_object_getn(object, path, (size_t)(dot - path));
        const json_t *found = json_is_object(inner) ? value_at(inner, dot + 1) : NULL;
        if (found)
            return found;
    }
    return NULL;
}

void export_csv(FILE *file, const json_t *contexts, const json_t *records)
{
    json_t *columns = columns_of(records), *record, *unused;
    const char *path;
    size_t index;
    const char *gap = "";
    json_object_foreach(columns, path, unused)
    {
        fputs(gap, file);
        put_field(file, path);
        gap = ",";
    }
    fputc('\n', file);
    json_array_foreach((json_t *)records, index, record)
    {
        gap = "";
        json_object_foreach(columns, path, unused)
        {
            fputs(gap, file);
            const json_t *value = value_at(record, path);
            if (!value && strcmp(path, machine_column) == 0)
                value = json_object_get(machines_context_of(contexts, record), machine_column);
            export_csv_value(file, value);
            gap = ",";
        }
        fputc('\n', file);
    }
    json_decref(columns);
}
