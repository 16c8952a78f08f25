/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels of a shared object, as kernels/attn.h lets a user write them.
 */
#ifndef HARNESS_PLUGIN_H
#define HARNESS_PLUGIN_H

#include "../kernels/attn.h"
#include "error.h"

struct plugin {
    void *handle;
    const char *path;                         /* interned */
    const struct attn_kernel *const *kernels; /* NULL-terminated, owned by the object */
    int count;
};

/*
 * Opens path (beside others: no symbol of one object is seen by another) and checks that it can be used: the function
 * attn_kernels, the ABI number, and of each entry what a caller relies on. Its code runs in this process, so this is
 * for processes that may die. The message names the file and what is wrong; exit code 2, or 4 for another ABI.
 */
int plugin_open(const char *path, struct plugin *plugin, struct error *error);

#endif
