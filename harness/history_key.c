/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys of series; see history_key.h.
 */
#include "history_key.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "json_util.h"
#include "record_key.h"
#include "record_text.h"

/* FNV-1a, each text with its terminating zero so that "ab","c" and "a","bc" differ. */
static uint64_t digest_text(uint64_t state, const char *text)
{
    const char *c = text;
    do
        state = (state ^ (unsigned char)*c) * UINT64_C(1099511628211);
    while (*c++);
    return state;
}

static const uint64_t digest_start = UINT64_C(14695981039346656037);

static uint64_t digest_problem(const json_t *point)
{
    char *canonical = NULL;
    size_t size = 0;
    FILE *text = open_memstream(&canonical, &size);
    if (!text)
        abort(); /* memory is exhausted; a key of less than the whole problem would mix series */
    record_key_write_problem(text, point, 0);
    fclose(text);
    uint64_t state = digest_text(digest_start, canonical);
    free(canonical);
    return state;
}

void history_key_of(const json_t *context, const json_t *point, const char *anchor, struct history_key *key)
{
    const char *ran = json_get_string(point, "schedule", "");
    *key = (struct history_key){
        .machine_key = json_get_string(context, "machine_key", ""),
        .compiler = json_get_string(context, "compiler", ""),
        .flags = json_get_string(context, "flags", ""),
        .kernel_release = json_get_string(context, "kernel_release", ""),
        .page_mode = json_get_string(point, "page_mode", json_get_string(context, "page_mode", "")),
        .rule = json_get_string(point, "rule", ""),
        .dtype = json_get_string(point, "dtype", ""),
        .kernel = json_get_string(point, "kernel", ""),
        .schedule = json_get_string(point, "schedule_requested", ran),
        .placement = json_get_string(point, "placement", ""),
        .mem = json_get_string(point, "mem", "local"),
        .cache = json_get_string(point, "cache", "warm"),
        .anchor = anchor,
        .threads = json_get_int(point, "threads", 0),
        .problem = record_problem(point),
    };
    snprintf(key->problem_key, sizeof key->problem_key, "%016" PRIx64, digest_problem(point));
    const char *const parts[] = {key->machine_key, key->compiler, key->flags,    key->kernel_release,
                                 key->page_mode,   key->kernel,   key->schedule, key->placement,
                                 key->mem,         key->cache,    key->anchor,   key->problem_key};
    char threads[24];
    snprintf(threads, sizeof threads, "%" PRId64, key->threads);
    uint64_t state = digest_text(digest_start, threads);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        state = digest_text(state, parts[i]);
    snprintf(key->key, sizeof key->key, "%016" PRIx64, state);
}

void history_key_release(struct history_key *key)
{
    free(key->problem);
    key->problem = NULL;
}
