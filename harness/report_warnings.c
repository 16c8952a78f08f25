/* SPDX-License-Identifier: Apache-2.0
 *
 * The report's headline, last part: what a reader must know before the figures are believed.
 */
#include <stdlib.h>
#include <string.h>

#include "json_util.h"
#include "report_html.h"
#include "report_parts.h"

/* Points that are named; the rest is counted. */
enum { NAMED = 6, REASONS = 4 };

static bool is_noisy(const struct report_record *record)
{
    return record->status == RECORD_OK && record->noisy;
}

static bool is_wrong(const struct report_record *record)
{
    return record->status == RECORD_WRONG;
}

static bool is_failed(const struct report_record *record)
{
    return record->status == RECORD_FAILED;
}

static bool is_skipped(const struct report_record *record)
{
    return record->status == RECORD_SKIPPED;
}

static bool is_rough(const struct report_record *record)
{
    return record->status == RECORD_OK && json_is_true(json_object_get(record->json, "rough"));
}

static size_t count_of(const struct report *report, bool (*test)(const struct report_record *))
{
    size_t count = 0;
    for (size_t i = 0; i < report->record_count; i++)
        count += test(&report->records[i]);
    return count;
}

static void put_points(const struct report *report, FILE *page, bool (*test)(const struct report_record *),
                       bool with_reason)
{
    size_t named = 0, count = count_of(report, test);
    fputs("<ul>", page);
    for (size_t i = 0; i < report->record_count && named < NAMED; i++) {
        const struct report_record *record = &report->records[i];
        if (!test(record))
            continue;
        named++;
        fputs("\n<li>", page);
        report_who(record, page);
        fputs(": ", page);
        report_problem(report, record->problem, page);
        if (report->source_count > 1)
            html_format(page, " (%s)", report->sources[record->source].label);
        if (with_reason)
            html_format(page, ": %s", json_get_string(record->json, "reason", "no reason recorded"));
    }
    if (count > named)
        fprintf(page, "\n<li>and %zu more", count - named);
    fputs("</ul>", page);
}

/* filter: the status that the table of records is filtered by on a click. */
static void put_warning(const struct report *report, FILE *page, bool (*test)(const struct report_record *),
                        const char *class, const char *filter, const char *what, bool with_reason)
{
    size_t count = count_of(report, test);
    if (count == 0)
        return;
    fprintf(page, "<div class=\"warning %s\"><p><strong>", class);
    report_count(count, "point", page);
    fprintf(page, "</strong> %s <a href=\"#records\" data-filter=\"%s\">Show in the table</a></p>", what, filter);
    put_points(report, page, test, with_reason);
    fputs("</div>\n", page);
}

/* Skipped points in words: why, and how many of each. */
static void put_skipped(const struct report *report, FILE *page)
{
    json_t *reasons = json_object(), *times;
    const char *reason;
    size_t told = 0, count = count_of(report, is_skipped);
    for (size_t i = 0; i < report->record_count; i++) {
        if (!is_skipped(&report->records[i]))
            continue;
        const char *text = json_get_string(report->records[i].json, "reason", "no reason recorded");
        json_object_set_new(reasons, text, json_integer(json_get_int(reasons, text, 0) + 1));
    }
    if (count > 0) {
        fputs("<div class=\"warning mild\"><p><strong>", page);
        report_count(count, "point", page);
        fputs("</strong> skipped: a kernel or this machine cannot do them. "
              "<a href=\"#records\" data-filter=\"skipped\">Show in the table</a></p><ul>",
              page);
        json_object_foreach(reasons, reason, times)
        {
            if (told++ == REASONS)
                fputs("\n<li>and others", page);
            if (told > REASONS)
                continue;
            fprintf(page, "\n<li>%lld × ", (long long)json_integer_value(times));
            html_text(page, reason);
        }
        fputs("</ul></div>\n", page);
    }
    json_decref(reasons);
}

void report_warnings(const struct report *report, FILE *page)
{
    size_t rough = count_of(report, is_rough);
    put_warning(
        report, page, is_wrong, "bad", "wrong",
        "gave wrong results: the output differs from the float64 reference by more than the bound. They have no "
        "rates.",
        true);
    put_warning(report, page, is_failed, "bad", "failed", "failed: no result came.", true);
    put_warning(report, page, is_noisy, "", "noisy",
                "noisy: other work on the machine had a part in their times. They are marked ~ in tables and maps.",
                false);
    put_skipped(report, page);
    if (rough > 0) {
        fputs("<div class=\"warning\"><p><strong>", page);
        report_count(rough, "point", page);
        fputs(
            "</strong> rough: measured with --quick-check, with too few samples for an interval. Good for a look, not "
            "for a comparison.</p></div>\n",
            page);
    }
}
