/* SPDX-License-Identifier: Apache-2.0
 *
 * LIKWID's affinity domains: N, S0, D0, C0, M0 ...; see likwid_expression.h.
 */
#ifndef HARNESS_LIKWID_DOMAIN_H
#define HARNESS_LIKWID_DOMAIN_H

#include "topology.h"

/* Is this the letter of a kind of domain (N, S, D, C, M)? */
bool likwid_is_domain(char letter);
/* How many domains of a kind there are. */
int likwid_domain_count(const struct topology *topology, char letter);
/* What they are called in messages: "socket". */
const char *likwid_domain_name(char letter);
/* The usable PUs of one domain into set. once: each PU in one domain of its kind at most. */
void likwid_domain_pus(const struct topology *topology, char letter, int index, bool once, hwloc_bitmap_t set);

#endif
