/* SPDX-License-Identifier: Apache-2.0
 *
 * Digests of files; see file_digest.h.
 */
#include "file_digest.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "fnv.h"
#include "intern.h"

const char *file_digest(const char *path)
{
    unsigned char bytes[1 << 16];
    uint64_t digest = FNV_START;
    FILE *file = fopen(path, "re");
    if (!file)
        return NULL;
    for (size_t size; (size = fread(bytes, 1, sizeof bytes, file)) > 0;)
        digest = fnv(digest, bytes, size);
    const bool whole = !ferror(file);
    fclose(file);
    return whole ? intern_format("%016" PRIx64, digest) : NULL;
}
