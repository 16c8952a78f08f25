/* SPDX-License-Identifier: Apache-2.0
 *
 * Results in other formats; see output.h.
 */
#include "export.h"

#include <errno.h>
#include <string.h>

#include "json_util.h"
#include "output.h"

static void put_lines(FILE *file, const json_t *lines)
{
    size_t index;
    json_t *line;
    json_array_foreach((json_t *)lines, index, line)
    {
        json_dumpf(line, file, JSON_LINE_FLAGS);
        fputc('\n', file);
    }
}

static void export_lines(FILE *file, const json_t *contexts, const json_t *records)
{
    put_lines(file, contexts);
    put_lines(file, records);
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

/* Formats that need no style. */
static const struct {
    const char *name;
    void (*write)(FILE *file, const json_t *contexts, const json_t *records);
} formats[] = {
    {"csv", export_csv},
    {"json", export_json},
    {"jsonl", export_lines},
    {"md", export_markdown},
    {"github", export_github},
    {"junit", export_junit},
    {"google-benchmark", export_google_benchmark},
};
enum { FORMATS = sizeof formats / sizeof formats[0] };

static size_t find_format(const char *name)
{
    size_t i = 0;
    while (i < FORMATS && strcmp(formats[i].name, name) != 0)
        i++;
    return i;
}

bool export_knows(const char *format)
{
    return strcmp(format, "table") == 0 || find_format(format) < FORMATS;
}

int export_write(FILE *file, const char *format, const json_t *contexts, const json_t *records,
                 const struct output_style *style, struct error *error)
{
    size_t known = find_format(format);
    if (strcmp(format, "table") == 0)
        machines_print(file, contexts, records, style, false);
    else if (known < FORMATS)
        formats[known].write(file, contexts, records);
    else
        return error_usage(error, "unknown format '%.100s': known are " EXPORT_FORMATS, format);
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
