/* SPDX-License-Identifier: Apache-2.0
 *
 * Which series a point belongs to: what must be the same for two figures to be comparable.
 */
#ifndef HARNESS_HISTORY_KEY_H
#define HARNESS_HISTORY_KEY_H

#include <jansson.h>
#include <stdint.h>

enum { HISTORY_KEY_BYTES = 17 };

struct history_key {
    /* Borrowed from the context and the point; "" where they don't tell. */
    const char *machine_key, *compiler, *flags, *kernel_release, *page_mode, *rule, *dtype, *kernel, *schedule,
        *placement, *mem, *cache;
    const char *anchor; /* "": times */
    int64_t threads;
    char *problem; /* in words */
    char problem_key[HISTORY_KEY_BYTES], key[HISTORY_KEY_BYTES];
};

/* The key of a record of a results file, or of a point of a duet (anchor: what it was held against). schedule is the
 * one asked for: a series of `auto` goes on where it chooses another. Release with history_key_release. */
void history_key_of(const json_t *context, const json_t *point, const char *anchor, struct history_key *key);
void history_key_release(struct history_key *key);

#endif
