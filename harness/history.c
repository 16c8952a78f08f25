/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening and migrating a history; see history.h.
 */
#include "history.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "clock.h"
#include "values.h"

/* How long to wait for others that write, in all. An import holds the lock for well under a second. */
static const double usual_wait_s = 60;
enum { RETRY_MS = 10 };

int history_error(const struct history *history, int result, const char *what, struct error *error)
{
    const char *why = history->db ? sqlite3_errmsg(history->db) : sqlite3_errstr(result);
    switch (result & 0xff) {
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
    case SQLITE_ERROR: /* such as a table that is missing */
        return error_usage(error, "--db %.300s: %s: %.500s", history->path, what, why);
    case SQLITE_BUSY:
        error_system(error, EBUSY, "--db %.300s: %s: %.500s", history->path, what, why);
        break;
    case SQLITE_NOMEM:
        error_system(error, ENOMEM, "--db %.300s: %s", history->path, what);
        break;
    default:
        error_system(error, EIO, "--db %.300s: %s: %.500s", history->path, what, why);
    }
    error->exit_code = history->reading ? EXIT_USAGE : EXIT_UNWRITTEN;
    return -EIO;
}

int history_prepare(const struct history *history, const char *sql, sqlite3_stmt **statement, struct error *error)
{
    int result = sqlite3_prepare_v2(history->db, sql, -1, statement, NULL);
    return result == SQLITE_OK ? 0 : history_error(history, result, "cannot be read", error);
}

int history_step(const struct history *history, sqlite3_stmt *statement, struct error *error)
{
    int result = sqlite3_step(statement);
    if (result == SQLITE_ROW || result == SQLITE_DONE)
        return result == SQLITE_ROW;
    return history_error(history, result, sqlite3_stmt_readonly(statement) ? "cannot be read" : "cannot be written",
                         error);
}

void history_bind_text(sqlite3_stmt *statement, int index, const char *text)
{
    sqlite3_bind_text(statement, index, text, -1, SQLITE_TRANSIENT);
}

void history_bind_number(sqlite3_stmt *statement, int index, double value)
{
    if (isnan(value))
        sqlite3_bind_null(statement, index);
    else
        sqlite3_bind_double(statement, index, value);
}

static bool is_taken(int result)
{
    int kind = result & 0xff;
    return kind == SQLITE_BUSY || kind == SQLITE_LOCKED || kind == SQLITE_PROTOCOL;
}

/* SQLite does not call its busy handler where waiting could deadlock, such as when two processes turn the same new file
 * to write-ahead logging: those are tried again here. The handler gets what is left until one deadline, or each try
 * would wait anew. */
static int execute(const struct history *history, const char *sql)
{
    const struct timespec pause = {.tv_nsec = RETRY_MS * 1000000L};
    const double deadline_ns = clock_ns() + 1e6 * history->wait_ms;
    int result = sqlite3_exec(history->db, sql, NULL, NULL, NULL);
    for (double left_ms; is_taken(result) && (left_ms = (deadline_ns - clock_ns()) / 1e6) > 0;) {
        nanosleep(&pause, NULL);
        sqlite3_busy_timeout(history->db, (int)left_ms);
        result = sqlite3_exec(history->db, sql, NULL, NULL, NULL);
    }
    sqlite3_busy_timeout(history->db, history->wait_ms);
    return result;
}

static int execute_or_tell(const struct history *history, const char *sql, struct error *error)
{
    int result = execute(history, sql);
    return result == SQLITE_OK ? 0 : history_error(history, result, "cannot be written", error);
}

int history_begin(struct history *history, struct error *error)
{
    return execute_or_tell(history, "BEGIN IMMEDIATE", error);
}

int history_commit(struct history *history, struct error *error)
{
    int code = execute_or_tell(history, "COMMIT", error);
    if (code)
        history_rollback(history);
    return code;
}

void history_rollback(struct history *history)
{
    if (!sqlite3_get_autocommit(history->db))
        sqlite3_exec(history->db, "ROLLBACK", NULL, NULL, NULL);
}

static int read_integer(const struct history *history, const char *sql, int64_t *value, struct error *error)
{
    sqlite3_stmt *statement;
    int code = history_prepare(history, sql, &statement, error);
    if (code)
        return code;
    code = history_step(history, statement, error);
    *value = code > 0 ? sqlite3_column_int64(statement, 0) : 0;
    sqlite3_finalize(statement);
    return code < 0 ? code : 0;
}

static int64_t big_endian(const unsigned char *bytes)
{
    return (int64_t)bytes[0] << 24 | (int64_t)bytes[1] << 16 | (int64_t)bytes[2] << 8 | (int64_t)bytes[3];
}

static int refuse_version(const char *path, int64_t version, struct error *error)
{
    return error_usage(error,
                       "--db %.700s: version %lld, of a newer attnbench; this one knows versions up to %d and leaves "
                       "the file as it is",
                       path, (long long)version, HISTORY_VERSION);
}

static int refuse_foreign(const char *path, struct error *error)
{
    return error_usage(error, "--db %.700s: an SQLite database, but no history of attnbench", path);
}

/* The version of a history, 0 for an empty database (a new file, or one that was being made when its maker died). */
static int read_version(const struct history *history, int64_t *version, struct error *error)
{
    int64_t application, tables;
    int code = read_integer(history, "PRAGMA application_id", &application, error);
    if (code == 0)
        code = read_integer(history, "PRAGMA user_version", version, error);
    if (code == 0)
        code = read_integer(history, "SELECT count(*) FROM sqlite_master", &tables, error);
    if (code)
        return code;
    if (application == 0 && *version == 0 && tables == 0)
        return 0;
    if (application != HISTORY_APPLICATION_ID || *version < 1)
        return refuse_foreign(history->path, error);
    return *version > HISTORY_VERSION ? refuse_version(history->path, *version, error) : 0;
}

/* The usual wait, or what ATTNBENCH_HISTORY_WAIT says. */
static int read_wait(int *wait_ms, struct error *error)
{
    const char *text = getenv("ATTNBENCH_HISTORY_WAIT");
    double seconds = usual_wait_s;
    int code = text ? value_duration(text, &seconds, error) : 0;
    *wait_ms = (int)fmin(1000 * seconds, INT_MAX);
    return code ? error_prefix(error, code, "ATTNBENCH_HISTORY_WAIT") : 0;
}

static int open_database(const char *path, int flags, struct history *history, struct error *error)
{
    *history = (struct history){.path = path, .reading = flags & SQLITE_OPEN_READONLY};
    int code = read_wait(&history->wait_ms, error);
    if (code)
        return code;
    int result = sqlite3_open_v2(path, &history->db, flags, NULL);
    if (result != SQLITE_OK)
        return history_error(history, result, "cannot be opened", error);
    sqlite3_extended_result_codes(history->db, 1);
    sqlite3_busy_timeout(history->db, history->wait_ms);
    sqlite3_db_config(history->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(history->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    return 0;
}

/* Within the write lock: of several that found an old version the first migrates it, the others find it new. */
static int migrate(struct history *history, struct error *error)
{
    char facts[96];
    int64_t version = HISTORY_VERSION;
    int code = history_begin(history, error);
    if (code)
        return code;
    code = read_version(history, &version, error);
    for (int64_t v = version; code == 0 && v < HISTORY_VERSION; v++)
        code = execute_or_tell(history, history_migrations[v], error);
    snprintf(facts, sizeof facts, "PRAGMA application_id = %d; PRAGMA user_version = %d", HISTORY_APPLICATION_ID,
             HISTORY_VERSION);
    if (code == 0 && version < HISTORY_VERSION)
        code = execute_or_tell(history, facts, error);
    if (code == 0)
        return history_commit(history, error);
    history_rollback(history);
    return code;
}

/* A new version's file is not even opened: SQLite would put its two files beside it. Nor is another program's, or what
 * is no database. A history of ours that is being made, or whose maker died, has a first page without tables, while all
 * else may stand in its log. Header and first page are those of sqlite.org/fileformat2.html, 1.3 and 1.6. */
static int check_header(const char *path, struct error *error)
{
    enum { HEADER = 108, VERSION_AT = 60, APPLICATION_AT = 68, PAGE_KIND_AT = 100, CELLS_AT = 103, TABLE_LEAF = 13 };
    unsigned char header[HEADER];
    FILE *file = fopen(path, "re");
    if (!file)
        return error_usage(error, "--db %.700s: %s", path, strerror(errno));
    size_t size = fread(header, 1, sizeof header, file);
    fclose(file);
    if (size == 0)
        return 0;
    if (size < HEADER || memcmp(header, "SQLite format 3", 16) != 0)
        return error_usage(error, "--db %.700s: no SQLite database", path);
    const int64_t application = big_endian(header + APPLICATION_AT), version = big_endian(header + VERSION_AT);
    const bool ours = application == HISTORY_APPLICATION_ID && version >= 1;
    const bool bare = header[PAGE_KIND_AT] == TABLE_LEAF && header[CELLS_AT] == 0 && header[CELLS_AT + 1] == 0;
    if (!ours && !(application == 0 && version == 0 && bare))
        return refuse_foreign(path, error);
    return version > HISTORY_VERSION ? refuse_version(path, version, error) : 0;
}

static int open_to_write(const char *path, struct history *history, struct error *error)
{
    int code = open_database(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, history, error);
    if (code == 0)
        code = execute_or_tell(history, "PRAGMA journal_mode = WAL; PRAGMA foreign_keys = ON", error);
    return code ? code : migrate(history, error);
}

/* What stands there, without a change to it but for undoing a transaction that nobody will end. *version -1: nothing
 * does. */
static int look(const char *path, int64_t *version, struct error *error)
{
    struct history history;
    struct stat status;
    *version = -1;
    if (stat(path, &status) != 0)
        return errno == ENOENT ? 0 : error_usage(error, "--db %.700s: %s", path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return error_usage(error, "--db %.700s: no regular file", path);
    int code = check_header(path, error);
    if (code)
        return code;
    code = open_database(path, SQLITE_OPEN_READONLY, &history, error);
    if (code == 0)
        code = read_version(&history, version, error);
    if (code && history.db && sqlite3_extended_errcode(history.db) == SQLITE_READONLY_ROLLBACK) {
        /* Whoever turned it to write-ahead logging died at it, and only one that may write can undo what was begun. */
        sqlite3_close(history.db);
        code = open_database(path, SQLITE_OPEN_READWRITE, &history, error);
        if (code == 0)
            code = read_version(&history, version, error);
    }
    sqlite3_close(history.db); /* not history_close: it may be another program's */
    return code;
}

int history_open(const char *path, enum history_access access, struct history *history, struct error *error)
{
    int64_t version;
    *history = (struct history){.path = path};
    int code = look(path, &version, error);
    if (code)
        return code;
    if (access == HISTORY_READ && version <= 0)
        return error_usage(error, "--db %.700s: %s (attnbench history import FILE... fills it)", path,
                           version < 0 ? "no such file" : "empty");
    if (access == HISTORY_WRITE || version < HISTORY_VERSION)
        code = open_to_write(path, history, error);
    if (code == 0 && access == HISTORY_READ) {
        sqlite3_close(history->db);
        code = open_database(path, SQLITE_OPEN_READONLY, history, error);
    }
    if (code)
        history_close(history);
    return code;
}

void history_close(struct history *history)
{
    const bool tidy = history->db && history->reading;
    sqlite3_close(history->db);
    *history = (struct history){.path = history->path};
    /* A reader may not take away the files of the write-ahead log that SQLite put beside the database; the last one
     * that may write does. Where that cannot be they stay. */
    if (tidy && sqlite3_open_v2(history->path, &history->db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK)
        sqlite3_exec(history->db, "SELECT count(*) FROM sqlite_master", NULL, NULL, NULL);
    sqlite3_close(history->db);
    history->db = NULL;
}
