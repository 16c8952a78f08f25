/* SPDX-License-Identifier: Apache-2.0
 *
 * How the bandwidth loops walk a buffer: a round takes 16 vectors, four through each of four pointers, and then moves
 * all pointers by the same step. With one stream the four lie one behind the other; with two, two pointers share a
 * half of the buffer; with four, each has a quarter. So one loop serves every number of streams.
 */
#ifndef HARNESS_PROBE_QUARTERS_H
#define HARNESS_PROBE_QUARTERS_H

#include <stddef.h>
#include <stdint.h>

struct quarters {
    uintptr_t a, b, c, d;
    size_t step, rounds;
};

/* bytes: a multiple of 16 vectors and of streams. */
static inline struct quarters quarters_of(const void *buffer, size_t bytes, int streams, size_t vector_bytes)
{
    const uintptr_t a = (uintptr_t)buffer;
    const size_t quarter = 4 * vector_bytes, piece = bytes / (size_t)streams;
    struct quarters q = {
        a, a + quarter, a + 2 * quarter, a + 3 * quarter, 4 * quarter / (size_t)streams, bytes / (4 * quarter)};
    if (streams == 2) {
        q.c = a + piece;
        q.d = q.c + quarter;
    } else if (streams == 4) {
        q.b = a + piece;
        q.c = a + 2 * piece;
        q.d = a + 3 * piece;
    }
    return q;
}

/* XOR of the 64-bit lanes of a vector. */
static inline uint64_t quarters_fold(const uint64_t *lanes, size_t count)
{
    uint64_t whole = 0;
    for (size_t i = 0; i < count; i++)
        whole ^= lanes[i];
    return whole;
}

#endif
