/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing HTML: what comes from a results file goes through html_text, in content and in quoted attributes alike.
 */
#ifndef HARNESS_REPORT_HTML_H
#define HARNESS_REPORT_HTML_H

#include <stddef.h>
#include <stdio.h>

/* Escapes & < > " ' and turns control characters into spaces. NULL: nothing. */
void html_text(FILE *page, const char *text);
/* The same, but newlines stay: for <pre>. */
void html_lines(FILE *page, const char *text);
/* What record_sizes writes: lines break at its double spaces alone. */
void html_sizes(FILE *page, const char *sizes);
/* html_text of a formatted text. */
void html_format(FILE *page, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A table with a caption, inside a box that scrolls sideways where the screen is narrow. Columns whose title begins
 * with '#' hold figures and stand to the right (the '#' is not shown). Rows: html_row, then html_cell (text) or
 * html_figure (figures) a column. */
void html_table_begin(FILE *page, const char *caption, const char *const *titles, size_t columns);
void html_row(FILE *page);
void html_cell(FILE *page, const char *text);
void html_figure(FILE *page, const char *text);
void html_table_end(FILE *page);

/* A closed fold around the data behind a plot; summary: "The data behind this plot: 12 points". */
void html_data_begin(FILE *page, const char *summary);
void html_data_end(FILE *page);

/* The sentence that stands where a plot would, without gnuplot. */
void html_no_plot(FILE *page);

#endif
