/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of export_write (output.h) that have files of their own.
 */
#ifndef HARNESS_EXPORT_H
#define HARNESS_EXPORT_H

#include <jansson.h>
#include <stdio.h>

/* RFC 4180, lines end with a newline: a header, one row a record. Nested objects become columns "noise.quality", arrays
 * are joined with ';', null is empty. Columns: those of the contract in its order and the machine_key of the record's
 * context, then others as they first appear. */
void export_csv(FILE *file, const json_t *contexts, const json_t *records);

/* GitHub Markdown: the machine, how it was measured, a table a problem. */
void export_markdown(FILE *file, const json_t *contexts, const json_t *records);

#endif
