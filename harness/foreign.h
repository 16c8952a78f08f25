/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels that this process knows of but never runs: what plug-ins and peers tell of themselves, asked in a process
 * that may die of it.
 */
#ifndef HARNESS_FOREIGN_H
#define HARNESS_FOREIGN_H

#include <jansson.h>

#include "error.h"
#include "values.h"

/* Where ".so" begins in the last part of a path that names a shared object: "my.software/libx.so", "libx.so.1",
 * "libx.so:avx2". What folders are called doesn't matter. NULL: it names none. */
const char *foreign_library_suffix(const char *path);

/* Adds the kernels of every file to the registry: shared objects (FILE.so), or programs that speak the peer protocol.
 * A file that was added before is left alone. Exit code 2 where a file is none of them, 4 where its ABI is another. */
int foreign_add_plugins(const struct value_list *files, struct error *error);

/* Adds what a shared object tells of its kernels with prefix before each name, so that two builds of one kernel can be
 * told apart. Errors as above. */
int foreign_add_library(const char *file, const char *prefix, struct error *error);

/* Asks a kernel's peer whether it can run here. *source: what runs (interned). -ENOTSUP and the reason: it can't. */
int foreign_probe(const char *kernel, const char **source, struct error *error);

#endif
