/* SPDX-License-Identifier: Apache-2.0
 *
 * One f32 rounded to a narrower type, to nearest, ties to even; in portable C, since schedules are compiled for the
 * baseline. Internal to kernels/schedule.
 */
#ifndef ATTN_SCHEDULE_ROUND_H
#define ATTN_SCHEDULE_ROUND_H

#include <stdint.h>
#include <string.h>

/* Infinities stay, what is beyond the largest value becomes one, NaN stays NaN (quiet). */
static inline uint16_t attn_round_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

/* Likewise; below 2^-14 the result is subnormal. */
static inline uint16_t attn_round_f16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
    if (magnitude >= 0x477ff000u) /* 65520: halfway between the largest f16 and the next power of two */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude < 0x38800000u) { /* below 2^-14: adding 1/2 leaves multiples of 2^-24 in the low bits, rounded */
        float shifted;
        memcpy(&shifted, &magnitude, sizeof shifted);
        shifted += 0.5f;
        memcpy(&bits, &shifted, sizeof bits);
        return (uint16_t)(sign | (bits - 0x3f000000u));
    }
    /* 112: the difference of the exponents' biases, 127 and 15 */
    return (uint16_t)(sign | ((magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1)) >> 13));
}

#endif
