/* SPDX-License-Identifier: Apache-2.0
 *
 * The report's section on correctness: what was held against the float64 reference, and how near its bound each kernel
 * came.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json_util.h"
#include "report_html.h"
#include "report_parts.h"
#include "text.h"

/* Wrong points that are listed; the rest stands in the table of records. */
enum { LISTED = 50 };

/* What was checked of one kernel, rule and dtype. */
struct check {
    size_t kernel, rule;
    const char *dtype;
    size_t points, wrong, sampled, unchecked;
    double rows, error; /* checked rows; largest error / bound */
    long worst;         /* record of the largest error, or REPORT_NONE */
    json_t *fills;      /* object: fill: how often */
};

struct checks {
    struct check *items;
    size_t count;
    json_t *index; /* "kernel rule dtype": place in items */
};

static struct check *check_for(struct checks *checks, const struct report_record *record)
{
    const char *dtype = json_get_string(record->json, "dtype", "?");
    char key[128];
    snprintf(key, sizeof key, "%zu %zu %.60s", record->kernel, record->rule, dtype);
    const json_t *known = json_object_get(checks->index, key);
    if (known)
        return &checks->items[json_integer_value(known)];
    struct check *grown = realloc(checks->items, (checks->count + 1) * sizeof *grown);
    if (!grown)
        abort();
    checks->items = grown;
    json_object_set_new(checks->index, key, json_integer((json_int_t)checks->count));
    grown[checks->count] = (struct check){
        .kernel = record->kernel, .rule = record->rule, .dtype = dtype, .worst = REPORT_NONE, .fills = json_object()};
    return &grown[checks->count++];
}

static void take(struct checks *checks, const struct report *report, size_t index)
{
    const struct report_record *record = &report->records[index];
    const char *verified = json_get_string(record->json, "verified", "off");
    if (record->status != RECORD_OK && record->status != RECORD_WRONG)
        return;
    struct check *check = check_for(checks, record);
    double error = json_get_number(record->json, "err_over_bound", NAN);
    const char *fill = json_get_string(record->json, "fill", "normal");
    check->points++;
    check->wrong += record->status == RECORD_WRONG;
    check->sampled += strcmp(verified, "sampled") == 0;
    check->unchecked += strcmp(verified, "off") == 0;
    check->rows += json_get_number(record->json, "rows_checked", 0);
    json_object_set_new(check->fills, fill, json_integer(json_get_int(check->fills, fill, 0) + 1));
    if (!isnan(error) && (check->worst == REPORT_NONE || error > check->error)) {
        check->error = error;
        check->worst = (long)index;
    }
}

static void put_fills(const struct check *check, FILE *page)
{
    const char *fill, *gap = "";
    const json_t *times;
    fputs("<td>", page);
    json_object_foreach(check->fills, fill, times)
    {
        html_format(page, "%s%s", gap, fill);
        gap = ", ";
    }
}

/* A bar to the bound at 1; what lies beyond it has a full bar in the colour of what is bad. */
static void put_error(const struct check *check, FILE *page)
{
    char figure[TEXT_FIGURE];
    if (check->worst == REPORT_NONE) {
        fputs("<td class=\"figure\">-<td>", page);
        return;
    }
    text_number(check->error, 2, 7, figure);
    fprintf(page, "<td class=\"figure\">%s<td><span class=\"meter%s\"><span style=\"width:%.1f%%\"></span></span>",
            figure, check->error <= 1 ? "" : " over", 100 * fmin(1, fmax(0, check->error)));
}

static void put_check(const struct report *report, const struct check *check, FILE *page)
{
    html_row(page);
    html_cell(page, report->kernels[check->kernel]);
    if (report->rule_count > 1)
        html_cell(page, report->rules[check->rule]);
    html_cell(page, check->dtype);
    fprintf(page, "<td class=\"figure\">%zu", check->points);
    fprintf(page, "<td class=\"figure%s\">%zu", check->wrong ? " bad" : "", check->wrong);
    fprintf(page, "<td class=\"figure\">%.0f<td>", check->rows);
    if (check->unchecked > 0)
        fprintf(page, "%zu not checked; ", check->unchecked);
    if (check->sampled > 0)
        fprintf(page, "%zu by samples of rows", check->sampled);
    else
        fputs(check->unchecked == check->points ? "none" : "every row", page);
    put_fills(check, page);
    put_error(check, page);
    fputs("<td class=\"long\">", page);
    if (check->worst != REPORT_NONE)
        report_problem(report, report->records[check->worst].problem, page);
}

static void put_table(const struct report *report, const struct checks *checks, FILE *page)
{
    static const char *const titles[] = {"kernel",         "rule",          "dtype",     "#points",
                                         "#wrong",         "#rows checked", "checked",   "fills of data",
                                         "#error ÷ bound", "to the bound",  "largest at"};
    const char *shown[sizeof titles / sizeof titles[0]];
    size_t columns = 0;
    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++) {
        if (strcmp(titles[i], "rule") != 0 || report->rule_count > 1)
            shown[columns++] = titles[i];
    }
    html_table_begin(page, "Held against the float64 reference", shown, columns);
    for (size_t i = 0; i < checks->count; i++)
        put_check(report, &checks->items[i], page);
    html_table_end(page);
}

static void put_wrong(const struct report *report, FILE *page)
{
    static const char *const titles[] = {"point", "problem", "how it is wrong"};
    size_t count = 0;
    for (size_t i = 0; i < report->record_count; i++) {
        const struct report_record *record = &report->records[i];
        if (record->status != RECORD_WRONG)
            continue;
        if (count == 0)
            html_table_begin(page, "Wrong results", titles, sizeof titles / sizeof titles[0]);
        if (count++ >= LISTED)
            continue;
        fputs("\n<tr><td>", page);
        report_who(record, page);
        fputs("<td class=\"long\">", page);
        report_problem(report, record->problem, page);
        html_cell(page, json_get_string(record->json, "reason", "no reason recorded"));
    }
    if (count > 0)
        html_table_end(page);
    if (count > LISTED)
        fprintf(page, "<p class=\"note\">%zu more wrong results stand in the table of records.</p>\n", count - LISTED);
}

void report_correctness(const struct report *report, FILE *page)
{
    struct checks checks = {.index = json_object()};
    for (size_t i = 0; i < report->record_count; i++)
        take(&checks, report, i);
    if (checks.count == 0) {
        fputs("<p class=\"note\">No point came to a result: there was nothing to check.</p>\n", page);
    } else {
        fputs(
            "<p>Every timed output is held against a float64 reference that shares no code with the kernels. The bound "
            "is derived for each element from the scores, the values and the dtype's precision: up to 1 is right, "
            "above is wrong, and a wrong result gets no rates.</p>\n",
            page);
        put_table(report, &checks, page);
        put_wrong(report, page);
    }
    for (size_t i = 0; i < checks.count; i++)
        json_decref(checks.items[i].fills);
    free(checks.items);
    json_decref(checks.index);
}
