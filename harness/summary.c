/* SPDX-License-Identifier: Apache-2.0
 *
 * The summary under the table: counts, reasons, and the fastest kernel of each problem; see output.h.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "color.h"
#include "json_util.h"
#include "output.h"
#include "record_text.h"
#include "text.h"

/* Reasons of one status that are told; the others are counted. */
enum { MAX_REASONS = 8, LINE = 80, LINE_BYTES = 4 * LINE + 4 };

static void print_counts(FILE *file, const struct record_group *groups, size_t group_count, bool color)
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
            paint(color, bad ? PAINT_BAD : PAINT_GOOD), total, total == 1 ? "" : "s", counts[RECORD_OK],
            counts[RECORD_SKIPPED], counts[RECORD_WRONG], counts[RECORD_FAILED]);
    if (noisy > 0)
        fprintf(file, "; %zu noisy", noisy);
    if (rough > 0)
        fprintf(file, "; %zu rough (quick-check)", rough);
    fprintf(file, "%s\n", paint(color, PAINT_PLAIN));
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

/* "  2 skipped: avx2: why", reasons whole: the rows of the table cut them. */
static void print_reasons(FILE *file, const struct record_group *groups, size_t group_count, enum record_status status)
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
        if (told++ < MAX_REASONS)
            fprintf(file, "  %lld %s: %s\n", (long long)json_integer_value(value), name, key);
        else
            untold += (size_t)json_integer_value(value);
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

static void print_contest(FILE *file, const struct contest *contest, int64_t threads)
{
    char text[512], first[128], second[128], time[TEXT_FIGURE], roof[TEXT_FIGURE], ratio[TEXT_FIGURE];
    name_of(contest->first, first, sizeof first);
    text_time(median_of(contest->first), time);
    text_percent(json_get_number(contest->first, "roof_fraction", NAN), roof);
    int padding = 20 - (int)text_columns(first), time_padding = 9 - (int)text_columns(time);
    int used = snprintf(text, sizeof text, "  %3lld thr  %s%*s%*s%s  %4s of roof", (long long)threads, first, padding,
                        "", time_padding, "", time, roof);
    if (contest->second) {
        name_of(contest->second, second, sizeof second);
        text_number(median_of(contest->second) / median_of(contest->first), 3, 7, ratio);
        double reach = json_get_number(contest->first, "ci95_high_ns", NAN);
        bool overlap = reach >= json_get_number(contest->second, "ci95_low_ns", NAN);
        snprintf(text + used, sizeof text - (size_t)used, "  %s%s x %s", overlap ? "~" : "", ratio, second);
    }
    print_line(file, text);
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

static void print_fastest(FILE *file, const struct record_group *groups, size_t group_count, bool color)
{
    bool begun = false;
    for (size_t i = 0; i < group_count; i++) {
        size_t count;
        int64_t *threads = thread_counts(groups[i].records, &count);
        if (count > 0 && !begun) {
            fprintf(file, "\n%sFastest kernel; its speed relative to the next one (~: their 95 %% intervals meet)%s\n",
                    paint(color, PAINT_HEADING), paint(color, PAINT_PLAIN));
            begun = true;
        }
        if (count > 0)
            print_line(file, groups[i].problem);
        for (size_t k = 0; k < count; k++) {
            struct contest contest = hold_contest(groups[i].records, threads[k]);
            print_contest(file, &contest, threads[k]);
        }
        free(threads);
    }
}

void summary_print(FILE *file, const json_t *records, bool color)
{
    size_t count;
    struct record_group *groups = record_groups(records, &count);
    fputc('\n', file);
    print_counts(file, groups, count, color);
    print_reasons(file, groups, count, RECORD_SKIPPED);
    print_reasons(file, groups, count, RECORD_WRONG);
    print_reasons(file, groups, count, RECORD_FAILED);
    print_fastest(file, groups, count, color);
    record_groups_release(groups, count);
}
