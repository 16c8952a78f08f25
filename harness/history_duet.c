/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of duets and gates into a history: log(current / anchor) with its standard error; see history_import.h. Fields
 * that are not read here don't matter.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "history_import.h"
#include "history_repeats.h"
#include "history_writer.h"
#include "intern.h"
#include "json_util.h"

enum { WHERE = 600, REPEAT_NAME = 600 };

struct ratios_writer {
    struct history_writer common;
    sqlite3_stmt *insert, *find;
    struct history_imported *imported;
    int64_t run; /* of the duet under way */
};

/* What side a or b of a point is, where the point or else the whole duet tells; NULL: neither does. */
static const char *side_of(const json_t *duet, const json_t *entry, const char *side)
{
    return json_get_string(entry, side, json_get_string(duet, side, NULL));
}

static const json_t *context_of(const json_t *duet)
{
    const json_t *inner = json_object_get(duet, "context");
    return json_is_object(inner) ? inner : duet;
}

/* The fields of the problem and of who solved it stand in "point", or beside the ratio. */
static const json_t *point_of(const json_t *entry)
{
    const json_t *inner = json_object_get(entry, "point");
    return json_is_object(inner) ? inner : entry;
}

/* "FILE:LINE" of what came from a line, "FILE: points[I]" else. */
static void place_of(const char *name, const json_t *entry, size_t index, char where[WHERE])
{
    int64_t line = json_get_int(entry, HISTORY_LINE, 0);
    if (line > 0)
        snprintf(where, WHERE, "%.500s:%lld", name, (long long)line);
    else
        snprintf(where, WHERE, "%.500s: points[%zu]", name, index);
}

static int check_entry(const json_t *duet, const json_t *entry, const char *where, struct error *error)
{
    const json_t *ratio = json_object_get(entry, "log_ratio"), *spread = json_object_get(entry, "se");
    if (!json_get_string(point_of(entry), "kernel", NULL))
        return error_usage(error, "%s: a point without \"kernel\"", where);
    if (!side_of(duet, entry, "a"))
        return error_usage(error, "%s: no \"a\": what is the anchor?", where);
    if (ratio && !json_is_null(ratio) && !json_is_number(ratio))
        return error_usage(error, "%s: \"log_ratio\" is no number", where);
    if (spread && !json_is_null(spread) && !(json_is_number(spread) && json_number_value(spread) >= 0))
        return error_usage(error, "%s: \"se\" is no standard error", where);
    return 0;
}

static int check_duet(const json_t *duet, const char *name, struct error *error)
{
    const json_t *points = json_object_get(duet, "points"), *context = context_of(duet);
    char where[WHERE];
    size_t index;
    json_t *entry;
    int64_t line = json_get_int(context, HISTORY_LINE, 0);
    snprintf(where, sizeof where, line > 0 ? "%.500s:%lld" : "%.500s", name, (long long)line);
    int code = history_check_context(context, where, error);
    if (code == 0 && !json_is_array(points))
        code = error_usage(error, "%.600s: no \"points\"", name);
    json_array_foreach(points, index, entry)
    {
        place_of(name, entry, index, where);
        code = code ? code : check_entry(duet, entry, where, error);
    }
    return code;
}

static int open_writer(struct history *history, struct ratios_writer *writer, struct error *error)
{
    static const char insert[] =
        "INSERT INTO ratio (run, series, current, log_ratio, standard_error, processes, verdict)"
        " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (run, series) DO NOTHING";
    static const char find[] = "SELECT log_ratio FROM ratio WHERE run = ? AND series = ?";
    int code = history_writer_open(history, &writer->common, error);
    if (code == 0)
        code = history_prepare(history, insert, &writer->insert, error);
    if (code == 0)
        code = history_prepare(history, find, &writer->find, error);
    return code;
}

static void close_writer(struct ratios_writer *writer)
{
    sqlite3_finalize(writer->insert);
    sqlite3_finalize(writer->find);
    history_writer_close(&writer->common);
}

static int note_present(struct ratios_writer *writer, double ratio, int64_t series, struct error *error)
{
    sqlite3_bind_int64(writer->find, 1, writer->run);
    sqlite3_bind_int64(writer->find, 2, series);
    int code = history_step(writer->common.history, writer->find, error);
    if (code > 0)
        writer->imported->different += sqlite3_column_double(writer->find, 0) != ratio;
    writer->imported->present++;
    sqlite3_reset(writer->find);
    return code < 0 ? code : 0;
}

/* The kernel of a series is that of side b: a label there is its name, or "LIBRARY:NAME". A "point" of its own names
 * the kernel itself, as its sides are builds. Free with json_decref. */
static json_t *series_point(const json_t *duet, const json_t *entry)
{
    json_t *point = json_copy((json_t *)point_of(entry));
    const char *side = side_of(duet, entry, "b"), *colon = side ? strrchr(side, ':') : NULL;
    if (point_of(entry) == entry && side)
        json_object_set_new(point, "kernel", json_string(colon ? colon + 1 : side));
    return point;
}

/* What a series of ratios is held against: a kernel of one build, so that another build in the same place begins a
 * series of its own, and the same one in another place does not. Records without a digest have the label alone. */
static const char *anchor_of(const json_t *duet, const json_t *entry)
{
    const char *label = side_of(duet, entry, "a"), *digest = side_of(duet, entry, "a_digest");
    const char *colon = strrchr(label, ':');
    return digest ? intern_format("%s@%s", colon ? colon + 1 : label, digest) : label;
}

/* One point of one series, of all that was told of it within the run. */
static int write_ratio(struct ratios_writer *writer, int64_t series, const char *current, const json_t *repeats,
                       struct error *error)
{
    struct history_ratio pooled;
    bool added;
    history_pool_repeats(repeats, &pooled);
    sqlite3_bind_int64(writer->insert, 1, writer->run);
    sqlite3_bind_int64(writer->insert, 2, series);
    history_bind_text(writer->insert, 3, current);
    history_bind_number(writer->insert, 4, pooled.log_ratio);
    history_bind_number(writer->insert, 5, pooled.standard_error);
    history_bind_number(writer->insert, 6, pooled.processes >= 0 ? (double)pooled.processes : NAN);
    history_bind_text(writer->insert, 7, pooled.verdict);
    int code = history_run(writer->common.history, writer->insert, &added, error);
    if (code == 0 && !added)
        return note_present(writer, pooled.log_ratio, series, error);
    writer->imported->added += added;
    return code;
}

/* A point that was not measured has no ratio; one that went wrong or failed at last may still have that of its verdict
 * before, but not of a kernel that works. Documents without a status hold nothing but what is ok. A gate's provisional
 * line (gate.h) was chosen for its ratio, which more processes would bring nearer to 1: it never counts, for where the
 * gate came to its end another line of the point does. */
static bool has_ratio(const json_t *entry)
{
    return strcmp(json_get_string(entry, "status", "ok"), "ok") == 0 &&
           json_is_number(json_object_get(entry, "log_ratio")) && !json_is_true(json_object_get(entry, "provisional"));
}

/* Puts the entry beside those of its series that held the same kernel against the anchor. Of another library's kernel
 * the first figure is kept, as of another file's. */
static int add_repeat(struct ratios_writer *writer, const json_t *duet, json_t *entry, json_t *points,
                      struct error *error)
{
    const char *current = side_of(duet, entry, "b");
    char name[REPEAT_NAME];
    int64_t series;
    json_t *point = series_point(duet, entry);
    int code = history_write_series(&writer->common, context_of(duet), point, anchor_of(duet, entry), &series, error);
    json_decref(point);
    if (code)
        return code;
    snprintf(name, sizeof name, "%lld %.500s", (long long)series, current ? current : "");
    json_t *known = json_object_get(points, name);
    if (!known) {
        known = json_pack("{s:I,s:s?,s:[]}", "series", (json_int_t)series, "current", current, "repeats");
        json_object_set_new_nocheck(points, name, known); /* a cut name may end within a character */
    }
    json_array_append(json_object_get(known, "repeats"), entry);
    return 0;
}

static int write_duet(struct ratios_writer *writer, const json_t *duet, const char *name, struct error *error)
{
    size_t index;
    json_t *entry, *points = json_object();
    const char *key;
    int code = history_write_run(&writer->common, context_of(duet), name, &writer->run, error);
    json_array_foreach(json_object_get(duet, "points"), index, entry)
    {
        if (code == 0 && has_ratio(entry))
            code = add_repeat(writer, duet, entry, points, error);
    }
    json_object_foreach(points, key, entry)
    {
        if (code == 0)
            code = write_ratio(writer, json_get_int(entry, "series", 0), json_get_string(entry, "current", NULL),
                               json_object_get(entry, "repeats"), error);
    }
    json_decref(points);
    return code;
}

int history_import_duets(struct history *history, const json_t *duets, const char *name,
                         struct history_imported *imported, struct error *error)
{
    struct ratios_writer writer = {.imported = imported};
    size_t index;
    json_t *duet;
    int code = 0;
    json_array_foreach((json_t *)duets, index, duet) code = code ? code : check_duet(duet, name, error);
    if (code == 0)
        code = history_begin(history, error);
    if (code)
        return code;
    code = open_writer(history, &writer, error);
    json_array_foreach((json_t *)duets, index, duet) code = code ? code : write_duet(&writer, duet, name, error);
    close_writer(&writer);
    if (code == 0)
        return history_commit(history, error);
    history_rollback(history);
    return code;
}
