/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading a case folder: case.json, then the arrays it names, checked against its sizes. See case_folder.h for the
 * form.
 */
#include "case_folder.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fill.h"
#include "intern.h"
#include "npy.h"

/* What every step of reading needs. Steps return 0 or -errno with the message set. */
struct reader {
    const char *directory;
    char *path; /* of case.json */
    json_t *root;
    struct problem_spec spec;
    struct error *error;
};

static const char *kind_of(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a number with a fraction";
    case JSON_NULL:
        return "null";
    default:
        return "true or false";
    }
}

static int wrong_kind(const struct reader *reader, const char *key, const json_t *value, const char *expected)
{
    return error_usage(reader->error, "%s: key '%s' is %s, not %s", reader->path, key, kind_of(value), expected);
}

static int missing(const struct reader *reader, const char *key)
{
    return error_usage(reader->error, "%s: key '%s' is missing", reader->path, key);
}

/* *value stays what it was where the key is absent or null and not required. */
static int get_integer(const struct reader *reader, const char *key, bool required, int64_t *value)
{
    const json_t *entry = json_object_get(reader->root, key);
    if (!entry || json_is_null(entry))
        return required ? missing(reader, key) : 0;
    if (!json_is_integer(entry))
        return wrong_kind(reader, key, entry, "an integer");
    *value = json_integer_value(entry);
    return 0;
}

static int get_number(const struct reader *reader, const char *key, double *value)
{
    const json_t *entry = json_object_get(reader->root, key);
    if (!entry || json_is_null(entry))
        return 0;
    if (!json_is_number(entry))
        return wrong_kind(reader, key, entry, "a number");
    *value = json_number_value(entry);
    return 0;
}

/* A name out of a fixed set, as its number in *value. */
static int get_name(const struct reader *reader, const char *key, bool required, int (*from_name)(const char *),
                    int *value)
{
    const json_t *entry = json_object_get(reader->root, key);
    if (!entry || json_is_null(entry))
        return required ? missing(reader, key) : 0;
    if (!json_is_string(entry))
        return wrong_kind(reader, key, entry, "a string");
    int found = from_name(json_string_value(entry));
    if (found < 0)
        return error_usage(reader->error, "%s: key '%s' has the unknown value '%.60s'", reader->path, key,
                           json_string_value(entry));
    *value = found;
    return 0;
}

static int get_kv_lengths(struct reader *reader)
{
    const json_t *list = json_object_get(reader->root, "kv_lengths");
    reader->spec.kv_lengths = intern("full");
    if (!list || json_is_null(list))
        return 0;
    if (!json_is_array(list))
        return wrong_kind(reader, "kv_lengths", list, "a list of integers");
    size_t count = json_array_size(list), used = 0;
    if (count != (size_t)reader->spec.B)
        return error_usage(reader->error, "%s: key 'kv_lengths' has %zu numbers for batch %" PRId64, reader->path,
                           count, reader->spec.B);
    char *text = malloc(count * 24 + 1);
    if (!text)
        return error_system(reader->error, ENOMEM, "%s", reader->path);
    for (size_t b = 0; b < count; b++) {
        const json_t *length = json_array_get(list, b);
        if (!json_is_integer(length)) {
            free(text);
            return wrong_kind(reader, "kv_lengths", length, "a list of integers");
        }
        used += (size_t)sprintf(text + used, "%s%" JSON_INTEGER_FORMAT, b ? ":" : "", json_integer_value(length));
    }
    if (count > 0)
        reader->spec.kv_lengths = intern(text);
    free(text);
    return 0;
}

/* null, L or [L, R]. */
static int get_window(struct reader *reader)
{
    const json_t *window = json_object_get(reader->root, "window"), *left = window, *right = NULL;
    if (!window || json_is_null(window))
        return 0;
    if (json_is_array(window)) {
        left = json_array_get(window, 0);
        right = json_array_get(window, 1);
        if (json_array_size(window) != 2 || !json_is_integer(right))
            return wrong_kind(reader, "window", window, "an integer or a list of two");
    }
    if (!json_is_integer(left))
        return wrong_kind(reader, "window", left, "an integer or a list of two");
    reader->spec.window = true;
    reader->spec.window_left = json_integer_value(left);
    reader->spec.window_right = right ? json_integer_value(right) : WINDOW_NOT_GIVEN;
    /* WINDOW_NOT_GIVEN is a number too; no file may say it. */
    if (right && reader->spec.window_right < WINDOW_OPEN)
        return error_usage(reader->error, "%s: key 'window': right %" PRId64 " is less than 0 (-1 is open)",
                           reader->path, reader->spec.window_right);
    return 0;
}

static int get_spec(struct reader *reader)
{
    struct problem_spec *spec = &reader->spec;
    *spec = spec_default();
    int rule = -1, dtype = ATTN_F32, layout = LAYOUT_BHSD, causal = CAUSAL_NONE, code;
    if ((code = get_name(reader, "rule", true, rule_from_name, &rule)) < 0)
        return code;
    if (rule != ATTN_SCALED_DOT_PRODUCT)
        return error_machine(reader->error, "%s: rule '%s' is not built in", reader->path,
                             rule_name((enum attn_rule)rule));
    spec->seed = 0;
    if ((code = get_integer(reader, "batch", true, &spec->B)) < 0 ||
        (code = get_integer(reader, "heads", true, &spec->H)) < 0)
        return code;
    spec->H_kv = spec->H;
    if ((code = get_integer(reader, "kv_heads", false, &spec->H_kv)) < 0 ||
        (code = get_integer(reader, "q_len", true, &spec->S_q)) < 0 ||
        (code = get_integer(reader, "kv_len", true, &spec->S_kv)) < 0 ||
        (code = get_integer(reader, "head_dim", true, &spec->D)) < 0)
        return code;
    spec->D_v = spec->D;
    if ((code = get_integer(reader, "value_dim", false, &spec->D_v)) < 0 ||
        (code = get_number(reader, "scale", &spec->scale)) < 0 ||
        (code = get_number(reader, "softcap", &spec->softcap)) < 0 ||
        (code = get_name(reader, "causal", false, causal_from_name, &causal)) < 0 ||
        (code = get_name(reader, "layout", false, layout_from_name, &layout)) < 0 ||
        (code = get_name(reader, "dtype", false, dtype_from_name, &dtype)) < 0 || (code = get_window(reader)) < 0 ||
        (code = get_kv_lengths(reader)) < 0)
        return code;
    spec->dtype = (enum attn_dtype)dtype;
    spec->layout = (enum layout)layout;
    spec->causal = (enum causal)causal;
    code = spec_validate(spec, true, reader->error);
    return code < 0 ? error_prefix(reader->error, code, "%s", reader->path) : 0;
}

/* The file that inputs.NAME or expect.NAME refers to, malloc'd in *path; NULL there if absent and not required. */
static int find_array(const struct reader *reader, const char *group, const char *name, bool required, char **path)
{
    char key[32];
    snprintf(key, sizeof key, "%s.%s", group, name);
    *path = NULL;
    const json_t *entries = json_object_get(reader->root, group);
    if (entries && !json_is_null(entries) && !json_is_object(entries))
        return wrong_kind(reader, group, entries, "an object");
    const json_t *entry = json_object_get(entries, name);
    if (!entry || json_is_null(entry))
        return required ? missing(reader, key) : 0;
    const json_t *file = json_is_object(entry) ? json_object_get(entry, "file") : entry;
    if (!file)
        return error_usage(reader->error, "%s: key '%s.file' is missing", reader->path, key);
    if (!json_is_string(file))
        return wrong_kind(reader, key, file, "a file name");
    if (asprintf(path, "%s/%s", reader->directory, json_string_value(file)) < 0) {
        *path = NULL;
        return error_system(reader->error, ENOMEM, "%s", reader->path);
    }
    return 0;
}

static bool is_float(enum npy_type type)
{
    return type == NPY_FLOAT32 || type == NPY_FLOAT64;
}

static double value_at(const struct npy *array, int64_t i)
{
    switch (array->type) {
    case NPY_FLOAT32:
        return ((const float *)array->data)[i];
    case NPY_FLOAT64:
        return ((const double *)array->data)[i];
    default:
        return ((const uint8_t *)array->data)[i] != 0;
    }
}

/* Reads one array and checks its type and shape; broadcast: sizes of 1 are as good. array->data NULL: not there. */
static int read_array(const struct reader *reader, const char *group, const char *name, bool required, bool floats,
                      bool broadcast, const int64_t shape[4], struct npy *array)
{
    char *path, got[160], want[160];
    memset(array, 0, sizeof *array);
    int code = find_array(reader, group, name, required, &path);
    if (code < 0 || !path)
        return code;
    code = npy_read(path, array, reader->error);
    if (code < 0)
        goto done;
    bool fits = array->rank == 4;
    for (int i = 0; i < 4 && fits; i++)
        fits = array->shape[i] == shape[i] || (broadcast && array->shape[i] == 1);
    if (is_float(array->type) != floats) {
        code = error_usage(reader->error, "%s: elements are %s, %s.%s needs %s", path, npy_type_name(array->type),
                           group, name, floats ? "float32 or float64" : "bool");
    } else if (!fits) {
        npy_shape_text(array->rank, array->shape, got, sizeof got);
        npy_shape_text(4, shape, want, sizeof want);
        code = error_usage(reader->error, "%s: shape %s, case.json says %s%s", path, got, want,
                           broadcast ? " (or 1 where it broadcasts)" : "");
    }
done:
    if (code < 0)
        npy_release(array);
    free(path);
    return code;
}

static void stored_shape(enum layout layout, const int64_t size[4], int64_t shape[4])
{
    static const int order[][4] = {
        [LAYOUT_BHSD] = {0, 1, 2, 3}, [LAYOUT_BSHD] = {0, 2, 1, 3}, [LAYOUT_HBSD] = {1, 0, 2, 3}};
    for (int i = 0; i < 4; i++)
        shape[i] = size[order[layout][i]];
}

enum { Q, K, V, OUT, WEIGHTS, BIAS, MASK, ARRAYS };

static int read_arrays(struct reader *reader, struct npy array[ARRAYS])
{
    struct problem_spec *s = &reader->spec;
    const int64_t pairs[4] = {s->B, s->H, s->S_q, s->S_kv};
    const struct {
        const char *group, *name;
        bool required, floats, broadcast;
        int64_t size[4];
    } wanted[ARRAYS] = {
        [Q] = {"inputs", "q", true, true, false, {s->B, s->H, s->S_q, s->D}},
        [K] = {"inputs", "k", true, true, false, {s->B, s->H_kv, s->S_kv, s->D}},
        [V] = {"inputs", "v", true, true, false, {s->B, s->H_kv, s->S_kv, s->D_v}},
        [OUT] = {"expect", "out", false, true, false, {s->B, s->H, s->S_q, s->D_v}},
        [WEIGHTS] = {"expect", "weights", false, true, false, {0}},
        [BIAS] = {"inputs", "bias", false, true, true, {0}},
        [MASK] = {"inputs", "mask", false, false, true, {0}},
    };
    for (int a = 0; a < ARRAYS; a++) {
        int64_t shape[4];
        stored_shape(a >= WEIGHTS ? LAYOUT_BHSD : s->layout, a >= WEIGHTS ? pairs : wanted[a].size, shape);
        int code = read_array(reader, wanted[a].group, wanted[a].name, wanted[a].required, wanted[a].floats,
                              wanted[a].broadcast, shape, &array[a]);
        if (code < 0)
            return code;
    }
    s->weights = array[WEIGHTS].data != NULL;
    return 0;
}

static void store_values(const struct npy *array, enum attn_dtype dtype, void *data)
{
    for (int64_t i = 0; i < array->count; i++) {
        float x = (float)value_at(array, i);
        if (dtype == ATTN_F32)
            ((float *)data)[i] = x;
        else
            ((uint16_t *)data)[i] = dtype == ATTN_BF16 ? bf16_from_float(x) : f16_from_float(x);
    }
}

/* Bias and mask have whatever broadcast shape the file has, but for the keys, which kernels want one by one. */
static int store_broadcast(const struct npy *array, const struct problem_spec *spec, struct memory_block *block,
                           struct attn_tensor *tensor, struct error *error)
{
    bool mask = !is_float(array->type);
    const int64_t pairs[4] = {spec->B, spec->H, spec->S_q, spec->S_kv};
    const int64_t size[4] = {array->shape[0], array->shape[1], array->shape[2], spec->S_kv};
    int code = operands_allocate_tensor(LAYOUT_BHSD, size, pairs, mask ? 1 : sizeof(float), MEMORY_PLAIN, block, tensor,
                                        error);
    if (code < 0)
        return code;
    int64_t rows = size[0] * size[1] * size[2], keys = array->shape[3];
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < spec->S_kv; j++) {
            double value = value_at(array, r * keys + (keys == 1 ? 0 : j));
            if (mask)
                ((uint8_t *)block->data)[r * spec->S_kv + j] = value != 0;
            else
                ((float *)block->data)[r * spec->S_kv + j] = (float)value;
        }
    return 0;
}

static int store_inputs(struct reader *reader, const struct npy array[ARRAYS], struct operands *operands)
{
    enum attn_dtype dtype = reader->spec.dtype;
    int code = operands_create(&reader->spec, MEMORY_PLAIN, operands, reader->error);
    if (code < 0)
        return code;
    store_values(&array[Q], dtype, operands->q.data);
    store_values(&array[K], dtype, operands->k.data);
    store_values(&array[V], dtype, operands->v.data);
    if (array[BIAS].data) {
        operands->spec.bias = true;
        code = store_broadcast(&array[BIAS], &reader->spec, &operands->bias, &operands->args.bias, reader->error);
    }
    if (code == 0 && array[MASK].data) {
        int64_t allowed = 0;
        for (int64_t i = 0; i < array[MASK].count; i++)
            allowed += value_at(&array[MASK], i) != 0;
        operands->spec.mask_share = array[MASK].count ? (double)allowed / (double)array[MASK].count : 0;
        code = store_broadcast(&array[MASK], &reader->spec, &operands->mask, &operands->args.mask, reader->error);
    }
    return code;
}

/* An expected array as doubles in [B][H][.][.] order, whatever the layout. */
static int take_expected(struct reader *reader, const struct npy *array, enum layout layout, const int64_t size[4],
                         double **expected)
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
                    (*expected)[at++] = value_at(array, b * stride[0] + h * stride[1] + s * stride[2] + d);
    return 0;
}

static int load_json(struct reader *reader)
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
        return error_usage(reader->error, "%s: is %s, not an object", reader->path, kind_of(reader->root));
    return 0;
}

static const char *case_name(const struct reader *reader)
{
    const char *name = json_string_value(json_object_get(reader->root, "name"));
    if (name && *name)
        return intern(name);
    const char *slash = strrchr(reader->directory, '/');
    return intern(slash && slash[1] ? slash + 1 : reader->directory);
}

int case_folder_read(const char *directory, struct case_folder *folder, struct error *error)
{
    struct reader reader = {.directory = directory, .error = error};
    struct npy array[ARRAYS] = {0};
    memset(folder, 0, sizeof *folder);
    if (asprintf(&reader.path, "%s/case.json", directory) < 0)
        return error_system(error, ENOMEM, "%s", directory);
    int code = load_json(&reader);
    if (code == 0)
        code = get_spec(&reader);
    if (code == 0)
        code = read_arrays(&reader, array);
    if (code == 0)
        code = store_inputs(&reader, array, &folder->operands);
    const struct problem_spec *s = &reader.spec;
    if (code == 0)
        code = take_expected(&reader, &array[OUT], s->layout, (int64_t[]){s->B, s->H, s->S_q, s->D_v},
                             &folder->expect_out);
    if (code == 0)
        code = take_expected(&reader, &array[WEIGHTS], LAYOUT_BHSD, (int64_t[]){s->B, s->H, s->S_q, s->S_kv},
                             &folder->expect_weights);
    if (code == 0)
        folder->name = case_name(&reader);
    else
        case_folder_release(folder);
    for (int a = 0; a < ARRAYS; a++)
        npy_release(&array[a]);
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
