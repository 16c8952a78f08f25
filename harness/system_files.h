/* SPDX-License-Identifier: Apache-2.0
 *
 * Small files of /proc and /sys. Every path is taken under ATTNBENCH_FS_ROOT where that is set, so that tests can show
 * the program another machine.
 */
#ifndef HARNESS_SYSTEM_FILES_H
#define HARNESS_SYSTEM_FILES_H

#include <stdbool.h>
#include <stdint.h>

/* The prefix, "" by default. */
const char *system_root(void);

/* The whole text of a file (malloc'd), or NULL where it can't be read. The path may be a printf format. */
char *system_read(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Its first line without white space at the end, interned; NULL where it can't be read. */
const char *system_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The number that a file begins with. False where it can't be read or begins otherwise. */
bool system_number(double *number, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* In text of lines "key value" or "key: value": the number of key. False where there is none. */
bool keyed_number(const char *text, const char *key, double *number);

#endif
