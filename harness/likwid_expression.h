/* SPDX-License-Identifier: Apache-2.0
 *
 * LIKWID's expressions for CPUs, with the meaning that likwid-pin gives them; parts are joined by @.
 *
 *   0,2-5              OS indices, in the order written; a range may run backwards
 *   S0:0-3  L:S0:0-3   indices into a domain: one of each core first, then second siblings; L:0-3 is L:N:0-3
 *   S0                 all of a domain, siblings side by side
 *   E:S0:4             4 of a domain, siblings side by side, from its start again where it ends
 *   E:S0:4:1:2[:1]     in chunks of 1, one chunk every 2 entries [from entry 1 on]
 *   S:scatter[:4]      domains of a kind take turns, one of each core first
 *   S:balanced[:4]     the same number in each domain, siblings side by side
 *   S:cbalanced[:4]    the same, cores before siblings
 *
 * Domains: N (the machine), S<I> sockets, D<I> dies (sockets where hwloc tells of none), C<I> last-level caches
 * (sockets where hwloc tells of no cache), M<I> NUMA nodes as numa:I. They hold what may be used, and I counts those
 * that have a usable PU. M:scatter and its kin give each PU to the smallest node around it, so that a second kind of
 * memory with the same CPUs does not count twice.
 *
 * A part never has more entries than there are usable PUs: LIKWID cuts it there. Two things differ from LIKWID, since a
 * placement must be what was asked: plain numbers are OS indices inside a cpuset too, and an index that does not exist
 * is refused where LIKWID wraps it around or leaves it out.
 */
#ifndef HARNESS_LIKWID_EXPRESSION_H
#define HARNESS_LIKWID_EXPRESSION_H

#include "topology.h"

/* Is this text for likwid_resolve? (It begins with a digit or one of LIKWID's letters.) */
bool likwid_is_expression(const char *text);

/* *cpus: malloc'd, OS indices in thread order. *warning: interned, or NULL. Returns how many (at least 1), or -EINVAL,
 * -ENOMEM. */
int likwid_resolve(const struct topology *topology, const char *text, int32_t **cpus, const char **warning,
                   struct error *error);

#endif
