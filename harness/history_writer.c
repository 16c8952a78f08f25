/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs and series of a history; see history_writer.h.
 */
#include "history_writer.h"

#include <stdio.h>
#include <string.h>

#include "history_key.h"
#include "json_util.h"

static const char insert_run[] =
    "INSERT INTO run (run_id, time_utc, machine_key, host, cpu_model, config, build_commit, build_dirty)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (run_id) DO NOTHING";
static const char find_run[] = "SELECT id, machine_key FROM run WHERE run_id = ?";
static const char insert_series[] =
    "INSERT INTO series (key, machine_key, compiler, flags, kernel_release, page_mode, problem_key, problem, rule, "
    "dtype,"
    " kernel, schedule, placement, mem, cache, anchor, threads)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING";
static const char find_series[] = "SELECT id FROM series WHERE key = ?";

int history_writer_open(struct history *history, struct history_writer *writer, struct error *error)
{
    *writer = (struct history_writer){.history = history};
    int code = history_prepare(history, insert_run, &writer->insert_run, error);
    if (code == 0)
        code = history_prepare(history, find_run, &writer->find_run, error);
    if (code == 0)
        code = history_prepare(history, insert_series, &writer->insert_series, error);
    if (code == 0)
        code = history_prepare(history, find_series, &writer->find_series, error);
    return code;
}

void history_writer_close(struct history_writer *writer)
{
    sqlite3_finalize(writer->insert_run);
    sqlite3_finalize(writer->find_run);
    sqlite3_finalize(writer->insert_series);
    sqlite3_finalize(writer->find_series);
    *writer = (struct history_writer){0};
}

/* A time that sorts as text, second by second: "2026-11-30T19:19:01Z", with or without a fraction. Within one second
 * what has a fraction sorts before what has none, whichever was first. */
static bool is_time(const char *text)
{
    static const char form[] = "dddd-dd-ddTdd:dd:dd";
    for (size_t i = 0; form[i]; i++) {
        bool digit = text[i] >= '0' && text[i] <= '9';
        if (form[i] == 'd' ? !digit : text[i] != form[i])
            return false;
    }
    size_t length = strlen(text);
    return text[length - 1] == 'Z';
}

int history_check_context(const json_t *context, const char *where, struct error *error)
{
    static const char *const needed[] = {"run_id", "time_utc", "machine_key"};
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        if (!json_get_string(context, needed[i], NULL))
            return error_usage(error, "%.500s: a context without \"%s\"", where, needed[i]);
    }
    const char *time = json_get_string(context, "time_utc", "");
    if (!is_time(time))
        return error_usage(error, "%.500s: time_utc \"%.100s\": no time such as 2026-01-31T12:00:00Z", where, time);
    return 0;
}

int history_run(const struct history *history, sqlite3_stmt *statement, bool *changed, struct error *error)
{
    int before = sqlite3_total_changes(history->db);
    int code = history_step(history, statement, error);
    sqlite3_reset(statement);
    *changed = sqlite3_total_changes(history->db) != before;
    return code < 0 ? code : 0;
}

int history_write_run(struct history_writer *writer, const json_t *context, const char *where, int64_t *id,
                      struct error *error)
{
    static const char *const texts[] = {"run_id",    "time_utc", "machine_key", "host",
                                        "cpu_model", "config",   "build_commit"};
    enum { TEXTS = sizeof texts / sizeof texts[0] };
    const char *run_id = json_get_string(context, "run_id", ""), *machine = json_get_string(context, "machine_key", "");
    const json_t *dirty = json_object_get(context, "build_dirty");
    bool added;
    for (int i = 0; i < TEXTS; i++)
        history_bind_text(writer->insert_run, i + 1, json_get_string(context, texts[i], NULL));
    if (json_is_boolean(dirty))
        sqlite3_bind_int(writer->insert_run, TEXTS + 1, json_is_true(dirty));
    else
        sqlite3_bind_null(writer->insert_run, TEXTS + 1);
    int code = history_run(writer->history, writer->insert_run, &added, error);
    if (code)
        return code;
    history_bind_text(writer->find_run, 1, run_id);
    code = history_step(writer->history, writer->find_run, error);
    if (code > 0) {
        *id = sqlite3_column_int64(writer->find_run, 0);
        const char *known = (const char *)sqlite3_column_text(writer->find_run, 1);
        code = 0;
        if (known && strcmp(known, machine) != 0)
            code = error_usage(error, "%.400s: run %.100s is of machine %.60s, but stands in %.200s as one of %.60s",
                               where, run_id, machine, writer->history->path, known);
    }
    sqlite3_reset(writer->find_run);
    return code;
}

int history_write_series(struct history_writer *writer, const json_t *context, const json_t *point, const char *anchor,
                         int64_t *id, struct error *error)
{
    struct history_key key;
    history_key_of(context, point, anchor, &key);
    const char *const texts[] = {key.key,       key.machine_key, key.compiler,  key.flags, key.kernel_release,
                                 key.page_mode, key.problem_key, key.problem,   key.rule,  key.dtype,
                                 key.kernel,    key.schedule,    key.placement, key.mem,   key.cache,
                                 key.anchor};
    enum { TEXTS = sizeof texts / sizeof texts[0] };
    bool added;
    for (int i = 0; i < TEXTS; i++)
        history_bind_text(writer->insert_series, i + 1, texts[i]);
    sqlite3_bind_int64(writer->insert_series, TEXTS + 1, key.threads);
    int code = history_run(writer->history, writer->insert_series, &added, error);
    if (code == 0) {
        history_bind_text(writer->find_series, 1, key.key);
        code = history_step(writer->history, writer->find_series, error);
        *id = code > 0 ? sqlite3_column_int64(writer->find_series, 0) : 0;
        code = code < 0 ? code : 0;
        sqlite3_reset(writer->find_series);
    }
    history_key_release(&key);
    return code;
}
