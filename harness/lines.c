/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON lines over a pipe; see lines.h.
 */
#include "lines.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int take_line(struct lines *lines, json_t **object)
{
    char *end = lines->used ? memchr(lines->buffer, '\n', lines->used) : NULL;
    if (!end)
        return -EAGAIN;
    size_t length = (size_t)(end - lines->buffer);
    *object = json_loadb(lines->buffer, length, 0, NULL);
    lines->used -= length + 1;
    memmove(lines->buffer, end + 1, lines->used);
    if (!json_is_object(*object)) {
        json_decref(*object);
        *object = NULL;
        return -EPROTO;
    }
    return 0;
}

int lines_read(struct lines *lines, int timeout_ms, json_t **object)
{
    for (;;) {
        int rc = take_line(lines, object);
        if (rc != -EAGAIN)
            return rc;
        struct pollfd wait = {.fd = lines->fd, .events = POLLIN};
        int ready = poll(&wait, 1, timeout_ms);
        if (ready < 0)
            return -errno;
        if (ready == 0)
            return -ETIMEDOUT;
        if (lines->capacity - lines->used < 4096) {
            size_t capacity = lines->capacity ? 2 * lines->capacity : 65536;
            char *grown = realloc(lines->buffer, capacity);
            if (!grown)
                return -ENOMEM;
            lines->buffer = grown;
            lines->capacity = capacity;
        }
        ssize_t n = read(lines->fd, lines->buffer + lines->used, lines->capacity - lines->used);
        if (n < 0)
            return -errno;
        if (n == 0)
            return -EPIPE;
        lines->used += (size_t)n;
    }
}

int lines_write(int fd, json_t *object)
{
    char *text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_decref(object);
    if (!text)
        return -EPROTO;
    size_t length = strlen(text), done = 0;
    text[length++] = '\n'; /* takes the place of the terminator: from here on it is a block, not a string */
    int rc = 0;
    while (done < length) {
        ssize_t n = write(fd, text + done, length - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            rc = -errno;
            break;
        }
        done += (size_t)n;
    }
    free(text);
    return rc;
}

void lines_release(struct lines *lines)
{
    free(lines->buffer);
    *lines = (struct lines){.fd = -1};
}
