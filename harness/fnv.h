/* SPDX-License-Identifier: Apache-2.0
 *
 * FNV-1a of 64 bits (Fowler, Noll, Vo): tells things apart, and is no protection against somebody who means to deceive.
 */
#ifndef HARNESS_FNV_H
#define HARNESS_FNV_H

#include <stddef.h>
#include <stdint.h>

#define FNV_START UINT64_C(0xcbf29ce484222325)

/* The digest of what digest stands for, followed by these bytes. */
static inline uint64_t fnv(uint64_t digest, const void *bytes, size_t size)
{
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < size; i++)
        digest = (digest ^ byte[i]) * UINT64_C(0x100000001b3);
    return digest;
}

#endif
