/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of records; see output.h.
 */
#include <stdlib.h>
#include <string.h>

#include "color.h"
#include "json_util.h"
#include "machines.h"
#include "output.h"
#include "record_text.h"
#include "summary.h"
#include "text.h"

enum { NARROW = 80, CELL = 512, MAX_COLUMNS = 32, INDENT = 4 };

struct layout_of_columns {
    const struct output_style *style;
    size_t width[MAX_COLUMNS]; /* 0: not shown */
};

static bool is_shown(const struct layout_of_columns *layout, size_t column)
{
    return layout->style->wide || !record_columns[column].wide_only;
}

/* Measured as it is printed: of all that stands in a table only the title of the interval grows in ASCII. */
static void title_of(const struct layout_of_columns *layout, size_t column, char out[CELL])
{
    const struct record_column *names = &record_columns[column];
    snprintf(out, CELL, "%s", layout->style->wide && names->full ? names->full : names->title);
    if (layout->style->ascii)
        text_to_ascii(out);
}

static size_t total_width(const struct layout_of_columns *layout)
{
    size_t total = 0;
    for (size_t i = 0; i < record_column_count; i++) {
        if (is_shown(layout, i))
            total += layout->width[i] + (i > 0);
    }
    return total;
}

/* Takes columns from the widest text until the line fits. The figures' formats keep the rest below 80. */
static void squeeze(struct layout_of_columns *layout)
{
    while (total_width(layout) > NARROW) {
        size_t widest = record_column_count;
        for (size_t i = 0; i < record_column_count; i++) {
            const struct record_column *column = &record_columns[i];
            bool can_give = is_shown(layout, i) && column->is_text && layout->width[i] > column->least;
            if (can_give && (widest == record_column_count || layout->width[i] > layout->width[widest]))
                widest = i;
        }
        if (widest == record_column_count)
            return;
        layout->width[widest]--;
    }
}

static void measure(struct layout_of_columns *layout, const json_t *records)
{
    for (size_t i = 0; i < record_column_count; i++) {
        size_t index;
        json_t *record;
        char cell[CELL];
        title_of(layout, i, cell);
        layout->width[i] = text_columns(cell);
        json_array_foreach((json_t *)records, index, record)
        {
            /* Of a point without rates only what it was is shown, then the reason. */
            if (i >= RECORD_WHO_COLUMNS && record_status(record) != RECORD_OK)
                continue;
            record_columns[i].cell(record, cell, sizeof cell);
            size_t columns = text_columns(cell);
            layout->width[i] = columns > layout->width[i] ? columns : layout->width[i];
        }
    }
    if (!layout->style->wide)
        squeeze(layout);
}

static void print_cell(FILE *file, const struct layout_of_columns *layout, size_t column, const char *text)
{
    char cell[CELL];
    text_fit(text, layout->width[column], cell, sizeof cell);
    int padding = (int)(layout->width[column] - text_columns(cell));
    const char *gap = column > 0 ? " " : "";
    if (record_columns[column].is_text)
        fprintf(file, "%s%s%*s", gap, cell, padding, "");
    else
        fprintf(file, "%s%*s%s", gap, padding, "", cell);
}

/* "skipped: why", in what the narrow table leaves of the line. */
static void print_reason(FILE *file, const struct layout_of_columns *layout, const json_t *record)
{
    const char *reason = json_get_string(record, "reason", "no reason recorded");
    const char *name = record_status_name(record_status(record));
    size_t used = 0;
    for (size_t i = 0; i < RECORD_WHO_COLUMNS; i++)
        used += layout->width[i] + 1;
    size_t room = layout->style->wide ? strlen(reason) : NARROW - used - strlen(name) - 2;
    size_t size = 4 * room + sizeof "…";
    char *text = malloc(size);
    if (!text)
        abort();
    text_fit(reason, room, text, size);
    fprintf(file, " %s: %s", name, text);
    free(text);
}

/* The cells of a line without the spaces that would trail it. */
static void print_cells(FILE *file, const struct layout_of_columns *layout, const json_t *record, size_t columns)
{
    char *line = NULL, cell[CELL];
    size_t size = 0;
    FILE *text = open_memstream(&line, &size);
    if (!text)
        abort(); /* memory is exhausted; a table with rows left out would be worse than none */
    for (size_t i = 0; i < columns; i++) {
        if (!is_shown(layout, i))
            continue;
        if (record)
            record_columns[i].cell(record, cell, sizeof cell);
        else
            title_of(layout, i, cell);
        print_cell(text, layout, i, cell);
    }
    fclose(text);
    while (size > 0 && line[size - 1] == ' ')
        size--;
    fwrite(line, 1, size, file);
    free(line);
}

static void print_titles(FILE *file, const struct layout_of_columns *layout)
{
    fputs(paint(layout->style->color, PAINT_FAINT), file);
    print_cells(file, layout, NULL, record_column_count);
    fprintf(file, "%s\n", paint(layout->style->color, PAINT_PLAIN));
}

static void print_row(FILE *file, const struct layout_of_columns *layout, const json_t *record)
{
    static const enum paint paints[] = {[RECORD_OK] = PAINT_PLAIN,
                                        [RECORD_SKIPPED] = PAINT_FAINT,
                                        [RECORD_WRONG] = PAINT_BAD,
                                        [RECORD_FAILED] = PAINT_BAD};
    enum record_status status = record_status(record);
    enum paint row_paint = status == RECORD_OK && record_noisy(record) ? PAINT_WARNING : paints[status];
    if (row_paint != PAINT_PLAIN)
        fputs(paint(layout->style->color, row_paint), file);
    print_cells(file, layout, record, status == RECORD_OK ? record_column_count : RECORD_WHO_COLUMNS);
    if (status != RECORD_OK)
        print_reason(file, layout, record);
    fprintf(file, "%s\n", row_paint != PAINT_PLAIN ? paint(layout->style->color, PAINT_PLAIN) : "");
}

void problem_print(FILE *file, const char *problem, const struct output_style *style)
{
    size_t column = 0;
    fprintf(file, "%s", paint(style->color, PAINT_HEADING));
    while (*problem) {
        const char *end = strstr(problem, "  ");
        size_t bytes = end ? (size_t)(end - problem) : strlen(problem);
        char raw[CELL], item[CELL];
        snprintf(raw, sizeof raw, "%.*s", (int)bytes, problem);
        text_fit(raw, style->wide ? CELL : NARROW - INDENT, item, sizeof item);
        size_t columns = text_columns(item);
        if (column > 0 && !style->wide && column + 2 + columns > NARROW) {
            fprintf(file, "\n%*s", INDENT, "");
            column = INDENT;
        } else if (column > 0) {
            fputs("  ", file);
            column += 2;
        }
        fputs(item, file);
        column += columns;
        problem += bytes + (end ? 2 : 0);
    }
    fprintf(file, "%s\n", paint(style->color, PAINT_PLAIN));
}

static void print_legend(FILE *file, const struct layout_of_columns *layout)
{
    static const char narrow[] = "sched: how the work is spread over thr threads; place: where these are bound.\n"
                                 "time: median of one call; ±%: half the 95 % interval of the median over it.\n"
                                 "GFLOP/s, GB/s: useful FLOPs and least bytes of the problem over the time.\n"
                                 "roof: share of the best this machine could do here; bound: what sets that best.\n"
                                 "err: largest error over its derived bound (above 1: wrong). ~ noisy  - unknown\n";
    static const char wide[] =
        "schedule: how the work is spread over the threads; placement: where these are bound; median: time of one "
        "call; 95% ±%: half the 95 % interval of the median over it;\n"
        "GFLOP/s, GB/s: useful FLOPs and least bytes of the problem over the time; of roof: share of the best this "
        "machine could do here, bound by what sets that best;\n"
        "err/bound: largest error over its derived bound (above 1: wrong); ~: noisy; -: unknown; min, MAD: least time, "
        "median absolute deviation; samples of calls each;\n"
        "ISA GFLOP/s: FMA peak of the kernel's own ISA; rows verified: held against the oracle; wall/CPU: near 1 if "
        "nothing else ran; switches: involuntary ones;\n"
        "parallel eff.: time of one thread over threads x time; cpus: where each thread ran; cause: why the point "
        "stays below its roof; phases: what each took of one call.\n";
    fprintf(file, "\n%s%s%s", paint(layout->style->color, PAINT_FAINT), layout->style->wide ? wide : narrow,
            paint(layout->style->color, PAINT_PLAIN));
}

static void print_table(FILE *file, const json_t *records, const struct output_style *style)
{
    struct layout_of_columns layout = {.style = style};
    size_t count, index;
    json_t *record;
    struct record_group *groups = record_groups(records, &count);
    measure(&layout, records);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            fputc('\n', file);
        problem_print(file, groups[i].problem, style);
        print_titles(file, &layout);
        json_array_foreach(groups[i].records, index, record) print_row(file, &layout, record);
    }
    if (count > 0)
        print_legend(file, &layout);
    record_groups_release(groups, count);
}

/* What print writes, in the characters that the style allows. */
static void print_in_style(FILE *file, void (*print)(FILE *, const json_t *, const struct output_style *),
                           const json_t *records, const struct output_style *style)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = style->ascii ? open_memstream(&text, &size) : file;
    if (!stream)
        abort(); /* memory is exhausted; a table with rows left out would be worse than none */
    print(stream, records, style);
    if (!style->ascii)
        return;
    fclose(stream);
    text_to_ascii(text);
    fputs(text, file);
    free(text);
}

void table_print(FILE *file, const json_t *records, const struct output_style *style)
{
    print_in_style(file, print_table, records, style);
}

void summary_print(FILE *file, const json_t *records, const struct output_style *style)
{
    print_in_style(file, summary_compose, records, style);
}

void machines_print(FILE *file, const json_t *contexts, const json_t *records, const struct output_style *style,
                    bool with_summary)
{
    size_t count;
    struct machine *machines = machines_split(contexts, records, &count);
    for (size_t i = 0; i < count; i++) {
        char title[256], line[CELL];
        machine_title(&machines[i], title, sizeof title);
        text_fit(title, style->wide ? CELL / 4 : NARROW, line, sizeof line);
        if (style->ascii)
            text_to_ascii(line);
        if (count > 1)
            fprintf(file, "%s%s%s%s\n\n", i > 0 ? "\n\n" : "", paint(style->color, PAINT_HEADING), line,
                    paint(style->color, PAINT_PLAIN));
        table_print(file, machines[i].records, style);
        if (with_summary)
            summary_print(file, machines[i].records, style);
    }
    machines_release(machines, count);
}
