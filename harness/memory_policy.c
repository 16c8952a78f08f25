/* SPDX-License-Identifier: Apache-2.0
 *
 * Resolving and applying memory policies by hwloc; see memory_policy.h.
 */
#include "memory_policy.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "intern.h"

/* What the worker has adopted. One policy a process: a worker serves one placement and one policy. */
static struct {
    hwloc_topology_t hwloc; /* NULL: local */
    hwloc_nodeset_t nodes;
    hwloc_membind_policy_t policy;
} adopted;

/* The I of node:I; -1: not of this form. */
static int node_index(const char *text)
{
    if (strncmp(text, "node:", 5) != 0 || !isdigit((unsigned char)text[5]) || strlen(text) > 5 + 5)
        return -1;
    char *end;
    long index = strtol(text + 5, &end, 10);
    return *end ? -1 : (int)index;
}

static bool is_local(const char *policy)
{
    return !policy || strcmp(policy, "local") == 0;
}

bool memory_policy_is_one(const char *text)
{
    return is_local(text) || strcmp(text, "interleave") == 0 || node_index(text) >= 0;
}

hwloc_obj_t memory_node(const struct topology *topology, int index)
{
    hwloc_const_nodeset_t allowed = hwloc_topology_get_allowed_nodeset(topology->hwloc);
    hwloc_obj_t node = NULL;
    while ((node = hwloc_get_next_obj_by_type(topology->hwloc, HWLOC_OBJ_NUMANODE, node))) {
        /* Recorded and synthetic machines may not tell sizes: there any node counts. */
        bool has_memory = node->attr->numanode.local_memory > 0 || !topology->this_system;
        if (hwloc_bitmap_isset(allowed, node->os_index) && has_memory && index-- == 0)
            return node;
    }
    return NULL;
}

int memory_policy_check(const struct topology *topology, const char *policy, const char **reason, struct error *error)
{
    *reason = NULL;
    if (is_local(policy))
        return 0;
    int index = node_index(policy), count = 0;
    while (memory_node(topology, count))
        count++;
    if (index >= count)
        return error_usage(error,
                           "--mem %s: this machine has %d NUMA node%s with memory that may be used (from node:0)",
                           policy, count, count == 1 ? "" : "s");
    const struct hwloc_topology_membind_support *can = hwloc_topology_get_support(topology->hwloc)->membind;
    bool able = can->set_area_membind && (index >= 0 ? can->bind_membind : can->interleave_membind);
    if (topology->this_system && !able)
        *reason = intern_format("this system cannot place memory as --mem %s asks", policy);
    return 0;
}

json_t *memory_policy_to_json(const struct topology *topology, const char *policy)
{
    if (is_local(policy))
        return json_null();
    json_t *nodes = json_array();
    const int index = node_index(policy);
    hwloc_obj_t node;
    for (int n = 0; (node = memory_node(topology, n)); n++)
        if (index < 0 || n == index)
            json_array_append_new(nodes, json_integer(node->os_index));
    return json_pack("{s:b,s:o}", "interleave", index < 0, "nodes", nodes);
}

/* hwloc's handle of this process for binding: disallowed objects kept, so that node numbers are the system's. */
static hwloc_topology_t binder(void)
{
    static hwloc_topology_t hwloc;
    if (hwloc)
        return hwloc;
    if (hwloc_topology_init(&hwloc) == 0 &&
        hwloc_topology_set_flags(hwloc, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) == 0 && hwloc_topology_load(hwloc) == 0)
        return hwloc;
    if (hwloc)
        hwloc_topology_destroy(hwloc);
    hwloc = NULL;
    return NULL;
}

int memory_policy_adopt(const json_t *policy, struct error *error)
{
    hwloc_bitmap_free(adopted.nodes);
    adopted.nodes = NULL;
    adopted.hwloc = NULL;
    if (!json_is_object(policy))
        return 0;
    size_t i;
    json_t *node;
    adopted.nodes = hwloc_bitmap_alloc();
    if (!binder() || !adopted.nodes)
        return error_system(error, ENOMEM, "memory cannot be placed: hwloc can't load the topology");
    json_array_foreach(json_object_get(policy, "nodes"), i, node)
        hwloc_bitmap_set(adopted.nodes, (unsigned)json_integer_value(node));
    adopted.policy =
        json_is_true(json_object_get(policy, "interleave")) ? HWLOC_MEMBIND_INTERLEAVE : HWLOC_MEMBIND_BIND;
    adopted.hwloc = binder();
    return 0;
}

int memory_policy_bind(void *base, size_t bytes)
{
    if (!adopted.hwloc || bytes == 0)
        return 0;
    int flags = HWLOC_MEMBIND_BYNODESET | HWLOC_MEMBIND_STRICT;
    return hwloc_set_area_membind(adopted.hwloc, base, bytes, adopted.nodes, adopted.policy, flags) == 0 ? 0 : errno;
}

json_t *memory_policy_found(const void *base, size_t bytes)
{
    hwloc_nodeset_t nodes = hwloc_bitmap_alloc();
    json_t *list = NULL;
    if (binder() && nodes && bytes > 0 &&
        hwloc_get_area_memlocation(binder(), base, bytes, nodes, HWLOC_MEMBIND_BYNODESET) == 0) {
        list = json_array();
        for (int n = hwloc_bitmap_first(nodes); n >= 0; n = hwloc_bitmap_next(nodes, n))
            json_array_append_new(list, json_integer(n));
    }
    hwloc_bitmap_free(nodes);
    return list;
}
