/* SPDX-License-Identifier: Apache-2.0
 *
 * A comparison as data: JSON and CSV; see compare_output.h.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare_output.h"
#include "export.h"
#include "json_util.h"
#include "record_name.h"
#include "record_text.h"

static const char *const kind_names[] = {
    [COMPARE_FIGURES] = "compared", [COMPARE_STATUS] = "status_changed", [COMPARE_NEITHER] = "not_measured",
    [COMPARE_MISSING] = "missing",  [COMPARE_ADDED] = "added",
};

static void set_side(json_t *point, const struct compare_side *side, const char *suffix)
{
    static const char *const copied[] = {"run_id", "point_id", "status", "reason", "roof_fraction", "noise"};
    char key[32];
    for (size_t i = 0; i < sizeof copied / sizeof copied[0]; i++) {
        json_t *value = json_object_get(side->record, copied[i]);
        snprintf(key, sizeof key, "%s_%s", copied[i], suffix);
        json_object_set_new(point, key, value ? json_incref(value) : json_null());
    }
    snprintf(key, sizeof key, "median_ns_%s", suffix);
    json_object_set_new(point, key, json_number_or_null(side->median_ns));
    snprintf(key, sizeof key, "ci95_low_ns_%s", suffix);
    json_object_set_new(point, key, json_number_or_null(side->low_ns));
    snprintf(key, sizeof key, "ci95_high_ns_%s", suffix);
    json_object_set_new(point, key, json_number_or_null(side->high_ns));
}

static json_t *point_of(const struct compare_pair *pair)
{
    static const char *const who[] = {"rule",      "dtype",   "kernel", "schedule_requested",
                                      "placement", "threads", "cache",  "mem"};
    const json_t *record = compare_point(pair);
    char *problem = record_problem_name(record);
    json_t *point =
        json_pack("{s:s,s:s,s:s}", "method", COMPARE_METHOD, "kind", kind_names[pair->kind], "problem", problem);
    free(problem);
    for (size_t i = 0; i < sizeof who / sizeof who[0]; i++) {
        json_t *value = json_object_get(record, who[i]);
        json_object_set_new(point, who[i], value ? json_incref(value) : json_null());
    }
    json_object_set_new(point, "ratio", json_number_or_null(pair->ratio));
    json_object_set_new(point, "ratio_low", json_number_or_null(pair->low));
    json_object_set_new(point, "ratio_high", json_number_or_null(pair->high));
    json_object_set_new(point, "noisy", json_boolean(compare_noisy(pair)));
    json_object_set_new(point, "stands_out", json_boolean(compare_stands_out(pair)));
    set_side(point, &pair->a, "a");
    set_side(point, &pair->b, "b");
    return point;
}

static json_t *file_of(const char *name, const struct results *results)
{
    json_t *runs = json_array(), *context;
    size_t index;
    static const char *const copied[] = {"run_id", "time_utc", "machine_key", "build_commit", "build_dirty"};
    json_array_foreach(results->contexts, index, context)
    {
        json_t *run = json_object();
        for (size_t i = 0; i < sizeof copied / sizeof copied[0]; i++) {
            json_t *value = json_object_get(context, copied[i]);
            json_object_set_new(run, copied[i], value ? json_incref(value) : json_null());
        }
        json_array_append_new(runs, run);
    }
    return json_pack("{s:o,s:o}", "file", json_text(name, strlen(name)), "runs", runs);
}

static json_t *differences_of(const struct comparison *comparison)
{
    json_t *list = json_array();
    for (size_t i = 0; i < comparison->difference_count; i++) {
        const struct compare_difference *difference = &comparison->differences[i];
        json_array_append_new(list, json_pack("{s:s,s:s,s:s,s:I,s:b}", "field", difference->field, "a", difference->a,
                                              "b", difference->b, "points", (json_int_t)difference->points,
                                              "not_comparable", (int)difference->refused));
    }
    return list;
}

void compare_json(FILE *file, const struct comparison *comparison, const struct compare_files *files)
{
    json_t *points = json_array(), *counts = json_object();
    for (size_t i = 0; i < comparison->pair_count; i++)
        json_array_append_new(points, point_of(&comparison->pairs[i]));
    for (size_t i = 0; i < sizeof kind_names / sizeof kind_names[0]; i++)
        json_object_set_new(counts, kind_names[i], json_integer((json_int_t)comparison->counts[i]));
    json_t *whole =
        json_pack("{s:s,s:s,s:s,s:o,s:o,s:o,s:o,s:o}", "schema", "attnbench.compare/1", "method", COMPARE_METHOD, "why",
                  COMPARE_WHY, "a", file_of(files->name_a, files->a), "b", file_of(files->name_b, files->b), "counts",
                  counts, "differences", differences_of(comparison), "points", points);
    json_dumpf(whole, file, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
    fputc('\n', file);
    json_decref(whole);
}

static void put_row(FILE *file, const json_t *point, bool header)
{
    const char *key, *gap = "";
    json_t *value;
    json_object_foreach((json_t *)point, key, value)
    {
        if (strncmp(key, "noise_", 6) == 0) /* objects; "noisy" and "stands_out" hold what they come to */
            continue;
        fputs(gap, file);
        if (header)
            fputs(key, file);
        else
            export_csv_value(file, value);
        gap = ",";
    }
    fputc('\n', file);
}

void compare_csv(FILE *file, const struct comparison *comparison)
{
    /* The columns of no point at all, so that the header stands in any case. */
    const struct compare_pair none = {.ratio = NAN};
    json_t *header = point_of(&none);
    put_row(file, header, true);
    json_decref(header);
    for (size_t i = 0; i < comparison->pair_count; i++) {
        json_t *point = point_of(&comparison->pairs[i]);
        put_row(file, point, false);
        json_decref(point);
    }
}
