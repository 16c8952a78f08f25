/* SPDX-License-Identifier: Apache-2.0
 *
 * The grammar of values in flags and configs: numbers, ranges, durations, and lists of them.
 *
 *   size      512, 2k (2048), 1m (1048576)
 *   range     128-4096x2 or 128-4096*2 (128, 256 ... 4096), 128-1024+128 (128, 256, 384 ... 1024)
 *   bytes     500m, 4g, 1.5g, 65536 (k, m, g: powers of 1024)
 *   duration  0.5s, 200ms, 50us, 10m, 1h
 *
 * Errors name the text that was wrong; the caller puts the flag, or the file and line, before it.
 */
#ifndef HARNESS_VALUES_H
#define HARNESS_VALUES_H

#include <stddef.h>
#include <stdint.h>

#include "error.h"

/* The most values that a single list may have. */
#define VALUES_MAX 1000000

/* One value of a key; which fields hold it depends on the key. */
struct value {
    int64_t integer;   /* sizes, enumerations, booleans, a window's left end */
    int64_t second;    /* a window's right end */
    double number;     /* seconds, softcap, scale, share */
    const char *text;  /* names and expressions; interned */
    const char *where; /* how errors name the place it came from; interned */
};

struct value_list {
    struct value *items;
    size_t count, room;
};

/* Appends a copy. -ENOMEM, or -EINVAL when the list would hold more than VALUES_MAX. */
int value_list_add(struct value_list *list, struct value value, struct error *error);
void value_list_release(struct value_list *list);

/* text in quotes, cut to what fits on a line with control characters replaced, for error messages. buffer: returned. */
#define QUOTED_BYTES 96
const char *quoted(const char *text, char buffer[QUOTED_BYTES]);

/* A whole number of at least 0, with an optional k or m. */
int value_size(const char *text, int64_t *size, struct error *error);

/* One size or range, appended to the list; every item gets where. */
int value_range(const char *text, const char *where, struct value_list *list, struct error *error);

/* A finite decimal number. */
int value_number(const char *text, double *number, struct error *error);

/* A duration of more than 0, in seconds. */
int value_duration(const char *text, double *seconds, struct error *error);

/* An amount of memory of more than 0, in bytes. */
int value_bytes(const char *text, double *bytes, struct error *error);

/* A share of more than 0 and less than 1: 2% or 0.02. */
int value_share(const char *text, double *share, struct error *error);

/* A seed: 0 .. 2^63-1, so that it stays an integer in JSON. */
int value_seed(const char *text, int64_t *seed, struct error *error);

#endif
