/* SPDX-License-Identifier: Apache-2.0
 *
 * A file's content on pages of its own; see file_copy.h.
 */
#include "file_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

int file_copy(const char *path, const char *name, int *copy, struct error *error)
{
    char shown[250]; /* a memfd has no longer name */
    struct stat status;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    off_t at = 0;
    int rc = 0;
    snprintf(shown, sizeof shown, "%s", name);
    *copy = memfd_create(shown, MFD_CLOEXEC);
    if (file < 0 || *copy < 0 || fstat(file, &status) < 0)
        rc = error_system(error, errno, "%s: a copy of it", path);
    while (rc == 0 && at < status.st_size) {
        const ssize_t sent = sendfile(*copy, file, &at, (size_t)(status.st_size - at));
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            rc = error_system(error, sent < 0 ? errno : EIO, "%s: a copy of it", path);
    }
    if (file >= 0)
        close(file);
    if (rc < 0 && *copy >= 0) {
        close(*copy);
        *copy = -1;
    }
    return rc;
}
