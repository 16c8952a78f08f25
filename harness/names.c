/* SPDX-License-Identifier: Apache-2.0
 *
 * The names that users type and records hold for rules, dtypes, layouts and their kin, and numbers as text; see spec.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spec.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

/* Each table is indexed by its enumeration. */
static const char *const rule_names[] = {"scaled_dot_product", "additive",       "concat",
                                         "multi_head",         "self_attention", "matmul"};
static const char *const dtype_names[] = {"f32", "bf16", "f16"};
static const size_t dtype_sizes[] = {4, 2, 2};
static const char *const layout_names[] = {"BHSD", "BSHD", "HBSD"};
static const char *const causal_names[] = {"none", "top_left", "bottom_right", "bottom_right_valid"};
static const char *const alias_names[] = {"none", "kv", "qkv"};
static const char *const fill_names[] = {"normal", "huge", "equal", "dominant", "subnormal"};
static const char *const cache_names[] = {"warm", "cold"};
static const char *const broadcast_names[] = {"none", "a", "b"};
static const char *const semantics_names[] = {"matmul", "dot"};

static int find(const char *const *table, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(table[i], name) == 0)
            return i;
    return -1;
}

const char *rule_name(enum attn_rule rule)
{
    return rule_names[rule];
}

const char *dtype_name(enum attn_dtype dtype)
{
    return dtype_names[dtype];
}

const char *layout_name(enum layout layout)
{
    return layout_names[layout];
}

const char *causal_name(enum causal causal)
{
    return causal_names[causal];
}

const char *alias_name(enum alias alias)
{
    return alias_names[alias];
}

const char *fill_name(enum fill fill)
{
    return fill_names[fill];
}

const char *cache_name(enum cache_state cache)
{
    return cache_names[cache];
}

const char *broadcast_name(enum broadcast broadcast)
{
    return broadcast_names[broadcast];
}

const char *semantics_name(enum semantics semantics)
{
    return semantics_names[semantics];
}

int rule_from_name(const char *name)
{
    return find(rule_names, COUNT(rule_names), name);
}

int dtype_from_name(const char *name)
{
    return find(dtype_names, COUNT(dtype_names), name);
}

int layout_from_name(const char *name)
{
    return find(layout_names, COUNT(layout_names), name);
}

int causal_from_name(const char *name)
{
    return find(causal_names, COUNT(causal_names), name);
}

int alias_from_name(const char *name)
{
    return find(alias_names, COUNT(alias_names), name);
}

int fill_from_name(const char *name)
{
    return find(fill_names, COUNT(fill_names), name);
}

int cache_from_name(const char *name)
{
    return find(cache_names, COUNT(cache_names), name);
}

int broadcast_from_name(const char *name)
{
    return find(broadcast_names, COUNT(broadcast_names), name);
}

int semantics_from_name(const char *name)
{
    return find(semantics_names, COUNT(semantics_names), name);
}

size_t dtype_bytes(enum attn_dtype dtype)
{
    return dtype_sizes[dtype];
}

char *number_text(double number, char *buffer)
{
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(buffer, 32, "%.*g", digits, number);
        if (strtod(buffer, NULL) == number)
            break;
    }
    return buffer;
}
