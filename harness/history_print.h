/* SPDX-License-Identifier: Apache-2.0
 *
 * What `attnbench history` shows people: lists of series, one series, changes.
 */
#ifndef HARNESS_HISTORY_PRINT_H
#define HARNESS_HISTORY_PRINT_H

#include "history_changes.h"
#include "history_series.h"

/* Series under the machine and the problem that they share, each with a sparkline of its newest points. */
int history_print_list(FILE *file, const struct history *history, const struct history_rows *series,
                       const struct output_style *style, struct error *error);

/* One series: what it is, its sparkline, a line a point. changes: of this series, or none. */
void history_print_series(FILE *file, const struct history_rows *series, const struct history_rows *points,
                          const struct history_changes *changes, const struct output_style *style);

/* A paragraph an alert; changes of times are marked as sequential. */
void history_print_changes(FILE *file, const struct history_changes *changes, const struct output_style *style);

#endif
