/* SPDX-License-Identifier: Apache-2.0
 *
 * A file that is there whole or not at all: written beside its place, then put there by one rename. What stood there
 * before stays until then, so it may be what the new text is made from.
 */
#ifndef HARNESS_WHOLE_FILE_H
#define HARNESS_WHOLE_FILE_H

#include <stdio.h>

#include "error.h"

struct whole_file {
    FILE *stream;
    char *path, *temporary; /* temporary: NULL where path is no regular file (a pipe, a device): written directly */
};

/* Errors have exit_code EXIT_UNWRITTEN. A symbolic link is followed; a results file that a run is writing to is
 * refused. */
int whole_file_open(const char *path, struct whole_file *file, struct error *error);
/* Whether it could be opened now, for what takes long to make: with the same errors, and nothing is left behind. Of a
 * pipe or device only the permission is asked, as its reader would notice more. */
int whole_file_check(const char *path, struct error *error);
/* Flushes to the disk and puts the file in its place. Whatever the outcome the file is closed and released; on failure
 * what stood there before is as it was. */
int whole_file_commit(struct whole_file *file, struct error *error);
/* Leaves what stood there before. */
void whole_file_abandon(struct whole_file *file);

#endif
