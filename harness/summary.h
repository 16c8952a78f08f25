/* SPDX-License-Identifier: Apache-2.0
 *
 * What the table and the summary below it (output.h) share.
 */
#ifndef HARNESS_SUMMARY_H
#define HARNESS_SUMMARY_H

#include "output.h"

/* The summary in UTF-8, whatever the style says of ASCII (bars apart); summary_print puts it right. */
void summary_compose(FILE *file, const json_t *records, const struct output_style *style);

/* A problem's heading, on as many lines of 80 columns (one, where the style is wide) as it needs: broken at the double
 * spaces between its items. */
void problem_print(FILE *file, const char *problem, const struct output_style *style);

#endif
