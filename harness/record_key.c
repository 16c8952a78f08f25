/* SPDX-License-Identifier: Apache-2.0
 *
 * The same point in several records; see record_key.h.
 */
#include "record_key.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_util.h"
#include "machines.h"
#include "record_text.h"

/* Databases hold digests of these, in this order (history_key.c): a field more, or another order, begins every series
 * anew. */
static const char *const problem_fields[] = {
    "rule",   "dtype",      "layout", "B",    "H",      "H_kv",    "S_q",     "S_kv",  "D",    "D_v",  "scale",
    "causal", "kv_lengths", "mask",   "bias", "window", "softcap", "weights", "alias", "fill", "seed", "sizes",
};

static const struct {
    const char *field;
    enum record_key_any any;
} left_out[] = {{"dtype", RECORD_KEY_ANY_DTYPE}, {"seed", RECORD_KEY_ANY_SEED}};

/* What these fields hold where a record leaves them out. */
static const struct {
    const char *field, *usual;
} who_fields[] = {{"kernel", ""}, {"placement", ""}, {"cache", "warm"}, {"mem", "local"}};

static bool is_left_out(const char *field, unsigned any)
{
    for (size_t i = 0; i < sizeof left_out / sizeof left_out[0]; i++)
        if ((any & left_out[i].any) && strcmp(field, left_out[i].field) == 0)
            return true;
    return false;
}

void record_key_write_problem(FILE *text, const json_t *record, unsigned any)
{
    for (size_t i = 0; i < sizeof problem_fields / sizeof problem_fields[0]; i++) {
        const json_t *value = json_object_get(record, problem_fields[i]);
        if (!value || json_is_null(value) || is_left_out(problem_fields[i], any))
            continue;
        fprintf(text, "%s=", problem_fields[i]);
        /* By value: another writer may put 1.0 where ours puts 1. */
        if (json_is_number(value))
            fprintf(text, "%.17g", json_number_value(value));
        else
            json_dumpf(value, text, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);
        fputc(';', text);
    }
}

char *record_key(const json_t *record, unsigned any)
{
    char *key = NULL;
    size_t size = 0;
    FILE *text = open_memstream(&key, &size);
    if (!text)
        abort(); /* memory is exhausted; a key of less than the whole point would mix points */
    record_key_write_problem(text, record, any);
    for (size_t i = 0; i < sizeof who_fields / sizeof who_fields[0]; i++)
        fprintf(text, "%s=%s;", who_fields[i].field, json_get_string(record, who_fields[i].field, who_fields[i].usual));
    fprintf(text, "schedule=%s;threads=%lld",
            json_get_string(record, "schedule_requested", json_get_string(record, "schedule", "")),
            (long long)json_get_int(record, "threads", 0));
    fclose(text);
    return key;
}

/* Whether the later of two records of one point stands for it. */
static bool takes_the_place(const json_t *later, const json_t *earlier)
{
    enum record_status status = record_status(later);
    return status == RECORD_OK || status == RECORD_WRONG || record_status(earlier) != RECORD_OK;
}

json_t *record_latest(const json_t *contexts, const json_t *records)
{
    json_t *latest = json_object(), *chosen = json_array(), *record;
    size_t index;
    const char *unused;
    json_array_foreach((json_t *)records, index, record)
    {
        const json_t *context = machines_context_of(contexts, record);
        char *point = record_key(record, 0), *key = NULL;
        if (asprintf(&key, "%s%s", json_get_string(context, "machine_key", ""), point) < 0)
            abort();
        const json_t *earlier = json_object_get(latest, key);
        if (!earlier || takes_the_place(record, earlier))
            json_object_set(latest, key, record);
        free(key);
        free(point);
    }
    json_object_foreach(latest, unused, record) json_array_append(chosen, record);
    json_decref(latest);
    return chosen;
}
