/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading /proc and /sys; see system_files.h.
 */
#include "system_files.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "intern.h"

const char *system_root(void)
{
    const char *root = getenv("ATTNBENCH_FS_ROOT");
    return root ? root : "";
}

enum { PATH_BYTES = 4096 };

/* Where a path that was printed into path (length by printf's return) leads under system_root; NULL: too long. */
static FILE *open_under_root(const char *path, int length)
{
    char whole[2 * PATH_BYTES];
    if (length < 0 || length >= PATH_BYTES)
        return NULL;
    int used = snprintf(whole, sizeof whole, "%s%s", system_root(), path);
    return used >= 0 && (size_t)used < sizeof whole ? fopen(whole, "re") : NULL;
}

static char *read_all(FILE *file)
{
    if (!file)
        return NULL;
    /* These files tell no size: read until the end. */
    size_t length = 0, capacity = 4096;
    char *text = malloc(capacity);
    while (text) {
        length += fread(text + length, 1, capacity - length - 1, file);
        if (length + 1 < capacity)
            break;
        char *grown = realloc(text, capacity *= 2);
        if (!grown)
            free(text);
        text = grown;
    }
    if (text && ferror(file)) {
        free(text);
        text = NULL;
    }
    if (text)
        text[length] = '\0';
    fclose(file);
    return text;
}

char *system_read(const char *format, ...)
{
    char path[PATH_BYTES];
    va_list list;
    va_start(list, format);
    int length = vsnprintf(path, sizeof path, format, list);
    va_end(list);
    return read_all(open_under_root(path, length));
}

const char *system_line(const char *format, ...)
{
    char path[PATH_BYTES];
    va_list list;
    va_start(list, format);
    int length = vsnprintf(path, sizeof path, format, list);
    va_end(list);
    char *text = read_all(open_under_root(path, length));
    if (!text)
        return NULL;
    size_t used = strcspn(text, "\n");
    while (used > 0 && isspace((unsigned char)text[used - 1]))
        used--;
    text[used] = '\0';
    const char *line = intern(text);
    free(text);
    return line;
}

bool system_number(double *number, const char *format, ...)
{
    char path[PATH_BYTES];
    va_list list;
    va_start(list, format);
    int length = vsnprintf(path, sizeof path, format, list);
    va_end(list);
    char *text = read_all(open_under_root(path, length)), *end = text;
    if (text)
        *number = strtod(text, &end);
    bool found = end != text;
    free(text);
    return found;
}

bool keyed_number(const char *text, const char *key, double *number)
{
    const size_t length = strlen(key);
    for (const char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        if (strncmp(line, key, length) != 0 || (line[length] != ':' && line[length] != ' ' && line[length] != '\t'))
            continue;
        char *end;
        const char *value = line + length + strspn(line + length, ": \t");
        *number = strtod(value, &end);
        return end != value;
    }
    return false;
}
