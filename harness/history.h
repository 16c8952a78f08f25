/* SPDX-License-Identifier: Apache-2.0
 *
 * Results over time in one SQLite database: opening it, its versions, and what its users need of SQLite.
 *
 * Several processes may import at once: write-ahead logging, a busy timeout, and transactions that take the write lock
 * when they begin. (Not over a network file system: SQLite's write-ahead log needs shared memory.)
 */
#ifndef HARNESS_HISTORY_H
#define HARNESS_HISTORY_H

#include <sqlite3.h>
#include <stdbool.h>

#include "error.h"

/* "atbh": how a history is told from any other SQLite database. */
#define HISTORY_APPLICATION_ID 0x61746268

/* user_version of the database that this program writes. history_migrations[v] makes version v + 1 of version v; what
 * was released once is never edited. */
enum { HISTORY_VERSION = 2 };
extern const char *const history_migrations[HISTORY_VERSION];

struct history {
    sqlite3 *db;
    const char *path; /* the caller's */
    bool reading;
    int wait_ms; /* for others that write, before giving up */
};

enum history_access {
    HISTORY_READ, /* must exist; SQLITE_OPEN_READONLY (an older version is migrated first) */
    HISTORY_WRITE /* made if it is missing */
};

/* A file that is no history, or one of a newer program, is a usage error and stays as it is. Errors name --db and the
 * path; where the database cannot be written the exit_code is EXIT_UNWRITTEN, also where others have been writing for a
 * minute (or what ATTNBENCH_HISTORY_WAIT says: for trying things out). SQLite puts two files beside one that is
 * read, too, so its folder must be writable. */
int history_open(const char *path, enum history_access access, struct history *history, struct error *error);
/* Nothing for one that was not opened. */
void history_close(struct history *history);

/* A write transaction: waits for its turn. */
int history_begin(struct history *history, struct error *error);
int history_commit(struct history *history, struct error *error);
void history_rollback(struct history *history);

/* Prepares one statement; the caller finalizes it. */
int history_prepare(const struct history *history, const char *sql, sqlite3_stmt **statement, struct error *error);
/* 1: a row; 0: done. Errors as history_error tells them. */
int history_step(const struct history *history, sqlite3_stmt *statement, struct error *error);

/* NULL and NaN become NULL. Text is copied. */
void history_bind_text(sqlite3_stmt *statement, int index, const char *text);
void history_bind_number(sqlite3_stmt *statement, int index, double value);

/* What SQLite refused last, in one line. Returns -errno. */
int history_error(const struct history *history, int result, const char *what, struct error *error);

#endif
