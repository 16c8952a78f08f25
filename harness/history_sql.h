/* SPDX-License-Identifier: Apache-2.0
 *
 * Queries of users: they can read everything and change nothing.
 */
#ifndef HARNESS_HISTORY_SQL_H
#define HARNESS_HISTORY_SQL_H

#include "history_rows.h"

/* One SELECT (or VALUES, EXPLAIN, a PRAGMA that only tells). Anything else is a usage error: the file is opened
 * read-only, SQLite is asked whether the statement only reads, and an authorizer lets nothing through but reading. */
int history_sql(const struct history *history, const char *query, struct history_rows *rows, struct error *error);

#endif
