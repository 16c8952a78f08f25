/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading a file of either kind; see history_import.h.
 */
#include "history_import.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "json_util.h"

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

/* A duet's file is one JSON document; a journal is lines, of which the first is a context. *duet NULL: it is not a
 * duet's, and the journal's reader tells what is wrong if it is none either. */
static int parse_duet(const char *text, size_t size, const char *name, json_t **duet, struct error *error)
{
    json_error_t broken = {0};
    *duet = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_DISABLE_EOF_CHECK, &broken);
    if (!*duet) {
        if (!memmem(text, size, "attnbench.duet/", strlen("attnbench.duet/")))
            return 0;
        for (char *c = broken.text; *c; c++) /* it may quote what would break the line of the message */
            *c = (unsigned char)*c < ' ' || *c == 127 ? ' ' : *c;
        return error_usage(error, "%.600s:%d: not JSON: %s", name, broken.line, broken.text);
    }
    const char *schema = json_get_string(*duet, "schema", "");
    bool is_duet = strncmp(schema, "attnbench.duet/", strlen("attnbench.duet/")) == 0;
    if (is_duet && strcmp(schema, DUET_SCHEMA) != 0)
        return error_usage(error, "%.600s: schema \"%.100s\" is of another version of attnbench; known is " DUET_SCHEMA,
                           name, schema);
    for (size_t i = (size_t)broken.position; is_duet && i < size; i++) {
        if (!memchr(" \t\r\n", text[i], 4))
            return error_usage(error, "%.600s: text after the end of the document", name);
    }
    if (!is_duet) {
        json_decref(*duet);
        *duet = NULL;
    }
    return 0;
}

static int import_text(struct history *history, const char *text, size_t size, const char *name,
                       struct history_imported *imported, struct error *error)
{
    json_t *duet = NULL;
    int code = parse_duet(text, size, name, &duet, error);
    if (code == 0 && duet) {
        code = history_import_duet(history, duet, name, imported, error);
    } else if (code == 0) {
        FILE *lines = fmemopen((char *)text, size, "r");
        if (!lines)
            return error_system(error, errno, "%.700s", name);
        code = history_import_journal(history, lines, name, imported, error);
        fclose(lines);
    }
    json_decref(duet);
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
