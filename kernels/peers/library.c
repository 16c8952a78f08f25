/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening peer libraries; see library.h.
 */
#include "library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Opens folder/name. A file that is not there leaves the reason alone: others may follow. */
static bool open_in(struct peer_library *library, const char *folder, size_t length, const char *name)
{
    char path[PATH_MAX];
    const int written = snprintf(path, sizeof path, "%.*s/%s", (int)length, folder, name);
    if (length == 0 || written < 0 || (size_t)written >= sizeof path || access(path, F_OK) != 0)
        return false;
    library->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library->handle)
        snprintf(library->reason, sizeof library->reason, "%s cannot be opened: %.500s", path, dlerror());
    return library->handle;
}

static bool open_in_folders(struct peer_library *library, const char *folders)
{
    while (folders && *folders) {
        const size_t length = strcspn(folders, ":");
        for (const char *const *name = library->names; *name; name++)
            if (open_in(library, folders, length, *name))
                return true;
        folders += length + (folders[length] == ':');
    }
    return false;
}

bool peer_library_open(struct peer_library *library)
{
    if (library->handle)
        return true;
    library->reason[0] = '\0';
    if (open_in_folders(library, getenv("ATTNBENCH_PEER_PATH")))
        return true;
    for (const char *const *name = library->names; *name; name++) {
        library->handle = dlopen(*name, RTLD_NOW | RTLD_LOCAL);
        if (library->handle)
            return true;
        if (!library->reason[0]) /* of the name that is wanted most */
            snprintf(library->reason, sizeof library->reason, "%s cannot be opened: %.500s; %s", *name, dlerror(),
                     library->remedy);
    }
    return false;
}

void *peer_library_symbol(const struct peer_library *library, const char *name)
{
    return dlsym(library->handle, name);
}

void peer_library_may(const struct peer_library *library, const char *name, void *function)
{
    /* POSIX lets a pointer to a function be had from dlsym; ISO C has no cast for it. */
    void *const symbol = dlsym(library->handle, name);
    memcpy(function, &symbol, sizeof symbol);
}

bool peer_library_need(struct peer_library *library, const char *name, void *function)
{
    void *const symbol = dlsym(library->handle, name);
    memcpy(function, &symbol, sizeof symbol);
    if (!symbol) {
        snprintf(library->reason, sizeof library->reason, "%s has no function %.80s", library->path, name);
        return false;
    }
    Dl_info info;
    if (!library->path[0] && dladdr(symbol, &info) && info.dli_fname && !realpath(info.dli_fname, library->path))
        snprintf(library->path, sizeof library->path, "%s", info.dli_fname);
    return true;
}
