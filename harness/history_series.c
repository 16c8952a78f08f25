/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading series and points; see history_series.h.
 */
#include "history_series.h"

#include <math.h>
#include <string.h>

#define SERIES_COLUMNS                                                                                                 \
    "series.key AS series, series.machine_key, run.cpu_model, series.compiler, series.flags, series.kernel_release,"   \
    " series.page_mode, series.problem, series.rule, series.dtype, series.kernel, series.schedule, series.placement,"  \
    " series.mem, series.threads, series.cache, series.anchor, newest.points, newest.last_utc, newest.build_commit,"   \
    " newest.median_ns, newest.roof_fraction, newest.log_ratio"
/* Beside a lone max() SQLite takes the other columns from the row that holds it. */
#define SERIES_TABLES                                                                                                  \
    " FROM series JOIN (SELECT series, count(*) AS points, max(time_utc) AS last_utc, run_id, build_commit, "          \
    "median_ns,"                                                                                                       \
    " roof_fraction, log_ratio FROM point GROUP BY series) AS newest ON newest.series = series.id"                     \
    " JOIN run ON run.run_id = newest.run_id"

static int count_series(const struct history *history, const struct history_filter *filter, int64_t *count,
                        struct error *error)
{
    sqlite3_stmt *statement;
    int code = history_prepare(history,
                               "SELECT count(*) FROM series WHERE (?1 IS NULL OR kernel GLOB ?1)"
                               " AND (?2 IS NULL OR substr(machine_key, 1, length(?2)) = ?2)",
                               &statement, error);
    if (code)
        return code;
    history_bind_text(statement, 1, filter->kernel);
    history_bind_text(statement, 2, filter->machine);
    code = history_step(history, statement, error);
    *count = code > 0 ? sqlite3_column_int64(statement, 0) : 0;
    sqlite3_finalize(statement);
    return code < 0 ? code : 0;
}

/* A filter that matches nothing is a slip of the user's rather than an empty result. */
static int check_filter(const struct history *history, const struct history_filter *filter, struct error *error)
{
    const struct history_filter machine = {.machine = filter->machine};
    int64_t left = 1, on_machine = 1;
    int code = 0;
    if (filter->machine)
        code = count_series(history, &machine, &on_machine, error);
    if (code == 0 && on_machine == 0)
        return error_usage(error, "--machine %.100s: no series of such a machine in %.700s", filter->machine,
                           history->path);
    if (code == 0 && filter->kernel)
        code = count_series(history, filter, &left, error);
    if (code == 0 && left == 0)
        return error_usage(error, "--kernel %.100s: no series of such a kernel in %.700s", filter->kernel,
                           history->path);
    return code;
}

int history_list(const struct history *history, const struct history_filter *filter, struct history_rows *rows,
                 struct error *error)
{
    static const char query[] =
        "SELECT * FROM (SELECT " SERIES_COLUMNS SERIES_TABLES " WHERE (?1 IS NULL OR series.kernel GLOB ?1)"
        " AND (?2 IS NULL OR substr(series.machine_key, 1, length(?2)) = ?2)"
        " ORDER BY newest.last_utc DESC, series.key LIMIT ?3)"
        " ORDER BY machine_key, compiler, flags, kernel_release, problem, page_mode, kernel, schedule, threads,"
        " placement, mem, anchor, series";
    sqlite3_stmt *statement;
    *rows = (struct history_rows){0};
    int code = check_filter(history, filter, error);
    if (code == 0)
        code = history_prepare(history, query, &statement, error);
    if (code)
        return code;
    history_bind_text(statement, 1, filter->kernel);
    history_bind_text(statement, 2, filter->machine);
    sqlite3_bind_int64(statement, 3, filter->limit);
    code = history_rows_read(history, statement, rows, error);
    sqlite3_finalize(statement);
    return code;
}

int history_find(const struct history *history, const char *key, struct history_rows *rows, struct error *error)
{
    static const char query[] =
        "SELECT " SERIES_COLUMNS SERIES_TABLES
        " WHERE substr(series.key, 1, length(?1)) = ?1 AND ?1 <> '' ORDER BY series.key LIMIT 2";
    sqlite3_stmt *statement;
    *rows = (struct history_rows){0};
    int code = history_prepare(history, query, &statement, error);
    if (code)
        return code;
    history_bind_text(statement, 1, key);
    code = history_rows_read(history, statement, rows, error);
    sqlite3_finalize(statement);
    if (code)
        return code;
    size_t found = json_array_size(rows->rows);
    if (found == 0)
        return error_usage(error, "%.100s: no such series in %.700s (attnbench history list)", key, history->path);
    if (found > 1)
        return error_usage(error, "%.100s: more than one series begins so (%s, %s)", key,
                           history_rows_text(rows, 0, "series"), history_rows_text(rows, 1, "series"));
    return 0;
}

/* *id 0: there is no such series. */
static int series_id(const struct history *history, const char *key, int64_t *id, struct error *error)
{
    sqlite3_stmt *statement;
    int code = history_prepare(history, "SELECT id FROM series WHERE key = ?", &statement, error);
    if (code)
        return code;
    history_bind_text(statement, 1, key);
    code = history_step(history, statement, error);
    *id = code > 0 ? sqlite3_column_int64(statement, 0) : 0;
    sqlite3_finalize(statement);
    return code < 0 ? code : 0;
}

int history_points(const struct history *history, const char *key, struct history_rows *rows, struct error *error)
{
    /* By a bound number: SQLite hands no subquery down into the view's two halves, and would read both whole. */
    static const char query[] = "SELECT time_utc, run_id, build_commit, build_dirty, value, standard_error, median_ns,"
                                " ci95_low_ns, ci95_high_ns, roof_fraction, log_ratio, samples, quality, verdict"
                                " FROM point WHERE series = ? ORDER BY time_utc, run_id";
    sqlite3_stmt *statement;
    int64_t id;
    *rows = (struct history_rows){0};
    int code = series_id(history, key, &id, error);
    if (code == 0)
        code = history_prepare(history, query, &statement, error);
    if (code)
        return code;
    sqlite3_bind_int64(statement, 1, id);
    code = history_rows_read(history, statement, rows, error);
    sqlite3_finalize(statement);
    return code;
}

void history_spark(const struct history_rows *points, size_t columns, bool ascii, char out[HISTORY_SPARK_BYTES])
{
    static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const letters[] = {"_", ".", "-", "~", "=", "+", "*", "#"};
    enum { LEVELS = sizeof blocks / sizeof blocks[0] };
    size_t count = json_array_size(points->rows), used = 0;
    columns = columns < HISTORY_SPARK ? columns : HISTORY_SPARK;
    size_t first = count > columns ? count - columns : 0;
    double low = INFINITY, high = -INFINITY;
    for (size_t i = first; i < count; i++) {
        low = fmin(low, history_rows_number(points, i, "value"));
        high = fmax(high, history_rows_number(points, i, "value"));
    }
    out[0] = '\0';
    for (size_t i = first; i < count; i++) {
        double share = high > low ? (history_rows_number(points, i, "value") - low) / (high - low) : 0.5;
        int level = share >= 0 ? (int)fmin(share * LEVELS, LEVELS - 1) : 0;
        const char *mark = ascii ? letters[level] : blocks[level];
        memcpy(out + used, mark, strlen(mark) + 1);
        used += strlen(mark);
    }
}

void history_commit_text(const struct history_rows *points, size_t row, char out[HISTORY_COMMIT_BYTES])
{
    const char *commit = history_rows_text(points, row, "build_commit");
    bool dirty = history_rows_number(points, row, "build_dirty") > 0;
    snprintf(out, HISTORY_COMMIT_BYTES, "%.64s%s", *commit ? commit : "?", dirty ? "+" : "");
}

void history_commit_shorten(char commit[HISTORY_COMMIT_BYTES])
{
    enum { DIGITS = 12 };
    size_t length = strlen(commit);
    if (length > DIGITS)
        strcpy(commit + DIGITS, commit[length - 1] == '+' ? "+" : "");
}

void history_percent(double log_ratio, char out[HISTORY_PERCENT_BYTES])
{
    double percent = 100 * expm1(log_ratio);
    if (!isfinite(percent))
        strcpy(out, "-");
    else
        snprintf(out, HISTORY_PERCENT_BYTES, fabs(percent) < 1000 ? "%+.1f%%" : "%+.0e%%", percent);
}
