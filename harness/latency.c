/* SPDX-License-Identifier: Apache-2.0
 *
 * Building and following the cycle; see latency.h.
 */
#include "latency.h"

/* splitmix64 (Steele, Lea, Flood, OOPSLA 2014). */
static uint64_t next_random(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static void **slot(void *buffer, size_t line_bytes, size_t line)
{
    return (void **)((char *)buffer + line * line_bytes);
}

void latency_link(void *buffer, size_t bytes, size_t line_bytes, uint64_t seed)
{
    const size_t lines = bytes / line_bytes;
    for (size_t i = 0; i < lines; i++)
        *slot(buffer, line_bytes, i) = slot(buffer, line_bytes, i);
    /* Exchanging only with a line before it, never with itself, is what joins all of them into one cycle. */
    for (size_t i = lines; i-- > 1;) {
        void **one = slot(buffer, line_bytes, i);
        void **other = slot(buffer, line_bytes, next_random(&seed) % i);
        void *kept = *one;
        *one = *other;
        *other = kept;
    }
}

void *latency_chase(void *line, uint64_t steps)
{
    void *at = line;
    uint64_t n = steps;
    for (; n >= 8; n -= 8) {
        at = *(void **)at;
        at = *(void **)at;
        at = *(void **)at;
        at = *(void **)at;
        at = *(void **)at;
        at = *(void **)at;
        at = *(void **)at;
        at = *(void **)at;
    }
    for (; n; n--)
        at = *(void **)at;
    __asm__ volatile("" : "+r"(at)); /* the loads are wanted */
    return at;
}
