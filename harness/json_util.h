/* SPDX-License-Identifier: Apache-2.0
 *
 * Small helpers over jansson: numbers that may be unknown, and fields with a default.
 */
#ifndef HARNESS_JSON_UTIL_H
#define HARNESS_JSON_UTIL_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* How every line of a results file is encoded: compact, and reals in full, since a point is known again by the digest
 * of its exact values. */
#define JSON_LINE_FLAGS (JSON_COMPACT | JSON_REAL_PRECISION(17))

/* A new JSON number, or null where value is NaN or infinite: results never hold either. */
json_t *json_number_or_null(double value);

/* The same for counts: null where value is negative (unknown). */
json_t *json_count_or_null(int64_t value);

/* A new JSON string; text that is no valid UTF-8, such as a file's name may be, with "?" in place of every byte beyond
 * ASCII. */
json_t *json_text(const char *text, size_t length);

/* A field of object, or fallback where it is missing, null or of another type (object may be NULL). Strings are
 * borrowed from object. json_get_int takes a real that has an integer value too. */
double json_get_number(const json_t *object, const char *key, double fallback);
int64_t json_get_int(const json_t *object, const char *key, int64_t fallback);
const char *json_get_string(const json_t *object, const char *key, const char *fallback);

#endif
