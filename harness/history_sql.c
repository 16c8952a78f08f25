/* SPDX-License-Identifier: Apache-2.0
 *
 * Queries of users; see history_sql.h.
 */
#include "history_sql.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "text.h"

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; name && i < count; i++) {
        if (strcasecmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

/* What tells of the schema takes the name of a table; the others only tell without a value. */
static bool is_pragma_allowed(const char *name, const char *value)
{
    static const char *const with_name[] = {"table_info", "table_xinfo",      "index_list",
                                            "index_info", "foreign_key_list", "table_list"};
    static const char *const alone[] = {"user_version",    "application_id",  "table_list",  "database_list",
                                        "compile_options", "integrity_check", "quick_check", "journal_mode"};
    return is_one_of(name, value ? with_name : alone,
                     value ? sizeof with_name / sizeof with_name[0] : sizeof alone / sizeof alone[0]);
}

static int authorize(void *user, int action, const char *first, const char *second, const char *database,
                     const char *trigger)
{
    static const char *const refused_functions[] = {"load_extension", "fts3_tokenizer", "writefile", "readfile",
                                                    "edit"};
    (void)user;
    (void)database;
    (void)trigger;
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
        return SQLITE_OK;
    case SQLITE_FUNCTION:
        return is_one_of(second, refused_functions, sizeof refused_functions / sizeof refused_functions[0])
                   ? SQLITE_DENY
                   : SQLITE_OK;
    /* How SQLite itself declares what functions such as json_each give. A query that does so is refused by SQLite,
     * which lets nobody modify this table, and for being no reader. */
    case SQLITE_UPDATE:
        return strcmp(first, "sqlite_master") == 0 ? SQLITE_OK : SQLITE_DENY;
    case SQLITE_PRAGMA:
        return is_pragma_allowed(first, second) ? SQLITE_OK : SQLITE_DENY;
    default:
        return SQLITE_DENY;
    }
}

/* SQLite's message, or why it was not even asked; the query itself may be longer than a line. */
static int refuse(const struct history *history, int result, struct error *error)
{
    if (result == SQLITE_AUTH || strncmp(sqlite3_errmsg(history->db), "not authorized", 14) == 0)
        return error_usage(error, "the query would do more than read (%.300s)", sqlite3_errmsg(history->db));
    char message[600];
    text_fit(sqlite3_errmsg(history->db), sizeof message, message, sizeof message); /* it may quote a line break */
    return error_usage(error, "the query: %s", message);
}

static int prepare(const struct history *history, const char *query, sqlite3_stmt **statement, struct error *error)
{
    const char *rest;
    sqlite3_stmt *second = NULL;
    int result = sqlite3_prepare_v2(history->db, query, -1, statement, &rest);
    if (result != SQLITE_OK)
        return refuse(history, result, error);
    if (!*statement)
        return error_usage(error, "the query is empty");
    /* A comment or a semicolon may follow, a second statement may not, whatever it is. */
    result = sqlite3_prepare_v2(history->db, rest, -1, &second, NULL);
    bool more = result != SQLITE_OK || second;
    sqlite3_finalize(second);
    if (more) {
        char shown[200];
        text_fit(rest + strspn(rest, " \t\r\n"), 60, shown, sizeof shown);
        return error_usage(error, "the query is more than one statement: %s", shown);
    }
    if (!sqlite3_stmt_readonly(*statement))
        return error_usage(error, "the query would do more than read");
    return 0;
}

int history_sql(const struct history *history, const char *query, struct history_rows *rows, struct error *error)
{
    sqlite3_stmt *statement = NULL;
    *rows = (struct history_rows){0};
    sqlite3_set_authorizer(history->db, authorize, NULL);
    int code = prepare(history, query, &statement, error);
    if (code == 0)
        code = history_rows_read(history, statement, rows, error);
    sqlite3_finalize(statement);
    return code;
}
