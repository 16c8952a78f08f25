/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading a file of either kind; see history_import.h.
 */
#include "history_import.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* malloc'd, also of an empty file; NULL where memory is exhausted. */
static char *read_all(FILE *file, size_t *size)
{
    size_t capacity = 1 << 16;
    char *text = malloc(capacity);
    *size = 0;
    while (text && !feof(file) && !ferror(file)) {
        *size += fread(text + *size, 1, capacity - *size, file);
        if (*size < capacity)
            continue;
        capacity *= 2;
        char *grown = realloc(text, capacity);
        if (!grown)
            free(text);
        text = grown;
    }
    return text;
}

static int import_text(struct history *history, const char *text, size_t size, const char *name,
                       struct history_imported *imported, struct error *error)
{
    json_t *duets;
    int code = history_read_duets(text, size, name, &duets, &imported->torn, error);
    if (code == 0 && duets) {
        code = history_import_duets(history, duets, name, imported, error);
    } else if (code == 0) {
        FILE *lines = fmemopen((char *)text, size, "r");
        if (!lines)
            return error_system(error, errno, "%.700s", name);
        code = history_import_journal(history, lines, name, imported, error);
        fclose(lines);
    }
    json_decref(duets);
    return code;
}

int history_import(struct history *history, const char *path, struct history_imported *imported, struct error *error)
{
    bool standard_input = strcmp(path, "-") == 0;
    const char *name = standard_input ? "standard input" : path;
    FILE *file = standard_input ? stdin : fopen(path, "re");
    size_t size;
    *imported = (struct history_imported){0};
    if (!file)
        return error_usage(error, "results file %.700s: %s", path, strerror(errno));
    char *text = read_all(file, &size);
    int code = !text          ? error_system(error, ENOMEM, "%.700s", name)
               : ferror(file) ? error_usage(error, "%.700s: cannot be read: %s", name, strerror(errno))
                              : import_text(history, text, size, name, imported, error);
    free(text);
    if (!standard_input)
        fclose(file);
    return code;
}
