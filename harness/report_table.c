/* SPDX-License-Identifier: Apache-2.0
 *
 * The report's table of records. All records stand once in a script element, column by column, texts as indices of a
 * dictionary; the page's script sorts, filters and shows them. The first rows stand in the page as well, for readers
 * without it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json_util.h"
#include "record_repro.h"
#include "report_html.h"
#include "report_parts.h"
#include "text.h"

enum { STATIC_ROWS = 25, DIGITS = 6 };

/* A column: how its cells are shown is the script's business, by kind: text, count, time, number (4 digits), rough
 * (2 digits), percent. */
struct column {
    const char *key, *title, *kind;
    int shown; /* 2: on every screen; 1: where there is room; 0: only where a row is opened */
    void (*put)(const struct report *report, const struct report_record *record, const char *key, json_t *dictionary,
                FILE *page);
};

/* ---- values ------------------------------------------------------------------------------------------------------ */

static void put_figure(const struct report *report, const struct report_record *record, const char *key,
                       json_t *dictionary, FILE *page)
{
    (void)report;
    (void)dictionary;
    double value = json_get_number(record->json, key, NAN);
    if (!isfinite(value))
        fputs("null", page);
    else
        fprintf(page, "%.*g", value == floor(value) && fabs(value) < 1e15 ? 16 : DIGITS, value);
}

/* Times are known to a tenth of a nanosecond at best: five digits tell all that a median does. */
static void put_time(const struct report *report, const struct report_record *record, const char *key,
                     json_t *dictionary, FILE *page)
{
    (void)report;
    (void)dictionary;
    double value = json_get_number(record->json, key, NAN);
    if (isfinite(value))
        fprintf(page, "%.*g", DIGITS, value);
    else
        fputs("null", page);
}

/* The text's index in the dictionary, which grows; null for none. */
static void put_index(const char *text, json_t *dictionary, FILE *page)
{
    if (!text) {
        fputs("null", page);
        return;
    }
    const json_t *known = json_object_get(dictionary, text);
    size_t index = known ? (size_t)json_integer_value(known) : json_object_size(dictionary);
    if (!known)
        json_object_set_new(dictionary, text, json_integer((json_int_t)index));
    fprintf(page, "%zu", index);
}

static void put_text(const struct report *report, const struct report_record *record, const char *key,
                     json_t *dictionary, FILE *page)
{
    (void)report;
    put_index(json_get_string(record->json, key, NULL), dictionary, page);
}

static void put_source(const struct report *report, const struct report_record *record, const char *key,
                       json_t *dictionary, FILE *page)
{
    (void)key;
    put_index(report->sources[record->source].label, dictionary, page);
}

static void put_problem(const struct report *report, const struct report_record *record, const char *key,
                        json_t *dictionary, FILE *page)
{
    (void)report;
    (void)key;
    char *sizes = record_sizes(record->json);
    put_index(sizes, dictionary, page);
    free(sizes);
}

static void put_status(const struct report *report, const struct report_record *record, const char *key,
                       json_t *dictionary, FILE *page)
{
    (void)report;
    (void)key;
    bool noisy = record->status == RECORD_OK && record->noisy;
    put_index(noisy ? "noisy" : record_status_name(record->status), dictionary, page);
}

static void put_half_interval(const struct report *report, const struct report_record *record, const char *key,
                              json_t *dictionary, FILE *page)
{
    (void)report;
    (void)key;
    (void)dictionary;
    double half = record_ci_half(record->json);
    if (isfinite(half))
        fprintf(page, "%.3g", 100 * half);
    else
        fputs("null", page);
}

static void put_samples(const struct report *report, const struct report_record *record, const char *key,
                        json_t *dictionary, FILE *page)
{
    (void)report;
    (void)dictionary;
    fprintf(page, "%zu", json_array_size(json_object_get(record->json, key)));
}

/* As the table in the terminal writes them. */
static void put_cpus(const struct report *report, const struct report_record *record, const char *key,
                     json_t *dictionary, FILE *page)
{
    (void)report;
    char text[512];
    for (size_t i = 0; i < record_column_count; i++) {
        if (strcmp(record_columns[i].title, key) == 0) {
            record_columns[i].cell(record->json, text, sizeof text);
            put_index(text, dictionary, page);
            return;
        }
    }
    fputs("null", page);
}

static void put_noise(const struct report *report, const struct report_record *record, const char *key,
                      json_t *dictionary, FILE *page)
{
    (void)report;
    (void)dictionary;
    double value = json_get_number(json_object_get(record->json, "noise"), key, NAN);
    if (isfinite(value))
        fprintf(page, "%.4g", value);
    else
        fputs("null", page);
}

static const struct column columns[] = {
    {"label", "source", "text", 2, put_source},
    {"rule", "rule", "text", 2, put_text},
    {"problem", "problem", "text", 2, put_problem},
    {"dtype", "dtype", "text", 2, put_text},
    {"kernel", "kernel", "text", 2, put_text},
    {"schedule", "sched", "text", 1, put_text},
    {"threads", "thr", "count", 2, put_figure},
    {"placement", "place", "text", 1, put_text},
    {"median_ns", "time", "time", 2, put_time},
    {"ci_half", "± %", "rough", 1, put_half_interval},
    {"gflops", "GFLOP/s", "number", 1, put_figure},
    {"gb_per_s", "GB/s", "number", 1, put_figure},
    {"roof_fraction", "roof", "percent", 2, put_figure},
    {"roof_bound", "bound", "text", 1, put_text},
    {"cause", "cause", "text", 1, put_text},
    {"err_over_bound", "error ÷ bound", "rough", 1, put_figure},
    {"status", "status", "text", 2, put_status},
    {"reason", "Reason", "text", 0, put_text},
    {"ci95_low_ns", "95 % interval from", "time", 0, put_time},
    {"ci95_high_ns", "to", "time", 0, put_time},
    {"min_ns", "Least time", "time", 0, put_time},
    {"samples_ns", "Samples", "count", 0, put_samples},
    {"tokens_per_s", "Tokens/s", "number", 0, put_figure},
    {"isa_roof_gflops", "FMA peak of the kernel's ISA, GFLOP/s", "number", 0, put_figure},
    {"parallel_efficiency", "Parallel efficiency", "percent", 0, put_figure},
    {"verified", "Checked", "text", 0, put_text},
    {"rows_checked", "Rows checked", "count", 0, put_figure},
    {"cpus", "CPUs", "text", 0, put_cpus},
    {"wall_over_cpu", "Wall over CPU time", "number", 0, put_noise},
    {"involuntary_switches", "Involuntary switches", "count", 0, put_noise},
    {"migrations", "Migrations", "count", 0, put_noise},
    {"point_id", "Point", "text", 0, put_text},
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

/* ---- the script element ------------------------------------------------------------------------------------------ */

/* Text as a JSON string that cannot end a script element. */
static void put_json_text(const char *text, FILE *page)
{
    json_t *value = json_string(text);
    char *encoded = json_dumps(value, JSON_ENCODE_ANY);
    for (const char *byte = encoded; byte && *byte; byte++) {
        if (*byte == '<')
            fputs("\\u003c", page);
        else
            fputc(*byte, page);
    }
    free(encoded);
    json_decref(value);
}

static void put_dictionary(const json_t *dictionary, FILE *page)
{
    const char *text, *gap = "";
    const json_t *index;
    fputc('[', page);
    json_object_foreach((json_t *)dictionary, text, index)
    {
        fputs(gap, page);
        put_json_text(text, page);
        gap = ",";
    }
    fputc(']', page);
}

static void put_column(const struct report *report, const struct column *column, FILE *page)
{
    json_t *dictionary = json_object(); /* keeps the order in which texts came */
    fprintf(page, "{\"key\":\"%s\",\"title\":\"%s\",\"kind\":\"%s\",\"shown\":%d,\n\"values\":[", column->key,
            column->title, column->kind, column->shown);
    for (size_t i = 0; i < report->record_count; i++) {
        if (i > 0)
            fputc(',', page);
        column->put(report, &report->records[i], column->key, dictionary, page);
    }
    fputs("],\"texts\":", page);
    put_dictionary(dictionary, page);
    fputc('}', page);
    json_decref(dictionary);
}

/* What is copied into a shell must be one line, whatever the file says. malloc'd or NULL. */
static char *command_of(const struct report_record *record)
{
    char *command = record_repro(record->json);
    for (char *byte = command; byte && *byte; byte++) {
        if ((unsigned char)*byte < ' ' || *byte == 127)
            *byte = ' ';
    }
    return command;
}

/* Commands are cut before each flag, and the pieces put into a dictionary: most points share most flags. */
static void put_commands(const struct report *report, FILE *page)
{
    json_t *dictionary = json_object();
    fputs("\"commands\":{\"values\":[", page);
    for (size_t i = 0; i < report->record_count; i++) {
        char *command = command_of(&report->records[i]);
        fputs(i > 0 ? ",[" : "[", page);
        for (char *piece = command; piece;) {
            char *next = strstr(piece + 1, " -");
            if (next)
                *next++ = '\0';
            fputs(piece == command ? "" : ",", page);
            put_index(piece, dictionary, page);
            piece = next;
        }
        fputc(']', page);
        free(command);
    }
    fputs("],\"texts\":", page);
    put_dictionary(dictionary, page);
    fputs("}", page);
    json_decref(dictionary);
}

/* Layers tell how long each of their phases took. */
static void put_phases(const struct report *report, FILE *page)
{
    const char *gap = "";
    fputs("\"phases\":{", page);
    for (size_t i = 0; i < report->record_count; i++) {
        const char *phase, *comma = "";
        const json_t *ns, *phases = json_object_get(report->records[i].json, "phases_ns");
        if (json_object_size(phases) == 0)
            continue;
        fprintf(page, "%s\"%zu\":{", gap, i);
        json_object_foreach((json_t *)phases, phase, ns)
        {
            fputs(comma, page);
            put_json_text(phase, page);
            fprintf(page, ":%.*g", DIGITS, json_is_number(ns) ? json_number_value(ns) : 0);
            comma = ",";
        }
        fputc('}', page);
        gap = ",";
    }
    fputc('}', page);
}

static bool dtypes_differ(const struct report *report)
{
    for (size_t i = 1; i < report->record_count; i++) {
        if (strcmp(json_get_string(report->records[i].json, "dtype", ""),
                   json_get_string(report->records[0].json, "dtype", "")) != 0)
            return true;
    }
    return false;
}

/* Columns that would say the same in every row are left out. */
static bool is_wanted(const struct report *report, const struct column *column)
{
    if (strcmp(column->key, "label") == 0)
        return report->source_count > 1;
    if (strcmp(column->key, "rule") == 0)
        return report->rule_count > 1;
    return strcmp(column->key, "dtype") != 0 || dtypes_differ(report);
}

static void put_data(const struct report *report, FILE *page)
{
    const char *gap = "";
    fprintf(page, "<script type=\"application/json\" id=\"data\">{\"count\":%zu,\"columns\":[", report->record_count);
    for (size_t i = 0; i < COLUMNS; i++) {
        if (!is_wanted(report, &columns[i]))
            continue;
        fputs(gap, page);
        put_column(report, &columns[i], page);
        gap = ",\n";
    }
    fputs("],\n", page);
    put_commands(report, page);
    fputs(",\n", page);
    put_phases(report, page);
    fputs("}</script>\n", page);
}

/* ---- rows that stand in the page --------------------------------------------------------------------------------- */

static void put_plain_text(const struct report *report, const struct report_record *record, const struct column *column,
                           FILE *page)
{
    if (strcmp(column->key, "label") == 0) {
        html_text(page, report->sources[record->source].label);
    } else if (strcmp(column->key, "problem") == 0) {
        char *sizes = record_sizes(record->json);
        html_sizes(page, sizes);
        free(sizes);
    } else if (strcmp(column->key, "status") == 0) {
        html_text(page, record->status == RECORD_OK && record->noisy ? "noisy" : record_status_name(record->status));
    } else {
        html_text(page, json_get_string(record->json, column->key, "-"));
    }
}

static void put_plain_figure(const struct report_record *record, const struct column *column, FILE *page)
{
    double value = strcmp(column->key, "ci_half") == 0 ? 100 * record_ci_half(record->json)
                                                       : json_get_number(record->json, column->key, NAN);
    char figure[TEXT_FIGURE];
    if (strcmp(column->kind, "time") == 0)
        text_time(value, figure);
    else if (strcmp(column->kind, "percent") == 0)
        text_percent(value, figure);
    else
        text_number(value,
                    strcmp(column->kind, "count") == 0   ? 1
                    : strcmp(column->kind, "rough") == 0 ? 2
                                                         : 4,
                    9, figure);
    fputs(figure, page);
}

static void put_class(const struct column *column, FILE *page)
{
    fprintf(page, "<td class=\"%s%s%s\">", strcmp(column->kind, "text") == 0 ? "" : "figure",
            column->shown == 1 ? " roomy" : "", strcmp(column->key, "problem") == 0 ? " long" : "");
}

static void put_plain_row(const struct report *report, const struct report_record *record, FILE *page)
{
    fputs("\n<tr><td>", page);
    for (size_t i = 0; i < COLUMNS; i++) {
        if (columns[i].shown == 0 || !is_wanted(report, &columns[i]))
            continue;
        bool is_text = strcmp(columns[i].kind, "text") == 0;
        put_class(&columns[i], page);
        if (is_text)
            put_plain_text(report, record, &columns[i], page);
        else
            put_plain_figure(record, &columns[i], page);
    }
    char *command = command_of(record);
    fputs("<td class=\"command\"><code>", page);
    html_text(page, command ? command : "-");
    fputs("</code>", page);
    free(command);
}

static void put_head(const struct report *report, FILE *page)
{
    fputs("<thead><tr><th scope=\"col\"><span class=\"unseen\">details</span></th>", page);
    for (size_t i = 0; i < COLUMNS; i++) {
        if (columns[i].shown == 0 || !is_wanted(report, &columns[i]))
            continue;
        bool is_text = strcmp(columns[i].kind, "text") == 0;
        fprintf(page, "<th scope=\"col\" data-key=\"%s\" class=\"%s%s\">%s</th>", columns[i].key,
                is_text ? "" : "figure", columns[i].shown == 1 ? " roomy" : "", columns[i].title);
    }
    fputs("<th scope=\"col\" class=\"command\">command that repeats it</th></tr></thead>\n", page);
}

void report_records(const struct report *report, FILE *page)
{
    size_t rows = report->record_count < STATIC_ROWS ? report->record_count : STATIC_ROWS;
    if (report->record_count == 0) {
        fputs("<p class=\"note\">There is no record.</p>\n", page);
        return;
    }
    fputs("<div id=\"controls\" hidden></div>\n"
          "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Records\"><table id=\"table\">\n"
          "<caption>Records: <span id=\"shown\">",
          page);
    fprintf(page, rows < report->record_count ? "the first %zu of %zu" : "%zu of %zu", rows, report->record_count);
    fputs("</span></caption>\n", page);
    put_head(report, page);
    fputs("<tbody id=\"rows\">", page);
    for (size_t i = 0; i < rows; i++)
        put_plain_row(report, &report->records[i], page);
    fputs("\n</tbody></table></div>\n<div id=\"pager\" hidden></div>\n", page);
    if (rows < report->record_count)
        fputs("<noscript><p class=\"note\">The other rows, sorting and filtering need JavaScript; <code>attnbench show "
              "--wide FILE</code> prints them all.</p></noscript>\n",
              page);
    put_data(report, page);
}
