/* SPDX-License-Identifier: Apache-2.0
 *
 * A comparison for a reader at a terminal; see compare_output.h.
 */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "color.h"
#include "compare_output.h"
#include "json_util.h"
#include "record_text.h"
#include "text.h"

enum { NARROW = 80, LINE = 1024, INDENT = 9 };

/* A line of at most the table's width, in a paint of its own. */
__attribute__((format(printf, 4, 5))) static void put_line(FILE *file, const struct output_style *style,
                                                           enum paint color, const char *format, ...)
{
    char text[LINE], line[LINE];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    text_fit(text, style->wide ? LINE / 4 : NARROW, line, sizeof line);
    fprintf(file, "%s%s%s\n", color == PAINT_PLAIN ? "" : paint(style->color, color), line,
            color == PAINT_PLAIN ? "" : paint(style->color, PAINT_PLAIN));
}

/* "A  commit f9e3d1c  2026-11-30T19:20:04Z  a.jsonl", of the newest run. */
static void put_file(FILE *file, const struct output_style *style, char letter, const char *name,
                     const struct results *results)
{
    size_t runs = json_array_size(results->contexts);
    const json_t *context = json_array_get(results->contexts, runs - 1);
    const char *commit = json_get_string(context, "build_commit", NULL);
    put_line(file, style, PAINT_PLAIN, "%c  %s %.7s%s  %.30s%s  %.500s", letter, commit ? "commit" : "unknown commit",
             commit ? commit : "", json_is_true(json_object_get(context, "build_dirty")) ? " with changes" : "",
             json_get_string(context, "time_utc", "at an unknown time"), runs > 1 ? ", newest of several runs" : "",
             name);
}

static void put_titles(FILE *file, const struct output_style *style)
{
    put_line(file, style, PAINT_FAINT, "%7s  %-14s  %8s %8s  %4s %4s   %s", "B/A", "95 % interval", "A", "B", "roof",
             "roof", "kernel schedule");
}

static enum paint paint_of(const struct compare_pair *pair)
{
    if (!compare_stands_out(pair))
        return PAINT_PLAIN;
    return pair->ratio > 1 ? PAINT_BAD : PAINT_GOOD;
}

/* As wide in columns as asked, whatever its bytes: "µ" is two of them. */
static void pad(const char *text, int columns, char *out, size_t size)
{
    int missing = columns - (int)text_columns(text);
    snprintf(out, size, "%*s%s", missing > 0 ? missing : 0, "", text);
}

static void put_figures(FILE *file, const struct output_style *style, const struct compare_pair *pair)
{
    char ratio[TEXT_FIGURE], low[TEXT_FIGURE], high[TEXT_FIGURE], interval[2 * TEXT_FIGURE + 4] = "-";
    char time_a[TEXT_FIGURE], time_b[TEXT_FIGURE], a[TEXT_FIGURE + 16], b[TEXT_FIGURE + 16];
    char roof_a[TEXT_FIGURE], roof_b[TEXT_FIGURE];
    const json_t *record = compare_point(pair);
    text_number(pair->ratio, 4, 7, ratio);
    text_number(pair->low, 4, 6, low);
    text_number(pair->high, 4, 6, high);
    if (!isnan(pair->low) && !isnan(pair->high))
        snprintf(interval, sizeof interval, "%s..%s", low, high);
    text_time(pair->a.median_ns, time_a);
    text_time(pair->b.median_ns, time_b);
    pad(time_a, 8, a, sizeof a);
    pad(time_b, 8, b, sizeof b);
    text_percent(json_get_number(pair->a.record, "roof_fraction", NAN), roof_a);
    text_percent(json_get_number(pair->b.record, "roof_fraction", NAN), roof_b);
    put_line(file, style, paint_of(pair), "%7s  %-14s  %s %s  %4s %4s %s %.60s %.30s", ratio, interval, a, b, roof_a,
             roof_b, compare_noisy(pair) ? "~" : " ", json_get_string(record, "kernel", "?"),
             json_get_string(record, "schedule_requested", json_get_string(record, "schedule", "")));
}

/* Threads, placement and problem. */
static void put_point(FILE *file, const struct output_style *style, const json_t *record)
{
    const char *mem = json_get_string(record, "mem", "local");
    bool local = strcmp(mem, "local") == 0;
    char *problem = record_problem(record);
    put_line(file, style, PAINT_FAINT, "%*sx%lld %.60s%s%.30s  %.600s", INDENT, "",
             (long long)json_get_int(record, "threads", 1), json_get_string(record, "placement", "?"),
             local ? "" : " mem ", local ? "" : mem, problem);
    free(problem);
}

char *compare_status_text(const struct compare_pair *pair)
{
    char *text = NULL;
    const char *a = record_status_name(record_status(pair->a.record));
    const char *b = record_status_name(record_status(pair->b.record));
    const char *reason = json_get_string(pair->b.record, "reason", json_get_string(pair->a.record, "reason", ""));
    const char *gap = reason[0] ? ": " : "";
    int code = pair->a.record && pair->b.record ? asprintf(&text, "%s -> %s%s%s", a, b, gap, reason)
                                                : asprintf(&text, "%s%s%s", pair->a.record ? a : b, gap, reason);
    if (code < 0)
        abort(); /* memory is exhausted; a change that is not told would be worse than no comparison */
    return text;
}

/* Points without two figures, under a title; nothing where there are none. */
static void put_others(FILE *file, const struct output_style *style, const struct comparison *comparison,
                       enum compare_kind kind, const char *title)
{
    if (comparison->counts[kind] > 0)
        fprintf(file, "\n%s%s (%zu)%s\n", paint(style->color, PAINT_HEADING), title, comparison->counts[kind],
                paint(style->color, PAINT_PLAIN));
    for (size_t i = 0; i < comparison->pair_count; i++) {
        const struct compare_pair *pair = &comparison->pairs[i];
        if (pair->kind != kind)
            continue;
        char *status = compare_status_text(pair);
        const json_t *record = compare_point(pair);
        enum record_status to = record_status(pair->b.record);
        bool bad = kind == COMPARE_STATUS && (to == RECORD_WRONG || to == RECORD_FAILED);
        put_line(file, style, bad ? PAINT_BAD : PAINT_PLAIN, "  %.60s %.30s  %.600s",
                 json_get_string(record, "kernel", "?"),
                 json_get_string(record, "schedule_requested", json_get_string(record, "schedule", "")), status);
        put_point(file, style, record);
        free(status);
    }
}

static void put_end(FILE *file, const struct output_style *style, const struct comparison *comparison)
{
    size_t noisy = 0, slower = 0, faster = 0;
    for (size_t i = 0; i < comparison->counts[COMPARE_FIGURES]; i++) {
        const struct compare_pair *pair = &comparison->pairs[i];
        noisy += compare_noisy(pair);
        slower += compare_stands_out(pair) && pair->ratio > 1;
        faster += compare_stands_out(pair) && pair->ratio < 1;
    }
    fprintf(file,
            "\n%zu compared: %zu slower and %zu faster beyond their intervals, %zu noisy (~)\n"
            "%zu of another status, %zu measured in neither, %zu missing from B, %zu added in B\n",
            comparison->counts[COMPARE_FIGURES], slower, faster, noisy, comparison->counts[COMPARE_STATUS],
            comparison->counts[COMPARE_NEITHER], comparison->counts[COMPARE_MISSING],
            comparison->counts[COMPARE_ADDED]);
    fprintf(file,
            "\n%s%s%s.\n"
            "These files were measured one after the other. Adjacent launches of one memory-\n"
            "bound function differ by over 5 %% in 87 %% of cases with nothing changed\n"
            "(measured on a shared 2-core virtual machine). For a verdict use attnbench duet\n"
            "or attnbench gate.\n",
            paint(style->color, PAINT_WARNING), COMPARE_METHOD, paint(style->color, PAINT_PLAIN));
}

static void compose(FILE *file, const struct comparison *comparison, const struct compare_files *files,
                    const struct output_style *style)
{
    put_line(file, style, PAINT_WARNING, "%s", COMPARE_METHOD);
    put_file(file, style, 'A', files->name_a, files->a);
    put_file(file, style, 'B', files->name_b, files->b);
    if (comparison->counts[COMPARE_FIGURES] > 0) {
        fputc('\n', file);
        put_titles(file, style);
    }
    for (size_t i = 0; i < comparison->counts[COMPARE_FIGURES]; i++) {
        put_figures(file, style, &comparison->pairs[i]);
        put_point(file, style, compare_point(&comparison->pairs[i]));
    }
    put_others(file, style, comparison, COMPARE_STATUS, "Of another status in B");
    put_others(file, style, comparison, COMPARE_MISSING, "Missing from B");
    put_others(file, style, comparison, COMPARE_ADDED, "Added in B");
    put_end(file, style, comparison);
}

void compare_table(FILE *file, const struct comparison *comparison, const struct compare_files *files,
                   const struct output_style *style)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        abort();
    compose(stream, comparison, files, style);
    fclose(stream);
    if (style->ascii)
        text_to_ascii(text);
    fputs(text, file);
    free(text);
}
