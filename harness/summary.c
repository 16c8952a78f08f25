/* SPDX-License-Identifier: Apache-2.0
 *
 * The summary under the table: counts, reasons, the fastest kernel of each problem, and where most is left to gain; see
 * output.h.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "color.h"
#include "json_util.h"
#include "record_text.h"
#include "summary.h"
#include "text.h"

/* Reasons of one status that are told; the others are counted. */
enum { MAX_REASONS = 8, LINE = 80, LINE_BYTES = 4 * LINE + 4, BAR = 7, MAX_REMOTE = 3, INDENT = 4 };

static void print_counts(FILE *file, const struct record_group *groups, size_t group_count,
                         const struct output_style *style)
{
    size_t counts[RECORD_STATUS_COUNT] = {0}, total = 0, noisy = 0, rough = 0, index;
    json_t *record;
    for (size_t i = 0; i < group_count; i++) {
        json_array_foreach(groups[i].records, index, record)
        {
            enum record_status status = record_status(record);
            counts[status]++;
            total++;
            noisy += status == RECORD_OK && record_noisy(record);
            rough += status == RECORD_OK && json_is_true(json_object_get(record, "rough"));
        }
    }
    bool bad = counts[RECORD_WRONG] + counts[RECORD_FAILED] > 0;
    fprintf(file, "%s%zu point%s: %zu ok, %zu skipped, %zu wrong, %zu failed",
            paint(style->color, bad ? PAINT_BAD : PAINT_GOOD), total, total == 1 ? "" : "s", counts[RECORD_OK],
            counts[RECORD_SKIPPED], counts[RECORD_WRONG], counts[RECORD_FAILED]);
    if (noisy > 0)
        fprintf(file, "; %zu noisy", noisy);
    if (rough > 0)
        fprintf(file, "; %zu rough (quick-check)", rough);
    fprintf(file, "%s\n", paint(style->color, PAINT_PLAIN));
    if (noisy > 0)
        fprintf(file, "  noisy: attnbench doctor tells what disturbs this machine\n");
}

static void print_line(FILE *file, const char *text)
{
    char line[LINE_BYTES];
    text_fit(text, LINE, line, sizeof line);
    fprintf(file, "%s\n", line);
}

/* "avx2: why": what points that are told in one line share. malloc'd. */
static char *kernel_and_reason(const json_t *record)
{
    const char *kernel = json_get_string(record, "kernel", "?");
    const char *reason = json_get_string(record, "reason", "no reason recorded");
    size_t size = strlen(kernel) + strlen(reason) + sizeof ": …";
    char *raw = malloc(size), *text = malloc(size);
    if (!raw || !text)
        abort(); /* memory is exhausted; a summary that hides a failure would be worse than none */
    snprintf(raw, size, "%s: %s", kernel, reason);
    text_fit(raw, size, text, size);
    free(raw);
    return text;
}

/* A line and, where it is longer than a terminal's, its continuations, broken between words. */
static void print_wrapped(FILE *file, const char *text)
{
    size_t column = 0;
    while (*text) {
        size_t spaces = strspn(text, " "), bytes = strcspn(text + spaces, " ");
        char *word = strndup(text + spaces, bytes);
        if (!word)
            abort(); /* memory is exhausted; a summary that hides a failure would be worse than none */
        size_t columns = text_columns(word);
        if (column > 0 && column + spaces + columns > LINE) {
            fprintf(file, "\n%*s", INDENT, "");
            column = INDENT;
        } else {
            fprintf(file, "%*s", (int)spaces, "");
            column += spaces;
        }
        fputs(word, file);
        free(word);
        column += columns;
        text += spaces + bytes;
    }
    fputc('\n', file);
}

/* "  2 skipped: avx2: why", reasons whole: the rows of the table cut them. In a pipe each is one line. */
static void print_reasons(FILE *file, const struct record_group *groups, size_t group_count, enum record_status status,
                          const struct output_style *style)
{
    json_t *times = json_object(), *record, *value;
    const char *key, *name = record_status_name(status);
    size_t index, told = 0, untold = 0;
    for (size_t i = 0; i < group_count; i++) {
        json_array_foreach(groups[i].records, index, record)
        {
            if (record_status(record) != status)
                continue;
            char *text = kernel_and_reason(record);
            json_object_set_new(times, text, json_integer(json_get_int(times, text, 0) + 1));
            free(text);
        }
    }
    json_object_foreach(times, key, value)
    {
        char *line = NULL;
        if (asprintf(&line, "  %lld %s: %s", (long long)json_integer_value(value), name, key) < 0)
            abort();
        if (told++ >= MAX_REASONS)
            untold += (size_t)json_integer_value(value);
        else if (style->bars)
            print_wrapped(file, line);
        else
            fprintf(file, "%s\n", line);
        free(line);
    }
    if (untold > 0)
        fprintf(file, "  %zu %s for other reasons\n", untold, name);
    json_decref(times);
}

/* Where a kernel stands in one problem at one thread count. */
struct contest {
    const json_t *first, *second; /* fastest, and fastest of another kernel or schedule; NULL: none */
};

static double median_of(const json_t *record)
{
    return json_get_number(record, "median_ns", INFINITY);
}

static bool is_same_kernel(const json_t *a, const json_t *b)
{
    return strcmp(json_get_string(a, "kernel", ""), json_get_string(b, "kernel", "")) == 0 &&
           strcmp(json_get_string(a, "schedule", ""), json_get_string(b, "schedule", "")) == 0;
}

static struct contest hold_contest(const json_t *records, int64_t threads)
{
    struct contest contest = {NULL, NULL};
    size_t index;
    json_t *record;
    json_array_foreach((json_t *)records, index, record)
    {
        bool takes_part = record_status(record) == RECORD_OK && json_get_int(record, "threads", 0) == threads;
        if (takes_part && isfinite(median_of(record)) &&
            (!contest.first || median_of(record) < median_of(contest.first)))
            contest.first = record;
    }
    json_array_foreach((json_t *)records, index, record)
    {
        bool takes_part = record_status(record) == RECORD_OK && json_get_int(record, "threads", 0) == threads &&
                          isfinite(median_of(record)) && !is_same_kernel(record, contest.first);
        if (takes_part && (!contest.second || median_of(record) < median_of(contest.second)))
            contest.second = record;
    }
    return contest;
}

static void name_of(const json_t *record, char *out, size_t size)
{
    char text[128];
    snprintf(text, sizeof text, "%.60s %.20s", json_get_string(record, "kernel", "?"),
             json_get_string(record, "schedule", "?"));
    text_fit(text, 20, out, size);
}

enum { SHARE = TEXT_BAR_BYTES + TEXT_FIGURE + 16 };

/* 14 columns: "  █████▎·  77%", or "   77% of roof" where nobody looks on. */
static void share_of_roof(const json_t *record, const struct output_style *style, char out[SHARE])
{
    char percent[TEXT_FIGURE], bar[TEXT_BAR_BYTES];
    double fraction = json_get_number(record, "roof_fraction", NAN);
    text_percent(fraction, percent);
    text_bar(fraction, BAR, style->ascii, bar);
    if (style->bars)
        snprintf(out, SHARE, "  %s %4s", bar, percent);
    else
        snprintf(out, SHARE, "  %4s of roof", percent);
}

/* A line about one record: threads, kernel, time, share of the roof, and what is to be said of it. */
static void print_kernel(FILE *file, const json_t *record, const char *remark, const struct output_style *style)
{
    char text[512], name[128], time[TEXT_FIGURE], roof[SHARE];
    name_of(record, name, sizeof name);
    text_time(median_of(record), time);
    share_of_roof(record, style, roof);
    int padding = 20 - (int)text_columns(name), time_padding = 9 - (int)text_columns(time);
    snprintf(text, sizeof text, "  %3lld thr  %s%*s%*s%s%s%s%.150s", (long long)json_get_int(record, "threads", 0),
             name, padding, "", time_padding, "", time, roof, remark[0] ? "  " : "", remark);
    print_line(file, text);
}

static void print_contest(FILE *file, const struct contest *contest, const struct output_style *style)
{
    char remark[256] = "", second[128], ratio[TEXT_FIGURE];
    if (contest->second) {
        name_of(contest->second, second, sizeof second);
        text_number(median_of(contest->second) / median_of(contest->first), 3, 7, ratio);
        double reach = json_get_number(contest->first, "ci95_high_ns", NAN);
        bool overlap = reach >= json_get_number(contest->second, "ci95_low_ns", NAN);
        snprintf(remark, sizeof remark, "%s%s x %s", overlap ? "~" : "", ratio, second);
    }
    print_kernel(file, contest->first, remark, style);
}

static int by_value(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* The thread counts of the ok records, ascending, each once. malloc'd. */
static int64_t *thread_counts(const json_t *records, size_t *count)
{
    size_t index, kept = 0;
    json_t *record;
    int64_t *threads = calloc(json_array_size(records) + 1, sizeof *threads);
    if (!threads)
        abort();
    *count = 0;
    json_array_foreach((json_t *)records, index, record)
    {
        if (record_status(record) == RECORD_OK && isfinite(median_of(record)))
            threads[(*count)++] = json_get_int(record, "threads", 0);
    }
    qsort(threads, *count, sizeof *threads, by_value);
    for (size_t i = 0; i < *count; i++) {
        if (i == 0 || threads[i] != threads[i - 1])
            threads[kept++] = threads[i];
    }
    *count = kept;
    return threads;
}

static void print_fastest(FILE *file, const struct record_group *groups, size_t group_count,
                          const struct output_style *style)
{
    bool begun = false;
    for (size_t i = 0; i < group_count; i++) {
        size_t count;
        int64_t *threads = thread_counts(groups[i].records, &count);
        if (count > 0 && !begun) {
            fprintf(file, "\n%s%s%s\n", paint(style->color, PAINT_HEADING),
                    style->bars ? "Fastest; share of the roof; speed relative to the next (~: intervals meet)"
                                : "Fastest kernel; speed relative to the next one (~: their 95 % intervals meet)",
                    paint(style->color, PAINT_PLAIN));
            begun = true;
        }
        if (count > 0)
            problem_print(file, groups[i].problem, style);
        for (size_t k = 0; k < count; k++) {
            struct contest contest = hold_contest(groups[i].records, threads[k]);
            print_contest(file, &contest, style);
        }
        free(threads);
    }
}

/* The fastest kernel of a problem at some thread count, and how far it stays from the roof. */
struct remote {
    const json_t *record;
    double fraction;
};

static int by_fraction(const void *left, const void *right)
{
    double a = ((const struct remote *)left)->fraction, b = ((const struct remote *)right)->fraction;
    return (a > b) - (a < b);
}

/* What stands between a point and its roof, as a reader would say it; NULL: nothing that a change could mend. */
static const char *remedy_of(const json_t *record)
{
    static const struct {
        const char *cause, *text;
    } known[] = {
        {"kernel", "the kernel itself"},       {"imbalance", "uneven threads"},
        {"starved", "threads without work"},   {"smt-shared", "threads share cores"},
        {"throttled", "the CPU is throttled"},
    };
    const char *cause = json_get_string(record, "cause", "");
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(cause, known[i].cause) == 0)
            return known[i].text;
    }
    return NULL;
}

/* The fastest kernels that stay farthest from their roof, with what holds them back: where a better kernel, schedule or
 * placement would pay. Noisy points tell nothing of the kind. */
static void print_remotest(FILE *file, const struct record_group *groups, size_t group_count,
                           const struct output_style *style)
{
    struct remote remotest[MAX_REMOTE + 1];
    size_t kept = 0;
    for (size_t i = 0; i < group_count; i++) {
        size_t count;
        int64_t *threads = thread_counts(groups[i].records, &count);
        for (size_t k = 0; k < count; k++) {
            const json_t *record = hold_contest(groups[i].records, threads[k]).first;
            double fraction = json_get_number(record, "roof_fraction", NAN);
            if (!isfinite(fraction) || !remedy_of(record))
                continue;
            remotest[kept++] = (struct remote){record, fraction};
            qsort(remotest, kept, sizeof *remotest, by_fraction);
            kept = kept > MAX_REMOTE ? MAX_REMOTE : kept;
        }
        free(threads);
    }
    if (kept > 0)
        fprintf(file, "\n%sMost left to gain: the fastest that stay farthest from their roof; why%s\n",
                paint(style->color, PAINT_HEADING), paint(style->color, PAINT_PLAIN));
    for (size_t i = 0; i < kept; i++) {
        char *problem = record_problem(remotest[i].record);
        problem_print(file, problem, style);
        print_kernel(file, remotest[i].record, remedy_of(remotest[i].record), style);
        free(problem);
    }
}

void summary_compose(FILE *file, const json_t *records, const struct output_style *style)
{
    size_t count;
    struct record_group *groups = record_groups(records, &count);
    fputc('\n', file);
    print_counts(file, groups, count, style);
    print_reasons(file, groups, count, RECORD_SKIPPED, style);
    print_reasons(file, groups, count, RECORD_WRONG, style);
    print_reasons(file, groups, count, RECORD_FAILED, style);
    print_fastest(file, groups, count, style);
    print_remotest(file, groups, count, style);
    record_groups_release(groups, count);
}
