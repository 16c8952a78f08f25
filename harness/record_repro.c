/* SPDX-License-Identifier: Apache-2.0
 *
 * The command that repeats a point; see record_repro.h.
 */
#include "record_repro.h"

#include <stdlib.h>
#include <string.h>

#include "intern.h"
#include "json_util.h"
#include "spec.h"

char *record_repro(const json_t *record)
{
    struct error ignored;
    const char *recorded = json_get_string(record, "repro", NULL), *mem = json_get_string(record, "mem", "local");
    if (recorded)
        return strdup(recorded);
    struct point point = {
        .kernel = intern(json_get_string(record, "kernel", "")),
        .source = intern(json_get_string(record, "source", "builtin")),
        .schedule_requested =
            intern(json_get_string(record, "schedule_requested", json_get_string(record, "schedule", "auto"))),
        .placement = intern(json_get_string(record, "placement", "compact")),
        .mem = strcmp(mem, "local") ? intern(mem) : NULL,
        .threads = (int)json_get_int(record, "threads", 1),
    };
    int cache = cache_from_name(json_get_string(record, "cache", "warm"));
    if (cache < 0 || spec_from_json(record, &point.spec, &ignored))
        return NULL;
    point.cache = (enum cache_state)cache;
    return point_repro(&point);
}
