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

/* The array in files is what lies in memory, so its shape is the tensor's in order of falling strides. */
static void shape_of(const struct attn_tensor *tensor, enum layout layout, int64_t shape[4])
{
    static const int order[][4] = {
        [LAYOUT_BHSD] = {0, 1, 2, 3}, [LAYOUT_BSHD] = {0, 2, 1, 3}, [LAYOUT_HBSD] = {1, 0, 2, 3}};
    for (int i = 0; i < 4; i++) {
        int from = order[layout][i];
        bool broadcast = tensor->stride[from] == 0 && tensor->size[from] > 1;
        shape[i] = broadcast ? 1 : tensor->size[from];
    }
}

/* Writes one array and enters it under its name in the group. */
static int write_array(const char *directory, const char *prefix, const char *name, enum npy_type type,
                       const int64_t shape[4], const void *data, json_t *group, struct error *error)
{
    char file[32], *path = NULL;
    snprintf(file, sizeof file, "%s%s.npy", prefix, name);
    if (asprintf(&path, "%s/%s", directory, file) < 0)
        return error_system(error, ENOMEM, "%s", directory);
    int code = npy_write(path, type, 4, shape, data, error);
    free(path);
    json_object_set_new(group, name,
                        json_pack("{s:s, s:s, s:[I,I,I,I]}", "file", file, "dtype", npy_type_name(type), "shape",
                                  (json_int_t)shape[0], (json_int_t)shape[1], (json_int_t)shape[2],
                                  (json_int_t)shape[3]));
    return code;
}

/* Rows are copied one by one, so that any strides will do; 16-bit elements are widened to float32. */
static int write_floats(const char *directory, const char *name, const struct attn_tensor *tensor,
                        enum attn_dtype dtype, enum layout layout, json_t *group, struct error *error)
{
    int64_t shape[4], size[4], stride[4], count = 1;
    shape_of(tensor, layout, shape);
    for (int i = 0; i < 4; i++) {
        size[i] = tensor->stride[i] == 0 && tensor->size[i] > 1 ? 1 : tensor->size[i];
        count *= size[i];
    }
    layout_strides(layout, size, stride);
    float *copy = malloc((size_t)(count + 1) * sizeof *copy);
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

static int write_inputs(const char *directory, const struct operands *operands, json_t *inputs, struct error *error)
{
    const struct attn_args *args = &operands->args;
    const struct problem_spec *spec = &operands->spec;
    int code = write_floats(directory, "q", &args->q, spec->dtype, spec->layout, inputs, error);
    if (code == 0)
        code = write_floats(directory, "k", &args->k, spec->dtype, spec->layout, inputs, error);
    if (code == 0)
        code = write_floats(directory, "v", &args->v, spec->dtype, spec->layout, inputs, error);
    if (code == 0 && args->bias.data)
        code = write_floats(directory, "bias", &args->bias, ATTN_F32, LAYOUT_BHSD, inputs, error);
    if (code == 0 && args->mask.data) {
        int64_t shape[4];
        shape_of(&args->mask, LAYOUT_BHSD, shape);
        code = write_array(directory, "", "mask", NPY_BOOL, shape, args->mask.data, inputs, error);
    }
    return code;
}

/* The oracle's rows are all rows in [B][H][S_q] order; the file wants the layout's. */
static int write_expected(const char *directory, const struct operands *operands, json_t *expect, struct error *error)
{
    const struct problem_spec *spec = &operands->spec;
    const int64_t size[4] = {spec->B, spec->H, spec->S_q, spec->D_v};
    const int64_t pairs[4] = {spec->B, spec->H, spec->S_q, spec->S_kv};
    struct attn_tensor out = {.size = {size[0], size[1], size[2], size[3]}, .stride = {1, 1, 1, 1}};
    struct oracle oracle;
    int64_t stride[4], shape[4];
    int code = oracle_create(&operands->problem, &operands->args, spec->seed, INFINITY, 1, &oracle, error);
    if (code < 0)
        return code;
    double *copy = malloc((size_t)(oracle.rows * spec->D_v + 1) * sizeof *copy);
    if (!copy) {
        code = error_system(error, ENOMEM, "%s", directory);
        goto done;
    }
    layout_strides(spec->layout, size, stride);
    for (int64_t r = 0; r < oracle.rows; r++)
        memcpy(copy + oracle.b[r] * stride[0] + oracle.h[r] * stride[1] + oracle.i[r] * stride[2],
               oracle.out + r * spec->D_v, (size_t)spec->D_v * sizeof *copy);
    shape_of(&out, spec->layout, shape);
    code = write_array(directory, "expect_", "out", NPY_FLOAT64, shape, copy, expect, error);
    if (code == 0 && oracle.weights)
        code = write_array(directory, "expect_", "weights", NPY_FLOAT64, pairs, oracle.weights, expect, error);
done:
    free(copy);
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
    const struct {
        const char *key;
        json_t *value;
    } entries[] = {
        {"name", json_string(base_name(directory))},
        {"note", json_string(note ? note : "")},
        {"rule", json_string(rule_name(spec->rule))},
        {"dtype", json_string(dtype_name(spec->dtype))},
        {"layout", json_string(layout_name(spec->layout))},
        {"batch", json_integer(spec->B)},
        {"heads", json_integer(spec->H)},
        {"kv_heads", json_integer(spec->H_kv)},
        {"q_len", json_integer(spec->S_q)},
        {"kv_len", json_integer(spec->S_kv)},
        {"head_dim", json_integer(spec->D)},
        {"value_dim", json_integer(spec->D_v)},
        {"scale", json_real(spec_scale(spec))},
        {"causal", json_string(causal_name(spec->causal))},
        {"window", window_json(spec)},
        {"kv_lengths", kv_lengths_json(operands)},
        {"softcap", spec->softcap > 0 ? json_real(spec->softcap) : json_null()},
        {"inputs", inputs},
        {"expect", expect},
    };
    for (size_t e = 0; e < sizeof entries / sizeof entries[0]; e++)
        json_object_set_new(root, entries[e].key, entries[e].value);
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
