/* SPDX-License-Identifier: Apache-2.0
 *
 * Records in words; see record_text.h.
 */
#include "record_text.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_util.h"

static const char *const status_names[RECORD_STATUS_COUNT] = {"ok", "skipped", "wrong", "failed"};

enum record_status record_status(const json_t *record)
{
    const char *name = json_get_string(record, "status", "");
    for (int status = 0; status < RECORD_STATUS_COUNT; status++) {
        if (strcmp(name, status_names[status]) == 0)
            return (enum record_status)status;
    }
    return RECORD_FAILED;
}

const char *record_status_name(enum record_status status)
{
    return status_names[status];
}

bool record_noisy(const json_t *record)
{
    return strcmp(json_get_string(json_object_get(record, "noise"), "quality", ""), "noisy") == 0;
}

double record_ci_half(const json_t *record)
{
    double low = json_get_number(record, "ci95_low_ns", NAN), high = json_get_number(record, "ci95_high_ns", NAN);
    return 0.5 * (high - low) / json_get_number(record, "median_ns", NAN);
}

/* Adds "  item" to the text. */
__attribute__((format(printf, 2, 3))) static void add(FILE *text, const char *format, ...)
{
    va_list list;
    if (ftell(text) > 0)
        fputs("  ", text);
    va_start(list, format);
    vfprintf(text, format, list);
    va_end(list);
}

static void add_size(FILE *text, const json_t *record, const char *key, const char *name)
{
    int64_t value = json_get_int(record, key, -1);
    if (value >= 0)
        add(text, "%s %lld", name, (long long)value);
}

/* A size that is told only where it differs from what it follows from. */
static void add_size_unless(FILE *text, const json_t *record, const char *key, const char *name, const char *usual_key)
{
    if (json_get_int(record, key, -1) != json_get_int(record, usual_key, -1))
        add_size(text, record, key, name);
}

static void add_string_unless(FILE *text, const json_t *record, const char *key, const char *name, const char *usual)
{
    const char *value = json_get_string(record, key, usual);
    if (strcmp(value, usual) != 0)
        add(text, "%s%s", name, value);
}

static void add_batch(FILE *text, const json_t *record, bool usual_heads)
{
    add_size(text, record, "B", "B");
    if (usual_heads || json_get_int(record, "H", 1) != 1)
        add_size(text, record, "H", "H");
    add_size_unless(text, record, "H_kv", "kv-heads", "H");
}

static void add_matmul_sizes(FILE *text, const json_t *record, const json_t *sizes)
{
    add_batch(text, record, false);
    add_size(text, sizes, "M", "M");
    add_size(text, sizes, "N", "N");
    add_size(text, sizes, "K", "K");
    add_string_unless(text, sizes, "broadcast", "broadcast ", "none");
    add_string_unless(text, sizes, "semantics", "", "matmul");
}

/* Sizes that only some rules have, and switches that are on; model dimensions and out_dim where they differ. */
static void add_rule_sizes(FILE *text, const json_t *sizes)
{
    const char *key;
    const json_t *value;
    const json_t *model_dim = json_object_get(sizes, "model_dim");
    json_object_foreach((json_t *)sizes, key, value)
    {
        bool follows = strcmp(key, "model_dim_v") == 0 || strcmp(key, "out_dim") == 0;
        if (json_is_integer(value) && !(follows && model_dim && json_equal(value, model_dim)))
            add(text, "%s %lld", key, (long long)json_integer_value(value));
        else if (json_is_true(value))
            add(text, "%s", strcmp(key, "single") == 0 ? "no-mha" : strcmp(key, "plain_sum") == 0 ? "plain sum" : key);
    }
}

static void add_sizes(FILE *text, const json_t *record)
{
    const char *rule = json_get_string(record, "rule", "");
    const json_t *sizes = json_object_get(record, "sizes");
    const bool single = json_is_true(json_object_get(sizes, "single")), projected = json_object_get(sizes, "key_dim");
    if (strcmp(rule, "matmul") == 0) {
        add_matmul_sizes(text, record, sizes);
        return;
    }
    add_batch(text, record, !projected && !single);
    bool square = json_get_int(record, "S_q", -1) == json_get_int(record, "S_kv", -1);
    add_size(text, record, "S_q", square ? "S" : "S_q");
    if (!square)
        add_size(text, record, "S_kv", "S_kv");
    if (projected) {
        add_size(text, record, "D_v", "D_v");
    } else if (!single) {
        add_size(text, record, "D", "D");
        add_size_unless(text, record, "D_v", "D_v", "D");
    }
    add_rule_sizes(text, sizes);
}

static void add_mask(FILE *text, const json_t *record)
{
    add_string_unless(text, record, "causal", "causal ", "none");
    add_string_unless(text, record, "kv_lengths", "kv-lengths ", "full");
    add_string_unless(text, record, "window", "window ", "");
    add_string_unless(text, record, "mask", "mask ", "");
    if (json_is_true(json_object_get(record, "bias")))
        add(text, "bias");
}

static void add_scale(FILE *text, const json_t *record)
{
    double softcap = json_get_number(record, "softcap", 0);
    if (softcap > 0)
        add(text, "softcap %g", softcap);
    double scale = json_get_number(record, "scale", NAN), usual = 1 / sqrt(json_get_number(record, "D", NAN));
    if (fabs(scale - usual) > 1e-6 * usual)
        add(text, "scale %g", scale);
}

static char *describe(const json_t *record, bool with_rule)
{
    char *out = NULL;
    size_t size = 0;
    FILE *text = open_memstream(&out, &size);
    if (!text)
        abort(); /* memory is exhausted; a record that is not shown would be worse than no table */
    if (with_rule)
        add(text, "%s %s", json_get_string(record, "rule", "?"), json_get_string(record, "dtype", "?"));
    add_sizes(text, record);
    add_mask(text, record);
    add_scale(text, record);
    if (json_is_true(json_object_get(record, "weights")))
        add(text, "weights");
    const char *layout = json_get_string(record, "layout", "none");
    if (strcmp(layout, "BHSD") != 0 && strcmp(layout, "none") != 0)
        add(text, "%s", layout);
    add_string_unless(text, record, "alias", "alias ", "none");
    add_string_unless(text, record, "fill", "fill ", "normal");
    if (strcmp(json_get_string(record, "cache", "warm"), "cold") == 0)
        add(text, "cold cache");
    fclose(text);
    return out;
}

char *record_sizes(const json_t *record)
{
    return describe(record, false);
}

char *record_problem(const json_t *record)
{
    return describe(record, true);
}

/* The last record of each point, by point_id. */
static json_t *last_by_point(const json_t *records)
{
    json_t *last = json_object();
    size_t index;
    json_t *record;
    json_array_foreach((json_t *)records, index, record)
        json_object_set(last, json_get_string(record, "point_id", ""), record);
    return last;
}

struct record_group *record_groups(const json_t *records, size_t *count)
{
    size_t index, capacity = 0;
    json_t *record, *last = last_by_point(records), *place_of = json_object();
    struct record_group *groups = NULL;
    *count = 0;
    json_array_foreach((json_t *)records, index, record)
    {
        const json_t *final = json_object_get(last, json_get_string(record, "point_id", ""));
        if (final != record && record_status(record) == RECORD_FAILED)
            continue;
        char *problem = record_problem(record);
        json_t *place = json_object_get(place_of, problem);
        if (place) {
            assert(groups);
            json_array_append(groups[json_integer_value(place)].records, record);
            free(problem);
            continue;
        }
        if (*count == capacity) {
            capacity = capacity ? 2 * capacity : 16;
            struct record_group *grown = realloc(groups, capacity * sizeof *groups);
            if (!grown)
                abort();
            groups = grown;
        }
        groups[*count] = (struct record_group){.problem = problem, .records = json_array()};
        json_array_append(groups[*count].records, record);
        json_object_set_new(place_of, problem, json_integer((json_int_t)*count));
        ++*count;
    }
    json_decref(last);
    json_decref(place_of);
    return groups;
}

void record_groups_release(struct record_group *groups, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(groups[i].problem);
        json_decref(groups[i].records);
    }
    free(groups);
}
