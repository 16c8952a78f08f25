/* SPDX-License-Identifier: Apache-2.0
 *
 * Open addressing with linear probing, at most half full; see digest_set.h.
 */
#include "digest_set.h"

#include <errno.h>
#include <stdlib.h>

static size_t find_slot(const struct digest_set *set, uint64_t digest)
{
    size_t slot = (size_t)(digest ^ digest >> 32) & (set->room - 1);
    while (set->numbers[slot] && set->digests[slot] != digest)
        slot = (slot + 1) & (set->room - 1);
    return slot;
}

static int grow(struct digest_set *set)
{
    struct digest_set larger = {.room = set->room ? 2 * set->room : 64, .count = set->count};
    larger.digests = malloc(larger.room * sizeof *larger.digests);
    larger.numbers = calloc(larger.room, sizeof *larger.numbers);
    if (!larger.digests || !larger.numbers) {
        digest_set_release(&larger);
        return -ENOMEM;
    }
    for (size_t i = 0; i < set->room; i++) {
        if (!set->numbers[i])
            continue;
        size_t slot = find_slot(&larger, set->digests[i]);
        larger.digests[slot] = set->digests[i];
        larger.numbers[slot] = set->numbers[i];
    }
    digest_set_release(set);
    *set = larger;
    return 0;
}

int digest_set_add(struct digest_set *set, uint64_t digest, size_t *number, bool *added)
{
    if (2 * (set->count + 1) > set->room && grow(set))
        return -ENOMEM;
    size_t slot = find_slot(set, digest);
    *added = !set->numbers[slot];
    if (*added) {
        set->digests[slot] = digest;
        set->numbers[slot] = ++set->count;
    }
    *number = set->numbers[slot] - 1;
    return 0;
}

void digest_set_release(struct digest_set *set)
{
    free(set->digests);
    free(set->numbers);
    *set = (struct digest_set){0};
}
