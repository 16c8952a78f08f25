/* SPDX-License-Identifier: Apache-2.0
 *
 * Config files: what reads, and that every mistake is named with file, line, column and key.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/config.h"
#include "harness/spec.h"

static char path[] = P_tmpdir "/attnbench-config-XXXXXX";

static int make_file(void **state)
{
    (void)state;
    int file = mkstemp(path);
    return file < 0 ? -1 : close(file);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

static void write_bytes(const char *text, size_t length)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, length, file), length);
    fclose(file);
}

/* text is refused with PATH followed by what is expected. */
static void refuse_bytes(const char *text, size_t length, const char *expected)
{
    struct config config;
    struct error error = {0};
    write_bytes(text, length);
    int code = config_read(path, &config, &error);
    if (code == 0)
        fail_msg("accepted: %s", text);
    assert_int_equal(error.exit_code, EXIT_USAGE);
    assert_null(strchr(error.text, '\n'));
    if (strncmp(error.text, path, strlen(path)) != 0 || !strstr(error.text + strlen(path), expected))
        fail_msg("'%s' should hold '%s'", error.text, expected);
}

static void refuse(const char *text, const char *expected)
{
    refuse_bytes(text, strlen(text), expected);
}

static void a_config_reads(void **state)
{
    (void)state;
    static const char text[] = "# a comment\n"
                               "name: trial\n"
                               "description: 'two sweeps: both small'\n"
                               "defaults: {dtype: [f32, bf16], threads: [1, max], min-time: 0.2s, seed: 5}\n"
                               "sweeps:\n"
                               "  - name: one\n"
                               "    source: a paper\n"
                               "    S: 128-512x2\n"
                               "    H: [1, 4-8+4, 2k]\n"
                               "    bias: [true, false]\n"
                               "    place: [\"0,2-5\", compact]\n"
                               "  - window: 128\n"
                               "  - {rule: [additive, matmul], hidden: [32, 64], plain-sum: true, M: 16-64x2, "
                               "semantics: [matmul, dot]}\n";
    struct config config;
    struct error error;
    write_bytes(text, strlen(text));
    if (config_read(path, &config, &error))
        fail_msg("%s", error.text);
    assert_string_equal(config.name, "trial");
    assert_string_equal(config.description, "two sweeps: both small");
    assert_int_equal(config.defaults.lists[KEY_DTYPE].count, 2);
    assert_int_equal(config.defaults.lists[KEY_SEED].items[0].integer, 5);
    assert_int_equal(config.sweep_count, 3);
    assert_string_equal(config.sweeps[0].name, "one");
    assert_string_equal(config.sweeps[0].source, "a paper");
    const struct value_list *heads = &config.sweeps[0].values.lists[KEY_H];
    assert_int_equal(heads->count, 4);
    assert_int_equal(heads->items[3].integer, 2048);
    assert_int_equal(config.sweeps[0].values.lists[KEY_S].count, 3);
    assert_int_equal(config.sweeps[0].values.lists[KEY_PLACE].count, 2);
    assert_string_equal(config.sweeps[0].values.lists[KEY_PLACE].items[0].text, "0,2-5");
    assert_int_equal(config.sweeps[1].values.lists[KEY_WINDOW].items[0].integer, 128);
    assert_null(config.sweeps[1].name);
    const struct key_values *rules = &config.sweeps[2].values;
    assert_true(rules->lists[KEY_RULE].count == 2 && rules->lists[KEY_RULE].items[1].integer == ATTN_MATMUL);
    assert_true(rules->lists[KEY_HIDDEN].count == 2 && rules->lists[KEY_M].count == 3);
    assert_true(rules->lists[KEY_PLAIN_SUM].items[0].integer == 1);
    assert_true(rules->lists[KEY_SEMANTICS].items[1].integer == SEMANTICS_DOT);
    config_release(&config);
}

static void unknown_and_duplicate_keys(void **state)
{
    (void)state;
    refuse("name: x\nsweeps:\n  - name: y\n    fooo: 3\n", ":4:5: unknown key 'fooo'");
    refuse("name: x\nfooo: 3\n", ":2:1: unknown key 'fooo'");
    refuse("defaults: {B: 1, name: y}\nsweeps: [{S: 1}]\n", ":1:18: unknown key 'name'");
    refuse("sweeps:\n  - S: 1\n    B: 2\n    S: 3\n", ":4:5: duplicate key 'S'");
    refuse("name: x\nname: y\nsweeps: [{S: 1}]\n", ":2:1: duplicate key 'name'");
    refuse("sweeps:\n  - <<: {S: 1}\n", ":2:5: unknown key '<<'");
    refuse("sweeps:\n  - ? [S]\n    : 1\n", ":2:7: a key is a name");
    refuse("sweeps:\n  - min-time: 1s\n", ":2:5: key 'min-time' holds for the whole run");
    refuse("sweeps:\n  - config: quick\n", ":2:5: unknown key 'config'");
}

static void wrong_types_and_values(void **state)
{
    (void)state;
    refuse("sweeps:\n  - S: {a: 1}\n", ":2:8: key 'S': expected a value, found a mapping");
    refuse("sweeps:\n  - S: [[1]]\n", ":2:9: key 'S': expected a value, found a list");
    refuse("sweeps:\n  - S: []\n", ":2:8: key 'S': an empty list");
    refuse("sweeps:\n  - S:\n    H: 2\n", ": key 'S': has no value");
    refuse("sweeps:\n  - S: [16, many]\n", ":2:13: key 'S': 'many' is not a whole number");
    refuse("sweeps:\n  - S: -4\n", ":2:8: key 'S': '-4'");
    refuse("sweeps:\n  - H: 0\n", ":2:8: key 'H': '0' is less than 1");
    refuse("sweeps:\n  - bias: yes\n", ":2:11: key 'bias': 'yes' is neither true nor false");
    refuse("sweeps:\n  - dtype: f13\n", ":2:12: key 'dtype': 'f13' is not one of");
    refuse("sweeps:\n  - model: bort\n", "'bort'");
    refuse("sweeps:\n  - rule: subtractive\n", ":2:11: key 'rule': 'subtractive' is not a rule");
    refuse("sweeps:\n  - hidden: 0\n", ":2:13: key 'hidden': '0' is less than 1");
    refuse("sweeps:\n  - M: many\n", ":2:8: key 'M': 'many'");
    refuse("sweeps:\n  - combine: 3\n", ":2:14: key 'combine': '3' is neither true nor false");
    refuse("sweeps:\n  - broadcast: c\n", ":2:16: key 'broadcast': 'c' is not one of none,a,b");
    refuse("sweeps:\n  - semantics: einsum\n", ":2:16: key 'semantics': 'einsum' is not one of matmul,dot");
    refuse("name: [x]\nsweeps: [{S: 1}]\n", ":1:7: key 'name': expected a value, found a list");
    refuse("defaults: [1]\nsweeps: [{S: 1}]\n", ":1:11: key 'defaults': expected a mapping");
    refuse("defaults: {seed: [1]}\nsweeps: [{S: 1}]\n", ":1:18: key 'seed': takes one value");
    refuse("sweeps: {S: 1}\n", ":1:9: key 'sweeps': expected a list");
    refuse("sweeps: []\n", ":1:9: key 'sweeps': an empty list");
    refuse("sweeps: [S]\n", ":1:10: a sweep: expected a mapping");
    refuse("name: x\n", "key 'sweeps' is missing");
    refuse("[1, 2]\n", ":1:1: expected a mapping");
}

static void not_one_yaml_document(void **state)
{
    (void)state;
    refuse("", "an empty file");
    refuse("# nothing\n", "an empty file");
    refuse("name: [unclosed\n", ":2:1: ");
    refuse("a: b: c\n", ":1:5: ");
    refuse("sweeps: [{S: 1}]\n---\nname: y\n", ":3:1: a second document");
    refuse("sweeps: [{S: 1}]\n--- [\n", ":3:1: ");
    refuse("sweeps: &all\n  - *all\n", "aliases are not understood");
    refuse("defaults: &d {S: 1}\nsweeps: [*d]\n", "aliases are not understood");
    refuse("sweeps: [{S: *nobody}]\n", ":1:14: ");
    refuse("sweeps: [{S: \"1\\0\"}]\n", "a NUL byte");
    refuse_bytes("name: \xff\xfe\n", 9, "byte");
}

static void files_that_cannot_be_read(void **state)
{
    (void)state;
    struct config config;
    struct error error = {0};
    assert_int_not_equal(config_read("/nonexistent/x.yaml", &config, &error), 0);
    assert_int_equal(error.exit_code, EXIT_USAGE);
    assert_non_null(strstr(error.text, "/nonexistent/x.yaml"));
    assert_int_not_equal(config_read("/", &config, &error), 0);
    assert_int_equal(error.exit_code, EXIT_USAGE);
}

static void configs_are_found(void **state)
{
    (void)state;
    struct error error = {0};
    assert_non_null(config_find("quick", &error));
    assert_string_equal(config_find("some/file", &error), "some/file");
    assert_string_equal(config_find("file.yaml", &error), "file.yaml");
    assert_null(config_find("frobnicate", &error));
    assert_non_null(strstr(error.text, "'frobnicate'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_config_reads),
        cmocka_unit_test(unknown_and_duplicate_keys),
        cmocka_unit_test(wrong_types_and_values),
        cmocka_unit_test(not_one_yaml_document),
        cmocka_unit_test(files_that_cannot_be_read),
        cmocka_unit_test(configs_are_found),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
