/* SPDX-License-Identifier: Apache-2.0
 *
 * A file's content on pages of its own.
 */
#ifndef HARNESS_FILE_COPY_H
#define HARNESS_FILE_COPY_H

#include "error.h"

/* A copy in memory (memfd), which /proc/self/maps shows as name (its first 249 bytes) and which is gone when *copy is
 * closed. 0 or -errno with a message that names the path; *copy is then -1. */
int file_copy(const char *path, const char *name, int *copy, struct error *error);

#endif
