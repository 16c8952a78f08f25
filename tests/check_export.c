/* SPDX-License-Identifier: Apache-2.0
 *
 * Exports read back: CSV by a reader of RFC 4180 written here, JSON and JSON Lines by the parser, Markdown by its form.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/output.h"

static const struct output_style plain;
static const char nasty[] = "a \"quoted\" reason, with commas,\r\nlines | pipes <b> and ünïcode";

/* Two records: one with everything nested and measured, one skipped. */
static json_t *sample_records(void)
{
    json_t *records = json_array();
    json_array_append_new(
        records,
        json_pack("{s:s,s:s,s:s,s:n,s:s,s:s,s:i,s:i,s:[iii],s:[ff],s:f,s:b,s:{s:s,s:f,s:n},s:{s:f},s:{s:i},s:s}",
                  "schema", "attnbench.result/1", "point_id", "00ff", "status", "ok", "reason", "kernel", "naive",
                  "schedule", "bhq", "B", 2, "threads", 3, "cpus", 0, 2, 4, "samples_ns", 0.1, 1e300, "median_ns",
                  1.0 / 3, "bias", 0, "noise", "quality", "clean", "wall_over_cpu", 1.25, "steal_ns", "phases_ns",
                  "attention.main", 7.5, "counters", "CYCLES, all", 12, "new_field", " padded"));
    json_array_append_new(records, json_pack("{s:s,s:s,s:s,s:s,s:s,s:n,s:[]}", "schema", "attnbench.result/1",
                                             "point_id", "00fe", "status", "skipped", "reason", nasty, "kernel", "a|b",
                                             "noise", "samples_ns"));
    return records;
}

static json_t *sample_contexts(void)
{
    return json_pack("[{s:s,s:s,s:s,s:s,s:[ss],s:n,s:i,s:{s:i,s:i},s:i}]", "schema", "attnbench.context/1", "run_id",
                     "r", "machine_key", "m", "cpu_model", "Model|X", "command", "attnbench", "run", "governor", "seed",
                     9, "topology", "cores", 2, "pus", 4, "memory_bytes", 16000000);
}

static char *exported(const char *format, const json_t *records)
{
    char *text = NULL;
    size_t size = 0;
    struct error error;
    json_t *contexts = sample_contexts();
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    assert_int_equal(export_write(file, format, contexts, records, &plain, &error), 0);
    fclose(file);
    json_decref(contexts);
    return text;
}

/* Rows of fields, as RFC 4180 has them: an array of arrays of strings. */
static json_t *read_csv(const char *text)
{
    json_t *rows = json_array(), *row = json_array();
    while (*text) {
        char field[512];
        size_t used = 0;
        if (*text == '"') {
            for (text++; *text != '"' || text[1] == '"'; text++) {
                assert_true(*text != '\0');
                text += *text == '"';
                field[used++] = *text;
            }
            text++;
        } else {
            for (; *text && *text != ',' && *text != '\n'; text++) {
                assert_true(*text != '"' && *text != '\r');
                field[used++] = *text;
            }
        }
        json_array_append_new(row, json_stringn(field, used));
        assert_true(*text == ',' || *text == '\n');
        if (*text++ == '\n') {
            json_array_append_new(rows, row);
            row = json_array();
        }
    }
    assert_int_equal(json_array_size(row), 0);
    json_decref(row);
    return rows;
}

static const char *field(const json_t *rows, size_t row, const char *column)
{
    const json_t *header = json_array_get(rows, 0);
    for (size_t i = 0; i < json_array_size(header); i++) {
        if (strcmp(json_string_value(json_array_get(header, i)), column) == 0)
            return json_string_value(json_array_get(json_array_get(rows, row), i));
    }
    fail_msg("no column %s", column);
    return NULL;
}

static void csv_is_read_back(void **state)
{
    (void)state;
    json_t *records = sample_records();
    char *text = exported("csv", records);
    json_t *rows = read_csv(text);
    assert_int_equal(json_array_size(rows), 3);
    for (size_t i = 1; i < 3; i++)
        assert_int_equal(json_array_size(json_array_get(rows, i)), json_array_size(json_array_get(rows, 0)));
    assert_string_equal(field(rows, 1, "kernel"), "naive");
    assert_string_equal(field(rows, 1, "cpus"), "0;2;4");
    assert_string_equal(field(rows, 1, "samples_ns"), "0.1;1e+300");
    assert_true(strtod(field(rows, 1, "median_ns"), NULL) == 1.0 / 3);
    assert_string_equal(field(rows, 1, "bias"), "false");
    assert_string_equal(field(rows, 1, "reason"), "");
    assert_string_equal(field(rows, 1, "noise.quality"), "clean");
    assert_string_equal(field(rows, 1, "noise.wall_over_cpu"), "1.25");
    assert_string_equal(field(rows, 1, "noise.steal_ns"), "");
    assert_string_equal(field(rows, 1, "phases_ns.attention.main"), "7.5");
    assert_string_equal(field(rows, 1, "counters.CYCLES, all"), "12");
    assert_string_equal(field(rows, 1, "new_field"), " padded");
    assert_string_equal(field(rows, 2, "reason"), nasty);
    assert_string_equal(field(rows, 2, "kernel"), "a|b");
    assert_string_equal(field(rows, 2, "noise.quality"), "");
    assert_string_equal(field(rows, 2, "samples_ns"), "");
    json_decref(rows);
    free(text);
    json_decref(records);
}

static void csv_of_nothing_has_a_header(void **state)
{
    (void)state;
    json_t *records = json_array();
    char *text = exported("csv", records);
    json_t *rows = read_csv(text);
    assert_int_equal(json_array_size(rows), 1);
    assert_non_null(strstr(text, "run_id,point_id,status,reason,rule,kernel,"));
    json_decref(rows);
    free(text);
    json_decref(records);
}

static void json_is_read_back(void **state)
{
    (void)state;
    json_t *records = sample_records(), *contexts = sample_contexts();
    char *text = exported("json", records);
    json_t *whole = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_true(json_equal(json_object_get(whole, "records"), records));
    assert_true(json_equal(json_object_get(whole, "contexts"), contexts));
    json_decref(whole);
    free(text);
    text = exported("jsonl", records);
    size_t lines = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), lines++) {
        json_t *value = json_loads(line, 0, NULL);
        assert_true(json_equal(value, lines == 0 ? json_array_get(contexts, 0) : json_array_get(records, lines - 1)));
        json_decref(value);
    }
    assert_int_equal(lines, 3);
    free(text);
    json_decref(records);
    json_decref(contexts);
}

/* Pipes that end a cell: those that are not escaped. */
static size_t cells_of(const char *line, size_t length)
{
    size_t cells = 0;
    for (size_t i = 0; i < length; i++)
        cells += line[i] == '|' && (i == 0 || line[i - 1] != '\\');
    return cells;
}

static void markdown_tables_keep_their_form(void **state)
{
    (void)state;
    json_t *records = sample_records();
    char *text = exported("md", records);
    size_t tables = 0, rows = 0, cells = 0;
    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        if (line[0] == '|') {
            size_t here = cells_of(line, length);
            tables += cells == 0;
            rows++;
            if (cells > 0)
                assert_int_equal(here, cells);
            cells = here;
        } else {
            cells = 0;
        }
        line += length + (line[length] == '\n');
    }
    /* The machine, and a problem a record: these two differ in their sizes. */
    assert_int_equal(tables, 3);
    assert_true(rows > 3 * 3);
    assert_non_null(strstr(text, "Model\\|X"));
    assert_non_null(strstr(text, "| skipped: a \"quoted\" reason, with commas,  lines \\| pipes &lt;b> and ünïcode |"));
    assert_non_null(strstr(text, "| frequency governor | unknown |"));
    assert_null(strstr(text, "nan"));
    free(text);
    json_decref(records);
}

static void table_is_the_table(void **state)
{
    (void)state;
    json_t *records = sample_records();
    char *text = exported("table", records), *table = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&table, &size);
    table_print(file, records, &plain);
    fclose(file);
    assert_string_equal(text, table);
    free(text);
    free(table);
    json_decref(records);
}

static void unknown_formats_are_refused(void **state)
{
    (void)state;
    struct error error;
    json_t *nothing = json_array();
    assert_int_equal(export_write(stderr, "xml", nothing, nothing, &plain, &error), -EINVAL);
    assert_int_equal(error.exit_code, EXIT_USAGE);
    assert_non_null(strstr(error.text, "xml"));
    assert_non_null(strstr(error.text, EXPORT_FORMATS));
    assert_false(export_knows("xml"));
    assert_true(export_knows("md"));
    json_decref(nothing);
}

static void a_full_device_is_told(void **state)
{
    (void)state;
    static const char *const formats[] = {"table", "csv", "json", "jsonl", "md", "github", "junit", "google-benchmark"};
    struct error error;
    if (access("/dev/full", W_OK) != 0) {
        print_message("no /dev/full here\n");
        skip();
    }
    json_t *records = sample_records(), *contexts = sample_contexts();
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        FILE *file = fopen("/dev/full", "w");
        assert_non_null(file);
        assert_int_equal(export_write(file, formats[i], contexts, records, &plain, &error), -ENOSPC);
        assert_int_equal(error.exit_code, EXIT_UNWRITTEN);
        fclose(file);
    }
    json_decref(records);
    json_decref(contexts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csv_is_read_back),      cmocka_unit_test(csv_of_nothing_has_a_header),
        cmocka_unit_test(json_is_read_back),     cmocka_unit_test(markdown_tables_keep_their_form),
        cmocka_unit_test(table_is_the_table),    cmocka_unit_test(unknown_formats_are_refused),
        cmocka_unit_test(a_full_device_is_told),
    };
    return cmocka_run_group_tests_name("export", tests, NULL, NULL);
}
