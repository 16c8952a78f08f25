/* SPDX-License-Identifier: Apache-2.0
 *
 * Asking the providers in turn and writing down what they counted; see counters.h.
 */
#include "counters.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "intern.h"
#include "json_util.h"
#include "values.h"

static const struct counter_provider *const built_in[] = {&counters_energy, &counters_likwid, &counters_marker,
                                                          &counters_perf, NULL};
const struct counter_provider *const *counter_providers = built_in;

enum { MOST_PROVIDERS = 8 };

struct counters {
    struct counter_meter meters[MOST_PROVIDERS];
    bool asked[MOST_PROVIDERS];
    size_t count;
};

static const struct counter_provider *provider_find(const char *name, size_t length)
{
    for (const struct counter_provider *const *p = counter_providers; *p; p++)
        if ((*p)->selectable && strlen((*p)->name) == length && strncmp((*p)->name, name, length) == 0)
            return *p;
    return NULL;
}

/* One item of the list: its provider (NULL: none of this name) and its argument (NULL: none). */
static const struct counter_provider *read_item(const char *item, const char **argument)
{
    const char *colon = strchr(item, ':');
    *argument = colon ? colon + 1 : NULL;
    return provider_find(item, colon ? (size_t)(colon - item) : strlen(item));
}

static int check_item(const char *item, struct error *error)
{
    char shown[QUOTED_BYTES];
    const char *argument;
    const struct counter_provider *provider = read_item(item, &argument);
    if (!provider)
        return error_usage(error, "%s counts nothing (none, perf:EVENT+EVENT, likwid:GROUP, energy; list counters)",
                           quoted(item, shown));
    if (!provider->check)
        return argument ? error_usage(error, "%s takes no argument", provider->name) : 0;
    if (!argument || !*argument)
        return error_usage(error, "%s lacks its argument (%s:%s)", provider->name, provider->name, provider->argument);
    return provider->check(argument, error);
}

int counters_check(const char *text, struct error *error)
{
    if (strcmp(text, "none") == 0)
        return 0;
    const struct counter_provider *seen[MOST_PROVIDERS] = {NULL};
    char *copy = strdup(text);
    if (!copy)
        abort();
    int code = 0;
    for (char *item = copy, *next; item && code == 0; item = next) {
        const char *argument;
        next = strchr(item, ',');
        if (next)
            *next++ = '\0';
        code = strcmp(item, "none") == 0 ? error_usage(error, "none stands alone") : check_item(item, error);
        if (code)
            break;
        const struct counter_provider *provider = read_item(item, &argument);
        size_t s = 0;
        while (seen[s] && seen[s] != provider)
            s++;
        if (seen[s])
            code = error_usage(error, "%s stands there twice", provider->name);
        seen[s] = provider;
    }
    free(copy);
    return code;
}

struct counter_column *counters_add_columns(struct counter_meter *meter, size_t count)
{
    struct counter_column *grown = realloc(meter->columns, (meter->count + count) * sizeof *grown);
    if (!grown)
        abort();
    meter->columns = grown;
    memset(grown + meter->count, 0, count * sizeof *grown);
    meter->count += count;
    return grown + meter->count - count;
}

/* The argument that text has for a provider, interned; "" where it takes none; NULL: it isn't asked for. */
static const char *argument_of(const char *text, const struct counter_provider *provider)
{
    const size_t length = strlen(provider->name);
    for (const char *item = text; item; item = strchr(item, ',') ? strchr(item, ',') + 1 : NULL) {
        if (!provider->selectable || strncmp(item, provider->name, length) != 0)
            continue;
        if (item[length] == ':')
            return intern_format("%.*s", (int)strcspn(item + length + 1, ","), item + length + 1);
        if (item[length] == '\0' || item[length] == ',')
            return "";
    }
    return NULL;
}

static void meter_close(struct counter_meter *meter)
{
    if (meter->provider->close)
        meter->provider->close(meter);
    free(meter->columns);
}

struct counters *counters_open(const char *text, const struct team *team)
{
    const bool counting = strcmp(text, "none") != 0;
    struct counters *counters = calloc(1, sizeof *counters);
    if (!counters)
        abort();
    for (const struct counter_provider *const *p = counter_providers; *p && counters->count < MOST_PROVIDERS; p++) {
        const char *argument = argument_of(text, *p);
        if (!argument && !((*p)->implied && (*p)->implied(counting)))
            continue;
        struct counter_meter *meter = &counters->meters[counters->count];
        *meter = (struct counter_meter){.provider = *p};
        (*p)->open(meter, argument, team);
        if (!meter->reason || argument || !(*p)->may_be_quiet)
            counters->asked[counters->count++] = argument != NULL;
        else
            meter_close(meter);
    }
    if (counters->count == 0) {
        free(counters);
        return NULL;
    }
    return counters;
}

void counters_close(struct counters *counters)
{
    for (size_t m = 0; counters && m < counters->count; m++)
        meter_close(&counters->meters[m]);
    free(counters);
}

size_t counters_columns(const struct counters *counters)
{
    size_t count = 0;
    for (size_t m = 0; m < counters->count; m++)
        count += counters->meters[m].count;
    return count;
}

void counters_turn(struct counters *counters, const char *region)
{
    for (size_t m = 0; m < counters->count; m++)
        if (!counters->meters[m].reason && counters->meters[m].provider->turn)
            counters->meters[m].provider->turn(&counters->meters[m], region);
}

void counters_start(struct counters *counters)
{
    for (size_t m = 0; m < counters->count; m++)
        if (!counters->meters[m].reason)
            counters->meters[m].provider->start(&counters->meters[m]);
}

void counters_stop(struct counters *counters)
{
    for (size_t m = counters->count; m-- > 0;)
        if (!counters->meters[m].reason)
            counters->meters[m].provider->stop(&counters->meters[m]);
}

void counters_take(struct counters *counters, double *sums)
{
    for (size_t m = 0; m < counters->count; m++) {
        struct counter_meter *meter = &counters->meters[m];
        if (!meter->reason && meter->provider->take)
            meter->provider->take(meter, sums);
        sums += meter->count;
    }
}

/* Energy that did not advance was not measured. */
static double per_call(const struct counter_meter *meter, size_t column, double sum, double calls)
{
    const struct counter_column *c = &meter->columns[column];
    return meter->reason || c->reason || !(calls > 0) || (c->joules && !(sum > 0)) ? NAN : sum / calls;
}

json_t *counters_to_json(const struct counters *counters, const double *sums, double calls)
{
    json_t *all = json_object();
    for (size_t m = 0; m < counters->count; m++) {
        const struct counter_meter *meter = &counters->meters[m];
        json_t *object = json_object();
        for (size_t i = 0; i < meter->count; i++) {
            const double value = per_call(meter, i, *sums++, calls);
            json_object_set_new(object, meter->columns[i].name,
                                meter->columns[i].flag && !isnan(value) ? json_boolean(value != 0)
                                                                        : json_number_or_null(value));
        }
        if (meter->count)
            json_object_set_new(all, meter->provider->name, object);
        else if (counters->asked[m])
            json_object_set_new(all, meter->provider->name, json_null());
        if (!meter->count)
            json_decref(object);
    }
    if (json_object_size(all))
        return all;
    json_decref(all);
    return json_null();
}

double counters_joules(const struct counters *counters, const double *sums, double calls)
{
    for (size_t m = 0; m < counters->count; m++) {
        const struct counter_meter *meter = &counters->meters[m];
        double joules = 0;
        bool any = false;
        for (size_t i = 0; i < meter->count; i++, sums++)
            if (meter->columns[i].joules) {
                joules += per_call(meter, i, *sums, calls);
                any = true;
            }
        if (any && !isnan(joules))
            return joules;
    }
    return NAN;
}

static const char *join(const char *text, const char *separator, const char *more)
{
    return text ? intern_format("%s%s%s", text, separator, more) : more;
}

/* The columns that lack for the same reason, told together. */
static const char *column_reasons(const struct counter_meter *meter, const char *note)
{
    for (size_t i = 0; i < meter->count; i++) {
        const char *reason = meter->columns[i].reason, *names = NULL;
        bool told = false;
        for (size_t j = 0; j < meter->count && reason; j++) {
            if (meter->columns[j].reason != reason)
                continue;
            told |= j < i;
            names = join(names, "+", meter->columns[j].name);
        }
        if (reason && !told)
            note = join(note, "; ", intern_format("%s:%s: %s", meter->provider->name, names, reason));
    }
    return note;
}

const char *counters_note(const struct counters *counters)
{
    const char *note = NULL;
    for (size_t m = 0; m < counters->count; m++) {
        const struct counter_meter *meter = &counters->meters[m];
        if (meter->reason)
            note = join(note, "; ", intern_format("%s: %s", meter->provider->name, meter->reason));
        else
            note = column_reasons(meter, note);
        if (meter->remark)
            note = join(note, "; ", intern_format("%s: %s", meter->provider->name, meter->remark));
    }
    return note;
}

json_t *counters_list(void)
{
    json_t *entries = json_array();
    json_array_append_new(entries,
                          json_pack("{s:s,s:s,s:n}", "name", "none", "summary", "nothing is counted", "reason"));
    for (const struct counter_provider *const *p = counter_providers; *p; p++)
        if ((*p)->list)
            (*p)->list(entries);
    return entries;
}
