/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of a query, read and shown; see history_rows.h.
 */
#include "history_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "color.h"
#include "json_util.h"
#include "spec.h"
#include "text.h"

static json_t *blob_value(const unsigned char *bytes, size_t length)
{
    char *digits = malloc(2 * length + 1);
    if (!digits)
        abort(); /* memory is exhausted; a row with a cell left out would be worse than none */
    for (size_t i = 0; i < length; i++)
        snprintf(digits + 2 * i, 3, "%02x", bytes[i]);
    json_t *value = json_stringn(digits, 2 * length);
    free(digits);
    return value;
}

static json_t *column_value(sqlite3_stmt *statement, int column)
{
    const void *bytes;
    switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
        return json_integer(sqlite3_column_int64(statement, column));
    case SQLITE_FLOAT:
        return json_number_or_null(sqlite3_column_double(statement, column));
    case SQLITE_TEXT:
        bytes = sqlite3_column_text(statement, column);
        return json_text(bytes ? bytes : "", (size_t)sqlite3_column_bytes(statement, column));
    case SQLITE_BLOB:
        bytes = sqlite3_column_blob(statement, column);
        return blob_value(bytes, (size_t)sqlite3_column_bytes(statement, column));
    default:
        return json_null();
    }
}

/* "id", and "id_2" for the next of that name: objects cannot hold one twice. */
static json_t *column_name(const json_t *seen, const char *name)
{
    json_t *unique = json_sprintf("%s", name);
    for (int n = 2; unique && json_object_get(seen, json_string_value(unique)); n++) {
        json_decref(unique);
        unique = json_sprintf("%s_%d", name, n);
    }
    return unique ? unique : json_string("?");
}

static void read_columns(sqlite3_stmt *statement, json_t *columns)
{
    json_t *seen = json_object();
    for (int c = 0; c < sqlite3_column_count(statement); c++) {
        json_t *name = column_name(seen, sqlite3_column_name(statement, c));
        json_object_set_new(seen, json_string_value(name), json_true());
        json_array_append_new(columns, name);
    }
    json_decref(seen);
}

int history_rows_read(const struct history *history, sqlite3_stmt *statement, struct history_rows *rows,
                      struct error *error)
{
    *rows = (struct history_rows){.columns = json_array(), .rows = json_array()};
    read_columns(statement, rows->columns);
    int code = history_step(history, statement, error);
    for (; code > 0; code = history_step(history, statement, error)) {
        json_t *row = json_array();
        for (int c = 0; c < sqlite3_column_count(statement); c++)
            json_array_append_new(row, column_value(statement, c));
        json_array_append_new(rows->rows, row);
    }
    return code;
}

void history_rows_release(struct history_rows *rows)
{
    json_decref(rows->columns);
    json_decref(rows->rows);
    *rows = (struct history_rows){0};
}

const json_t *history_rows_at(const struct history_rows *rows, size_t row, const char *column)
{
    size_t index;
    json_t *name;
    json_array_foreach(rows->columns, index, name)
    {
        if (strcmp(json_string_value(name), column) == 0)
            return json_array_get(json_array_get(rows->rows, row), index);
    }
    return NULL;
}

const char *history_rows_text(const struct history_rows *rows, size_t row, const char *column)
{
    const json_t *value = history_rows_at(rows, row, column);
    return json_is_string(value) ? json_string_value(value) : "";
}

double history_rows_number(const struct history_rows *rows, size_t row, const char *column)
{
    const json_t *value = history_rows_at(rows, row, column);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

int history_rows_check_format(const char *format, struct error *error)
{
    static const char *const known[] = {"table", "json", "csv", "jsonl"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(format, known[i]) == 0)
            return 0;
    }
    return error_usage(error, "-o %.100s: one of " HISTORY_FORMATS, format);
}

/* A value as CSV and the table show it: malloc'd. */
static char *value_text(const json_t *value)
{
    char number[32];
    if (json_is_string(value))
        return strdup(json_string_value(value));
    if (json_is_real(value))
        return strdup(number_text(json_real_value(value), number));
    if (json_is_null(value))
        return strdup("");
    return json_dumps(value, JSON_ENCODE_ANY);
}

static void put_csv_field(FILE *file, const char *text)
{
    bool bare = !strpbrk(text, ",\"\r\n") && text[0] != ' ' && (text[0] == '\0' || text[strlen(text) - 1] != ' ');
    if (bare) {
        fputs(text, file);
        return;
    }
    fputc('"', file);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', file);
        fputc(*text, file);
    }
    fputc('"', file);
}

static void write_csv_line(FILE *file, const json_t *values)
{
    size_t index;
    json_t *value;
    json_array_foreach((json_t *)values, index, value)
    {
        char *text = value_text(value);
        if (index > 0)
            fputc(',', file);
        put_csv_field(file, text ? text : "");
        free(text);
    }
    fputc('\n', file);
}

static json_t *row_object(const struct history_rows *rows, const json_t *row)
{
    json_t *object = json_object(), *name;
    size_t index;
    json_array_foreach(rows->columns, index, name)
        json_object_set(object, json_string_value(name), json_array_get(row, index));
    return object;
}

static void write_json(FILE *file, const struct history_rows *rows, bool lines)
{
    size_t index;
    json_t *row;
    fputs(lines ? "" : "[", file);
    json_array_foreach(rows->rows, index, row)
    {
        json_t *object = row_object(rows, row);
        fputs(lines ? "" : index > 0 ? ",\n " : "\n ", file);
        json_dumpf(object, file, JSON_LINE_FLAGS);
        fputs(lines ? "\n" : "", file);
        json_decref(object);
    }
    fputs(lines ? "" : "\n]\n", file);
}

/* Control characters within would break the table; locales without UTF-8 get ASCII. malloc'd. */
static char *cell_text(const json_t *value, const struct output_style *style)
{
    char *text = value_text(value);
    size_t size = (text ? strlen(text) : 0) + 8;
    char *cell = malloc(size);
    if (!text || !cell)
        abort();
    text_fit(text, size, cell, size);
    if (style->ascii)
        text_to_ascii(cell);
    free(text);
    return cell;
}

static void measure(const json_t *values, const struct output_style *style, size_t *widths)
{
    size_t index;
    json_t *value;
    json_array_foreach((json_t *)values, index, value)
    {
        char *cell = cell_text(value, style);
        size_t columns = text_columns(cell);
        widths[index] = columns > widths[index] ? columns : widths[index];
        free(cell);
    }
}

/* Numbers to the right; no spaces at the end of a line. */
static void write_table_line(FILE *file, const json_t *values, const struct output_style *style, const size_t *widths)
{
    size_t index, gap = 0; /* what is due before the next cell that is not empty */
    json_t *value;
    json_array_foreach((json_t *)values, index, value)
    {
        char *cell = cell_text(value, style);
        size_t padding = widths[index] - text_columns(cell), left = json_is_number(value) ? padding : 0;
        if (*cell)
            fprintf(file, "%*s%s", (int)(gap + left), "", cell);
        gap = *cell ? padding - left + 2 : gap + padding + 2;
        free(cell);
    }
    fputc('\n', file);
}

static void write_table(FILE *file, const struct history_rows *rows, const struct output_style *style)
{
    size_t index, *widths = calloc(json_array_size(rows->columns) + 1, sizeof *widths);
    json_t *row;
    if (!widths)
        abort();
    measure(rows->columns, style, widths);
    json_array_foreach(rows->rows, index, row) measure(row, style, widths);
    fputs(paint(style->color, PAINT_FAINT), file);
    write_table_line(file, rows->columns, style, widths);
    fputs(paint(style->color, PAINT_PLAIN), file);
    json_array_foreach(rows->rows, index, row) write_table_line(file, row, style, widths);
    free(widths);
}

void history_rows_write(FILE *file, const char *format, const struct history_rows *rows,
                        const struct output_style *style)
{
    if (strcmp(format, "csv") == 0) {
        size_t index;
        json_t *row;
        write_csv_line(file, rows->columns);
        json_array_foreach(rows->rows, index, row) write_csv_line(file, row);
    } else if (strcmp(format, "table") == 0) {
        write_table(file, rows, style);
    } else {
        write_json(file, rows, strcmp(format, "jsonl") == 0);
    }
}
