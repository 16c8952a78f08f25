/* SPDX-License-Identifier: Apache-2.0
 *
 * Results files survive: cut at every byte, foreign, locked, on a full disk.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/journal.h"
#include "harness/json_util.h"

enum { RECORDS = 3 };

static char folder[] = P_tmpdir "/check_journal.XXXXXX";
static char path[sizeof folder + 16];

static json_t *context(const char *run_id)
{
    return json_pack("{s:s,s:s}", "run_id", run_id, "cpu_model", "é \"quoted\"");
}

static json_t *record(int i)
{
    char id[32];
    snprintf(id, sizeof id, "%016x", i);
    return json_pack("{s:s,s:s,s:s,s:s,s:[f,f]}", "schema", RESULT_SCHEMA, "point_id", id, "status", "ok", "kernel",
                     "naive", "samples_ns", 0.1 + i, 1.0 / 3);
}

static void append(struct journal *journal, int i, int expected)
{
    struct error error;
    json_t *line = record(i);
    assert_int_equal(journal_append(journal, line, &error), expected);
    json_decref(line);
}

static int create(struct journal **journal, struct error *error)
{
    json_t *line = context("first");
    int code = journal_create(path, line, journal, error);
    json_decref(line);
    return code;
}

static int resume(struct journal **journal, json_t **records, struct error *error)
{
    json_t *line = context("second");
    int code = journal_resume(path, line, journal, records, error);
    json_decref(line);
    return code;
}

static void write_bytes(const char *bytes, size_t size)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static size_t read_bytes(char *bytes, size_t size)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t got = fread(bytes, 1, size, file);
    fclose(file);
    return got;
}

static size_t sample_journal(char *bytes, size_t size)
{
    struct journal *journal;
    struct error error;
    unlink(path);
    assert_int_equal(create(&journal, &error), 0);
    for (int i = 0; i < RECORDS; i++)
        append(journal, i, 0);
    journal_close(journal);
    return read_bytes(bytes, size);
}

static void expect_records(const json_t *records, size_t count)
{
    assert_int_equal(json_array_size(records), count);
    for (size_t i = 0; i < count; i++) {
        json_t *expected = record((int)i);
        assert_true(json_equal(json_array_get(records, i), expected));
        json_decref(expected);
    }
}

static size_t whole_lines(const char *bytes, size_t size)
{
    size_t lines = 0;
    for (size_t i = 0; i < size; i++)
        lines += bytes[i] == '\n';
    return lines;
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    char bytes[4096];
    struct results results;
    struct error error;
    size_t size = sample_journal(bytes, sizeof bytes);
    assert_int_equal(whole_lines(bytes, size), 1 + RECORDS);
    assert_int_equal(results_read(path, &results, &error), 0);
    assert_false(results.torn);
    assert_int_equal(json_array_size(results.contexts), 1);
    assert_string_equal(json_get_string(json_array_get(results.contexts, 0), "schema", ""), CONTEXT_SCHEMA);
    expect_records(results.records, RECORDS);
    results_release(&results);
}

static void reads_a_file_cut_at_every_byte(void **state)
{
    (void)state;
    char bytes[4096];
    struct results results;
    struct error error;
    size_t size = sample_journal(bytes, sizeof bytes);
    for (size_t cut = 0; cut <= size; cut++) {
        write_bytes(bytes, cut);
        size_t lines = whole_lines(bytes, cut);
        if (lines == 0) {
            assert_int_equal(results_read(path, &results, &error), -EINVAL);
            assert_int_equal(error.exit_code, EXIT_USAGE);
            assert_non_null(strstr(error.text, path));
            continue;
        }
        assert_int_equal(results_read(path, &results, &error), 0);
        expect_records(results.records, lines - 1);
        assert_int_equal(results.torn, bytes[cut - 1] != '\n');
        results_release(&results);
    }
}

static void resumes_a_file_cut_at_every_byte(void **state)
{
    (void)state;
    char bytes[4096];
    size_t size = sample_journal(bytes, sizeof bytes);
    for (size_t cut = 0; cut <= size; cut++) {
        struct journal *journal;
        struct results results;
        struct error error;
        json_t *records;
        size_t lines = whole_lines(bytes, cut);
        write_bytes(bytes, cut);
        if (lines == 0) {
            char after[4096];
            assert_int_equal(resume(&journal, &records, &error), -EINVAL);
            assert_int_equal(error.exit_code, EXIT_USAGE);
            assert_null(journal);
            assert_null(records);
            assert_int_equal(read_bytes(after, sizeof after), cut);
            continue;
        }
        assert_int_equal(resume(&journal, &records, &error), 0);
        expect_records(records, lines - 1);
        json_decref(records);
        for (int i = (int)lines - 1; i < RECORDS; i++)
            append(journal, i, 0);
        journal_close(journal);
        assert_int_equal(results_read(path, &results, &error), 0);
        assert_false(results.torn);
        assert_int_equal(json_array_size(results.contexts), 2);
        expect_records(results.records, RECORDS);
        results_release(&results);
    }
}

/* A crash of the machine may leave rubbish that ends in a newline. */
static void cuts_a_last_line_that_is_no_json(void **state)
{
    (void)state;
    char bytes[4096];
    struct journal *journal;
    struct results results;
    struct error error;
    json_t *records;
    size_t size = sample_journal(bytes, sizeof bytes - 8);
    memcpy(bytes + size, "\0\0\0\n", 4);
    write_bytes(bytes, size + 4);
    assert_int_equal(results_read(path, &results, &error), 0);
    assert_true(results.torn);
    results_release(&results);
    assert_int_equal(resume(&journal, &records, &error), 0);
    expect_records(records, RECORDS);
    json_decref(records);
    journal_close(journal);
    assert_int_equal(results_read(path, &results, &error), 0);
    assert_int_equal(json_array_size(results.contexts), 2);
    results_release(&results);
}

static void a_broken_line_before_the_last_is_named(void **state)
{
    (void)state;
    char bytes[4096], place[sizeof path + 8], after[4096];
    struct journal *journal;
    struct results results;
    struct error error;
    json_t *records;
    size_t size = sample_journal(bytes, sizeof bytes);
    char *third = strchr(strchr(bytes, '\n') + 1, '\n') + 1;
    third[0] = '#';
    write_bytes(bytes, size);
    snprintf(place, sizeof place, "%s:3", path);
    assert_int_equal(results_read(path, &results, &error), -EINVAL);
    assert_non_null(strstr(error.text, place));
    assert_int_equal(resume(&journal, &records, &error), -EINVAL);
    assert_int_equal(error.exit_code, EXIT_USAGE);
    assert_non_null(strstr(error.text, place));
    assert_null(strchr(error.text, '\n'));
    assert_int_equal(read_bytes(after, sizeof after), size);
    assert_memory_equal(bytes, after, size);
}

static void foreign_files_are_refused_and_left_alone(void **state)
{
    (void)state;
    static const char *const files[] = {
        "hello\n",
        "hello",
        "{\"benchmarks\":[]}\n",
        "[1,2]\n",
        "{\"schema\":\"attnbench.result/1\",\"point_id\":\"a\",\"status\":\"ok\",\"kernel\":\"k\"}\n",
        "{\"schema\":\"attnbench.context/2\"}\n",
        "{\"schema\":\"attnbench.context/1\"}\n{\"schema\":\"attnbench.result/1\",\"status\":\"ok\"}\n",
        "{\"schema\":\"attnbench.context/1\"}\n\n{\"schema\":\"attnbench.context/1\"}\n",
        "{\"schema\":\"attnbench.context/1\",\"schema\":\"attnbench.context/1\"}\n",
        ("\x7f"
         "ELF\x02\x01\n"),
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char after[4096];
        struct journal *journal;
        struct error error;
        json_t *records;
        size_t size = strlen(files[i]);
        write_bytes(files[i], size);
        assert_int_equal(resume(&journal, &records, &error), -EINVAL);
        assert_int_equal(error.exit_code, EXIT_USAGE);
        assert_non_null(strstr(error.text, path));
        assert_int_equal(read_bytes(after, sizeof after), size);
        assert_memory_equal(after, files[i], size);
    }
}

static void create_keeps_what_is_there(void **state)
{
    (void)state;
    struct journal *journal;
    struct error error;
    char after[16];
    write_bytes("precious", 8);
    assert_int_equal(create(&journal, &error), -EEXIST);
    assert_int_equal(error.exit_code, EXIT_UNWRITTEN);
    assert_non_null(strstr(error.text, path));
    assert_non_null(strstr(error.text, "--resume"));
    assert_int_equal(read_bytes(after, sizeof after), 8);
    write_bytes("", 0);
    assert_int_equal(create(&journal, &error), 0);
    journal_close(journal);
}

static void unwritable_places_are_named(void **state)
{
    (void)state;
    char kept[sizeof path];
    struct journal *journal;
    struct error error;
    json_t *records;
    strcpy(kept, path);
    snprintf(path, sizeof path, "%s/no/file", folder);
    assert_int_equal(create(&journal, &error), -ENOENT);
    assert_int_equal(error.exit_code, EXIT_UNWRITTEN);
    assert_non_null(strstr(error.text, path));
    assert_int_equal(resume(&journal, &records, &error), -ENOENT);
    assert_int_equal(error.exit_code, EXIT_USAGE);
    strcpy(path, folder);
    assert_int_equal(create(&journal, &error), -EISDIR);
    assert_int_equal(error.exit_code, EXIT_UNWRITTEN);
    strcpy(path, kept);
}

static void a_second_writer_is_refused(void **state)
{
    (void)state;
    struct journal *first, *second;
    struct error error;
    json_t *records;
    unlink(path);
    assert_int_equal(create(&first, &error), 0);
    assert_int_equal(resume(&second, &records, &error), -EBUSY);
    assert_int_equal(error.exit_code, EXIT_UNWRITTEN);
    assert_non_null(strstr(error.text, path));
    append(first, 0, 0);
    journal_close(first);
    assert_int_equal(resume(&second, &records, &error), 0);
    expect_records(records, 1);
    json_decref(records);
    journal_close(second);
}

/* In a child of its own, since the limit stays: true if all is as it should be. */
static bool write_until_full(rlim_t limit)
{
    struct journal *journal;
    struct error error;
    char before[65536], after[65536];
    const struct rlimit small = {limit, limit};
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &small) != 0)
        return false;
    int code = create(&journal, &error);
    for (int i = 0; code == 0 && i < 100; i++) {
        json_t *line = record(i);
        size_t size = read_bytes(before, sizeof before);
        code = journal_append(journal, line, &error);
        json_decref(line);
        /* What failed changed nothing, and fails again in the same way. */
        if (code != 0 && (read_bytes(after, sizeof after) != size || memcmp(before, after, size) != 0))
            return false;
    }
    if (code != -EFBIG || error.exit_code != EXIT_UNWRITTEN || !strstr(error.text, path))
        return false;
    size_t size = read_bytes(after, sizeof after);
    return size == 0 || after[size - 1] == '\n';
}

static void a_full_disk_leaves_whole_lines(void **state)
{
    (void)state;
    /* Each limit cuts another byte of a line, that of the context among them. */
    for (rlim_t limit = 1; limit < 700; limit += 3) {
        int status;
        unlink(path);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            _exit(write_until_full(limit) ? 0 : 1);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

static void a_full_device_is_told(void **state)
{
    (void)state;
    char kept[sizeof path];
    struct journal *journal;
    struct error error;
    if (access("/dev/full", W_OK) != 0) {
        print_message("no /dev/full here\n");
        skip();
    }
    strcpy(kept, path);
    strcpy(path, "/dev/full");
    assert_int_equal(create(&journal, &error), -ENOSPC);
    assert_int_equal(error.exit_code, EXIT_UNWRITTEN);
    strcpy(path, kept);
}

static void unknown_numbers_are_null(void **state)
{
    (void)state;
    json_t *line = json_object();
    json_object_set_new(line, "nan", json_number_or_null(NAN));
    json_object_set_new(line, "inf", json_number_or_null(-INFINITY));
    json_object_set_new(line, "one", json_number_or_null(1));
    json_object_set_new(line, "none", json_count_or_null(-1));
    assert_true(json_is_null(json_object_get(line, "nan")));
    assert_true(json_is_null(json_object_get(line, "inf")));
    assert_true(json_get_number(line, "one", 0) == 1);
    assert_int_equal(json_get_int(line, "one", 0), 1);
    assert_int_equal(json_get_int(line, "none", -7), -7);
    assert_true(isnan(json_get_number(line, "absent", NAN)));
    assert_string_equal(json_get_string(line, "one", "fallback"), "fallback");
    assert_true(json_get_number(NULL, "one", 3) == 3);
    json_decref(line);
}

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/run.jsonl", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(reads_a_file_cut_at_every_byte),
        cmocka_unit_test(resumes_a_file_cut_at_every_byte),
        cmocka_unit_test(cuts_a_last_line_that_is_no_json),
        cmocka_unit_test(a_broken_line_before_the_last_is_named),
        cmocka_unit_test(foreign_files_are_refused_and_left_alone),
        cmocka_unit_test(create_keeps_what_is_there),
        cmocka_unit_test(unwritable_places_are_named),
        cmocka_unit_test(a_second_writer_is_refused),
        cmocka_unit_test(a_full_disk_leaves_whole_lines),
        cmocka_unit_test(a_full_device_is_told),
        cmocka_unit_test(unknown_numbers_are_null),
    };
    return cmocka_run_group_tests_name("journal", tests, make_folder, remove_folder);
}
