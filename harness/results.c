/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading results files line by line, as strictly as an interrupted run allows; see journal.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "journal.h"
#include "json_util.h"

/* The parser quotes the text that it stumbled over: control characters in it would break the one line of the message.
 */
static void make_printable(char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < ' ' || *text == 127)
            *text = ' ';
    }
}

/* A file of a later version must not be read as if its fields meant what they mean now. */
static int check_schema(const struct results_line *line, const char *name, struct error *error)
{
    const char *schema = json_get_string(line->json, "schema", NULL);
    if (!schema)
        return error_usage(error, "%s:%lld: not a line of a results file: no \"schema\"", name,
                           (long long)line->number);
    if (strcmp(schema, CONTEXT_SCHEMA) == 0 || strcmp(schema, RESULT_SCHEMA) == 0)
        return 0;
    bool ours = strncmp(schema, "attnbench.context/", 18) == 0 || strncmp(schema, "attnbench.result/", 17) == 0;
    if (ours)
        return error_usage(error,
                           "%s:%lld: schema \"%.100s\" is of another version of attnbench; known are " CONTEXT_SCHEMA
                           " and " RESULT_SCHEMA,
                           name, (long long)line->number, schema);
    return error_usage(error, "%s:%lld: schema \"%.100s\" is neither " CONTEXT_SCHEMA " nor " RESULT_SCHEMA, name,
                       (long long)line->number, schema);
}

static int check_line(struct results_line *line, const char *name, struct error *error)
{
    int code = check_schema(line, name, error);
    if (code)
        return code;
    line->is_context = strcmp(json_get_string(line->json, "schema", ""), CONTEXT_SCHEMA) == 0;
    if (line->is_context)
        return 0;
    if (line->number == 1)
        return error_usage(error, "%s:1: not a results file: line 1 is a record, not the context", name);
    static const char *const needed[] = {"point_id", "status", "kernel"};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        if (!json_get_string(line->json, needed[i], NULL))
            return error_usage(error, "%s:%lld: a record without \"%s\"", name, (long long)line->number, needed[i]);
    }
    return 0;
}

int results_scan(FILE *file, const char *name,
                 int (*take)(void *user, const struct results_line *line, struct error *error), void *user,
                 struct results_end *end, struct error *error)
{
    char *text = NULL;
    size_t capacity = 0;
    int code = 0;
    int64_t number = 0;
    json_error_t broken;
    *end = (struct results_end){0};
    for (;;) {
        ssize_t length = getline(&text, &capacity, file);
        if (length < 0)
            break;
        if (end->torn) {
            make_printable(broken.text);
            code = error_usage(error, "%s:%lld: not JSON: %s", name, (long long)number, broken.text);
            goto done;
        }
        number++;
        /* A line can be cut anywhere, its newline included: without one it is torn even if it happens to parse. */
        struct results_line line = {
            .json = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, &broken),
            .text = text,
            .length = (size_t)length,
            .number = number,
        };
        if (!line.json || text[length - 1] != '\n') {
            json_decref(line.json);
            /* The context is written before anything is measured: a file without it has nothing to lose or to keep. */
            if (number == 1) {
                code = error_usage(error, "%s:1: not a results file: line 1 is no whole context line", name);
                goto done;
            }
            end->torn = true;
            continue;
        }
        code = check_line(&line, name, error);
        if (code == 0)
            code = take(user, &line, error);
        json_decref(line.json);
        if (code)
            goto done;
        end->whole_bytes += length;
    }
    if (ferror(file))
        code = error_usage(error, "%s: cannot be read: %s", name, strerror(errno));
    else if (number == 0)
        code = error_usage(error, "%s: empty: no results stand in it", name);
done:
    free(text);
    return code;
}

static int keep_line(void *user, const struct results_line *line, struct error *error)
{
    struct results *results = user;
    (void)error;
    json_array_append(line->is_context ? results->contexts : results->records, line->json);
    return 0;
}

int results_read_stream(FILE *file, const char *name, struct results *results, int64_t *whole_bytes,
                        struct error *error)
{
    struct results_end end;
    *results = (struct results){.contexts = json_array(), .records = json_array()};
    int code = results_scan(file, name, keep_line, results, &end, error);
    *whole_bytes = end.whole_bytes;
    results->torn = end.torn;
    if (code)
        results_release(results);
    return code;
}

int results_read(const char *path, struct results *results, struct error *error)
{
    FILE *file = fopen(path, "re");
    *results = (struct results){0};
    if (!file)
        return error_usage(error, "results file %s: %s", path, strerror(errno));
    int64_t whole_bytes;
    int code = results_read_stream(file, path, results, &whole_bytes, error);
    fclose(file);
    return code;
}

void results_release(struct results *results)
{
    json_decref(results->contexts);
    json_decref(results->records);
    *results = (struct results){0};
}
