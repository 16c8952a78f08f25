/* SPDX-License-Identifier: Apache-2.0
 *
 * A comparison as table, JSON, CSV and Markdown. Each says of itself that it is no verdict.
 */
#ifndef HARNESS_COMPARE_OUTPUT_H
#define HARNESS_COMPARE_OUTPUT_H

#include <stdio.h>

#include "compare.h"
#include "output.h"

/* What the comparison is of. */
struct compare_files {
    const char *name_a, *name_b; /* as they were given */
    const struct results *a, *b;
};

/* For a reader: two lines a point, changes that stand out coloured, noisy ones marked "~". 80 columns unless wide. */
void compare_table(FILE *file, const struct comparison *comparison, const struct compare_files *files,
                   const struct output_style *style);

/* {"schema":"attnbench.compare/1","method","why","a","b","counts","differences","points"}. */
void compare_json(FILE *file, const struct comparison *comparison, const struct compare_files *files);

/* The points of that as rows; method stands in each. */
void compare_csv(FILE *file, const struct comparison *comparison);

/* GitHub Markdown: a table of the figures, lists of the rest. */
void compare_markdown(FILE *file, const struct comparison *comparison, const struct compare_files *files);

/* "ok -> wrong: reason"; of points that only one file has, their status there. malloc'd. */
char *compare_status_text(const struct compare_pair *pair);

#endif
