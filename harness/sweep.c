/* SPDX-License-Identifier: Apache-2.0
 *
 * What was asked for: flags over a config; see sweep.h. Expansion to points: plan.c.
 */
#include "sweep.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "registry.h"
#include "request.h"

struct request *request_create(void)
{
    return calloc(1, sizeof(struct request));
}

void request_destroy(struct request *request)
{
    if (!request)
        return;
    key_values_release(&request->flags);
    config_release(&request->config);
    free(request);
}

int request_set(struct request *request, const char *key, const char *value, const char *where, struct error *error)
{
    char shown[QUOTED_BYTES];
    enum key_id id = key_find(key);
    if (id == KEY_COUNT) {
        error_usage(error, "%s: unknown key %s", where, quoted(key, shown));
        return -ENOENT;
    }
    struct value_list list = {0};
    int code = key_read(id, value, where, &list, error);
    if (code) {
        value_list_release(&list);
        return code;
    }
    struct value_list *kept = &request->flags.lists[id];
    for (size_t i = 0; id == KEY_PLUGIN && i < list.count && !code; i++) /* each --plugin adds to those before */
        code = value_list_add(kept, list.items[i], error);
    if (id == KEY_PLUGIN) {
        value_list_release(&list);
        return code;
    }
    value_list_release(kept);
    *kept = list;
    return 0;
}

int request_load_config(struct request *request, const char *name, struct error *error)
{
    if (request->has_config)
        return error_usage(error, "--config: given twice");
    const char *path = config_find(name, error);
    int code = path ? config_read(path, &request->config, error) : -EINVAL;
    request->has_config = !code;
    return code;
}

static bool names_problem(const struct request *request, enum key_id except)
{
    for (int id = 0; id < KEY_COUNT; id++)
        if (id != (int)except && keys[id].group == KEY_GROUP_PROBLEM && request->flags.lists[id].count)
            return true;
    return false;
}

bool request_names_problem(const struct request *request)
{
    return names_problem(request, KEY_COUNT);
}

bool request_names_sizes(const struct request *request)
{
    return names_problem(request, KEY_RULE);
}

bool request_has(const struct request *request, const char *key)
{
    const enum key_id id = key_find(key);
    return id < KEY_COUNT && request->flags.lists[id].count > 0;
}

size_t registry_count(void)
{
    size_t count = 0;
    while (registry_entry(count))
        count++;
    return count;
}

static void add_kernel(const char *kernel, const char **kernels, size_t *count)
{
    for (size_t i = 0; i < *count; i++)
        if (kernels[i] == kernel)
            return;
    kernels[(*count)++] = kernel;
}

/* What globs are held against: the name behind the prefix. NULL: the name has another prefix, or none. */
static const char *bare_name(const char *name, const char *prefix)
{
    const size_t length = prefix ? strlen(prefix) : 0;
    if (prefix && strncmp(name, prefix, length) != 0)
        return NULL;
    return strchr(name + length, ':') ? NULL : name + length;
}

static int no_kernel(const struct value *glob, const char *prefix, struct error *error)
{
    char shown[QUOTED_BYTES], names[512] = "";
    for (const char *const *name = registry_names(); *name; name++) {
        const size_t used = strlen(names);
        const char *bare = bare_name(*name, prefix);
        if (bare)
            snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", bare);
    }
    return error_usage(error, "%s: no kernel matches %s (%s)", glob->where, quoted(glob->text, shown), names);
}

int kernels_match(const struct axis *globs, const char *prefix, enum attn_rule rule, const char **kernels,
                  size_t *count, struct error *error)
{
    *count = 0;
    for (const char *const *name = registry_names(); globs->count == 0 && *name; name++)
        if (bare_name(*name, prefix) && registry_is_default(*name) && registry_does(*name, rule))
            add_kernel(*name, kernels, count);
    for (size_t i = 0; i < globs->count; i++) {
        bool matched = false;
        for (const char *const *name = registry_names(); *name; name++) {
            const char *bare = bare_name(*name, prefix);
            if (!bare || fnmatch(globs->items[i].text, bare, 0) != 0)
                continue;
            matched = true;
            add_kernel(*name, kernels, count);
        }
        if (!matched)
            return no_kernel(&globs->items[i], prefix, error);
    }
    return *count ? 0 : error_usage(error, "no kernel does rule %s", rule_name(rule));
}

static const struct value_list *run_wide(const struct request *request, enum key_id id)
{
    const struct value_list *flag = &request->flags.lists[id];
    return flag->count ? flag : &request->config.defaults.lists[id];
}

const struct value_list *request_plugins(const struct request *request)
{
    return run_wide(request, KEY_PLUGIN);
}

void request_set_kernel_prefix(struct request *request, const char *prefix)
{
    request->kernel_prefix = prefix;
}

uint64_t request_seed(const struct request *request)
{
    const struct value_list *list = run_wide(request, KEY_SEED);
    return list->count ? (uint64_t)list->items[0].integer : spec_default().seed;
}

static double run_wide_number(const struct request *request, enum key_id id, double otherwise)
{
    const struct value_list *list = run_wide(request, id);
    return list->count ? list->items[0].number : otherwise;
}

static int64_t run_wide_integer(const struct request *request, enum key_id id, int64_t otherwise)
{
    const struct value_list *list = run_wide(request, id);
    return list->count ? list->items[0].integer : otherwise;
}

struct effort request_effort(const struct request *request)
{
    const struct value_list *counters = run_wide(request, KEY_COUNTERS);
    return (struct effort){
        .min_time_s = run_wide_number(request, KEY_MIN_TIME, 0.5),
        .samples = run_wide_integer(request, KEY_SAMPLES, 0),
        .max_time_s = run_wide_number(request, KEY_MAX_TIME, 0),
        .point_timeout_s = run_wide_number(request, KEY_POINT_TIMEOUT, 60),
        .memory_limit = run_wide_number(request, KEY_MEMORY_LIMIT, 0),
        .launches = (int)run_wide_integer(request, KEY_LAUNCHES, 1),
        .quick_check = run_wide_integer(request, KEY_QUICK_CHECK, 0) != 0,
        .counters = counters->count ? counters->items[0].text : "none",
    };
}
