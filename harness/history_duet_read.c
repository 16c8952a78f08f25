/* SPDX-License-Identifier: Apache-2.0
 *
 * The two forms in which duets are written: lines as `duet --out` appends them, a context and then a record a point;
 * and one document with "points", as `duet -o json` prints it. Both become documents; see history_import.h.
 */
#include <errno.h>
#include <string.h>

#include "history_import.h"
#include "journal.h"
#include "json_util.h"

static const char family[] = "attnbench.duet/";

/* One line of a file of lines; text is the rest of the file from it on. */
struct line {
    const char *text;
    size_t length; /* without its newline */
    bool whole;    /* it has one */
    int number;
};

static bool next_line(struct line *line, const char *text, size_t size)
{
    const char *from = line->text ? line->text + line->length + line->whole : text;
    size_t left = size - (size_t)(from - text);
    const char *end = left ? memchr(from, '\n', left) : NULL;
    *line = (struct line){from, end ? (size_t)(end - from) : left, end != NULL, line->number + 1};
    return left > 0;
}

static bool is_duet_schema(const json_t *object)
{
    return strncmp(json_get_string(object, "schema", ""), family, strlen(family)) == 0;
}

static int check_schema(const json_t *object, const char *where, int number, struct error *error)
{
    const char *schema = json_get_string(object, "schema", DUET_SCHEMA);
    if (strcmp(schema, DUET_SCHEMA) == 0)
        return 0;
    return error_usage(error, "%.600s:%d: schema \"%.100s\" is not " DUET_SCHEMA ", the one that this attnbench knows",
                       where, number, schema);
}

/* The parser quotes what it stumbled over, which could break the one line of the message. */
static int refuse_json(const char *name, int number, json_error_t *broken, struct error *error)
{
    for (char *c = broken->text; *c; c++)
        *c = (unsigned char)*c < ' ' || *c == 127 ? ' ' : *c;
    return error_usage(error, "%.600s:%d: not JSON: %s", name, number, broken->text);
}

/* What a line that is no context must be: only a document may leave its schema out. */
static int check_record(const json_t *duets, const json_t *object, const char *name, int number, struct error *error)
{
    if (!json_get_string(object, "schema", NULL))
        return error_usage(error, "%.600s:%d: a line without \"schema\"", name, number);
    int code = check_schema(object, name, number, error);
    if (code == 0 && json_array_size(duets) == 0)
        code = error_usage(error, "%.600s:%d: a record before its context", name, number);
    return code;
}

/* Adds one line: a context begins a document, a record joins the last. Steals object. */
static int add_line(json_t *duets, json_t *object, const char *name, int number, struct error *error)
{
    bool is_context = strcmp(json_get_string(object, "schema", ""), CONTEXT_SCHEMA) == 0;
    int code = is_context ? 0 : check_record(duets, object, name, number, error);
    json_object_set_new(object, HISTORY_LINE, json_integer(number));
    if (code)
        json_decref(object);
    else if (is_context)
        json_array_append_new(duets, json_pack("{s:o, s:[]}", "context", object, "points"));
    else
        json_array_append_new(json_object_get(json_array_get(duets, json_array_size(duets) - 1), "points"), object);
    return code;
}

static int read_lines(const char *text, size_t size, const char *name, json_t *duets, bool *torn, struct error *error)
{
    struct line line = {0};
    while (next_line(&line, text, size)) {
        json_error_t broken;
        bool last = line.text + line.length + line.whole == text + size;
        json_t *object = json_loadb(line.text, line.length, JSON_REJECT_DUPLICATES, &broken);
        if (last && (!object || !line.whole)) {
            json_decref(object);
            *torn = true;
            return 0;
        }
        if (!object)
            return refuse_json(name, line.number, &broken, error);
        int code = add_line(duets, object, name, line.number, error);
        if (code)
            return code;
    }
    return 0;
}

/* Whether the second line is a record of a duet: a document has its brackets there, or nothing. */
static bool is_lines(const char *text, size_t size)
{
    struct line line = {0};
    next_line(&line, text, size);
    if (!next_line(&line, text, size))
        return false;
    json_t *second = json_loadb(line.text, line.length, 0, NULL);
    bool found = is_duet_schema(second);
    json_decref(second);
    return found;
}

int history_read_duets(const char *text, size_t size, const char *name, json_t **duets, bool *torn, struct error *error)
{
    json_error_t broken = {0};
    json_t *first = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_DISABLE_EOF_CHECK, &broken);
    int code = 0;
    *duets = NULL;
    if (!first && memmem(text, size, family, strlen(family)))
        return refuse_json(name, broken.line, &broken, error);
    const bool has_points = json_object_get(first, "points"), lines = first && !has_points && is_lines(text, size);
    if (!lines && (has_points || is_duet_schema(first))) {
        code = check_schema(first, name, 1, error);
        for (size_t i = (size_t)broken.position; code == 0 && i < size; i++) {
            if (!memchr(" \t\r\n", text[i], 4))
                code = error_usage(error, "%.600s: text after the end of the document", name);
        }
        *duets = json_pack("[O]", first);
    } else if (lines) {
        *duets = json_array();
        code = read_lines(text, size, name, *duets, torn, error);
    }
    json_decref(first);
    if (code) {
        json_decref(*duets);
        *duets = NULL;
    }
    return code;
}
