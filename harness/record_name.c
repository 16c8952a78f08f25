/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of points for other tools; see record_name.h.
 */
#include "record_name.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_util.h"
#include "machines.h"
#include "record_text.h"

/* Without spaces: "B 8  causal top_left" becomes "B:8/causal:top_left". */
static void join_words(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        if (from[0] == ' ' && from[1] == ' ') {
            *to++ = '/';
            from++;
        } else {
            *to++ = *from == ' ' ? ':' : *from;
        }
    }
    *to = '\0';
}

/* "scaled_dot_product f32  B 8": rule and dtype are parts of their own. */
char *record_problem_name(const json_t *record)
{
    char *words = record_problem(record), *name = NULL;
    int64_t seed = json_get_int(record, "seed", 1);
    char *space = strchr(words, ' ');
    if (space)
        *space = '/';
    join_words(words);
    int code = seed == 1 ? asprintf(&name, "%s", words) : asprintf(&name, "%s/seed:%lld", words, (long long)seed);
    free(words);
    if (code < 0)
        abort(); /* memory is exhausted; a point without its name would be another point */
    return name;
}

char *record_who_name(const json_t *record)
{
    const char *mem = json_get_string(record, "mem", "local");
    const char *schedule = json_get_string(record, "schedule_requested", json_get_string(record, "schedule", "auto"));
    bool local = strcmp(mem, "local") == 0;
    char *name = NULL;
    if (asprintf(&name, "%s/%s/threads:%lld/%s%s%s", json_get_string(record, "kernel", "?"), schedule,
                 (long long)json_get_int(record, "threads", 1), json_get_string(record, "placement", "compact"),
                 local ? "" : "/mem:", local ? "" : mem) < 0)
        abort();
    return name;
}

static bool has_several_machines(const json_t *contexts)
{
    size_t index;
    json_t *context;
    const char *first = json_get_string(json_array_get(contexts, 0), "machine_key", "");
    json_array_foreach((json_t *)contexts, index, context)
    {
        if (strcmp(json_get_string(context, "machine_key", ""), first) != 0)
            return true;
    }
    return false;
}

static json_t *name_of(const json_t *record, const char *machine)
{
    char *problem = record_problem_name(record), *who = record_who_name(record);
    json_t *name = json_sprintf("%s/%s%s%s", problem, who, machine ? "/machine:" : "", machine ? machine : "");
    free(problem);
    free(who);
    return name;
}

/* Every one of those that share a name gets its ID: which of them came first must not matter. */
static void tell_apart(json_t *names, const json_t *records)
{
    json_t *counts = json_object(), *name;
    size_t index;
    json_array_foreach(names, index, name)
    {
        const char *text = json_string_value(name);
        json_object_set_new(counts, text, json_integer(json_get_int(counts, text, 0) + 1));
    }
    json_array_foreach(names, index, name)
    {
        const char *text = json_string_value(name);
        if (json_get_int(counts, text, 0) > 1)
            json_array_set_new(
                names, index,
                json_sprintf("%s/point:%s", text, json_get_string(json_array_get(records, index), "point_id", "")));
    }
    json_decref(counts);
}

json_t *record_names(const json_t *contexts, const json_t *records)
{
    bool several = has_several_machines(contexts);
    json_t *names = json_array(), *record;
    size_t index;
    json_array_foreach((json_t *)records, index, record)
    {
        const json_t *context = machines_context_of(contexts, record);
        json_array_append_new(names, name_of(record, several ? json_get_string(context, "machine_key", "") : NULL));
    }
    tell_apart(names, records);
    return names;
}
