/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing a case folder that case_folder_read reads back to the same problem; see case_folder.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "case_folder.h"
#include "fill.h"
#include "npy.h"
#include "oracle.h"
#include "spec_sizes.h"

static bool is_layer(const struct problem_spec *spec)
{
    return spec->rule == ATTN_MULTI_HEAD || spec->rule == ATTN_SELF_ATTENTION;
}

/* What is written of a tensor: sizes of 1 where it broadcasts. */
static void stored_size(const struct attn_tensor *tensor, int64_t size[4])
{
    for (int i = 0; i < 4; i++)
        size[i] = tensor->stride[i] == 0 && tensor->size[i] > 1 ? 1 : tensor->size[i];
}

/* The shape of an array in a file, outermost dimension first. */
struct shape {
    int rank;
    int64_t size[4];
};

static struct shape layout_shape(const int64_t size[4], enum layout layout)
{
    static const int order[][4] = {
        [LAYOUT_BHSD] = {0, 1, 2, 3}, [LAYOUT_BSHD] = {0, 2, 1, 3}, [LAYOUT_HBSD] = {1, 0, 2, 3}};
    struct shape shape = {.rank = 4};
    for (int i = 0; i < 4; i++)
        shape.size[i] = size[order[layout][i]];
    return shape;
}

/* Without the heads, of which there is one. */
static struct shape headless_shape(const int64_t size[4])
{
    return (struct shape){3, {size[0], size[2], size[3]}};
}

/* Writes one array and enters it under its name in the group. */
static int write_array(const char *directory, const char *prefix, const char *name, enum npy_type type,
                       const struct shape *shape, const void *data, json_t *group, struct error *error)
{
    char file[32], *path = NULL;
    snprintf(file, sizeof file, "%s%s.npy", prefix, name);
    if (asprintf(&path, "%s/%s", directory, file) < 0)
        return error_system(error, ENOMEM, "%s", directory);
    int code = npy_write(path, type, shape->rank, shape->size, data, error);
    free(path);
    json_t *sizes = json_array();
    for (int i = 0; i < shape->rank; i++)
        json_array_append_new(sizes, json_integer(shape->size[i]));
    json_object_set_new(group, name,
                        json_pack("{s:s, s:s, s:o}", "file", file, "dtype", npy_type_name(type), "shape", sizes));
    return code;
}

/* Rows are copied one by one, so that any strides will do; 16-bit elements are widened to float32. */
static int write_floats(const char *directory, const char *name, const struct attn_tensor *tensor,
                        enum attn_dtype dtype, enum layout layout, const struct shape *shape, json_t *group,
                        struct error *error)
{
    int64_t size[4], stride[4];
    stored_size(tensor, size);
    layout_strides(layout, size, stride);
    float *copy = malloc((size_t)(size[0] * size[1] * size[2] * size[3] + 1) * sizeof *copy);
    if (!copy)
        return error_system(error, ENOMEM, "%s", directory);
    for (int64_t b = 0; b < size[0]; b++)
        for (int64_t h = 0; h < size[1]; h++)
            for (int64_t s = 0; s < size[2]; s++) {
                int64_t from = b * tensor->stride[0] + h * tensor->stride[1] + s * tensor->stride[2];
                float *to = copy + b * stride[0] + h * stride[1] + s * stride[2];
                for (int64_t d = 0; d < size[3]; d++) {
                    if (dtype == ATTN_F32)
                        to[d] = ((const float *)tensor->data)[from + d];
                    else if (dtype == ATTN_BF16)
                        to[d] = float_from_bf16(((const uint16_t *)tensor->data)[from + d]);
                    else
                        to[d] = float_from_f16(((const uint16_t *)tensor->data)[from + d]);
                }
            }
    int code = write_array(directory, "", name, NPY_FLOAT32, shape, copy, group, error);
    free(copy);
    return code;
}

static int write_operand(const char *directory, const char *name, const struct attn_tensor *tensor,
                         const struct problem_spec *spec, json_t *inputs, struct error *error)
{
    const enum layout layout = spec->rule == ATTN_MATMUL || is_layer(spec) ? LAYOUT_BHSD : spec->layout;
    int64_t size[4];
    stored_size(tensor, size);
    const struct shape shape = is_layer(spec) ? headless_shape(size) : layout_shape(size, layout);
    return write_floats(directory, name, tensor, spec->dtype, layout, &shape, inputs, error);
}

static int write_params(const char *directory, const struct operands *operands, json_t *inputs, struct error *error)
{
    struct operand_param params[ATTN_MOST_PARAMS];
    const int count = operands_params(&operands->spec, params);
    int code = 0;
    for (int p = 0; p < count && code == 0; p++) {
        const struct attn_tensor *tensor = &operands->args.param[p];
        const bool vector = params[p].bias || strcmp(params[p].name, "u") == 0;
        const struct shape shape = {vector ? 1 : 2, {vector ? params[p].columns : params[p].rows, params[p].columns}};
        if (params[p].present)
            code = write_floats(directory, params[p].name, tensor, params[p].bias ? ATTN_F32 : operands->spec.dtype,
                                LAYOUT_BHSD, &shape, inputs, error);
    }
    return code;
}

/* Arrays over pairs: of a layer without heads they have none either. */
static struct shape pairs_shape(const int64_t size[4], const struct problem_spec *spec)
{
    return spec->single ? headless_shape(size) : layout_shape(size, LAYOUT_BHSD);
}

static int write_inputs(const char *directory, const struct operands *operands, json_t *inputs, struct error *error)
{
    const struct attn_args *args = &operands->args;
    const struct problem_spec *spec = &operands->spec;
    const bool matmul = spec->rule == ATTN_MATMUL, self = spec->rule == ATTN_SELF_ATTENTION;
    int64_t size[4];
    int code = write_operand(directory, self ? "x" : matmul ? "a" : "q", &args->q, spec, inputs, error);
    if (code == 0 && !self)
        code = write_operand(directory, matmul ? "b" : "k", &args->k, spec, inputs, error);
    if (code == 0 && !self && !matmul)
        code = write_operand(directory, "v", &args->v, spec, inputs, error);
    if (code == 0)
        code = write_params(directory, operands, inputs, error);
    if (code == 0 && args->bias.data) {
        stored_size(&args->bias, size);
        const struct shape shape = pairs_shape(size, spec);
        code = write_floats(directory, "bias", &args->bias, ATTN_F32, LAYOUT_BHSD, &shape, inputs, error);
    }
    if (code == 0 && args->mask.data) {
        stored_size(&args->mask, size);
        const struct shape shape = pairs_shape(size, spec);
        code = write_array(directory, "", "mask", NPY_BOOL, &shape, args->mask.data, inputs, error);
    }
    return code;
}

/* The oracle's rows are all rows of out in [B][heads of out][S_q] order; the file wants the layout's. */
static int write_out(const char *directory, const struct operands *operands, const struct oracle *oracle,
                     json_t *expect, struct error *error)
{
    const struct problem_spec *spec = &operands->spec;
    const enum layout layout = spec->rule == ATTN_MATMUL || is_layer(spec) ? LAYOUT_BHSD : spec->layout;
    const int64_t *size = operands->args.out.size;
    const struct shape shape = is_layer(spec) ? headless_shape(size) : layout_shape(size, layout);
    int64_t stride[4];
    double *copy = malloc((size_t)(oracle->rows * size[3] + 1) * sizeof *copy);
    if (!copy)
        return error_system(error, ENOMEM, "%s", directory);
    layout_strides(layout, size, stride);
    for (int64_t r = 0; r < oracle->rows; r++)
        memcpy(copy + oracle->b[r] * stride[0] + oracle->h[r] * stride[1] + oracle->i[r] * stride[2],
               oracle->out + r * size[3], (size_t)size[3] * sizeof *copy);
    int code = write_array(directory, "expect_", "out", NPY_FLOAT64, &shape, copy, expect, error);
    free(copy);
    return code;
}

/* A row of the oracle's holds the weights of all heads that make it. */
static int write_weights(const char *directory, const struct operands *operands, const struct oracle *oracle,
                         json_t *expect, struct error *error)
{
    const struct problem_spec *spec = &operands->spec;
    const int64_t pairs[4] = {spec->B, spec->H, spec->S_q, spec->S_kv}, heads = oracle->weight_heads;
    const struct shape shape = pairs_shape(pairs, spec);
    double *copy = malloc((size_t)(oracle->rows * heads * spec->S_kv + 1) * sizeof *copy);
    if (!copy)
        return error_system(error, ENOMEM, "%s", directory);
    for (int64_t r = 0; r < oracle->rows; r++)
        for (int64_t w = 0; w < heads; w++) {
            int64_t row = (oracle->b[r] * spec->H + oracle->h[r] * heads + w) * spec->S_q + oracle->i[r];
            memcpy(copy + row * spec->S_kv, oracle->weights + (r * heads + w) * spec->S_kv,
                   (size_t)spec->S_kv * sizeof *copy);
        }
    int code = write_array(directory, "expect_", "weights", NPY_FLOAT64, &shape, copy, expect, error);
    free(copy);
    return code;
}

static int write_expected(const char *directory, const struct operands *operands, json_t *expect, struct error *error)
{
    struct oracle oracle;
    int code = oracle_create(&operands->problem, &operands->args, operands->spec.seed, INFINITY, 1, &oracle, error);
    if (code < 0)
        return code;
    code = write_out(directory, operands, &oracle, expect, error);
    if (code == 0 && oracle.weights)
        code = write_weights(directory, operands, &oracle, expect, error);
    oracle_destroy(&oracle);
    return code;
}

static json_t *kv_lengths_json(const struct operands *operands)
{
    if (!operands->problem.kv_len)
        return json_null();
    json_t *list = json_array();
    for (int64_t b = 0; b < operands->spec.B; b++)
        json_array_append_new(list, json_integer(operands->problem.kv_len[b]));
    return list;
}

static json_t *window_json(const struct problem_spec *spec)
{
    if (!spec->window)
        return json_null();
    if (spec->window_right == WINDOW_NOT_GIVEN)
        return json_integer(spec->window_left);
    return json_pack("[I,I]", (json_int_t)spec->window_left, (json_int_t)spec->window_right);
}

static const char *base_name(const char *directory)
{
    const char *slash = strrchr(directory, '/');
    return slash && slash[1] ? slash + 1 : directory;
}

/* Sizes that the rule has, by the names of case.json; 0 where it has none. */
static void set_sizes(json_t *root, const struct problem_spec *spec)
{
    const bool projected = spec->rule == ATTN_ADDITIVE || spec->rule == ATTN_CONCAT;
    const struct {
        const char *key;
        int64_t size;
    } sizes[] = {
        {projected ? "query_dim" : "head_dim", spec->D},
        {"key_dim", spec->key_dim},
        {"value_dim", spec->D_v},
        {"hidden_dim", spec->hidden},
        {"input_dim", spec->input_dim},
        {"model_dim_k", spec->model_dim},
        {"model_dim_v", spec->model_dim_v},
        {"out_dim", spec->out_dim},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (sizes[i].size)
            json_object_set_new(root, sizes[i].key, json_integer(sizes[i].size));
    if (spec->rule == ATTN_SELF_ATTENTION)
        json_object_set_new(root, "multi_head", json_boolean(!spec->single));
    if (rule_has_scale(spec->rule)) {
        json_object_set_new(root, "scale", json_real(spec_scale(spec)));
        json_object_set_new(root, "softcap", spec->softcap > 0 ? json_real(spec->softcap) : json_null());
    }
}

static void set_problem(json_t *root, const struct operands *operands)
{
    const struct problem_spec *spec = &operands->spec;
    const bool strided = is_layer(spec) && spec->layout != LAYOUT_HBSD;
    const struct {
        const char *key;
        json_t *value;
    } entries[] = {
        {"layout", json_string(strided ? "BSD" : layout_name(spec->layout))},
        {"batch", json_integer(spec->B)},
        {"heads", json_integer(spec->H)},
        {"kv_heads", json_integer(spec->H_kv)},
        {"q_len", json_integer(spec->S_q)},
        {"kv_len", json_integer(spec->S_kv)},
        {"causal", json_string(causal_name(spec->causal))},
        {"window", window_json(spec)},
        {"kv_lengths", kv_lengths_json(operands)},
    };
    for (size_t e = 0; e < sizeof entries / sizeof entries[0]; e++)
        json_object_set_new(root, entries[e].key, entries[e].value);
    set_sizes(root, spec);
}

int case_folder_write(const char *directory, const struct operands *operands, const char *note, struct error *error)
{
    const struct problem_spec *spec = &operands->spec;
    char *path = NULL;
    json_t *root = json_object(), *inputs = json_object(), *expect = json_object();
    int code = 0;
    if (mkdir(directory, 0777) < 0 && errno != EEXIST)
        code = error_system(error, errno, "%s: cannot create the folder", directory);
    if (code == 0)
        code = write_inputs(directory, operands, inputs, error);
    if (code == 0)
        code = write_expected(directory, operands, expect, error);
    json_object_set_new(root, "name", json_string(base_name(directory)));
    json_object_set_new(root, "note", json_string(note ? note : ""));
    json_object_set_new(root, "rule", json_string(rule_name(spec->rule)));
    json_object_set_new(root, "dtype", json_string(dtype_name(spec->dtype)));
    /* The arrays of a matmul tell its sizes; numpy.dot's are written as the product that they come to. */
    if (spec->rule == ATTN_MATMUL)
        json_object_set_new(root, "semantics", json_string(semantics_name(SEMANTICS_MATMUL)));
    else
        set_problem(root, operands);
    json_object_set_new(root, "inputs", inputs);
    json_object_set_new(root, "expect", expect);
    if (code == 0 && asprintf(&path, "%s/case.json", directory) < 0)
        code = error_system(error, ENOMEM, "%s", directory);
    if (code == 0 && json_dump_file(root, path, JSON_INDENT(1)) < 0)
        code = error_system(error, errno ? errno : EIO, "%s: cannot write", path);
    if (code < 0 && code != -ENOMEM)
        error->exit_code = EXIT_UNWRITTEN;
    free(path);
    json_decref(root);
    return code;
}
