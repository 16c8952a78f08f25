/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens a peer library at run time, so that neither the build nor the program needs it.
 */
#ifndef KERNELS_PEERS_LIBRARY_H
#define KERNELS_PEERS_LIBRARY_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct peer_library {
    const char *const *names; /* file names to try, NULL-terminated, the best first */
    const char *remedy;       /* what installs it, as it ends a sentence: "the package libopenblas-dev installs it" */
    void *handle;             /* NULL: not open */
    char path[PATH_MAX];      /* of the file that is really mapped, symbolic links followed */
    char reason[PATH_MAX + 600]; /* why it is not open, or what is wrong with it */
};

/* Opens the first of library->names that can be: in each folder of ATTNBENCH_PEER_PATH (colon-separated), then where
 * the dynamic linker looks. Does nothing if it is open; it is never closed, since many libraries do not survive that.
 * False, with the reason, if none can be opened. */
bool peer_library_open(struct peer_library *library);

/* Address of a function, or NULL. */
void *peer_library_symbol(const struct peer_library *library, const char *name);

/* Stores the address of a function that is needed in *function, a pointer to a function; false with the reason if the
 * library has none of this name. The first one found tells library->path. */
bool peer_library_need(struct peer_library *library, const char *name, void *function);

/* As peer_library_need without a reason: *function stays NULL if the library has none of this name. */
void peer_library_may(const struct peer_library *library, const char *name, void *function);

#endif
