/* SPDX-License-Identifier: Apache-2.0
 *
 * Case folders of matmul: shapes of any rank by the rules of numpy.matmul or numpy.dot become two batch dimensions in
 * which a and b are strided; where leading dimensions broadcast in turns that two cannot tell, the operands are written
 * out in full. See case_reader.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "case_reader.h"
#include "intern.h"

enum { LEADING = NPY_MAX_RANK };

/* What becomes of the shapes. */
struct product {
    int dims;                       /* leading dimensions of the product */
    int64_t a[LEADING], b[LEADING]; /* of each operand, 1 where it broadcasts */
    int64_t size[LEADING];          /* of the product */
    int64_t M, N, K;
    bool keeps_rows, keeps_columns; /* an operand of one dimension lends the product none */
    bool rows_first;                /* dot: out is [rows of a][matrices of b][N] */
    int groups;                     /* runs of leading dimensions in which the same operands vary */
    int64_t group[2];               /* of at most two, their sizes; and whether a and b vary there */
    bool a_varies[2], b_varies[2];
};

/* Saturates: a size that large is refused later. */
static int64_t times(int64_t x, int64_t y)
{
    int64_t product;
    return __builtin_mul_overflow(x, y, &product) ? INT64_MAX : product;
}

static int shape_error(const struct case_reader *reader, const struct npy *a, const struct npy *b, const char *why)
{
    char left[160], right[160];
    npy_shape_text(a->rank, a->shape, left, sizeof left);
    npy_shape_text(b->rank, b->shape, right, sizeof right);
    return error_usage(reader->error, "%s: inputs.a %s and inputs.b %s: %s", reader->path, left, right, why);
}

/* Last two dimensions of an operand, and how many stand before them. */
static int matrix_of(const struct npy *array, bool left, int64_t *rows, int64_t *columns)
{
    const int64_t *last = array->shape + array->rank - 1;
    *rows = array->rank > 1 ? last[-1] : left ? 1 : last[0];
    *columns = array->rank > 1 || left ? last[0] : 1;
    return array->rank > 2 ? array->rank - 2 : 0;
}

static bool broadcast(const struct npy *a, int a_dims, const struct npy *b, int b_dims, struct product *product)
{
    product->dims = a_dims > b_dims ? a_dims : b_dims;
    for (int d = 0; d < product->dims; d++) {
        const int from_a = d - (product->dims - a_dims), from_b = d - (product->dims - b_dims);
        const int64_t in_a = from_a < 0 ? 1 : a->shape[from_a], in_b = from_b < 0 ? 1 : b->shape[from_b];
        if (in_a != in_b && in_a != 1 && in_b != 1)
            return false;
        product->a[d] = in_a;
        product->b[d] = in_b;
        product->size[d] = in_a == 1 ? in_b : in_a;
    }
    return true;
}

/* dot: the rows of all matrices of a meet every matrix of b. */
static void cross(const struct npy *a, int a_dims, const struct npy *b, int b_dims, struct product *product)
{
    for (int d = 0; d < a_dims; d++)
        product->M = times(product->M, a->shape[d]);
    product->dims = b_dims;
    for (int d = 0; d < b_dims; d++) {
        product->a[d] = 1;
        product->b[d] = product->size[d] = b->shape[d];
    }
    product->rows_first = true;
}

/* Neighbouring dimensions in which the same operands vary are one; those of size 1 are none. */
static void group(struct product *product)
{
    bool was_a = false, was_b = false;
    product->groups = 0;
    product->group[0] = product->group[1] = 1;
    for (int d = 0; d < product->dims; d++) {
        const bool a = product->a[d] != 1, b = product->b[d] != 1;
        if (!a && !b)
            continue;
        if (product->groups == 0 || a != was_a || b != was_b)
            product->groups++;
        if (product->groups <= 2) {
            const int g = product->groups - 1;
            product->group[g] = times(product->group[g], product->size[d]);
            product->a_varies[g] = a;
            product->b_varies[g] = b;
        }
        was_a = a;
        was_b = b;
    }
    if (times(product->group[0], product->group[1]) == 0) { /* an empty batch is one dimension */
        product->group[0] = 0;
        product->group[1] = 1;
        product->a_varies[0] = product->b_varies[0] = true;
        product->a_varies[1] = product->b_varies[1] = false;
        product->groups = 1;
    } else if (product->rows_first) { /* matrices of b stand within the rows of a: they are heads */
        product->group[1] = product->group[0];
        product->a_varies[1] = product->a_varies[0];
        product->b_varies[1] = product->b_varies[0];
        product->group[0] = 1;
        product->a_varies[0] = product->b_varies[0] = false;
    }
}

static int product_of(const struct case_reader *reader, const struct npy *a, const struct npy *b, bool dot,
                      struct product *product)
{
    int64_t inner;
    *product = (struct product){.keeps_rows = a->rank > 1, .keeps_columns = b->rank > 1};
    if (a->rank == 0 || b->rank == 0)
        return shape_error(reader, a, b, "a matmul of a single number");
    const int a_dims = matrix_of(a, true, &product->M, &product->K), b_dims = matrix_of(b, false, &inner, &product->N);
    if (inner != product->K)
        return shape_error(reader, a, b, "columns of a are not rows of b");
    if (dot)
        cross(a, a_dims, b, b_dims, product);
    else if (!broadcast(a, a_dims, b, b_dims, product))
        return shape_error(reader, a, b, "leading dimensions do not broadcast");
    group(product);
    return 0;
}

/* An operand written out: every leading index of the product has a matrix of its own. */
static int write_out(const struct product *product, const int64_t *own, int64_t matrix, struct npy *array)
{
    const size_t element = npy_element_bytes(array->type);
    int64_t count = 1, index[LEADING] = {0};
    for (int d = 0; d < product->dims; d++)
        count = times(count, product->size[d]);
    if (times(count, matrix) > INT64_MAX / (int64_t)element - 1)
        return -ENOMEM;
    char *all = malloc((size_t)(count * matrix) * element + 1);
    if (!all)
        return -ENOMEM;
    for (int64_t at = 0; at < count; at++) {
        int64_t from = 0;
        for (int d = 0; d < product->dims; d++)
            from = from * own[d] + (own[d] == 1 ? 0 : index[d]);
        memcpy(all + (size_t)(at * matrix) * element, (const char *)array->data + (size_t)(from * matrix) * element,
               (size_t)matrix * element);
        for (int d = product->dims - 1; d >= 0 && ++index[d] == product->size[d]; d--)
            index[d] = 0;
    }
    free(array->data);
    array->data = all;
    array->count = count * matrix;
    return 0;
}

static int write_out_both(const struct case_reader *reader, struct product *product, struct npy *a, struct npy *b)
{
    int code = write_out(product, product->a, product->M * product->K, a);
    if (code == 0)
        code = write_out(product, product->b, product->K * product->N, b);
    if (code < 0)
        return error_system(reader->error, -code, "%s", reader->path);
    product->group[0] = product->group[1] = 1;
    for (int d = 0; d < product->dims; d++)
        product->group[0] = times(product->group[0], product->size[d]);
    product->a_varies[0] = product->b_varies[0] = true;
    product->a_varies[1] = product->b_varies[1] = false;
    return 0;
}

/* One operand in place of what operands_create gave it: stored once where it broadcasts. */
static int store_operand(const struct case_reader *reader, const struct product *product, const bool varies[2],
                         const struct npy *array, struct memory_block *block, struct attn_tensor *tensor)
{
    const enum attn_dtype dtype = reader->spec.dtype;
    const int64_t size[4] = {varies[0] ? product->group[0] : 1, varies[1] ? product->group[1] : 1, tensor->size[2],
                             tensor->size[3]};
    const int64_t seen[4] = {product->group[0], product->group[1], size[2], size[3]};
    memory_release(block);
    int code = operands_allocate_tensor(LAYOUT_BHSD, size, seen, dtype_bytes(dtype), MEMORY_PLAIN, block, tensor,
                                        reader->error);
    if (code == 0 && product->group[0] > 0)
        case_store(array, dtype, block->data);
    return code;
}

/* The product's shape is that of numpy: leading dimensions, rows and columns where the operands have them. */
static int read_out(const struct case_reader *reader, const struct product *product, const struct npy *a,
                    struct npy *out)
{
    char got[160], want[160];
    int64_t shape[2 * NPY_MAX_RANK];
    int rank = 0;
    for (int d = 0; product->rows_first && d < a->rank - 1; d++)
        shape[rank++] = a->shape[d];
    for (int d = 0; d < product->dims; d++)
        shape[rank++] = product->size[d];
    if (!product->rows_first && product->keeps_rows)
        shape[rank++] = product->M;
    if (product->keeps_columns)
        shape[rank++] = product->N;
    const struct case_array wanted = {.group = "expect", .name = "out", .floats = true, .rank = -1};
    int code = case_read_array(reader, &wanted, out);
    if (code < 0 || !out->data)
        return code;
    /* One number may have come out as an array of one. */
    if ((rank == 0 && out->count == 1) ||
        (out->rank == rank && memcmp(out->shape, shape, (size_t)rank * sizeof *shape) == 0))
        return 0;
    npy_shape_text(out->rank, out->shape, got, sizeof got);
    npy_shape_text(rank, shape, want, sizeof want);
    return error_usage(reader->error, "%s: expect.out has shape %s, the product of a and b has %s", reader->path, got,
                       want);
}

/* In [B][H][M][N] order. */
static int take_out(const struct case_reader *reader, const struct product *product, const struct npy *out,
                    double **expected)
{
    const int64_t B = product->group[0], H = product->group[1], M = product->M, N = product->N;
    if (!out->data)
        return 0;
    double *to = *expected = malloc((size_t)(out->count + 1) * sizeof **expected);
    if (!to)
        return error_system(reader->error, ENOMEM, "%s", reader->path);
    for (int64_t b = 0; b < B; b++)
        for (int64_t h = 0; h < H; h++)
            for (int64_t m = 0; m < M; m++)
                for (int64_t n = 0; n < N; n++)
                    *to++ = case_value(out, product->rows_first ? (m * B * H + b * H + h) * N + n
                                                                : ((b * H + h) * M + m) * N + n);
    return 0;
}

static int make_spec(struct case_reader *reader, const struct product *product)
{
    struct problem_spec *s = &reader->spec;
    int dtype = ATTN_F32;
    int code = case_name(reader, "dtype", false, dtype_from_name, &dtype);
    if (code < 0)
        return code;
    *s = spec_default();
    s->rule = ATTN_MATMUL;
    s->dtype = (enum attn_dtype)dtype;
    s->seed = 0;
    s->B = product->group[0];
    s->H = s->H_kv = product->group[1];
    s->S_q = product->M;
    s->D = product->K;
    s->D_v = s->S_kv = product->N;
    code = spec_validate(s, true, reader->error);
    return code < 0 ? error_prefix(reader->error, code, "%s", reader->path) : 0;
}

static int make_operands(struct case_reader *reader, struct product *product, struct npy *a, struct npy *b,
                         struct operands *operands)
{
    int code = product->groups > 2 ? write_out_both(reader, product, a, b) : 0;
    if (code == 0)
        code = make_spec(reader, product);
    if (code == 0)
        code = operands_create(&reader->spec, MEMORY_PLAIN, operands, reader->error);
    if (code == 0)
        code = store_operand(reader, product, product->a_varies, a, &operands->q, &operands->args.q);
    if (code == 0)
        code = store_operand(reader, product, product->b_varies, b, &operands->k, &operands->args.k);
    if (code == 0 && product->rows_first)
        layout_strides(LAYOUT_BSHD, operands->args.out.size, operands->args.out.stride);
    return code;
}

int case_read_matmul(struct case_reader *reader, struct case_folder *folder)
{
    static const struct case_array left = {
        .group = "inputs", .name = "a", .required = true, .floats = true, .rank = -1};
    static const struct case_array right = {
        .group = "inputs", .name = "b", .required = true, .floats = true, .rank = -1};
    struct npy a = {0}, b = {0}, out = {0};
    struct product product;
    int semantics = SEMANTICS_MATMUL;
    int code = case_name(reader, "semantics", false, semantics_from_name, &semantics);
    if (code == 0)
        code = case_read_array(reader, &left, &a);
    if (code == 0)
        code = case_read_array(reader, &right, &b);
    if (code == 0)
        code = product_of(reader, &a, &b, semantics == SEMANTICS_DOT, &product);
    if (code == 0)
        code = read_out(reader, &product, &a, &out);
    if (code == 0)
        code = make_operands(reader, &product, &a, &b, &folder->operands);
    if (code == 0)
        code = take_out(reader, &product, &out, &folder->expect_out);
    npy_release(&a);
    npy_release(&b);
    npy_release(&out);
    return code;
}
