/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of CPUs by OS index as users type and read them: "0,2-5".
 */
#ifndef HARNESS_CPU_LIST_H
#define HARNESS_CPU_LIST_H

#include <stdint.h>

#include "error.h"

/* Larger OS indices are refused: a slip of the finger must not ask for a gigabyte of mask. */
#define CPU_LIST_MAX 1048575

/* Parses text into *cpus (malloc'd, order as written, duplicates refused) and *count >= 1. Returns 0 or -EINVAL, the
 * message without a prefix that tells where the list came from. */
int cpu_list_parse(const char *text, int32_t **cpus, int *count, struct error *error);

/* The text of a list, in its order, runs shortened: "0-3,8". malloc'd; "none" if empty. */
char *cpu_list_format(const int32_t *cpus, int count);

#endif
