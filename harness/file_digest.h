/* SPDX-License-Identifier: Apache-2.0
 *
 * What a file is by its content: a path says nothing of what stands there.
 */
#ifndef HARNESS_FILE_DIGEST_H
#define HARNESS_FILE_DIGEST_H

/* Of the bytes of the file (fnv.h), as 16 hexadecimal digits, interned. NULL: it can't be read. */
const char *file_digest(const char *path);

#endif
