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

/* Files one parsed line into results. */
static int take_line(json_t *line, const char *name, int64_t number, struct results *results, struct error *error)
{
    const char *schema = json_get_string(line, "schema", NULL);
    if (!schema)
        return error_usage(error, "%s:%lld: not a line of a results file: no \"schema\"", name, (long long)number);
    if (strcmp(schema, CONTEXT_SCHEMA) == 0) {
        json_array_append(results->contexts, line);
        return 0;
    }
    if (strcmp(schema, RESULT_SCHEMA) != 0)
        return error_usage(error, "%s:%lld: schema \"%.100s\" is neither " CONTEXT_SCHEMA " nor " RESULT_SCHEMA, name,
                           (long long)number, schema);
    if (number == 1)
        return error_usage(error, "%s:1: not a results file: line 1 is a record, not the context", name);
    static const char *const needed[] = {"point_id", "status", "kernel"};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        if (!json_get_string(line, needed[i], NULL))
            return error_usage(error, "%s:%lld: a record without \"%s\"", name, (long long)number, needed[i]);
    }
    json_array_append(results->records, line);
    return 0;
}

int results_read_stream(FILE *file, const char *name, struct results *results, int64_t *whole_bytes,
                        struct error *error)
{
    char *text = NULL;
    size_t capacity = 0;
    int code = 0;
    int64_t number = 0;
    json_error_t broken;
    bool is_broken = false;
    *results = (struct results){.contexts = json_array(), .records = json_array()};
    *whole_bytes = 0;
    for (;;) {
        ssize_t length = getline(&text, &capacity, file);
        if (length < 0)
            break;
        if (is_broken) {
            make_printable(broken.text);
            code = error_usage(error, "%s:%lld: not JSON: %s", name, (long long)number, broken.text);
            goto done;
        }
        number++;
        /* A line can be cut anywhere, its newline included: without one it is torn even if it happens to parse. */
        json_t *line = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, &broken);
        if (!line || text[length - 1] != '\n') {
            json_decref(line);
            /* The context is written before anything is measured: a file without it has nothing to lose or to keep. */
            if (number == 1) {
                code = error_usage(error, "%s:1: not a results file: line 1 is no whole context line", name);
                goto done;
            }
            is_broken = true;
            continue;
        }
        code = take_line(line, name, number, results, error);
        json_decref(line);
        if (code)
            goto done;
        *whole_bytes += length;
    }
    if (ferror(file))
        code = error_usage(error, "%s: cannot be read: %s", name, strerror(errno));
    else if (number == 0)
        code = error_usage(error, "%s: empty: no results stand in it", name);
    results->torn = is_broken;
done:
    free(text);
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
