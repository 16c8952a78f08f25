/* SPDX-License-Identifier: Apache-2.0
 *
 * A set of 64-bit digests that numbers them in the order of their first appearance.
 */
#ifndef HARNESS_DIGEST_SET_H
#define HARNESS_DIGEST_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct digest_set { /* all zero: empty */
    uint64_t *digests;
    size_t *numbers; /* 0: a free slot; else number + 1 */
    size_t room, count;
};

/* Enters a digest if it is new (*added). *number: how many distinct ones came before it. 0 or -ENOMEM. */
int digest_set_add(struct digest_set *set, uint64_t digest, size_t *number, bool *added);
void digest_set_release(struct digest_set *set);

#endif
