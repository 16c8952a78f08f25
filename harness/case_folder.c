/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading a case folder: case.json, then the arrays it names, checked against its sizes. See case_folder.h for the
 * form.
 */
#include "case_folder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "case_reader.h"
#include "intern.h"

/* Shape in the file of a tensor that kernels see as size[4]. */
static void stored_shape(const struct case_reader *reader, enum layout layout, const int64_t size[4],
                         struct case_array *wanted)
{
    static const int order[][4] = {
        [LAYOUT_BHSD] = {0, 1, 2, 3}, [LAYOUT_BSHD] = {0, 2, 1, 3}, [LAYOUT_HBSD] = {1, 0, 2, 3}};
    wanted->rank = 0;
    for (int i = 0; i < 4; i++)
        if (!reader->no_heads || i != 1)
            wanted->shape[wanted->rank++] = size[reader->no_heads ? i : order[layout][i]];
}

enum { Q, K, V, OUT, WEIGHTS, BIAS, MASK, ARRAYS };

/* The arrays of one case: those of the operands, then the rule's parameters. */
struct arrays {
    struct npy array[ARRAYS], param[ATTN_MOST_PARAMS];
    struct operand_param wanted[ATTN_MOST_PARAMS];
    int params;
};

static void arrays_release(struct arrays *arrays)
{
    for (int a = 0; a < ARRAYS; a++)
        npy_release(&arrays->array[a]);
    for (int p = 0; p < arrays->params; p++)
        npy_release(&arrays->param[p]);
}

static int read_operands(struct case_reader *reader, const struct attn_args *args, struct arrays *arrays)
{
    const struct problem_spec *s = &reader->spec;
    const bool self = s->rule == ATTN_SELF_ATTENTION, layer = self || s->rule == ATTN_MULTI_HEAD;
    const int64_t pairs[4] = {s->B, s->H, s->S_q, s->S_kv};
    const struct {
        const char *group, *name;
        bool present, required, floats, broadcast;
        const int64_t *size;
    } wanted[ARRAYS] = {
        [Q] = {"inputs", self ? "x" : "q", true, true, true, false, args->q.size},
        [K] = {"inputs", "k", !self, true, true, false, args->k.size},
        [V] = {"inputs", "v", !self, true, true, false, args->v.size},
        [OUT] = {"expect", "out", true, false, true, false, args->out.size},
        [WEIGHTS] = {"expect", "weights", true, false, true, false, pairs},
        [BIAS] = {"inputs", "bias", s->rule != ATTN_CONCAT, false, true, true, pairs},
        [MASK] = {"inputs", "mask", true, false, false, true, pairs},
    };
    /* Arrays over pairs have heads where there are any to tell apart. */
    struct case_reader with_heads = *reader;
    with_heads.no_heads = reader->no_heads && (!layer || s->single);
    int code = 0;
    for (int a = 0; a < ARRAYS && code == 0; a++) {
        struct case_array array = {
            wanted[a].group, wanted[a].name, wanted[a].required, wanted[a].floats, wanted[a].broadcast, 0, {0}};
        stored_shape(a >= WEIGHTS ? &with_heads : reader, a >= WEIGHTS ? LAYOUT_BHSD : s->layout, wanted[a].size,
                     &array);
        if (wanted[a].present)
            code = case_read_array(reader, &array, &arrays->array[a]);
    }
    return code;
}

/* Weights are matrices, biases and u vectors. */
static int read_params(const struct case_reader *reader, struct arrays *arrays)
{
    int code = 0;
    arrays->params = operands_params(&reader->spec, arrays->wanted);
    for (int p = 0; p < arrays->params && code == 0; p++) {
        const struct operand_param *param = &arrays->wanted[p];
        const bool vector = param->bias || strcmp(param->name, "u") == 0;
        const struct case_array wanted = {.group = "inputs",
                                          .name = param->name,
                                          .required = true,
                                          .floats = true,
                                          .rank = vector ? 1 : 2,
                                          .shape = {vector ? param->columns : param->rows, param->columns}};
        if (param->present)
            code = case_read_array(reader, &wanted, &arrays->param[p]);
    }
    return code;
}

/* Bias and mask have whatever broadcast shape the file has, but for the keys, which kernels want one by one. */
static int store_broadcast(const struct npy *array, const struct problem_spec *spec, struct memory_block *block,
                           struct attn_tensor *tensor, struct error *error)
{
    const bool mask = array->type != NPY_FLOAT32 && array->type != NPY_FLOAT64;
    const int64_t *shape = array->shape;
    const int64_t pairs[4] = {spec->B, spec->H, spec->S_q, spec->S_kv};
    const int64_t size[4] = {shape[0], array->rank == 4 ? shape[1] : 1, shape[array->rank - 2], spec->S_kv};
    int code = operands_allocate_tensor(LAYOUT_BHSD, size, pairs, mask ? 1 : sizeof(float), MEMORY_PLAIN, block, tensor,
                                        error);
    if (code < 0)
        return code;
    int64_t rows = size[0] * size[1] * size[2], keys = shape[array->rank - 1];
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < spec->S_kv; j++) {
            double value = case_value(array, r * keys + (keys == 1 ? 0 : j));
            if (mask)
                ((uint8_t *)block->data)[r * spec->S_kv + j] = value != 0;
            else
                ((float *)block->data)[r * spec->S_kv + j] = (float)value;
        }
    return 0;
}

static int store_masks(struct case_reader *reader, const struct arrays *arrays, struct operands *operands)
{
    const struct npy *bias = &arrays->array[BIAS], *mask = &arrays->array[MASK];
    int code = 0;
    if (bias->data) {
        operands->spec.bias = true;
        code = store_broadcast(bias, &reader->spec, &operands->bias, &operands->args.bias, reader->error);
    }
    if (code == 0 && mask->data) {
        int64_t allowed = 0;
        for (int64_t i = 0; i < mask->count; i++)
            allowed += case_value(mask, i) != 0;
        operands->spec.mask_share = mask->count ? (double)allowed / (double)mask->count : 0;
        code = store_broadcast(mask, &reader->spec, &operands->mask, &operands->args.mask, reader->error);
    }
    return code;
}

static void store_inputs(const struct arrays *arrays, struct operands *operands)
{
    const enum attn_dtype dtype = operands->spec.dtype;
    struct memory_block *const blocks[] = {[Q] = &operands->q, [K] = &operands->k, [V] = &operands->v};
    for (int a = Q; a <= V; a++)
        if (arrays->array[a].data)
            case_store(&arrays->array[a], dtype, blocks[a]->data);
    for (int p = 0; p < arrays->params; p++)
        if (arrays->param[p].data)
            case_store(&arrays->param[p], arrays->wanted[p].bias ? ATTN_F32 : dtype, operands->param_block[p].data);
}

/* An expected array as doubles in [B][H][.][.] order, whatever the layout. */
static int take_expected(const struct case_reader *reader, const struct npy *array, enum layout layout,
                         const int64_t size[4], double **expected)
{
    int64_t stride[4], at = 0;
    if (!array->data)
        return 0;
    *expected = malloc((size_t)(array->count + 1) * sizeof **expected);
    if (!*expected)
        return error_system(reader->error, ENOMEM, "%s", reader->path);
    layout_strides(layout, size, stride);
    for (int64_t b = 0; b < size[0]; b++)
        for (int64_t h = 0; h < size[1]; h++)
            for (int64_t s = 0; s < size[2]; s++)
                for (int64_t d = 0; d < size[3]; d++)
                    (*expected)[at++] = case_value(array, b * stride[0] + h * stride[1] + s * stride[2] + d);
    return 0;
}

/* Every rule but matmul. concat's expected `applied` is left alone: weights and out hold all that it could tell. */
static int read_attention(struct case_reader *reader, struct case_folder *folder)
{
    struct operands *operands = &folder->operands;
    struct arrays arrays = {0};
    int code = case_read_spec(reader);
    struct attn_args shapes = {0};
    if (code == 0) {
        /* Nothing is allocated before the files agree with the sizes. */
        operands_shapes(&reader->spec, &shapes);
        code = read_operands(reader, &shapes, &arrays);
    }
    if (code == 0)
        code = read_params(reader, &arrays);
    if (code == 0) {
        reader->spec.weights = arrays.array[WEIGHTS].data != NULL;
        code = operands_create(&reader->spec, MEMORY_PLAIN, operands, reader->error);
    }
    if (code == 0) {
        store_inputs(&arrays, operands);
        code = store_masks(reader, &arrays, operands);
    }
    const struct problem_spec *s = &reader->spec;
    const int64_t pairs[4] = {s->B, s->H, s->S_q, s->S_kv};
    if (code == 0)
        code = take_expected(reader, &arrays.array[OUT], s->layout, operands->args.out.size, &folder->expect_out);
    if (code == 0)
        code = take_expected(reader, &arrays.array[WEIGHTS], LAYOUT_BHSD, pairs, &folder->expect_weights);
    arrays_release(&arrays);
    return code;
}

static int load_json(struct case_reader *reader)
{
    json_error_t problem;
    reader->root = json_load_file(reader->path, JSON_REJECT_DUPLICATES, &problem);
    if (!reader->root) {
        for (char *c = problem.text; *c; c++)
            if (*c < ' ' || *c > '~')
                *c = '?';
        if (problem.line < 1)
            return error_usage(reader->error, "%s: %s", reader->path, problem.text);
        return error_usage(reader->error, "%s:%d:%d: %s", reader->path, problem.line, problem.column, problem.text);
    }
    if (!json_is_object(reader->root))
        return error_usage(reader->error, "%s: is %s, not an object", reader->path, case_kind(reader->root));
    return 0;
}

static const char *name_of(const struct case_reader *reader)
{
    const char *name = json_string_value(json_object_get(reader->root, "name"));
    if (name && *name)
        return intern(name);
    const char *slash = strrchr(reader->directory, '/');
    return intern(slash && slash[1] ? slash + 1 : reader->directory);
}

int case_folder_read(const char *directory, struct case_folder *folder, struct error *error)
{
    struct case_reader reader = {.directory = directory, .error = error};
    memset(folder, 0, sizeof *folder);
    if (asprintf(&reader.path, "%s/case.json", directory) < 0)
        return error_system(error, ENOMEM, "%s", directory);
    int rule = ATTN_SCALED_DOT_PRODUCT, code = load_json(&reader);
    if (code == 0)
        code = case_name(&reader, "rule", true, rule_from_name, &rule);
    reader.spec.rule = (enum attn_rule)rule;
    if (code == 0)
        code = rule == ATTN_MATMUL ? case_read_matmul(&reader, folder) : read_attention(&reader, folder);
    if (code == 0)
        folder->name = name_of(&reader);
    else
        case_folder_release(folder);
    json_decref(reader.root);
    free(reader.path);
    return code;
}

void case_folder_release(struct case_folder *folder)
{
    operands_destroy(&folder->operands);
    free(folder->expect_out);
    free(folder->expect_weights);
    memset(folder, 0, sizeof *folder);
}
