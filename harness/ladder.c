/* SPDX-License-Identifier: Apache-2.0
 *
 * The informative series of placements of a machine; see placement.h.
 */
#include <errno.h>

#include "intern.h"
#include "placement.h"

#define ONE_A_CORE "/nosmt"

/* siblings: all of its threads, else one a core. */
static const struct {
    const char *name;
    bool siblings;
} steps[LADDER_MAX] = {
    {"core:0", false},   {"core:0", true},  {"l3:0", false}, {"l3:each", false}, {"numa:0", false},
    {"socket:0", false}, {"compact", true}, {"all", true},   {"pcores", false},  {"ecores", false},
};

/* The CPUs of a placement into set. 0; -EINVAL where there is none here. */
static int set_of(const struct topology *topology, const char *name, hwloc_bitmap_t set, struct error *error)
{
    struct placement placement;
    const int code = placement_resolve(topology, name, 0, &placement, error);
    if (code)
        return code;
    hwloc_bitmap_zero(set);
    for (int t = 0; t < placement.threads; t++)
        hwloc_bitmap_set(set, (unsigned)placement.cpus[t]);
    placement_release(&placement);
    return 0;
}

int placement_ladder(const struct topology *topology, const char *names[LADDER_MAX], struct error *error)
{
    hwloc_bitmap_t sets[LADDER_MAX], whole = hwloc_bitmap_alloc();
    int count = 0, code = 0;
    for (int s = 0; s < LADDER_MAX && code == 0; s++) {
        const char *name = steps[s].siblings ? steps[s].name : intern_format("%s%s", steps[s].name, ONE_A_CORE);
        sets[count] = hwloc_bitmap_alloc();
        code = set_of(topology, name, sets[count], error);
        bool known = false;
        for (int earlier = 0; earlier < count; earlier++)
            known |= hwloc_bitmap_isequal(sets[earlier], sets[count]);
        if (code == 0 && !known) {
            /* The short name where siblings make no difference. */
            const bool plain =
                set_of(topology, steps[s].name, whole, error) == 0 && hwloc_bitmap_isequal(whole, sets[count]);
            names[count++] = plain ? steps[s].name : name;
        } else {
            hwloc_bitmap_free(sets[count]);
        }
        if (code == -EINVAL) /* there is no such thing here */
            code = 0;
    }
    for (int s = 0; s < count; s++)
        hwloc_bitmap_free(sets[s]);
    hwloc_bitmap_free(whole);
    return code ? code : count;
}
