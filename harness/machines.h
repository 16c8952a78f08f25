/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose record is it: results of several machines told apart by the contexts that their records name.
 */
#ifndef HARNESS_MACHINES_H
#define HARNESS_MACHINES_H

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

/* The context whose run_id the record bears, else the first one; NULL: there is no context. Borrowed. */
const json_t *machines_context_of(const json_t *contexts, const json_t *record);

/* The results of one machine. */
struct machine {
    const char *key;            /* machine_key of its contexts, "" where they have none; borrowed from them */
    json_t *contexts, *records; /* arrays, in the order in which they were given */
};

/* Machines in the order in which their first context stands; at least one. *count: how many. Release with
 * machines_release. */
struct machine *machines_split(const json_t *contexts, const json_t *records, size_t *count);
void machines_release(struct machine *machines, size_t count);

/* "AMD EPYC 7763, 64 cores, 128 hardware threads (machine 0f3a…)", as far as it is known: which machine it is, for
 * those who see several. */
void machine_title(const struct machine *machine, char *out, size_t size);

#endif
