/* SPDX-License-Identifier: Apache-2.0
 *
 * Change points of all series, merged by commit; see history_changes.h.
 */
#include "history_changes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json_util.h"

/* Points of unknown error get the largest that is known: they weigh least. Where none is known all weigh the same, and
 * the spread from point to point tells how much (change_points.h: phi). */
static void read_points(const struct history_rows *points, size_t n, double *values, double *errors)
{
    double largest = 0;
    for (size_t i = 0; i < n; i++) {
        values[i] = history_rows_number(points, i, "value");
        errors[i] = history_rows_number(points, i, "standard_error");
        largest = fmax(largest, errors[i]);
    }
    for (size_t i = 0; i < n; i++)
        errors[i] = isnan(errors[i]) ? largest : errors[i];
}

static json_t *series_object(const struct history_rows *series, size_t row)
{
    json_t *object = json_object(), *name;
    size_t index;
    json_array_foreach(series->columns, index, name)
        json_object_set(object, json_string_value(name), json_array_get(json_array_get(series->rows, row), index));
    return object;
}

static int append(struct history_changes *changes, const struct history_rows *series, size_t row,
                  const struct history_rows *points, const struct change_point *found, long count)
{
    struct history_change *grown = realloc(changes->changes, (changes->count + (size_t)count) * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    changes->changes = grown;
    for (long i = 0; i < count; i++) {
        struct history_change *change = &grown[changes->count++];
        *change = (struct history_change){
            .series = series_object(series, row),
            .point = found[i].first,
            .log_change = found[i].size,
            .p = found[i].p,
            .newest = i == count - 1,
        };
        history_commit_text(points, found[i].first, change->commit);
        history_commit_text(points, found[i].first - 1, change->previous);
        snprintf(change->time_utc, sizeof change->time_utc, "%s",
                 history_rows_text(points, found[i].first, "time_utc"));
        snprintf(change->run_id, sizeof change->run_id, "%s", history_rows_text(points, found[i].first, "run_id"));
    }
    return 0;
}

int history_changes_add(struct history_changes *changes, const struct history_rows *series, size_t row,
                        const struct history_rows *points, struct error *error)
{
    const size_t n = json_array_size(points->rows), most = change_points_most(n);
    if (most == 0)
        return 0;
    double *values = calloc(2 * n, sizeof *values), *errors = values + n;
    struct change_point *found = calloc(most, sizeof *found);
    long count = -ENOMEM;
    if (values && found) {
        read_points(points, n, values, errors);
        count = change_points_find(values, errors, n, CHANGE_POINTS_LEVEL, found);
    }
    if (count > 0 && append(changes, series, row, points, found, count) != 0)
        count = -ENOMEM;
    free(values);
    free(found);
    if (count == -EINVAL)
        return error_usage(error, "series %s: a value that is no number", history_rows_text(series, row, "series"));
    return count < 0 ? error_system(error, (int)-count, "change points") : 0;
}

static int by_time(const void *left, const void *right)
{
    const struct history_change *a = left, *b = right;
    int order = strcmp(a->time_utc, b->time_utc);
    order = order ? order : strcmp(a->run_id, b->run_id);
    return order ? order
                 : strcmp(json_string_value(json_object_get(a->series, "series")),
                          json_string_value(json_object_get(b->series, "series")));
}

/* Whether the commit tells what was built: it is known, and nothing was changed that it does not hold. */
static bool tells_build(const char *commit)
{
    return strcmp(commit, "?") != 0 && commit[strlen(commit) - 1] != '+';
}

/* Of any other build all that is known is the run. */
static bool same_alert(const struct history_change *a, const struct history_change *b)
{
    return tells_build(a->commit) ? strcmp(a->commit, b->commit) == 0 : strcmp(a->run_id, b->run_id) == 0;
}

/* Stable: each change moves up behind the last earlier one of its alert, so alerts stand in the order of their first.
 */
void history_changes_sort(struct history_changes *changes)
{
    struct history_change *list = changes->changes;
    if (changes->count > 0)
        qsort(list, changes->count, sizeof *list, by_time);
    for (size_t first = 0; first < changes->count; first += history_changes_alert(changes, first)) {
        size_t end = first + 1;
        for (size_t i = end; i < changes->count; i++) {
            if (!same_alert(&list[first], &list[i]))
                continue;
            struct history_change moved = list[i];
            memmove(&list[end + 1], &list[end], (i - end) * sizeof *list);
            list[end++] = moved;
        }
    }
}

size_t history_changes_alert(const struct history_changes *changes, size_t first)
{
    size_t end = first;
    while (end < changes->count && same_alert(&changes->changes[first], &changes->changes[end]))
        end++;
    return end - first;
}

void history_changes_release(struct history_changes *changes)
{
    for (size_t i = 0; i < changes->count; i++)
        json_decref(changes->changes[i].series);
    free(changes->changes);
    *changes = (struct history_changes){0};
}

bool history_change_sequential(const struct history_change *change)
{
    return *json_get_string(change->series, "anchor", "") == '\0';
}

bool history_change_same_commit(const struct history_change *change)
{
    return tells_build(change->commit) && strcmp(change->commit, change->previous) == 0;
}

size_t history_changes_judged(const struct history_rows *series, bool times, size_t *brief)
{
    size_t judged = 0;
    *brief = 0;
    for (size_t row = 0; row < json_array_size(series->rows); row++) {
        if (!times && !*history_rows_text(series, row, "anchor"))
            continue;
        judged++;
        *brief += history_rows_number(series, row, "points") < HISTORY_CHANGES_RUNS;
    }
    return judged;
}

bool history_changes_failing(const struct history_changes *changes, bool any, bool times)
{
    for (size_t i = 0; i < changes->count; i++) {
        const struct history_change *change = &changes->changes[i];
        if (change->newest && (times || !history_change_sequential(change)) && (any || change->log_change > 0))
            return true;
    }
    return false;
}

static const char *const facts[] = {"machine_key", "problem",   "kernel", "schedule",
                                    "threads",     "placement", "cache",  "anchor"};

static json_t *change_object(const struct history_change *change)
{
    json_t *object = json_object();
    json_object_set(object, "series", json_object_get(change->series, "series"));
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        json_object_set(object, facts[i], json_object_get(change->series, facts[i]));
    json_object_set_new(object, "log_change", json_real(change->log_change));
    json_object_set_new(object, "p", json_real(change->p));
    json_object_set_new(object, "newest", json_boolean(change->newest));
    json_object_set_new(object, "sequential", json_boolean(history_change_sequential(change)));
    return object;
}

static json_t *commit_or_null(const char *commit)
{
    return strcmp(commit, "?") ? json_string(commit) : json_null();
}

static json_t *change_row(const struct history_change *change)
{
    return json_pack("[s, s, o, o]", change->time_utc, change->run_id, commit_or_null(change->commit),
                     commit_or_null(change->previous));
}

/* Series whose runs are not the same ones meet a commit at runs of their own, and come from commits of their own. */
static json_t *alert_row(const struct history_change *list, size_t count)
{
    bool one_run = true, one_previous = true;
    for (size_t i = 1; i < count; i++) {
        one_run &= strcmp(list[i].run_id, list[0].run_id) == 0;
        one_previous &= strcmp(list[i].previous, list[0].previous) == 0;
    }
    return json_pack("[s, o, o, o]", list[0].time_utc, one_run ? json_string(list[0].run_id) : json_null(),
                     commit_or_null(list[0].commit), one_previous ? commit_or_null(list[0].previous) : json_null());
}

static json_t *nested_change(const struct history_change *change)
{
    json_t *object = change_object(change);
    json_object_set_new(object, "time_utc", json_string(change->time_utc));
    json_object_set_new(object, "run_id", json_string(change->run_id));
    json_object_set_new(object, "previous_commit", commit_or_null(change->previous));
    return object;
}

static void add_alerts(const struct history_changes *changes, struct history_rows *rows)
{
    for (size_t first = 0; first < changes->count;) {
        size_t count = history_changes_alert(changes, first), slower = 0;
        json_t *row = alert_row(&changes->changes[first], count), *list = json_array();
        for (size_t i = first; i < first + count; i++) {
            slower += changes->changes[i].log_change > 0;
            json_array_append_new(list, nested_change(&changes->changes[i]));
        }
        json_array_append_new(row, json_integer((json_int_t)slower));
        json_array_append_new(row, json_integer((json_int_t)(count - slower)));
        json_array_append_new(row, list);
        json_array_append_new(rows->rows, row);
        first += count;
    }
}

static void add_changes(const struct history_changes *changes, struct history_rows *rows)
{
    json_array_append_new(rows->columns, json_string("series"));
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        json_array_append_new(rows->columns, json_string(facts[i]));
    json_array_append_new(rows->columns, json_string("log_change"));
    json_array_append_new(rows->columns, json_string("p"));
    json_array_append_new(rows->columns, json_string("newest"));
    json_array_append_new(rows->columns, json_string("sequential"));
    for (size_t i = 0; i < changes->count; i++) {
        json_t *row = change_row(&changes->changes[i]), *object = change_object(&changes->changes[i]), *value;
        const char *name;
        json_object_foreach(object, name, value) json_array_append(row, value);
        json_array_append_new(rows->rows, row);
        json_decref(object);
    }
}

void history_changes_rows(const struct history_changes *changes, bool alerts, struct history_rows *rows)
{
    *rows = (struct history_rows){
        .columns = json_pack("[s, s, s, s]", "time_utc", "run_id", "commit", "previous_commit"), .rows = json_array()};
    if (!alerts) {
        add_changes(changes, rows);
        return;
    }
    json_array_append_new(rows->columns, json_string("slower"));
    json_array_append_new(rows->columns, json_string("faster"));
    json_array_append_new(rows->columns, json_string("changes"));
    add_alerts(changes, rows);
}
