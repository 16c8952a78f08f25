/* SPDX-License-Identifier: Apache-2.0
 *
 * The command that repeats a point, from its record.
 */
#ifndef HARNESS_RECORD_REPRO_H
#define HARNESS_RECORD_REPRO_H

#include <jansson.h>

/* As recorded, or built from the fields of the record. malloc'd; NULL where they do not make a point. */
char *record_repro(const json_t *record);

#endif
