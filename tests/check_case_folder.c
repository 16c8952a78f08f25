/* SPDX-License-Identifier: Apache-2.0
 *
 * Case folders: what is written is read back to the same problem, and whatever is wrong with case.json or an array
 * gives a one-line error that names it.
 */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "harness/case_folder.h"
#include "harness/fill.h"
#include "harness/intern.h"
#include "harness/npy.h"

static char directory[] = P_tmpdir "/attnbench-case-XXXXXX";
static char folder_path[sizeof directory + 8], json_path[sizeof folder_path + 16];

static int make_directory(void **state)
{
    (void)state;
    if (!mkdtemp(directory))
        return -1;
    snprintf(folder_path, sizeof folder_path, "%s/case", directory);
    snprintf(json_path, sizeof json_path, "%s/case.json", folder_path);
    return 0;
}

static int remove_directory(void **state)
{
    (void)state;
    DIR *folder = opendir(folder_path);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char path[400];
        snprintf(path, sizeof path, "%s/%s", folder_path, entry->d_name);
        unlink(path);
    }
    if (folder)
        closedir(folder);
    rmdir(folder_path);
    return rmdir(directory);
}

static struct problem_spec small(void)
{
    struct problem_spec spec = spec_default();
    spec.B = 2;
    spec.H = 4;
    spec.H_kv = 2;
    spec.S_q = 5;
    spec.S_kv = 7;
    spec.D = 6;
    spec.D_v = 3;
    return spec;
}

static void write_case(const struct problem_spec *spec)
{
    struct operands operands;
    struct error error;
    assert_int_equal(operands_create(spec, MEMORY_PLAIN, &operands, &error), 0);
    operands_fill(&operands, 1, 1);
    if (case_folder_write(folder_path, &operands, "a note", &error) < 0)
        fail_msg("%s", error.text);
    operands_destroy(&operands);
}

static void assert_same_block(const struct memory_block *a, const struct memory_block *b)
{
    assert_int_equal(a->bytes, b->bytes);
    if (a->bytes)
        assert_memory_equal(a->data, b->data, a->bytes);
}

static void assert_reads_back(const struct problem_spec *spec)
{
    struct operands operands;
    struct case_folder folder;
    struct error error;
    write_case(spec);
    if (case_folder_read(folder_path, &folder, &error) < 0)
        fail_msg("%s", error.text);
    assert_int_equal(operands_create(spec, MEMORY_PLAIN, &operands, &error), 0);
    operands_fill(&operands, 1, 1);
    assert_same_block(&operands.q, &folder.operands.q);
    assert_same_block(&operands.k, &folder.operands.k);
    if (spec->alias == ALIAS_NONE)
        assert_same_block(&operands.v, &folder.operands.v);
    assert_same_block(&operands.bias, &folder.operands.bias);
    assert_same_block(&operands.mask, &folder.operands.mask);
    const struct attn_problem *a = &operands.problem, *b = &folder.operands.problem;
    assert_true(a->left == b->left && a->right == b->right && a->scale == b->scale && a->softcap == b->softcap);
    assert_true(a->dtype == b->dtype && a->D_v == b->D_v && a->H_kv == b->H_kv);
    for (int64_t i = 0; i < spec->B; i++) {
        assert_int_equal(a->kv_len ? a->kv_len[i] : a->S_kv, b->kv_len ? b->kv_len[i] : b->S_kv);
        assert_int_equal(a->diag ? a->diag[i] : 0, b->diag ? b->diag[i] : 0);
    }
    assert_int_equal(folder.operands.spec.layout, spec->layout);
    assert_memory_equal(operands.args.mask.stride, folder.operands.args.mask.stride, 4 * sizeof(int64_t));
    assert_memory_equal(operands.args.q.stride, folder.operands.args.q.stride, 4 * sizeof(int64_t));
    assert_string_equal(folder.name, "case");
    assert_non_null(folder.expect_out);
    assert_int_equal(folder.expect_weights != NULL, spec->weights);
    case_folder_release(&folder);
    operands_destroy(&operands);
}

static void what_is_written_is_read_back(void **state)
{
    (void)state;
    struct problem_spec spec = small();
    for (int dtype = ATTN_F32; dtype <= ATTN_F16; dtype++)
        for (int layout = LAYOUT_BHSD; layout <= LAYOUT_HBSD; layout++) {
            spec.dtype = (enum attn_dtype)dtype;
            spec.layout = (enum layout)layout;
            assert_reads_back(&spec);
        }
    spec.mask_share = 0.5;
    spec.bias = true;
    spec.weights = true;
    spec.softcap = 30;
    spec.scale = 0.3;
    spec.kv_lengths = intern("ragged");
    spec.causal = CAUSAL_BOTTOM_RIGHT_VALID;
    spec.window = true;
    spec.window_left = 3;
    spec.window_right = WINDOW_NOT_GIVEN;
    assert_reads_back(&spec);
    spec = small();
    spec.window = true;
    spec.window_left = WINDOW_OPEN;
    spec.window_right = 2;
    assert_reads_back(&spec);
    spec.S_q = 0;
    assert_reads_back(&spec);
    spec.S_q = 5;
    spec.B = 0;
    assert_reads_back(&spec);
    spec = small();
    spec.alias = ALIAS_KV;
    spec.D_v = spec.D;
    assert_reads_back(&spec);
}

/* The expectations written are in [B][H] order again when read, whatever the layout of the files. */
static void expectations_do_not_depend_on_the_layout(void **state)
{
    (void)state;
    struct problem_spec spec = small();
    struct case_folder first, other;
    struct error error;
    write_case(&spec);
    assert_int_equal(case_folder_read(folder_path, &first, &error), 0);
    spec.layout = LAYOUT_HBSD;
    write_case(&spec);
    assert_int_equal(case_folder_read(folder_path, &other, &error), 0);
    assert_memory_equal(first.expect_out, other.expect_out, 2 * 4 * 5 * 3 * sizeof(double));
    case_folder_release(&first);
    case_folder_release(&other);
}

static void broadcast_masks_and_biases_are_taken_as_they_are(void **state)
{
    (void)state;
    struct problem_spec spec = small();
    spec.mask_share = 0.5;
    spec.bias = true;
    write_case(&spec);
    const int64_t mask_shape[4] = {1, 4, 1, 7}, bias_shape[4] = {2, 1, 5, 1};
    uint8_t mask[28] = {1, 0, 1};
    double bias[10] = {0.5, -INFINITY, 0.25};
    char path[100];
    struct case_folder folder;
    struct error error;
    snprintf(path, sizeof path, "%s/mask.npy", folder_path);
    assert_int_equal(npy_write(path, NPY_UINT8, 4, mask_shape, mask, &error), 0);
    snprintf(path, sizeof path, "%s/bias.npy", folder_path);
    assert_int_equal(npy_write(path, NPY_FLOAT64, 4, bias_shape, bias, &error), 0);
    assert_int_equal(case_folder_read(folder_path, &folder, &error), 0);
    const int64_t mask_stride[4] = {0, 7, 0, 1}, bias_stride[4] = {35, 0, 7, 1}, size[4] = {2, 4, 5, 7};
    assert_memory_equal(folder.operands.args.mask.stride, mask_stride, sizeof mask_stride);
    assert_memory_equal(folder.operands.args.bias.stride, bias_stride, sizeof bias_stride);
    assert_memory_equal(folder.operands.args.mask.size, size, sizeof size);
    assert_memory_equal(folder.operands.mask.data, mask, sizeof mask);
    assert_true(((float *)folder.operands.bias.data)[6] == 0.5f &&
                ((float *)folder.operands.bias.data)[7] == -INFINITY);
    case_folder_release(&folder);
}

static void expect_error(int code, const char *needle)
{
    struct case_folder folder;
    struct error error = {0};
    int got = case_folder_read(folder_path, &folder, &error);
    if (got != code || !strstr(error.text, needle) || !strstr(error.text, folder_path) || strchr(error.text, '\n'))
        fail_msg("%d '%s' is not %d with '%s'", got, error.text, code, needle);
    assert_int_equal(error.exit_code, code == -ENOTSUP ? EXIT_NOTHING_RAN : EXIT_USAGE);
    case_folder_release(&folder);
}

/* case.json of a sound case with one key replaced (value NULL: removed). */
static void with_key(const char *key, const char *value, int code, const char *needle)
{
    struct problem_spec spec = small();
    json_error_t problem;
    write_case(&spec);
    json_t *root = json_load_file(json_path, 0, &problem);
    assert_non_null(root);
    if (value)
        json_object_set_new(root, key, json_loads(value, JSON_DECODE_ANY, &problem));
    else
        json_object_del(root, key);
    assert_int_equal(json_dump_file(root, json_path, 0), 0);
    json_decref(root);
    expect_error(code, needle);
}

static void errors_name_the_key_and_what_is_wrong(void **state)
{
    (void)state;
    static const char *const required[] = {"rule", "batch", "heads", "q_len", "kv_len", "head_dim"};
    for (size_t k = 0; k < sizeof required / sizeof required[0]; k++) {
        char needle[64];
        snprintf(needle, sizeof needle, "key '%s' is missing", required[k]);
        with_key(required[k], NULL, -EINVAL, needle);
        snprintf(needle, sizeof needle, "key '%s' is a list", required[k]);
        with_key(required[k], "[1]", -EINVAL, needle);
    }
    with_key("rule", "\"concat\"", -EINVAL, "key 'query_dim' is missing");
    with_key("layout", "\"BSD\"", -EINVAL, "layout BSD has no heads, but key 'heads' is 4");
    with_key("rule", "\"magic\"", -EINVAL, "magic");
    with_key("batch", "-1", -EINVAL, "-1");
    with_key("batch", "1.5", -EINVAL, "'batch' is a number with a fraction");
    with_key("heads", "0", -EINVAL, "H 0");
    with_key("kv_heads", "3", -EINVAL, "multiple");
    with_key("scale", "\"big\"", -EINVAL, "'scale' is a string");
    with_key("softcap", "-2", -EINVAL, "softcap");
    with_key("causal", "\"diagonal\"", -EINVAL, "diagonal");
    with_key("layout", "\"DSHB\"", -EINVAL, "DSHB");
    with_key("window", "[1,2,3]", -EINVAL, "'window'");
    with_key("window", "[1,\"x\"]", -EINVAL, "'window'");
    with_key("window", "[1,-2]", -EINVAL, "-2");
    with_key("window", "4", -EINVAL, "needs causal");
    with_key("window", "true", -EINVAL, "'window' is true or false");
    with_key("kv_lengths", "[1]", -EINVAL, "1 numbers for batch 2");
    with_key("kv_lengths", "[1,\"x\"]", -EINVAL, "'kv_lengths' is a string");
    with_key("kv_lengths", "[1,-3]", -EINVAL, "kv-lengths");
    with_key("kv_lengths", "[1,8]", -EINVAL, "kv-lengths");
    with_key("kv_lengths", "{}", -EINVAL, "'kv_lengths' is an object");
    with_key("inputs", NULL, -EINVAL, "'inputs.q' is missing");
    with_key("inputs", "[]", -EINVAL, "'inputs' is a list");
    with_key("inputs", "{\"q\":{}}", -EINVAL, "'inputs.q.file' is missing");
    with_key("inputs", "{\"q\":7}", -EINVAL, "'inputs.q' is an integer");
    with_key("inputs", "{\"q\":\"no.npy\"}", -ENOENT, "no.npy");
    with_key("inputs", "{\"q\":\"case.json\"}", -EINVAL, "case.json: not a .npy");
    with_key("inputs", "{\"q\":\"q.npy\",\"k\":\"k.npy\",\"v\":\"v.npy\",\"mask\":\"q.npy\"}", -EINVAL, "needs bool");
    with_key("q_len", "6", -EINVAL, "shape (2, 4, 5, 6), case.json says (2, 4, 6, 6)");
    with_key("q_len", "1000000000000000000", -EINVAL, "larger");
    with_key("layout", "\"BSHD\"", -EINVAL, "q.npy: shape (2, 4, 5, 6), case.json says (2, 5, 4, 6)");
    with_key("expect", "{\"out\":\"q.npy\"}", -EINVAL, "q.npy: shape");
}

static void any_json_is_survived(void **state)
{
    (void)state;
    struct problem_spec spec = small();
    write_case(&spec);
    FILE *file = fopen(json_path, "rb");
    assert_non_null(file);
    char good[8192], bytes[8192];
    size_t size = fread(good, 1, sizeof good, file);
    fclose(file);
    int refused = 0;
    for (int round = 0; round < 1500; round++) {
        struct case_folder folder;
        struct error error = {0};
        size_t length = round % 3 ? size : fill_bits(1, 0, FILL_Q, (uint64_t)round) % size;
        memcpy(bytes, good, size);
        for (uint64_t n = 0; round % 3 && n <= (uint64_t)round % 5; n++) {
            uint64_t random = fill_bits(4, (uint32_t)round, FILL_K, n);
            /* Half of the changes keep it JSON more often: a digit for a digit. */
            char *c = &bytes[random % size];
            *c = *c >= '0' && *c <= '9' ? (char)('0' + (random >> 40) % 10) : (char)(random >> 32);
        }
        file = fopen(json_path, "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(bytes, 1, length, file), length);
        fclose(file);
        if (case_folder_read(folder_path, &folder, &error) < 0) {
            refused++;
            assert_true(error.text[0] != '\0' && !strchr(error.text, '\n'));
        }
        case_folder_release(&folder);
    }
    assert_true(refused > 750);
    static const char *const whole[] = {"", "[]", "7", "null", "{", "{}", "{\"rule\":\"scaled_dot_product\"}"};
    for (size_t w = 0; w < sizeof whole / sizeof whole[0]; w++) {
        file = fopen(json_path, "wb");
        assert_non_null(file);
        fputs(whole[w], file);
        fclose(file);
        expect_error(-EINVAL, "case.json");
    }
    unlink(json_path);
    expect_error(-EINVAL, "case.json");
}

static void unwritable_folders_are_errors(void **state)
{
    (void)state;
    struct problem_spec spec = small();
    struct operands operands;
    struct error error = {0};
    assert_int_equal(operands_create(&spec, MEMORY_PLAIN, &operands, &error), 0);
    operands_fill(&operands, 0, 1);
    assert_true(case_folder_write("/nonexistent/x", &operands, "", &error) < 0);
    assert_non_null(strstr(error.text, "/nonexistent/x"));
    assert_int_equal(error.exit_code, EXIT_UNWRITTEN);
    operands_destroy(&operands);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(expectations_do_not_depend_on_the_layout),
        cmocka_unit_test(broadcast_masks_and_biases_are_taken_as_they_are),
        cmocka_unit_test(errors_name_the_key_and_what_is_wrong),
        cmocka_unit_test(any_json_is_survived),
        cmocka_unit_test(unwritable_folders_are_errors),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
