/* SPDX-License-Identifier: Apache-2.0
 *
 * Results of several machines told apart; see machines.h.
 */
#include "machines.h"

#include <stdlib.h>
#include <string.h>

#include "json_util.h"

const json_t *machines_context_of(const json_t *contexts, const json_t *record)
{
    const char *run_id = json_get_string(record, "run_id", NULL);
    size_t index;
    json_t *context;
    json_array_foreach((json_t *)contexts, index, context)
    {
        if (run_id && strcmp(json_get_string(context, "run_id", ""), run_id) == 0)
            return context;
    }
    return json_array_get(contexts, 0);
}

static struct machine *machine_of(struct machine *machines, size_t *count, const json_t *context)
{
    const char *key = json_get_string(context, "machine_key", "");
    for (size_t i = 0; i < *count; i++) {
        if (strcmp(machines[i].key, key) == 0)
            return &machines[i];
    }
    struct machine *machine = &machines[(*count)++];
    *machine = (struct machine){.key = key, .contexts = json_array(), .records = json_array()};
    return machine;
}

struct machine *machines_split(const json_t *contexts, const json_t *records, size_t *count)
{
    struct machine *machines = calloc(json_array_size(contexts) + 1, sizeof *machines);
    size_t index;
    json_t *line;
    if (!machines)
        abort(); /* memory is exhausted; results left out would be worse than none */
    *count = 0;
    json_array_foreach((json_t *)contexts, index, line)
        json_array_append(machine_of(machines, count, line)->contexts, line);
    json_array_foreach((json_t *)records, index, line)
        json_array_append(machine_of(machines, count, machines_context_of(contexts, line))->records, line);
    if (*count == 0)
        machine_of(machines, count, NULL);
    return machines;
}

void machines_release(struct machine *machines, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        json_decref(machines[i].contexts);
        json_decref(machines[i].records);
    }
    free(machines);
}

void machine_title(const struct machine *machine, char *out, size_t size)
{
    const json_t *context = json_array_get(machine->contexts, 0), *topology = json_object_get(context, "topology");
    int64_t cores = json_get_int(topology, "cores", -1), pus = json_get_int(topology, "pus", -1);
    int used = snprintf(out, size, "%.100s", json_get_string(context, "cpu_model", "an unknown CPU"));
    if (cores >= 0 && (size_t)used < size)
        used += snprintf(out + used, size - (size_t)used, ", %lld core%s", (long long)cores, cores == 1 ? "" : "s");
    if (pus >= 0 && pus != cores && (size_t)used < size)
        used += snprintf(out + used, size - (size_t)used, ", %lld hardware threads", (long long)pus);
    if (machine->key[0] && (size_t)used < size)
        snprintf(out + used, size - (size_t)used, " (machine %.40s)", machine->key);
}
