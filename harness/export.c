/* SPDX-License-Identifier: Apache-2.0
 *
 * Results in other formats; see output.h.
 */
#include "export.h"

#include <errno.h>
#include <string.h>

#include "json_util.h"
#include "output.h"

static void export_lines(FILE *file, const json_t *lines)
{
    size_t index;
    json_t *line;
    json_array_foreach((json_t *)lines, index, line)
    {
        json_dumpf(line, file, JSON_LINE_FLAGS);
        fputc('\n', file);
    }
}

static void export_json(FILE *file, const json_t *contexts, const json_t *records)
{
    json_t *whole = json_object();
    json_object_set(whole, "contexts", (json_t *)contexts);
    json_object_set(whole, "records", (json_t *)records);
    json_dumpf(whole, file, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
    fputc('\n', file);
    json_decref(whole);
}

bool export_knows(const char *format)
{
    static const char *const known[] = {"table", "csv", "json", "jsonl", "md"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(format, known[i]) == 0)
            return true;
    }
    return false;
}

int export_write(FILE *file, const char *format, const json_t *contexts, const json_t *records,
                 const struct output_style *style, struct error *error)
{
    if (strcmp(format, "table") == 0) {
        machines_print(file, contexts, records, style, false);
    } else if (strcmp(format, "csv") == 0) {
        export_csv(file, contexts, records);
    } else if (strcmp(format, "md") == 0) {
        export_markdown(file, contexts, records);
    } else if (strcmp(format, "json") == 0) {
        export_json(file, contexts, records);
    } else if (strcmp(format, "jsonl") == 0) {
        export_lines(file, contexts);
        export_lines(file, records);
    } else {
        return error_usage(error, "unknown format '%.100s': known are " EXPORT_FORMATS, format);
    }
    return output_flush(file, "results", error);
}

int output_flush(FILE *file, const char *what, struct error *error)
{
    int code;
    if (fflush(file) != 0) {
        code = error_system(error, errno, "%s could not be written", what);
    } else if (ferror(file)) {
        /* An earlier write failed; why is no longer known. */
        error_usage(error, "%s could not be written", what);
        code = -EIO;
    } else {
        return 0;
    }
    error->exit_code = EXIT_UNWRITTEN;
    return code;
}
