/* SPDX-License-Identifier: Apache-2.0
 *
 * What a query gave, and how it is shown: a table, JSON, JSON Lines or CSV.
 */
#ifndef HARNESS_HISTORY_ROWS_H
#define HARNESS_HISTORY_ROWS_H

#include <jansson.h>
#include <stdio.h>

#include "history.h"
#include "output.h"

#define HISTORY_FORMATS "table, json, csv, jsonl"

struct history_rows {
    json_t *columns; /* array of names, no two the same */
    json_t *rows;    /* array of arrays of null, integer, real or string */
};

/* All rows of a bound statement; blobs as hexadecimal digits, what is no UTF-8 with "?" for it. Release with
 * history_rows_release, also after an error. */
int history_rows_read(const struct history *history, sqlite3_stmt *statement, struct history_rows *rows,
                      struct error *error);
void history_rows_release(struct history_rows *rows);

/* A value by the name of its column; NULL: there is no such column. Borrowed. */
const json_t *history_rows_at(const struct history_rows *rows, size_t row, const char *column);
const char *history_rows_text(const struct history_rows *rows, size_t row, const char *column); /* "" for null */
double history_rows_number(const struct history_rows *rows, size_t row, const char *column);    /* NaN for null */

/* -o's value. -EINVAL for an unknown one. */
int history_rows_check_format(const char *format, struct error *error);
/* Null is an empty cell, in CSV too. A table is as wide as what stands in it. */
void history_rows_write(FILE *file, const char *format, const struct history_rows *rows,
                        const struct output_style *style);

#endif
