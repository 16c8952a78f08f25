/* SPDX-License-Identifier: Apache-2.0
 *
 * Load latency by pointer chasing: each cache line of a buffer holds the address of another, in one random cycle
 * through all of them, so that no load can begin before the one ahead of it has ended, and no prefetcher can guess.
 */
#ifndef HARNESS_LATENCY_H
#define HARNESS_LATENCY_H

#include <stddef.h>
#include <stdint.h>

/* Writes a cycle through all bytes / line_bytes lines (at least one) of the buffer. The same seed gives the same one
 * (Sattolo, Information Processing Letters 22, 1986: a uniformly random cyclic permutation). */
void latency_link(void *buffer, size_t bytes, size_t line_bytes, uint64_t seed);

/* Takes steps loads from a line on; returns the line where it ends. */
void *latency_chase(void *line, uint64_t steps);

#endif
