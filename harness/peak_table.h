/* SPDX-License-Identifier: Apache-2.0
 *
 * The ceilings that `attnbench peak` measured, as a table of 80 columns.
 */
#ifndef HARNESS_PEAK_TABLE_H
#define HARNESS_PEAK_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* document: what --json prints. */
void peak_table_print(FILE *file, const json_t *document, bool color);

#endif
