/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows that every import writes: runs and series, each once.
 */
#ifndef HARNESS_HISTORY_WRITER_H
#define HARNESS_HISTORY_WRITER_H

#include <jansson.h>
#include <stdint.h>

#include "history.h"

/* Prepared statements, for one transaction or several. */
struct history_writer {
    struct history *history;
    sqlite3_stmt *insert_run, *find_run, *insert_series, *find_series;
};
int history_writer_open(struct history *history, struct history_writer *writer, struct error *error);
void history_writer_close(struct history_writer *writer);

/* Whether a context (of a journal, or the fields of a duet) tells what every run and series needs. where: "FILE:LINE".
 */
int history_check_context(const json_t *context, const char *where, struct error *error);

/* The run of a context that was checked, and the series of a point of it (anchor: see history_key.h); made where they
 * are new. *id: the row's. */
int history_write_run(struct history_writer *writer, const json_t *context, const char *where, int64_t *id,
                      struct error *error);
int history_write_series(struct history_writer *writer, const json_t *context, const json_t *point, const char *anchor,
                         int64_t *id, struct error *error);

/* Runs a bound statement that gives no rows and resets it. *changed: whether it did anything. */
int history_run(const struct history *history, sqlite3_stmt *statement, bool *changed, struct error *error);

#endif
