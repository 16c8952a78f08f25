/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON lines over a pipe: how coordinator, workers and referee talk.
 */
#ifndef HARNESS_LINES_H
#define HARNESS_LINES_H

#include <jansson.h>
#include <stddef.h>

struct lines {
    int fd;
    char *buffer;
    size_t used, capacity;
};

/* Reads one line as an object. timeout_ms < 0: waits for ever. 0; -ETIMEDOUT; -EINTR after a signal; -EPIPE at the end
 * of the stream; -EPROTO for a line that is not a JSON object; -errno. The caller owns *object. */
int lines_read(struct lines *lines, int timeout_ms, json_t **object);

/* Writes object as one line. Steals the reference. 0 or -errno (-EPIPE: the other side is gone). */
int lines_write(int fd, json_t *object);

void lines_release(struct lines *lines);

#endif
