/* SPDX-License-Identifier: Apache-2.0
 *
 * Caches above a team's CPUs, and what each thread walks to be in them; see levels.h.
 */
#include "levels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "intern.h"
#include "json_util.h"

enum { CACHES = LEVELS_MOST - 1 };

static const size_t dram_factor = 4;               /* times the outermost cache */
static const size_t dram_least = (size_t)64 << 20; /* of all threads: systems do not tell of every cache */
static const size_t usual_line_bytes = 64;

static const char *const names[LEVELS_MOST] = {"l1", "l2", "l3", "l4", "l5", "dram"};

/* The caches of one thread, by depth; NULL: it has none there, or of unknown size. */
struct stack {
    hwloc_obj_t cache[CACHES];
};

static hwloc_obj_t pu_of(const struct topology *topology, const int32_t *cpus, int thread)
{
    if (!cpus)
        return topology->pus[thread % topology->pu_count].object;
    return hwloc_get_pu_obj_by_os_index(topology->hwloc, (unsigned)cpus[thread]);
}

static struct stack stack_of(hwloc_obj_t pu)
{
    struct stack stack = {{0}};
    for (hwloc_obj_t o = pu; o; o = o->parent) {
        if (!hwloc_obj_type_is_dcache(o->type) || o->attr->cache.size == 0)
            continue;
        unsigned depth = o->attr->cache.depth;
        if (depth >= 1 && depth <= CACHES)
            stack.cache[depth - 1] = o;
    }
    return stack;
}

static size_t sharers(const struct stack *stacks, int threads, hwloc_obj_t cache)
{
    size_t count = 0;
    for (int t = 0; t < threads; t++)
        for (int c = 0; c < CACHES; c++)
            count += stacks[t].cache[c] == cache;
    return count;
}

static size_t in_units(size_t bytes)
{
    size_t units = bytes / LEVEL_UNIT;
    return (units ? units : 1) * LEVEL_UNIT;
}

/* The cache that a thread meets before it comes to this depth, NULL: none. CACHES: its outermost one. */
static hwloc_obj_t inner_of(const struct stack *stack, int depth)
{
    while (depth > 0)
        if (stack->cache[--depth])
            return stack->cache[depth];
    return NULL;
}

/* Half of the room, or beyond the inner room where half would still lie mostly in that. */
static size_t fitting(size_t room, size_t inner_room)
{
    return in_units(room / 2 >= 2 * inner_room ? room / 2 : inner_room + room / 2);
}

static void size_cache(const struct stack *stacks, int threads, int depth, struct level *level)
{
    for (int t = 0; t < threads; t++) {
        hwloc_obj_t cache = stacks[t].cache[depth], inner = inner_of(&stacks[t], depth);
        if (!cache)
            continue;
        size_t size = (size_t)cache->attr->cache.size, inner_size = inner ? (size_t)inner->attr->cache.size : 0;
        level->parts[t] =
            fitting(size / sharers(stacks, threads, cache), inner ? inner_size / sharers(stacks, threads, inner) : 0);
        if (level->threads++ > 0)
            continue;
        level->chaser = t;
        level->chase_bytes = fitting(size, inner_size);
        level->cache_bytes = (double)size;
        level->line_bytes = cache->attr->cache.linesize ? cache->attr->cache.linesize : usual_line_bytes;
    }
}

static void size_dram(const struct stack *stacks, int threads, struct level *level)
{
    for (int t = 0; t < threads; t++) {
        hwloc_obj_t outermost = inner_of(&stacks[t], CACHES);
        const size_t size = outermost ? (size_t)outermost->attr->cache.size : 0;
        const size_t share = outermost ? dram_factor * size / sharers(stacks, threads, outermost) : 0;
        const size_t least = dram_least / (size_t)threads;
        level->parts[t] = in_units((share > least ? share : least) + LEVEL_UNIT - 1);
        if (level->threads++ > 0)
            continue;
        level->chase_bytes = in_units(dram_factor * size > dram_least ? dram_factor * size : dram_least);
        level->cache_bytes = (double)size;
        level->line_bytes =
            outermost && outermost->attr->cache.linesize ? outermost->attr->cache.linesize : usual_line_bytes;
    }
}

int levels_find(const struct topology *topology, const int32_t *cpus, int threads, struct level levels[LEVELS_MOST])
{
    int count = 0;
    struct stack *stacks = calloc((size_t)threads, sizeof *stacks);
    if (!stacks)
        return -ENOMEM;
    for (int t = 0; t < threads; t++)
        stacks[t] = stack_of(pu_of(topology, cpus, t));
    for (int depth = 0; depth < LEVELS_MOST; depth++) {
        struct level level = {.name = names[depth], .parts = calloc((size_t)threads, sizeof *level.parts)};
        if (!level.parts) {
            levels_release(levels, count);
            count = -ENOMEM;
            break;
        }
        if (depth < CACHES)
            size_cache(stacks, threads, depth, &level);
        else
            size_dram(stacks, threads, &level);
        if (level.threads)
            levels[count++] = level;
        else
            free(level.parts);
    }
    free(stacks);
    return count;
}

void levels_release(struct level *levels, int count)
{
    for (int l = 0; l < count; l++)
        free(levels[l].parts);
}

double level_bytes(const struct level *level, int team)
{
    double total = 0;
    for (int t = 0; t < team; t++)
        total += (double)level->parts[t];
    return total + (double)level->chase_bytes;
}

json_t *levels_to_json(const struct level *levels, int count, int team)
{
    json_t *array = json_array();
    for (int l = 0; l < count; l++) {
        const struct level *level = &levels[l];
        json_t *parts = json_array();
        for (int t = 0; t < team; t++)
            json_array_append_new(parts, json_integer((json_int_t)level->parts[t]));
        json_array_append_new(array, json_pack("{s:s,s:f,s:o,s:I,s:i,s:I}", "level", level->name, "cache_bytes",
                                               level->cache_bytes, "parts", parts, "chase_bytes",
                                               (json_int_t)level->chase_bytes, "chaser", level->chaser, "line_bytes",
                                               (json_int_t)level->line_bytes));
    }
    return array;
}

int levels_from_json(const json_t *array, int team, struct level levels[LEVELS_MOST])
{
    int count = 0;
    size_t i;
    json_t *object;
    if (json_array_size(array) > LEVELS_MOST)
        return -EINVAL;
    json_array_foreach(array, i, object)
    {
        const json_t *parts = json_object_get(object, "parts");
        struct level level = {
            .name = intern(json_get_string(object, "level", "")),
            .cache_bytes = json_get_number(object, "cache_bytes", 0),
            .chase_bytes = (size_t)json_get_int(object, "chase_bytes", 0),
            .chaser = (int)json_get_int(object, "chaser", 0),
            .line_bytes = (size_t)json_get_int(object, "line_bytes", 0),
            .parts = calloc((size_t)team, sizeof *level.parts),
        };
        int rc = !level.parts ? -ENOMEM : json_array_size(parts) != (size_t)team || !level.line_bytes ? -EINVAL : 0;
        if (rc < 0) {
            free(level.parts);
            levels_release(levels, count);
            return rc;
        }
        for (int t = 0; t < team; t++) {
            level.parts[t] = (size_t)json_integer_value(json_array_get(parts, (size_t)t));
            level.threads += level.parts[t] > 0;
        }
        levels[count++] = level;
    }
    return count;
}
