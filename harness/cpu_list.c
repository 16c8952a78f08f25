/* SPDX-License-Identifier: Apache-2.0
 *
 * Parsing and printing of CPU lists; see cpu_list.h.
 */
#include "cpu_list.h"

#include <ctype.h>
#include <errno.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads a decimal number at *text and moves behind it; -1 if there is none or it is too large. */
static int32_t read_index(const char **text)
{
    int64_t value = 0;
    if (!isdigit((unsigned char)**text))
        return -1;
    for (; isdigit((unsigned char)**text); ++*text)
        if ((value = 10 * value + (**text - '0')) > CPU_LIST_MAX)
            return -1;
    return (int32_t)value;
}

int cpu_list_parse(const char *text, int32_t **cpus, int *count, struct error *error)
{
    int code = 0, used = 0, capacity = 0;
    int32_t *list = NULL;
    hwloc_bitmap_t seen = hwloc_bitmap_alloc();
    const char *at = text;
    do {
        int32_t first = read_index(&at), last = first;
        if (first >= 0 && *at == '-') {
            at++;
            last = read_index(&at);
        }
        if (first < 0 || last < 0 || (*at && *at != ',')) {
            code = error_usage(error, "'%s' is not a list of CPUs like 0,2-5 (indices up to %d)", text, CPU_LIST_MAX);
            goto done;
        }
        if (last < first) {
            code = error_usage(error, "'%s': the range %d-%d runs backwards", text, first, last);
            goto done;
        }
        for (int32_t cpu = first; cpu <= last; cpu++) {
            if (hwloc_bitmap_isset(seen, (unsigned)cpu)) {
                code = error_usage(error, "'%s' names CPU %d twice", text, cpu);
                goto done;
            }
            hwloc_bitmap_set(seen, (unsigned)cpu);
            if (used == capacity) {
                capacity = capacity ? 2 * capacity : 64;
                int32_t *grown = realloc(list, (size_t)capacity * sizeof *list);
                if (!grown) {
                    code = error_system(error, ENOMEM, "CPU list '%s'", text);
                    goto done;
                }
                list = grown;
            }
            list[used++] = cpu;
        }
    } while (*at++ == ',');
done:
    hwloc_bitmap_free(seen);
    if (code) {
        free(list);
        list = NULL;
        used = 0;
    }
    *cpus = list;
    *count = used;
    return code;
}

char *cpu_list_format(const int32_t *cpus, int count)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = count > 0 ? open_memstream(&text, &size) : NULL;
    if (!stream)
        return strdup("none");
    for (int i = 0; i < count;) {
        int end = i + 1;
        while (end < count && cpus[end] == cpus[end - 1] + 1)
            end++;
        fprintf(stream, "%s%d", i ? "," : "", cpus[i]);
        if (end - i > 1)
            fprintf(stream, "-%d", cpus[end - 1]);
        i = end;
    }
    fclose(stream);
    return text;
}
