/* SPDX-License-Identifier: Apache-2.0
 *
 * Case folders of matmul: operands of any rank, by numpy's rules for matmul and dot written out index by index, give
 * strided problems whose products stand in the order of the expected array; what does not fit is named.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/case_folder.h"
#include "harness/fill.h"
#include "harness/npy.h"

enum { MOST = 4096 };

static char directory[] = P_tmpdir "/attnbench-matmul-XXXXXX";
static char a_path[sizeof directory + 16], b_path[sizeof directory + 16], out_path[sizeof directory + 16];
static char json_path[sizeof directory + 16];

static int make_directory(void **state)
{
    (void)state;
    if (!mkdtemp(directory))
        return -1;
    snprintf(a_path, sizeof a_path, "%s/a.npy", directory);
    snprintf(b_path, sizeof b_path, "%s/b.npy", directory);
    snprintf(out_path, sizeof out_path, "%s/out.npy", directory);
    snprintf(json_path, sizeof json_path, "%s/case.json", directory);
    return 0;
}

static int remove_directory(void **state)
{
    (void)state;
    unlink(a_path);
    unlink(b_path);
    unlink(out_path);
    unlink(json_path);
    return rmdir(directory);
}

struct array {
    int rank;
    int64_t shape[NPY_MAX_RANK];
    double data[MOST];
};

static int64_t count_of(const struct array *array)
{
    int64_t count = 1;
    for (int d = 0; d < array->rank; d++)
        count *= array->shape[d];
    assert_true(count <= MOST);
    return count;
}

/* "2,1,3,4" as a shape; "" is a single number. */
static void shape_from(const char *text, struct array *array)
{
    array->rank = 0;
    while (*text) {
        char *end;
        array->shape[array->rank++] = strtoll(text, &end, 10);
        text = *end ? end + 1 : end;
    }
}

static void fill(struct array *array, enum fill_tensor which)
{
    int64_t count = count_of(array);
    for (int64_t i = 0; i < count; i++)
        array->data[i] = fill_normal(fill_bits(3, 0, which, (uint64_t)i));
}

/* The element of a whose index is the product's, aligned at the last leading dimension, broadcast where it is 1. */
static double element(const struct array *array, const int64_t *leading, int dims, int64_t row, int64_t column)
{
    int64_t at = 0;
    for (int d = 0; d < array->rank - 2; d++) {
        int64_t index = leading[dims - (array->rank - 2) + d];
        at = at * array->shape[d] + (array->shape[d] == 1 ? 0 : index);
    }
    return array->data[(at * array->shape[array->rank - 2] + row) * array->shape[array->rank - 1] + column];
}

/* numpy.matmul, numpy.dot: an operand of one dimension is a row or a column whose dimension the product has not. */
static void multiply(struct array a, struct array b, bool dot, struct array *out)
{
    const bool row = a.rank == 1, column = b.rank == 1;
    int64_t leading[2 * NPY_MAX_RANK] = {0}, own[2 * NPY_MAX_RANK] = {0}, at = 0, total = 1;
    if (row) {
        a.shape[1] = a.shape[0];
        a.shape[0] = 1;
        a.rank = 2;
    }
    if (column) {
        b.shape[1] = 1;
        b.rank = 2;
    }
    const int a_dims = a.rank - 2, b_dims = b.rank - 2;
    const int64_t M = a.shape[a.rank - 2], K = a.shape[a.rank - 1], N = b.shape[b.rank - 1];
    const int dims = dot ? a_dims + 1 + b_dims : a_dims > b_dims ? a_dims : b_dims;
    for (int d = 0; d < dims; d++) {
        int64_t in_a = d - (dims - a_dims) >= 0 ? a.shape[d - (dims - a_dims)] : 1;
        int64_t in_b = d - (dims - b_dims) >= 0 ? b.shape[d - (dims - b_dims)] : 1;
        own[d] = in_a == 1 ? in_b : in_a;
    }
    for (int d = 0; dot && d < dims; d++) /* leading dimensions of a, its rows, leading dimensions of b */
        own[d] = d < a_dims ? a.shape[d] : d == a_dims ? M : b.shape[d - a_dims - 1];
    for (int d = 0; d < dims; d++)
        total *= own[d];
    for (int64_t i = 0; i < total; i++) {
        for (int64_t m = 0; m < (dot ? 1 : M); m++)
            for (int64_t n = 0; n < N; n++) {
                double sum = 0;
                for (int64_t k = 0; k < K; k++)
                    sum += dot ? element(&a, leading, a_dims, leading[a_dims], k) *
                                     element(&b, leading + a_dims + 1, b_dims, k, n)
                               : element(&a, leading, dims, m, k) * element(&b, leading, dims, k, n);
                out->data[at++] = sum;
            }
        for (int d = dims - 1; d >= 0 && ++leading[d] == own[d]; d--)
            leading[d] = 0;
    }
    out->rank = 0;
    for (int d = 0; d < dims; d++)
        if (!(dot && row && d == a_dims))
            out->shape[out->rank++] = own[d];
    if (!dot && !row)
        out->shape[out->rank++] = M;
    if (!column)
        out->shape[out->rank++] = N;
}

static void write_case(const struct array *a, const struct array *b, const struct array *out, bool dot)
{
    struct error error;
    FILE *file = fopen(json_path, "w");
    assert_non_null(file);
    fprintf(file,
            "{\"rule\": \"matmul\", \"semantics\": \"%s\", \"inputs\": {\"a\": \"a.npy\", \"b\": {\"file\": "
            "\"b.npy\"}}, \"expect\": {\"out\": \"out.npy\"}}",
            dot ? "dot" : "matmul");
    fclose(file);
    assert_int_equal(npy_write(a_path, NPY_FLOAT64, a->rank, a->shape, a->data, &error), 0);
    assert_int_equal(npy_write(b_path, NPY_FLOAT64, b->rank, b->shape, b->data, &error), 0);
    assert_int_equal(npy_write(out_path, NPY_FLOAT64, out->rank, out->shape, out->data, &error), 0);
}

/* Where an element of the product is to be written, counted from the first. */
static int64_t place_of(const struct attn_tensor *out, int64_t b, int64_t h, int64_t m, int64_t n)
{
    return b * out->stride[0] + h * out->stride[1] + m * out->stride[2] + n;
}

static float at(const struct attn_tensor *tensor, int64_t b, int64_t h, int64_t row, int64_t column)
{
    return ((const float *)tensor->data)[place_of(tensor, b, h, row, column)];
}

/* The problem that a kernel would see, multiplied by loops, is the array that numpy would write. */
static void check(const char *a_shape, const char *b_shape, bool dot, int64_t B, int64_t H)
{
    static struct array a, b, out;
    struct case_folder folder;
    struct error error = {0};
    shape_from(a_shape, &a);
    shape_from(b_shape, &b);
    fill(&a, FILL_Q);
    fill(&b, FILL_K);
    multiply(a, b, dot, &out);
    write_case(&a, &b, &out, dot);
    if (case_folder_read(directory, &folder, &error))
        fail_msg("%s by %s: %s", a_shape, b_shape, error.text);
    const struct attn_problem *p = &folder.operands.problem;
    const struct attn_args *args = &folder.operands.args;
    if (p->B != B || p->H != H || p->H_kv != H || p->S_kv != p->D_v)
        fail_msg("%s by %s: B %d H %d", a_shape, b_shape, (int)p->B, (int)p->H);
    const double *expected = folder.expect_out;
    int64_t count = 0;
    for (int64_t i = 0; i < p->B; i++)
        for (int64_t h = 0; h < p->H; h++)
            for (int64_t m = 0; m < p->S_q; m++)
                for (int64_t n = 0; n < p->D_v; n++, count++) {
                    double sum = 0;
                    for (int64_t k = 0; k < p->D; k++)
                        sum += (double)at(&args->q, i, h, m, k) * at(&args->k, i, h, k, n);
                    double numpy = out.data[place_of(&args->out, i, h, m, n)];
                    if (fabs(sum - numpy) > 1e-5 || expected[count] != numpy)
                        fail_msg("%s by %s, %d: %g, numpy %g, expected %g", a_shape, b_shape, (int)count, sum, numpy,
                                 expected[count]);
                }
    assert_int_equal(count, count_of(&out));
    assert_int_equal(folder.operands.out.bytes, (size_t)count * sizeof(float));
    case_folder_release(&folder);
}

static void leading_dimensions_broadcast(void **state)
{
    (void)state;
    check("7,9", "9,3", false, 1, 1);
    check("10,3,4", "10,4,5", false, 10, 1);
    check("2,3,3,4", "2,3,4,5", false, 6, 1);
    check("3,4", "2,3,4,5", false, 6, 1);
    check("2,3,3,4", "4,5", false, 6, 1);
    check("2,1,3,4", "5,4,6", false, 2, 5);
    check("2,1,1,3,4", "2,5,6,4,2", false, 2, 30);
    check("2,3,1,4,5", "2,3,2,5,6", false, 6, 2);
    check("1,1,4,5", "1,5,6", false, 1, 1);
    check("3,1,4,5", "1,1,5,6", false, 3, 1);
}

static void what_two_batch_dimensions_cannot_tell_is_written_out(void **state)
{
    (void)state;
    check("2,1,3,1,2,4", "1,2,1,3,4,3", false, 36, 1);
    check("2,1,3,4,5", "7,1,5,2", false, 42, 1);
    check("3,2,2,1,3,4", "1,2,2,4,2", false, 24, 1);
}

static void vectors_lend_the_product_no_dimension(void **state)
{
    (void)state;
    check("7", "7", false, 1, 1);
    check("4", "2,4,5", false, 2, 1);
    check("3,4", "4", false, 1, 1);
    check("2,3,4", "4", false, 2, 1);
    check("4", "4,5", false, 1, 1);
}

static void dot_crosses_what_matmul_broadcasts(void **state)
{
    (void)state;
    check("2,3,4", "5,4,6", true, 1, 5);
    check("2,2,3,4", "2,3,4,2", true, 1, 6);
    check("3,4", "4,5", true, 1, 1);
    check("4", "2,4,5", true, 1, 2);
    check("2,3,4", "4", true, 1, 1);
    check("4", "4", true, 1, 1);
}

static void empty_products_are_legal(void **state)
{
    (void)state;
    check("0,3,4", "4,5", false, 0, 1);
    check("2,0,4", "4,5", false, 2, 1);
    check("2,3,4", "0,4,5", true, 0, 1);
    check("2,1,3,4", "0,4,5", false, 0, 1);
}

static void refuse(const char *a_shape, const char *b_shape, const char *out_shape, const char *part)
{
    static struct array a, b, out;
    struct case_folder folder;
    struct error error = {0};
    shape_from(a_shape, &a);
    shape_from(b_shape, &b);
    shape_from(out_shape, &out);
    write_case(&a, &b, &out, false);
    assert_int_not_equal(case_folder_read(directory, &folder, &error), 0);
    assert_int_equal(error.exit_code, EXIT_USAGE);
    if (!strstr(error.text, part) || strchr(error.text, '\n') || !strstr(error.text, json_path))
        fail_msg("'%s' should hold '%s'", error.text, part);
}

static void shapes_that_do_not_fit_are_named(void **state)
{
    (void)state;
    refuse("2,3", "4,5", "2,5", "inputs.a (2, 3) and inputs.b (4, 5): columns of a are not rows of b");
    refuse("2,3,4", "3,4,5", "3,3,5", "leading dimensions do not broadcast");
    refuse("", "4,5", "5", "a matmul of a single number");
    refuse("2,3", "3,4", "2,3", "expect.out has shape (2, 3), the product of a and b has (2, 4)");
    refuse("2,0", "0,3", "2,3", "K 0 is less than 1");
    refuse("2,3", "3,0", "2,0", "N 0 is less than 1");
    struct case_folder folder;
    struct error error = {0};
    FILE *file = fopen(json_path, "w");
    assert_non_null(file);
    fputs("{\"rule\": \"matmul\", \"inputs\": {\"a\": \"a.npy\"}}", file);
    fclose(file);
    assert_int_not_equal(case_folder_read(directory, &folder, &error), 0);
    assert_non_null(strstr(error.text, "key 'inputs.b' is missing"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leading_dimensions_broadcast),
        cmocka_unit_test(what_two_batch_dimensions_cannot_tell_is_written_out),
        cmocka_unit_test(vectors_lend_the_product_no_dimension),
        cmocka_unit_test(dot_crosses_what_matmul_broadcasts),
        cmocka_unit_test(empty_products_are_legal),
        cmocka_unit_test(shapes_that_do_not_fit_are_named),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
