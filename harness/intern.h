/* SPDX-License-Identifier: Apache-2.0
 *
 * Strings that live as long as the process: names in plans and points are shared, never freed, equal if identical.
 */
#ifndef HARNESS_INTERN_H
#define HARNESS_INTERN_H

/* The one stored copy of text (NULL for NULL). Aborts only when memory is exhausted. Not thread-safe. */
const char *intern(const char *text);

/* The same for a printf result. */
const char *intern_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
