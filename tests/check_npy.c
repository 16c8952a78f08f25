/* SPDX-License-Identifier: Apache-2.0
 *
 * .npy files: what is written is read back, what numpy may write is understood, and any other bytes give a one-line
 * error.
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

#include "harness/fill.h"
#include "harness/npy.h"

static char directory[] = P_tmpdir "/attnbench-npy-XXXXXX", path[sizeof directory + 8];

static int make_directory(void **state)
{
    (void)state;
    if (!mkdtemp(directory))
        return -1;
    snprintf(path, sizeof path, "%s/a.npy", directory);
    return 0;
}

static int remove_directory(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(directory);
}

static void write_bytes(const void *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

/* A version 1 file with this header text and so many zero bytes of data. */
static void write_file(const char *header, size_t data)
{
    unsigned char bytes[4096] = "\x93NUMPY\x01";
    size_t length = strlen(header);
    assert_true(10 + length + data <= sizeof bytes);
    bytes[8] = (unsigned char)(length & 0xff);
    bytes[9] = (unsigned char)(length >> 8);
    snprintf((char *)bytes + 10, sizeof bytes - 10, "%s", header);
    write_bytes(bytes, 10 + length + data);
}

static void what_is_written_is_read_back(void **state)
{
    (void)state;
    const struct {
        enum npy_type type;
        int rank;
        int64_t shape[4];
    } cases[] = {
        {NPY_FLOAT32, 4, {2, 3, 5, 7}}, {NPY_FLOAT64, 1, {11}}, {NPY_BOOL, 2, {4, 4}},
        {NPY_UINT8, 3, {1, 2, 3}},      {NPY_INT8, 0, {0}},     {NPY_FLOAT32, 4, {2, 0, 5, 7}},
    };
    unsigned char data[2048];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(fill_bits(3, 0, FILL_Q, i) & 1);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct npy array;
        struct error error;
        assert_int_equal(npy_write(path, cases[c].type, cases[c].rank, cases[c].shape, data, &error), 0);
        assert_int_equal(npy_read(path, &array, &error), 0);
        int64_t count = 1;
        for (int i = 0; i < cases[c].rank; i++)
            count *= cases[c].shape[i];
        assert_int_equal(array.type, cases[c].type);
        assert_int_equal(array.rank, cases[c].rank);
        assert_int_equal(array.count, count);
        assert_memory_equal(array.shape, cases[c].shape, (size_t)cases[c].rank * sizeof(int64_t));
        assert_memory_equal(array.data, data, (size_t)count * npy_element_bytes(array.type));
        npy_release(&array);
    }
}

static void headers_that_numpy_may_write_are_understood(void **state)
{
    (void)state;
    static const char *const headers[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }      \n",
        "{\"shape\":(2,3),\"fortran_order\":False,\"descr\":\"<f4\"}\n",
        "{'fortran_order': False,\n 'shape': (2, 3,), 'descr': '=f4'}",
    };
    struct npy array;
    struct error error;
    for (size_t h = 0; h < sizeof headers / sizeof headers[0]; h++) {
        write_file(headers[h], 24);
        assert_int_equal(npy_read(path, &array, &error), 0);
        assert_int_equal(array.count, 6);
        npy_release(&array);
    }
    /* Version 2 has a 4-byte length. */
    unsigned char two[128] = "\x93NUMPY\x02";
    const char *header = "{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }\n";
    two[8] = (unsigned char)strlen(header);
    snprintf((char *)two + 12, sizeof two - 12, "%s", header);
    write_bytes(two, 12 + strlen(header) + 3);
    assert_int_equal(npy_read(path, &array, &error), 0);
    assert_int_equal(array.type, NPY_BOOL);
    npy_release(&array);
}

static void expect_error(const char *needle)
{
    struct npy array;
    struct error error = {0};
    assert_int_equal(npy_read(path, &array, &error), -EINVAL);
    assert_int_equal(error.exit_code, EXIT_USAGE);
    assert_null(array.data);
    if (!strstr(error.text, needle) || !strstr(error.text, path) || strchr(error.text, '\n'))
        fail_msg("'%s' does not name the file and '%s'", error.text, needle);
}

static void errors_say_what_is_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        size_t data;
        const char *needle;
    } cases[] = {
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n", 24, "Fortran"},
        {"{'descr': '>f8', 'fortran_order': False, 'shape': (2, 3), }\n", 48, "big endian"},
        {"{'descr': '<f2', 'fortran_order': False, 'shape': (2, 3), }\n", 12, "<f2"},
        {"{'descr': '<c16', 'fortran_order': False, 'shape': (2, 3), }\n", 96, "<c16"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (2, 3), }\n", 48, "|O"},
        {"{'descr': '', 'fortran_order': False, 'shape': (2, 3), }\n", 48, "type ''"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", 23, "23 bytes"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", 25, "25 bytes"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }\n", 0, "addressed"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }\n", 0, "0 bytes"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }\n", 0, "header"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }\n", 0, "header"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }\n", 4, "header"},
        {"{'descr': '<f4', 'fortran_order': False, }\n", 4, "header"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (1,), }\n", 4, "header"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }\n", 4, "header"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } rest\n", 4, "header"},
        {"{'descr': '<f4", 0, "header"},
        {"", 0, "header"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        write_file(cases[c].header, cases[c].data);
        expect_error(cases[c].needle);
    }
    write_bytes("PK\3\4 something else", 19);
    expect_error("not a .npy");
    write_bytes("\x93NUMPY\3\0\0\0\0\0", 12);
    expect_error("version 3");
    write_bytes("\x93NUMPY\2\0\xff\xff\xff\xff", 12);
    expect_error("too long");
    write_bytes("", 0);
    expect_error("not a .npy");
    struct npy array;
    struct error error;
    assert_int_equal(npy_read("/nonexistent/x.npy", &array, &error), -ENOENT);
    assert_int_equal(error.exit_code, EXIT_USAGE);
    assert_true(npy_read(directory, &array, &error) < 0);
    assert_true(npy_write("/nonexistent/x.npy", NPY_BOOL, 0, NULL, "", &error) < 0);
    assert_non_null(strstr(error.text, "/nonexistent/x.npy"));
}

/* Reads it, and touches every byte that a successful read promises. */
static bool read_survives(void)
{
    struct npy array;
    struct error error = {0};
    if (npy_read(path, &array, &error) < 0) {
        assert_true(error.text[0] != '\0' && !strchr(error.text, '\n'));
        return false;
    }
    unsigned char sum = 0;
    for (size_t i = 0; i < (size_t)array.count * npy_element_bytes(array.type); i++)
        sum = (unsigned char)(sum + ((unsigned char *)array.data)[i]);
    (void)sum;
    npy_release(&array);
    return true;
}

static void any_bytes_are_survived(void **state)
{
    (void)state;
    const int64_t shape[4] = {2, 3, 2, 2};
    float data[24] = {0};
    unsigned char good[512] = {0}, bytes[512] = {0};
    struct error error;
    assert_int_equal(npy_write(path, NPY_FLOAT32, 4, shape, data, &error), 0);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(good, 1, sizeof good, file);
    fclose(file);
    assert_int_equal(size, 128 + sizeof data);
    for (size_t cut = 0; cut < size; cut++) {
        write_bytes(good, cut);
        assert_false(read_survives());
    }
    int refused = 0;
    for (size_t bit = 0; bit < 8 * 128; bit++) {
        memcpy(bytes, good, size);
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        write_bytes(bytes, size);
        refused += !read_survives();
    }
    assert_true(refused > 300);
    for (int round = 0; round < 2000; round++) {
        memcpy(bytes, good, size);
        for (uint64_t n = 0; n < 1 + fill_bits(9, 0, FILL_K, (uint64_t)round) % 8; n++) {
            uint64_t random = fill_bits(9, (uint32_t)round, FILL_V, n);
            bytes[random % 128] = (unsigned char)(random >> 32);
        }
        write_bytes(bytes, size - fill_bits(9, 0, FILL_BIAS, (uint64_t)round) % 64);
        read_survives();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(headers_that_numpy_may_write_are_understood),
        cmocka_unit_test(errors_say_what_is_wrong),
        cmocka_unit_test(any_bytes_are_survived),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
