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

static char *read_list(const char *format, va_list list)
{
    char path[4096];
    int used = snprintf(path, sizeof path, "%s", system_root());
    if (used < 0 || (size_t)used >= sizeof path)
        return NULL;
    int more = vsnprintf(path + used, sizeof path - (size_t)used, format, list);
    if (more < 0 || (size_t)more >= sizeof path - (size_t)used)
        return NULL;
    FILE *file = fopen(path, "re");
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
    va_list list;
    va_start(list, format);
    char *text = read_list(format, list);
    va_end(list);
    return text;
}

const char *system_line(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    char *text = read_list(format, list);
    va_end(list);
    if (!text)
        return NULL;
    size_t length = strcspn(text, "\n");
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        length--;
    text[length] = '\0';
    const char *line = intern(text);
    free(text);
    return line;
}

bool system_number(double *number, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    char *text = read_list(format, list), *end = text;
    va_end(list);
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
