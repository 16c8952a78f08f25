/* SPDX-License-Identifier: Apache-2.0
 *
 * Histories for people; see history_print.h.
 */
#include "history_print.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "color.h"
#include "json_util.h"
#include "text.h"

enum { LIST_SPARK = 16, SHORT_KEY = 10, NAME = 200 };

/* Text of a file, as the terminal can take it. */
static void put(FILE *file, const struct output_style *style, const char *text)
{
    size_t size = strlen(text) + 8;
    char *shown = malloc(size);
    if (!shown)
        abort(); /* memory is exhausted; a line with words left out would be worse than none */
    text_fit(text, size, shown, size);
    if (style->ascii)
        text_to_ascii(shown);
    fputs(shown, file);
    free(shown);
}

static bool same_text(const struct history_rows *rows, size_t row, const char *const *columns, size_t count)
{
    bool same = row > 0;
    for (size_t i = 0; i < count && same; i++)
        same = strcmp(history_rows_text(rows, row, columns[i]), history_rows_text(rows, row - 1, columns[i])) == 0;
    return same;
}

static void put_machine(FILE *file, const struct history_rows *series, size_t row, const struct output_style *style)
{
    char line[NAME];
    fputs(paint(style->color, PAINT_HEADING), file);
    snprintf(line, sizeof line, "%s (machine %s)", history_rows_text(series, row, "cpu_model"),
             history_rows_text(series, row, "machine_key"));
    put(file, style, line);
    fputs(paint(style->color, PAINT_PLAIN), file);
    snprintf(line, sizeof line, "%s, Linux %s", history_rows_text(series, row, "compiler"),
             history_rows_text(series, row, "kernel_release"));
    fputc('\n', file);
    put(file, style, line);
    fputc('\n', file);
}

/* "avx2 auto x2 compact, 2m pages, to base": what tells series of one problem apart. */
static void series_name(const struct history_rows *series, size_t row, char out[NAME])
{
    const char *mem = history_rows_text(series, row, "mem"), *anchor = history_rows_text(series, row, "anchor");
    const char *pages = history_rows_text(series, row, "page_mode");
    snprintf(out, NAME, "%s %s x%.0f %s%s%s%s%s%s%.40s", history_rows_text(series, row, "kernel"),
             history_rows_text(series, row, "schedule"), history_rows_number(series, row, "threads"),
             history_rows_text(series, row, "placement"), strcmp(mem, "local") ? " mem " : "",
             strcmp(mem, "local") ? mem : "", *pages ? " pages " : "", pages, *anchor ? " to " : "", anchor);
}

/* A time with its unit, or the ratio to the anchor as a percentage. */
static void value_text(const struct history_rows *rows, size_t row, char out[TEXT_FIGURE])
{
    double ratio = history_rows_number(rows, row, "log_ratio");
    if (isnan(ratio))
        text_time(history_rows_number(rows, row, "median_ns"), out);
    else
        history_percent(ratio, out);
}

static int put_series(FILE *file, const struct history *history, const struct history_rows *series, size_t row,
                      const struct output_style *style, struct error *error)
{
    char spark[HISTORY_SPARK_BYTES], value[TEXT_FIGURE], name[NAME];
    struct history_rows points;
    int code = history_points(history, history_rows_text(series, row, "series"), &points, error);
    if (code == 0) {
        history_spark(&points, LIST_SPARK, style->ascii, spark);
        value_text(series, row, value);
        if (style->ascii)
            text_to_ascii(value);
        series_name(series, row, name);
        fprintf(file, "  %.*s %5.0f %*s%s %s%*s ", SHORT_KEY, history_rows_text(series, row, "series"),
                history_rows_number(series, row, "points"), (int)(9 - text_columns(value)), "", value, spark,
                (int)(LIST_SPARK - text_columns(spark)), "");
        put(file, style, name);
        fputc('\n', file);
    }
    history_rows_release(&points);
    return code;
}

int history_print_list(FILE *file, const struct history *history, const struct history_rows *series,
                       const struct output_style *style, struct error *error)
{
    static const char *const machine[] = {"machine_key", "compiler", "flags", "kernel_release"};
    static const char *const problem[] = {"machine_key", "compiler", "flags", "kernel_release", "problem"};
    for (size_t row = 0; row < json_array_size(series->rows); row++) {
        if (!same_text(series, row, machine, sizeof machine / sizeof machine[0])) {
            fputs(row > 0 ? "\n" : "", file);
            put_machine(file, series, row, style);
            fprintf(file, "%s  %-*s %5s %9s higher: slower%s\n", paint(style->color, PAINT_FAINT), SHORT_KEY, "series",
                    "runs", "newest", paint(style->color, PAINT_PLAIN));
        }
        if (!same_text(series, row, problem, sizeof problem / sizeof problem[0])) {
            put(file, style, history_rows_text(series, row, "problem"));
            fputc('\n', file);
        }
        int code = put_series(file, history, series, row, style, error);
        if (code)
            return code;
    }
    return 0;
}

/* The change that begins at a point; NULL: none does. */
static const struct history_change *change_at(const struct history_changes *changes, size_t point)
{
    for (size_t i = 0; i < changes->count; i++) {
        if (changes->changes[i].point == point)
            return &changes->changes[i];
    }
    return NULL;
}

/* "+-1.2%" of the 95 % interval: of the median where the run gave one, else from the standard error. */
static void interval_text(const struct history_rows *points, size_t row, char out[HISTORY_PERCENT_BYTES])
{
    double half = 0.5 *
                  (history_rows_number(points, row, "ci95_high_ns") - history_rows_number(points, row, "ci95_low_ns")) /
                  history_rows_number(points, row, "median_ns");
    if (isnan(half))
        half = 1.96 * history_rows_number(points, row, "standard_error");
    if (isnan(half))
        strcpy(out, "");
    else
        snprintf(out, HISTORY_PERCENT_BYTES, "±%.1f%%", 100 * half);
}

static json_t *point_row(const struct history_rows *points, size_t row, const struct history_change *change)
{
    char commit[HISTORY_COMMIT_BYTES], value[TEXT_FIGURE], interval[HISTORY_PERCENT_BYTES], roof[TEXT_FIGURE];
    char step[HISTORY_PERCENT_BYTES + 16] = "", percent[HISTORY_PERCENT_BYTES];
    const char *quality = history_rows_text(points, row, "quality");
    history_commit_text(points, row, commit);
    history_commit_shorten(commit);
    value_text(points, row, value);
    interval_text(points, row, interval);
    text_percent(history_rows_number(points, row, "roof_fraction"), roof);
    if (change) {
        history_percent(change->log_change, percent);
        snprintf(step, sizeof step, "%s %s", percent, change->log_change > 0 ? "slower" : "faster");
    }
    const char *note = strcmp(quality, "noisy") == 0 ? quality : history_rows_text(points, row, "verdict");
    return json_pack("[s, s, s, s, s, s, s]", history_rows_text(points, row, "time_utc"), commit, value, interval, roof,
                     step, note);
}

void history_print_series(FILE *file, const struct history_rows *series, const struct history_rows *points,
                          const struct history_changes *changes, const struct output_style *style)
{
    char spark[HISTORY_SPARK_BYTES], name[NAME];
    struct history_rows table = {.columns = json_pack("[s, s, s, s, s, s, s]", "time", "commit",
                                                      *history_rows_text(series, 0, "anchor") ? "to anchor" : "median",
                                                      "95 %", "of roof", "change", "note"),
                                 .rows = json_array()};
    put_machine(file, series, 0, style);
    put(file, style, history_rows_text(series, 0, "problem"));
    fputc('\n', file);
    series_name(series, 0, name);
    put(file, style, name);
    history_spark(points, HISTORY_SPARK, style->ascii, spark);
    fprintf(file, "\nseries %s, %zu points\n\n%s\n\n", history_rows_text(series, 0, "series"),
            json_array_size(points->rows), spark);
    for (size_t row = 0; row < json_array_size(points->rows); row++)
        json_array_append_new(table.rows, point_row(points, row, change_at(changes, row)));
    history_rows_write(file, "table", &table, style);
    history_rows_release(&table);
}

/* What it came from, and when, if that is not when the first of its alert did. */
static void put_change(FILE *file, const struct history_change *change, const struct history_change *head,
                       const struct output_style *style)
{
    char percent[HISTORY_PERCENT_BYTES], previous[HISTORY_COMMIT_BYTES];
    bool slower = change->log_change > 0;
    history_percent(change->log_change, percent);
    fprintf(file, "  %s%8s %s%s  %.*s  ", paint(style->color, slower ? PAINT_BAD : PAINT_GOOD), percent,
            slower ? "slower" : "faster", paint(style->color, PAINT_PLAIN), SHORT_KEY,
            json_get_string(change->series, "series", ""));
    char line[3 * NAME];
    const char *anchor = json_get_string(change->series, "anchor", "");
    const bool later = strcmp(change->time_utc, head->time_utc) != 0;
    snprintf(previous, sizeof previous, "%s", change->previous);
    history_commit_shorten(previous);
    snprintf(line, sizeof line, "%s %s x%lld, %s%s%s (%sp %.1g, after %s%s%s)",
             json_get_string(change->series, "kernel", ""), json_get_string(change->series, "schedule", ""),
             (long long)json_get_int(change->series, "threads", 0), json_get_string(change->series, "problem", ""),
             *anchor ? " to " : "", anchor, history_change_sequential(change) ? "sequential, " : "", change->p,
             history_change_same_commit(change) ? "the same commit" : previous, later ? ", at " : "",
             later ? change->time_utc : "");
    put(file, style, line);
    fputc('\n', file);
}

void history_print_changes(FILE *file, const struct history_changes *changes, const struct output_style *style)
{
    size_t sequential = 0;
    for (size_t first = 0; first < changes->count;) {
        const struct history_change *head = &changes->changes[first];
        size_t count = history_changes_alert(changes, first), slower = 0, same = 0;
        char commit[HISTORY_COMMIT_BYTES];
        snprintf(commit, sizeof commit, "%s", head->commit);
        history_commit_shorten(commit);
        for (size_t i = first; i < first + count; i++) {
            slower += changes->changes[i].log_change > 0;
            same += history_change_same_commit(&changes->changes[i]);
            sequential += history_change_sequential(&changes->changes[i]);
        }
        fprintf(file, "%s%s%s%s  %s  %zu series: %zu slower, %zu faster\n", first > 0 ? "\n" : "",
                paint(style->color, PAINT_HEADING), commit, paint(style->color, PAINT_PLAIN), head->time_utc, count,
                slower, count - slower);
        if (same == count)
            fputs("  the same commit stands before it: the machine or its surroundings changed\n", file);
        for (size_t i = first; i < first + count; i++)
            put_change(file, &changes->changes[i], head, style);
        first += count;
    }
    if (sequential > 0)
        fputs("\nsequential: times of launches one after the other, which differ with nothing changed, too\n", file);
}
