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

/* "-0.42 % [-0.61, -0.20]": time of B against A and its interval; "-" where nothing was measured. */
enum { DUET_RATIO_BYTES = 96 };
void duet_ratio_text(const json_t *record, char out[DUET_RATIO_BYTES]);

/* The records as a table, by problem, and what its columns mean. */
void duet_table_print(FILE *file, const json_t *records, const struct output_style *style);

#endif
