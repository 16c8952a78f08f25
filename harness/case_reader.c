/* SPDX-License-Identifier: Apache-2.0
 *
 * Values and arrays of a case folder; see case_reader.h.
 */
#include "case_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fill.h"

const char *case_kind(const json_t *value)
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

static int wrong_kind(const struct case_reader *reader, const char *key, const json_t *value, const char *expected)
{
    return error_usage(reader->error, "%s: key '%s' is %s, not %s", reader->path, key, case_kind(value), expected);
}

int case_missing(const struct case_reader *reader, const char *key)
{
    return error_usage(reader->error, "%s: key '%s' is missing", reader->path, key);
}

int case_integer(const struct case_reader *reader, const char *key, bool required, int64_t *value)
{
    const json_t *entry = json_object_get(reader->root, key);
    if (!entry || json_is_null(entry))
        return required ? case_missing(reader, key) : 0;
    if (!json_is_integer(entry))
        return wrong_kind(reader, key, entry, "an integer");
    *value = json_integer_value(entry);
    return 0;
}

int case_number(const struct case_reader *reader, const char *key, double *value)
{
    const json_t *entry = json_object_get(reader->root, key);
    if (!entry || json_is_null(entry))
        return 0;
    if (!json_is_number(entry))
        return wrong_kind(reader, key, entry, "a number");
    *value = json_number_value(entry);
    return 0;
}

int case_boolean(const struct case_reader *reader, const char *key, bool *value)
{
    const json_t *entry = json_object_get(reader->root, key);
    if (!entry || json_is_null(entry))
        return 0;
    if (!json_is_boolean(entry))
        return wrong_kind(reader, key, entry, "true or false");
    *value = json_is_true(entry);
    return 0;
}

int case_name(const struct case_reader *reader, const char *key, bool required, int (*from_name)(const char *),
              int *value)
{
    const json_t *entry = json_object_get(reader->root, key);
    if (!entry || json_is_null(entry))
        return required ? case_missing(reader, key) : 0;
    if (!json_is_string(entry))
        return wrong_kind(reader, key, entry, "a string");
    int found = from_name(json_string_value(entry));
    if (found < 0)
        return error_usage(reader->error, "%s: key '%s' has the unknown value '%.60s'", reader->path, key,
                           json_string_value(entry));
    *value = found;
    return 0;
}

bool case_has_array(const struct case_reader *reader, const char *group, const char *name)
{
    const json_t *entry = json_object_get(json_object_get(reader->root, group), name);
    return entry && !json_is_null(entry);
}

/* The file that inputs.NAME or expect.NAME refers to, malloc'd in *path; NULL there if absent and not required. */
static int find_array(const struct case_reader *reader, const struct case_array *wanted, char **path)
{
    char key[32];
    snprintf(key, sizeof key, "%s.%s", wanted->group, wanted->name);
    *path = NULL;
    const json_t *entries = json_object_get(reader->root, wanted->group);
    if (entries && !json_is_null(entries) && !json_is_object(entries))
        return wrong_kind(reader, wanted->group, entries, "an object");
    const json_t *entry = json_object_get(entries, wanted->name);
    if (!entry || json_is_null(entry))
        return wanted->required ? case_missing(reader, key) : 0;
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

static bool fits(const struct npy *array, const struct case_array *wanted)
{
    if (wanted->rank < 0)
        return true;
    if (array->rank != wanted->rank)
        return false;
    for (int i = 0; i < array->rank; i++)
        if (array->shape[i] != wanted->shape[i] && !(wanted->broadcast && array->shape[i] == 1))
            return false;
    return true;
}

int case_read_array(const struct case_reader *reader, const struct case_array *wanted, struct npy *array)
{
    char *path, got[160], want[160];
    memset(array, 0, sizeof *array);
    int code = find_array(reader, wanted, &path);
    if (code < 0 || !path)
        return code;
    code = npy_read(path, array, reader->error);
    if (code < 0)
        goto done;
    if (is_float(array->type) != wanted->floats) {
        code = error_usage(reader->error, "%s: elements are %s, %s.%s needs %s", path, npy_type_name(array->type),
                           wanted->group, wanted->name, wanted->floats ? "float32 or float64" : "bool");
    } else if (!fits(array, wanted)) {
        npy_shape_text(array->rank, array->shape, got, sizeof got);
        npy_shape_text(wanted->rank, wanted->shape, want, sizeof want);
        code = error_usage(reader->error, "%s: shape %s, case.json says %s%s", path, got, want,
                           wanted->broadcast ? " (or 1 where it broadcasts)" : "");
    }
done:
    if (code < 0)
        npy_release(array);
    free(path);
    return code;
}

double case_value(const struct npy *array, int64_t i)
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

void case_store(const struct npy *array, enum attn_dtype dtype, void *data)
{
    for (int64_t i = 0; i < array->count; i++) {
        float x = (float)case_value(array, i);
        if (dtype == ATTN_F32)
            ((float *)data)[i] = x;
        else
            ((uint16_t *)data)[i] = dtype == ATTN_BF16 ? bf16_from_float(x) : f16_from_float(x);
    }
}
