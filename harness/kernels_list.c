/* SPDX-License-Identifier: Apache-2.0
 *
 * Making the list of kernels; see kernels_list.h.
 */
#include "kernels_list.h"

#include <string.h>

#include "foreign.h"
#include "isa.h"
#include "json_util.h"
#include "registry.h"
#include "spec.h"

json_t *list_entry(const char *name, const char *summary)
{
    json_t *object = json_object();
    json_object_set_new(object, "name", json_string(name));
    json_object_set_new(object, "summary", summary ? json_string(summary) : json_null());
    return object;
}

/* Names of the bits set, of at most `count`. */
static json_t *bit_names(uint64_t bits, int count, const char *(*name)(int))
{
    json_t *names = json_array();
    for (int bit = 0; bit < count; bit++)
        if (bits & ATTN_BIT(bit))
            json_array_append_new(names, json_string(name(bit)));
    return names;
}

static const char *rule_text(int rule)
{
    return rule_name((enum attn_rule)rule);
}

static const char *dtype_text(int dtype)
{
    return dtype_name((enum attn_dtype)dtype);
}

/* Entries of one name and several rules are one kernel. */
json_t *kernels_list(void)
{
    json_t *array = json_array();
    for (const char *const *name = registry_names(); *name; name++) {
        const char *summary = NULL;
        uint64_t isa = 0, dtypes = 0, rules = 0;
        const struct attn_kernel *kernel;
        for (size_t i = 0; (kernel = registry_entry(i)); i++) {
            if (strcmp(kernel->name, *name) != 0)
                continue;
            if (!summary)
                summary = kernel->summary;
            isa |= kernel->isa;
            dtypes |= kernel->dtypes;
        }
        for (uint32_t rule = 0; rule <= ATTN_MATMUL; rule++)
            rules |= registry_does(*name, rule) ? ATTN_BIT(rule) : 0;
        const uint64_t lacking = isa & ~isa_available();
        const struct registry_origin *origin = registry_origin(*name);
        json_t *object = list_entry(*name, summary);
        json_object_set_new(object, "source", json_string(origin->source));
        json_object_set_new(object, "isa", json_string(isa_names(isa)));
        json_object_set_new(object, "rules", bit_names(rules, ATTN_MATMUL + 1, rule_text));
        json_object_set_new(object, "dtypes", bit_names(dtypes, ATTN_F16 + 1, dtype_text));
        json_object_set_new(object, "runs_here",
                            origin->kind == REGISTRY_PEER && !lacking ? json_null() : json_boolean(!lacking));
        json_object_set_new(object, "reason",
                            lacking ? json_sprintf("not here: this machine lacks %s", isa_names(lacking))
                                    : json_null());
        json_array_append_new(array, object);
    }
    return array;
}

void kernels_list_ask_peers(json_t *kernels)
{
    size_t i;
    json_t *object;
    json_array_foreach(kernels, i, object)
    {
        const char *source;
        struct error why;
        if (!json_is_null(json_object_get(object, "runs_here")))
            continue;
        const int rc = foreign_probe(json_get_string(object, "name", ""), &source, &why);
        json_object_set_new(object, "runs_here", json_boolean(rc == 0));
        if (rc == 0)
            json_object_set_new(object, "runs", json_string(source));
        else
            json_object_set_new(object, "reason", json_sprintf("not here: %s", why.text));
    }
}
