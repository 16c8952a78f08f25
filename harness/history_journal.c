/* SPDX-License-Identifier: Apache-2.0
 *
 * Results files of `attnbench run` into a history; see history_import.h.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "history_import.h"
#include "history_writer.h"
#include "journal.h"
#include "json_util.h"
#include "record_text.h"

enum { WHERE = 600 };

/* A field of ours within the records that are kept: how many samples there were. */
static const char samples_field[] = "@samples";

struct reading {
    const char *name;
    json_t *contexts; /* by run_id */
    json_t *records;  /* array */
};

double history_standard_error(const json_t *record, size_t samples)
{
    const size_t least = 6; /* with so many, one process would have told an interval */
    double half = record_ci_half(record), error = half / 1.96;
    if (isnan(half) && samples >= least && !json_get_string(record, "ci_scope", NULL))
        return NAN;
    if (isnan(half))
        error = 1.2533 * 1.4826 * json_get_number(record, "mad_ns", NAN) / sqrt((double)samples) /
                json_get_number(record, "median_ns", NAN);
    return isfinite(error) && error > 0 ? error : NAN;
}

static int check_record(const json_t *record, const struct reading *reading, const char *where, struct error *error)
{
    const char *run_id = json_get_string(record, "run_id", NULL), *status = json_get_string(record, "status", "");
    if (!run_id)
        return error_usage(error, "%s: a record without \"run_id\"", where);
    if (!json_object_get(reading->contexts, run_id))
        return error_usage(error, "%s: no context of run %.100s stands above this record", where, run_id);
    if (strcmp(status, "ok") != 0)
        return 0;
    double median = json_get_number(record, "median_ns", NAN);
    if (!(median > 0))
        return error_usage(error, "%s: status ok, but median_ns is no time", where);
    if (json_get_int(record, "threads", 0) < 1)
        return error_usage(error, "%s: \"threads\" is no number of threads", where);
    return 0;
}

static int take_line(void *user, const struct results_line *line, struct error *error)
{
    struct reading *reading = user;
    char where[WHERE];
    snprintf(where, sizeof where, "%.500s:%lld", reading->name, (long long)line->number);
    json_object_set_new(line->json, HISTORY_LINE, json_integer(line->number));
    if (line->is_context) {
        int code = history_check_context(line->json, where, error);
        if (code == 0)
            json_object_set(reading->contexts, json_get_string(line->json, "run_id", ""), line->json);
        return code;
    }
    int code = check_record(line->json, reading, where, error);
    if (code)
        return code;
    /* Samples are most of a journal, and stay there. */
    json_object_set_new(line->json, samples_field,
                        json_integer((json_int_t)json_array_size(json_object_get(line->json, "samples_ns"))));
    json_object_del(line->json, "samples_ns");
    json_array_append(reading->records, line->json);
    return 0;
}

/* Statements for results beside those for runs and series. */
struct results_writer {
    struct history_writer common;
    sqlite3_stmt *insert, *find;
    const struct reading *reading;
    struct history_imported *imported;
};

static int open_writer(struct history *history, struct results_writer *writer, struct error *error)
{
    static const char insert[] =
        "INSERT INTO result (run, point_id, series, status, reason, median_ns, ci95_low_ns, ci95_high_ns, ci_scope,"
        " mad_ns, samples, log_median_ns, standard_error, roof_fraction, gflops, quality)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (run, point_id) DO NOTHING";
    static const char find[] = "SELECT status, median_ns FROM result WHERE run = ? AND point_id = ?";
    int code = history_writer_open(history, &writer->common, error);
    if (code == 0)
        code = history_prepare(history, insert, &writer->insert, error);
    if (code == 0)
        code = history_prepare(history, find, &writer->find, error);
    return code;
}

static void close_writer(struct results_writer *writer)
{
    sqlite3_finalize(writer->insert);
    sqlite3_finalize(writer->find);
    history_writer_close(&writer->common);
}

static void bind_figures(sqlite3_stmt *insert, const json_t *record)
{
    int64_t samples = json_get_int(record, samples_field, 0);
    history_bind_number(insert, 6, json_get_number(record, "median_ns", NAN));
    history_bind_number(insert, 7, json_get_number(record, "ci95_low_ns", NAN));
    history_bind_number(insert, 8, json_get_number(record, "ci95_high_ns", NAN));
    history_bind_text(insert, 9, json_get_string(record, "ci_scope", NULL));
    history_bind_number(insert, 10, json_get_number(record, "mad_ns", NAN));
    sqlite3_bind_int64(insert, 11, samples);
    history_bind_number(insert, 12, log(json_get_number(record, "median_ns", NAN)));
    history_bind_number(insert, 13, history_standard_error(record, (size_t)samples));
    history_bind_number(insert, 14, json_get_number(record, "roof_fraction", NAN));
    history_bind_number(insert, 15, json_get_number(record, "gflops", NAN));
    history_bind_text(insert, 16, json_get_string(json_object_get(record, "noise"), "quality", NULL));
}

/* A point of a run that is there already: the same figure, or another one? */
static int note_present(struct results_writer *writer, const json_t *record, int64_t run, struct error *error)
{
    sqlite3_bind_int64(writer->find, 1, run);
    history_bind_text(writer->find, 2, json_get_string(record, "point_id", ""));
    int code = history_step(writer->common.history, writer->find, error);
    if (code > 0) {
        const char *status = (const char *)sqlite3_column_text(writer->find, 0);
        double median =
            sqlite3_column_type(writer->find, 1) == SQLITE_NULL ? 0 : sqlite3_column_double(writer->find, 1);
        bool same = status && strcmp(status, json_get_string(record, "status", "")) == 0 &&
                    median == json_get_number(record, "median_ns", 0);
        writer->imported->different += !same;
    }
    writer->imported->present++;
    sqlite3_reset(writer->find);
    return code < 0 ? code : 0;
}

static int write_record(struct results_writer *writer, const json_t *record, struct error *error)
{
    const json_t *context = json_object_get(writer->reading->contexts, json_get_string(record, "run_id", ""));
    const char *status = json_get_string(record, "status", "");
    bool timed = strcmp(status, "ok") == 0, added;
    char where[WHERE];
    int64_t run, series = 0;
    snprintf(where, sizeof where, "%.500s:%lld", writer->reading->name,
             (long long)json_get_int(context, HISTORY_LINE, 0));
    int code = history_write_run(&writer->common, context, where, &run, error);
    if (code == 0 && timed)
        code = history_write_series(&writer->common, context, record, "", &series, error);
    if (code)
        return code;
    sqlite3_bind_int64(writer->insert, 1, run);
    history_bind_text(writer->insert, 2, json_get_string(record, "point_id", ""));
    if (timed)
        sqlite3_bind_int64(writer->insert, 3, series);
    else
        sqlite3_bind_null(writer->insert, 3);
    history_bind_text(writer->insert, 4, status);
    history_bind_text(writer->insert, 5, json_get_string(record, "reason", NULL));
    bind_figures(writer->insert, record);
    code = history_run(writer->common.history, writer->insert, &added, error);
    if (code == 0 && !added)
        return note_present(writer, record, run, error);
    writer->imported->added += added;
    writer->imported->untimed += added && !timed;
    return code;
}

static int write_records(struct history *history, const struct reading *reading, struct history_imported *imported,
                         struct error *error)
{
    struct results_writer writer = {.reading = reading, .imported = imported};
    size_t index;
    json_t *record;
    int code = history_begin(history, error);
    if (code)
        return code;
    code = open_writer(history, &writer, error);
    json_array_foreach(reading->records, index, record)
    {
        if (code == 0)
            code = write_record(&writer, record, error);
    }
    close_writer(&writer);
    if (code == 0)
        return history_commit(history, error);
    history_rollback(history);
    return code;
}

int history_import_journal(struct history *history, FILE *file, const char *name, struct history_imported *imported,
                           struct error *error)
{
    struct reading reading = {.name = name, .contexts = json_object(), .records = json_array()};
    struct results_end end;
    int code = results_scan(file, name, take_line, &reading, &end, error);
    imported->torn = end.torn;
    if (code == 0)
        code = write_records(history, &reading, imported, error);
    json_decref(reading.contexts);
    json_decref(reading.records);
    return code;
}
