/* SPDX-License-Identifier: Apache-2.0
 *
 * Files replaced as a whole; see whole_file.h.
 */
#include "whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int unwritten(struct error *error, int number, const char *path)
{
    int code = error_system(error, number, "%.400s could not be written", path);
    error->exit_code = EXIT_UNWRITTEN;
    return code;
}

/* A rename over the journal of a run that is under way would lose all that the run still writes. */
static bool is_being_written(const char *path)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return false;
    bool locked = flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    close(descriptor);
    return locked;
}

/* The permissions that the file has, or that a new one would get. */
static mode_t wanted_mode(const struct stat *status, bool exists)
{
    mode_t mask = umask(0);
    umask(mask);
    return exists ? status->st_mode & 07777 : 0666 & ~mask;
}

static int open_temporary(struct whole_file *file, mode_t mode)
{
    size_t size = strlen(file->path) + sizeof ".XXXXXX";
    int descriptor = -1;
    file->temporary = malloc(size);
    if (!file->temporary)
        return -ENOMEM;
    snprintf(file->temporary, size, "%s.XXXXXX", file->path);
    descriptor = mkstemp(file->temporary);
    if (descriptor < 0) {
        int number = errno;
        free(file->temporary);
        file->temporary = NULL;
        return -number;
    }
    /* Not every file system keeps permissions; the text matters more. */
    (void)!fchmod(descriptor, mode);
    file->stream = fdopen(descriptor, "w");
    if (file->stream)
        return 0;
    int number = errno;
    close(descriptor);
    return -number;
}

int whole_file_open(const char *path, struct whole_file *file, struct error *error)
{
    struct stat status;
    bool exists = stat(path, &status) == 0;
    int code;
    *file = (struct whole_file){.path = exists ? realpath(path, NULL) : strdup(path)};
    if (!file->path)
        return unwritten(error, errno, path);
    if (exists && !S_ISREG(status.st_mode)) {
        file->stream = S_ISDIR(status.st_mode) ? NULL : fopen(path, "we");
        code = file->stream ? 0 : S_ISDIR(status.st_mode) ? -EISDIR : -errno;
    } else if (exists && is_being_written(file->path)) {
        error_usage(error, "%.400s: a run is writing to it", path);
        error->exit_code = EXIT_UNWRITTEN;
        whole_file_abandon(file);
        return -EBUSY;
    } else {
        code = open_temporary(file, wanted_mode(&status, exists));
    }
    if (code) {
        whole_file_abandon(file);
        return unwritten(error, -code, path);
    }
    return 0;
}

int whole_file_check(const char *path, struct error *error)
{
    struct stat status;
    struct whole_file file;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
        return access(path, W_OK) == 0 ? 0 : unwritten(error, errno, path);
    int code = whole_file_open(path, &file, error);
    if (code == 0)
        whole_file_abandon(&file);
    return code;
}

int whole_file_commit(struct whole_file *file, struct error *error)
{
    int number = 0;
    if (fflush(file->stream) != 0 || ferror(file->stream))
        number = errno ? errno : EIO;
    if (number == 0 && file->temporary && fsync(fileno(file->stream)) != 0)
        number = errno;
    if (fclose(file->stream) != 0 && number == 0)
        number = errno;
    file->stream = NULL;
    if (number == 0 && file->temporary && rename(file->temporary, file->path) != 0)
        number = errno;
    int code = number ? unwritten(error, number, file->path) : 0;
    if (code == 0) {
        free(file->temporary);
        file->temporary = NULL;
    }
    whole_file_abandon(file);
    return code;
}

void whole_file_abandon(struct whole_file *file)
{
    if (file->stream)
        fclose(file->stream);
    if (file->temporary)
        unlink(file->temporary);
    free(file->temporary);
    free(file->path);
    *file = (struct whole_file){0};
}
