/* SPDX-License-Identifier: Apache-2.0
 *
 * Records for the tests of table and summary, and what is printed of them.
 */
#ifndef TESTS_TABLE_EXAMPLE_H
#define TESTS_TABLE_EXAMPLE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "harness/output.h"
#include "harness/text.h"

static inline json_t *record(const char *kernel, int threads, double median_ns)
{
    static int count;
    char id[32];
    snprintf(id, sizeof id, "%016x", ++count);
    return json_pack("{s:s,s:s,s:s,s:n,s:s,s:s,s:s,s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:f,s:s,s:s,s:i,s:s,s:[i],s:s,s:[f],"
                     "s:f,s:f,s:f,s:f,s:f,s:f,s:s,s:f,s:{s:s}}",
                     "schema", "attnbench.result/1", "point_id", id, "status", "ok", "reason", "rule",
                     "scaled_dot_product", "kernel", kernel, "schedule", "bhq", "dtype", "f32", "B", 8, "H", 12, "H_kv",
                     12, "S_q", 128, "S_kv", 128, "D", 64, "D_v", 64, "scale", 0.125, "causal", "none", "layout",
                     "BHSD", "threads", threads, "placement", "compact", "cpus", 0, "cache", "warm", "samples_ns",
                     median_ns, "median_ns", median_ns, "ci95_low_ns", 0.99 * median_ns, "ci95_high_ns",
                     1.01 * median_ns, "gflops", 123.4, "gb_per_s", 5.6, "roof_fraction", 0.77, "roof_bound", "compute",
                     "err_over_bound", 0.02, "noise", "quality", "clean");
}

static inline void spoil(json_t *line, const char *status, const char *reason)
{
    static const char *const rates[] = {"gflops", "gb_per_s", "roof_fraction", "noise"};
    json_object_set_new(line, "status", json_string(status));
    json_object_set_new(line, "reason", json_string(reason));
    for (size_t i = 0; i < 4; i++)
        json_object_set_new(line, rates[i], json_null());
}

/* What a printing function wrote. malloc'd. */
__attribute__((noinline, unused)) static char *printed(const json_t *records, bool with_summary, bool wide, bool color)
{
    char *text = NULL;
    size_t size = 0;
    const struct output_style style = {.wide = wide, .color = color};
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    if (with_summary)
        summary_print(file, records, &style);
    else
        table_print(file, records, &style);
    fclose(file);
    return text;
}

static inline void expect_columns(const char *text, size_t most)
{
    char line[8192];
    while (*text) {
        size_t bytes = strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", (int)bytes, text);
        if (text_columns(line) > most)
            fail_msg("%zu columns: %s", text_columns(line), line);
        text += bytes + (text[bytes] == '\n');
    }
}

static inline size_t times_of(const char *needle, const char *text)
{
    size_t times = 0;
    for (; (text = strstr(text, needle)); text += strlen(needle))
        times++;
    return times;
}

#endif
