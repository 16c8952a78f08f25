/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tables and sentences of the report share; see report_parts.h.
 */
#include "report_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json_util.h"
#include "report_html.h"
#include "text.h"

double report_median(const struct report_record *record)
{
    double median = record->status == RECORD_OK ? json_get_number(record->json, "median_ns", NAN) : NAN;
    return median > 0 ? median : NAN;
}

static int compare_sizes(size_t a, size_t b)
{
    return (a > b) - (a < b);
}

static int by_contest(const void *left, const void *right, void *context)
{
    const struct report *report = context;
    const size_t i = *(const size_t *)left, j = *(const size_t *)right;
    const struct report_record *a = &report->records[i], *b = &report->records[j];
    if (a->source != b->source)
        return compare_sizes(a->source, b->source);
    if (a->problem != b->problem)
        return compare_sizes(a->problem, b->problem);
    if (a->kernel != b->kernel)
        return compare_sizes(a->kernel, b->kernel);
    double x = report_median(a), y = report_median(b);
    x = isnan(x) ? INFINITY : x;
    y = isnan(y) ? INFINITY : y;
    return x != y ? (x > y) - (x < y) : compare_sizes(i, j);
}

size_t *report_order(const struct report *report)
{
    size_t *order = malloc((report->record_count + 1) * sizeof *order);
    if (!order)
        abort();
    for (size_t i = 0; i < report->record_count; i++)
        order[i] = i;
    qsort_r(order, report->record_count, sizeof *order, by_contest, (void *)report);
    return order;
}

struct report_contest *report_contests(const struct report *report, size_t *count)
{
    size_t *order = report_order(report);
    struct report_contest *contests = calloc(report->record_count + 1, sizeof *contests), *contest = contests;
    if (!contests)
        abort();
    *count = 0;
    for (size_t i = 0; i < report->record_count; i++) {
        const struct report_record *record = &report->records[order[i]];
        const struct report_record *before = i > 0 ? &report->records[order[i - 1]] : NULL;
        bool same_problem = before && before->source == record->source && before->problem == record->problem;
        bool same_kernel = same_problem && before->kernel == record->kernel;
        if (same_kernel || isnan(report_median(record)))
            continue;
        bool begins = *count == 0 || contest->source != record->source || contest->problem != record->problem;
        if (begins) {
            contest = &contests[(*count)++];
            *contest = (struct report_contest){record->source, record->problem, order[i], REPORT_NONE, 1};
            continue;
        }
        contest->rivals++;
        if (report_median(record) < report_median(&report->records[contest->first])) {
            contest->second = (long)contest->first;
            contest->first = order[i];
        } else if (contest->second == REPORT_NONE ||
                   report_median(record) < report_median(&report->records[contest->second])) {
            contest->second = (long)order[i];
        }
    }
    free(order);
    return contests;
}

const char *report_short_problem(const struct report *report, size_t problem)
{
    const char *whole = report->problems[problem];
    const char *sizes = report->uniform ? strstr(whole, "  ") : NULL;
    return sizes ? sizes + 2 : whole;
}

void report_problem(const struct report *report, size_t problem, FILE *page)
{
    html_sizes(page, report_short_problem(report, problem));
}

void report_who(const struct report_record *record, FILE *page)
{
    const json_t *json = record->json;
    html_format(page, "%s %s, ", json_get_string(json, "kernel", "?"), json_get_string(json, "schedule", "?"));
    report_count((size_t)json_get_int(json, "threads", 0), "thread", page);
    html_format(page, ", %s", json_get_string(json, "placement", "?"));
}

void report_count(size_t count, const char *singular, FILE *page)
{
    fprintf(page, "%zu %s%s", count, singular, count == 1 ? "" : "s");
}

void report_time(double ns, FILE *page)
{
    char figure[TEXT_FIGURE];
    text_time(ns, figure);
    fputs(figure, page);
}

void report_percent(double fraction, FILE *page)
{
    char figure[TEXT_FIGURE];
    text_percent(fraction, figure);
    fputs(figure, page);
}

void report_ratio(double ratio, FILE *page)
{
    char figure[TEXT_FIGURE];
    text_number(ratio, 3, 7, figure);
    fprintf(page, "%s%s", figure, isnan(ratio) ? "" : "\u00a0×");
}
