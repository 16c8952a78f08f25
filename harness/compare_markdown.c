/* SPDX-License-Identifier: Apache-2.0
 *
 * A comparison as GitHub Markdown; see compare_output.h.
 */
#include <math.h>
#include <stdlib.h>

#include "compare_output.h"
#include "export.h"
#include "json_util.h"
#include "record_name.h"
#include "record_text.h"
#include "text.h"

static void put_cell(FILE *file, const char *text)
{
    fputs(" ", file);
    export_markdown_text(file, text);
    fputs(" |", file);
}

static void put_who(FILE *file, const json_t *record)
{
    char *who = record_who_name(record), *problem = record_problem(record);
    put_cell(file, who);
    put_cell(file, problem);
    free(who);
    free(problem);
}

static void put_number(FILE *file, double value)
{
    char figure[TEXT_FIGURE];
    text_number(value, 4, 7, figure);
    put_cell(file, figure);
}

static void put_time(FILE *file, double ns)
{
    char figure[TEXT_FIGURE];
    text_time(ns, figure);
    put_cell(file, figure);
}

static void put_roof(FILE *file, const json_t *record)
{
    char figure[TEXT_FIGURE];
    text_percent(json_get_number(record, "roof_fraction", NAN), figure);
    put_cell(file, figure);
}

static void put_figures(FILE *file, const struct compare_pair *pair)
{
    fputc('|', file);
    put_number(file, pair->ratio);
    put_number(file, pair->low);
    put_number(file, pair->high);
    put_time(file, pair->a.median_ns);
    put_time(file, pair->b.median_ns);
    put_roof(file, pair->a.record);
    put_roof(file, pair->b.record);
    put_cell(file, compare_noisy(pair)         ? "noisy"
                   : !compare_stands_out(pair) ? ""
                   : pair->ratio > 1           ? "slower"
                                               : "faster");
    put_who(file, compare_point(pair));
    fputc('\n', file);
}

static void put_others(FILE *file, const struct comparison *comparison, enum compare_kind kind, const char *title)
{
    if (comparison->counts[kind] > 0)
        fprintf(file, "\n### %s\n\n| status | point | problem |\n| :--- | :--- | :--- |\n", title);
    for (size_t i = 0; i < comparison->pair_count; i++) {
        if (comparison->pairs[i].kind != kind)
            continue;
        char *status = compare_status_text(&comparison->pairs[i]);
        fputc('|', file);
        put_cell(file, status);
        put_who(file, compare_point(&comparison->pairs[i]));
        fputc('\n', file);
        free(status);
    }
}

void compare_markdown(FILE *file, const struct comparison *comparison, const struct compare_files *files)
{
    fputs("**" COMPARE_METHOD "**: " COMPARE_WHY ". For a verdict: `attnbench duet`, `attnbench gate`.\n\nA: ", file);
    export_markdown_text(file, files->name_a);
    fputs(", B: ", file);
    export_markdown_text(file, files->name_b);
    fputs("\n\n| B/A | from | to | A | B | roof A | roof B | | point | problem |\n"
          "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | :--- | :--- | :--- |\n",
          file);
    for (size_t i = 0; i < comparison->counts[COMPARE_FIGURES]; i++)
        put_figures(file, &comparison->pairs[i]);
    put_others(file, comparison, COMPARE_STATUS, "Of another status in B");
    put_others(file, comparison, COMPARE_MISSING, "Missing from B");
    put_others(file, comparison, COMPARE_ADDED, "Added in B");
}
