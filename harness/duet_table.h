/* SPDX-License-Identifier: Apache-2.0
 *
 * Records of duet and gate for a reader.
 */
#ifndef HARNESS_DUET_TABLE_H
#define HARNESS_DUET_TABLE_H

#include <jansson.h>

#include "output.h"

/* One line on a record: its point, verdict, ratio and interval. malloc'd. */
char *duet_line(const json_t *record);

/* The records as a table, by problem, and what its columns mean. */
void duet_table_print(FILE *file, const json_t *records, const struct output_style *style);

#endif
