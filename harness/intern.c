/* SPDX-License-Identifier: Apache-2.0
 *
 * A chained hash table of strings that are never freed; see intern.h.
 */
#include "intern.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 4096 };

struct entry {
    struct entry *next;
    char text[];
};

static struct entry *table[BUCKETS];

static uint32_t hash(const char *text) /* FNV-1a */
{
    uint32_t h = 2166136261u;
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 16777619u;
    return h;
}

const char *intern(const char *text)
{
    if (!text)
        return NULL;
    struct entry **bucket = &table[hash(text) % BUCKETS];
    for (struct entry *e = *bucket; e; e = e->next)
        if (strcmp(e->text, text) == 0)
            return e->text;
    size_t bytes = strlen(text) + 1;
    struct entry *e = malloc(sizeof *e + bytes);
    if (!e)
        abort();
    memcpy(e->text, text, bytes);
    e->next = *bucket;
    *bucket = e;
    return e->text;
}

const char *intern_format(const char *format, ...)
{
    va_list list;
    char *text = NULL;
    va_start(list, format);
    int n = vasprintf(&text, format, list);
    va_end(list);
    if (n < 0)
        abort();
    const char *kept = intern(text);
    free(text);
    return kept;
}
