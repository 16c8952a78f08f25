/* SPDX-License-Identifier: Apache-2.0
 *
 * The report's comparison of several sources, be they machines, builds or files: who is fastest on each problem at each
 * source, and the points that several sources have, side by side. Ratios are to the first source that has the point.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "record_key.h"
#include "report_html.h"
#include "report_parts.h"
#include "statistics.h"

/* Rows of each table; the rest stands in the table of records. */
enum { ROWS = 150 };

/* Medians of one row, a source a column; record indices or REPORT_NONE. */
struct row {
    long *records; /* [source_count] */
    double spread; /* largest |log ratio| to the first source that has the point */
};

struct rows {
    struct row *items;
    size_t count;
};

/* Room for as many rows as there are records: each row has one at least. */
static struct rows make_rows(const struct report *report)
{
    struct rows rows = {calloc(report->record_count + 1, sizeof *rows.items), 0};
    if (!rows.items)
        abort();
    return rows;
}

static struct row *add_row(struct rows *rows, size_t sources)
{
    long *records = malloc(sources * sizeof *records);
    if (!records)
        abort();
    for (size_t i = 0; i < sources; i++)
        records[i] = REPORT_NONE;
    rows->items[rows->count] = (struct row){.records = records};
    return &rows->items[rows->count++];
}

static void release_rows(struct rows *rows)
{
    for (size_t i = 0; i < rows->count; i++)
        free(rows->items[i].records);
    free(rows->items);
}

static long base_of(const struct report *report, const struct row *row)
{
    for (size_t i = 0; i < report->source_count; i++) {
        if (row->records[i] != REPORT_NONE)
            return row->records[i];
    }
    return REPORT_NONE;
}

/* Time at a source over the time at the first source that has the point; NaN: not there. */
static double ratio_at(const struct report *report, const struct row *row, size_t source)
{
    long base = base_of(report, row), here = row->records[source];
    if (base == REPORT_NONE || here == REPORT_NONE)
        return NAN;
    return report_median(&report->records[here]) / report_median(&report->records[base]);
}

static void finish(const struct report *report, struct rows *rows)
{
    size_t kept = 0;
    for (size_t i = 0; i < rows->count; i++) {
        size_t present = 0;
        for (size_t s = 0; s < report->source_count; s++) {
            double ratio = ratio_at(report, &rows->items[i], s);
            present += !isnan(ratio);
            if (!isnan(ratio))
                rows->items[i].spread = fmax(rows->items[i].spread, fabs(log(ratio)));
        }
        if (present > 1)
            rows->items[kept++] = rows->items[i];
        else
            free(rows->items[i].records);
    }
    rows->count = kept;
}

static int by_spread(const void *left, const void *right)
{
    double a = ((const struct row *)left)->spread, b = ((const struct row *)right)->spread;
    return (a < b) - (a > b);
}

/* The fastest point of each problem at each source. */
static void gather_best(const struct report *report, struct rows *rows)
{
    size_t count;
    struct report_contest *contests = report_contests(report, &count);
    long *row_of = malloc((report->problem_count + 1) * sizeof *row_of);
    if (!row_of)
        abort();
    for (size_t i = 0; i < report->problem_count; i++)
        row_of[i] = REPORT_NONE;
    for (size_t i = 0; i < count; i++) {
        if (row_of[contests[i].problem] == REPORT_NONE) {
            row_of[contests[i].problem] = (long)rows->count;
            add_row(rows, report->source_count);
        }
        rows->items[row_of[contests[i].problem]].records[contests[i].source] = (long)contests[i].first;
    }
    free(row_of);
    free(contests);
    finish(report, rows);
}

/* The same of two sources is all that was asked for but the seed. */
static void gather_points(const struct report *report, struct rows *rows)
{
    json_t *index = json_object();
    for (size_t i = 0; i < report->record_count; i++) {
        const struct report_record *record = &report->records[i];
        if (isnan(report_median(record)))
            continue;
        char *key = record_key(record->json, RECORD_KEY_ANY_SEED);
        const json_t *known = json_object_get(index, key); /* the row */
        if (!known) {
            json_object_set_new(index, key, json_integer((json_int_t)rows->count));
            add_row(rows, report->source_count)->records[record->source] = (long)i;
        } else {
            assert(rows->items[json_integer_value(known)].records);
            rows->items[json_integer_value(known)].records[record->source] = (long)i;
        }
        free(key);
    }
    json_decref(index);
    finish(report, rows);
    qsort(rows->items, rows->count, sizeof *rows->items, by_spread);
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

static void begin_table(const struct report *report, const char *caption, const char *const *first, size_t count,
                        FILE *page)
{
    const char **titles = calloc(count + report->source_count, sizeof *titles);
    char **owned = calloc(report->source_count, sizeof *owned);
    if (!titles || !owned)
        abort();
    for (size_t i = 0; i < count; i++)
        titles[i] = first[i];
    for (size_t i = 0; i < report->source_count; i++) {
        if (asprintf(&owned[i], "#%s", report->sources[i].label) < 0)
            abort();
        titles[count + i] = owned[i];
    }
    html_table_begin(page, caption, titles, count + report->source_count);
    for (size_t i = 0; i < report->source_count; i++)
        free(owned[i]);
    free(owned);
    free((void *)titles);
}

static void put_times(const struct report *report, const struct row *row, bool with_kernel, FILE *page)
{
    for (size_t s = 0; s < report->source_count; s++) {
        if (row->records[s] == REPORT_NONE) {
            fputs("<td class=\"figure\">-", page);
            continue;
        }
        const struct report_record *record = &report->records[row->records[s]];
        double ratio = ratio_at(report, row, s);
        fprintf(page, "<td class=\"figure\" data-r=\"%ld\">", row->records[s]);
        report_time(report_median(record), page);
        fputs(record->noisy ? " ~" : "", page);
        if (row->records[s] != base_of(report, row)) {
            fputs("<br><small>", page);
            report_ratio(ratio, page);
            fputs("</small>", page);
        }
        if (with_kernel) {
            fputs("<br><small>", page);
            report_who(record, page);
            fputs("</small>", page);
        }
    }
}

static void put_problem(const struct report *report, long record, FILE *page)
{
    fputs("<td class=\"long\">", page);
    report_problem(report, report->records[record].problem, page);
}

static void put_best(const struct report *report, FILE *page)
{
    static const char *const first[] = {"problem"};
    struct rows rows = make_rows(report);
    gather_best(report, &rows);
    if (rows.count == 0) {
        fputs("<p class=\"note\">No problem was measured at more than one source.</p>\n", page);
    } else {
        begin_table(report, "The fastest point of each problem: time, ratio to the first source, and which it is",
                    first, 1, page);
        for (size_t i = 0; i < rows.count && i < ROWS; i++) {
            long base = base_of(report, &rows.items[i]);
            html_row(page);
            put_problem(report, base, page);
            put_times(report, &rows.items[i], true, page);
        }
        html_table_end(page);
        if (rows.count > ROWS)
            fprintf(page, "<p class=\"note\">The first %d of %zu problems.</p>\n", ROWS, rows.count);
    }
    release_rows(&rows);
}

/* ratios: room for one a row. */
static void put_kernel_ratio(const struct report *report, const struct rows *rows, size_t kernel, size_t source,
                             double *ratios, FILE *page)
{
    size_t count = 0, own = 0;
    double least = NAN, most = NAN;
    for (size_t i = 0; i < rows->count; i++) {
        const struct row *row = &rows->items[i];
        double ratio = ratio_at(report, row, source);
        if (report->records[base_of(report, row)].kernel != kernel || isnan(ratio))
            continue;
        ratios[count++] = ratio;
        own += base_of(report, row) == row->records[source];
        least = fmin(least, ratio);
        most = fmax(most, ratio);
    }
    fputs("<td class=\"figure\">", page);
    if (count > 0 && own == count) {
        fputs("1 <small>", page);
        report_count(count, "point", page);
        fputs(" to compare with</small>", page);
        return;
    }
    report_ratio(statistics_median(ratios, count), page);
    if (count == 0)
        return;
    fputs("<br><small>", page);
    report_ratio(least, page);
    fputs(" to ", page);
    report_ratio(most, page);
    fputs(", ", page);
    report_count(count, "point", page);
    fputs("</small>", page);
}

/* Per kernel and source: the median of the ratios of all points that both have, and their range. */
static void put_kernel_ratios(const struct report *report, const struct rows *rows, FILE *page)
{
    static const char *const first[] = {"kernel"};
    double *ratios = calloc(rows->count + 1, sizeof *ratios);
    if (!ratios)
        abort();
    begin_table(report, "Time relative to the first source that has the point, median and range over points", first, 1,
                page);
    for (size_t kernel = 0; kernel < report->kernel_count; kernel++) {
        html_row(page);
        html_cell(page, report->kernels[kernel]);
        for (size_t s = 0; s < report->source_count; s++)
            put_kernel_ratio(report, rows, kernel, s, ratios, page);
    }
    html_table_end(page);
    free(ratios);
}

static void put_points(const struct report *report, FILE *page)
{
    static const char *const first[] = {"problem", "point"};
    struct rows rows = make_rows(report);
    gather_points(report, &rows);
    if (rows.count > 0) {
        put_kernel_ratios(report, &rows, page);
        html_data_begin(page, "The points that several sources have, those that differ most first");
        begin_table(report, "Median times of the same points, with the ratio to the first source", first, 2, page);
        for (size_t i = 0; i < rows.count && i < ROWS; i++) {
            long base = base_of(report, &rows.items[i]);
            html_row(page);
            put_problem(report, base, page);
            fputs("<td>", page);
            report_who(&report->records[base], page);
            put_times(report, &rows.items[i], false, page);
        }
        html_table_end(page);
        if (rows.count > ROWS)
            fprintf(page,
                    "<p class=\"note\">The first %d of %zu points; the others stand in the table of records.</p>\n",
                    ROWS, rows.count);
        html_data_end(page);
    } else {
        fputs("<p class=\"note\">No point was measured at more than one source.</p>\n", page);
    }
    release_rows(&rows);
}

void report_comparison(const struct report *report, FILE *page)
{
    fputs("<p class=\"note\">These runs were made one after the other, not interleaved: what changed on a machine "
          "between them is in the ratios, so small ones prove nothing. A ratio above 1 is slower than the first "
          "source.</p>\n",
          page);
    put_best(report, page);
    put_points(report, page);
}
