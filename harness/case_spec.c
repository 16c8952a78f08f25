/* SPDX-License-Identifier: Apache-2.0
 *
 * The problem that case.json describes, by rule; see case_reader.h and case_folder.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "case_reader.h"
#include "intern.h"

static int wrong_list(const struct case_reader *reader, const char *key, const json_t *value, const char *expected)
{
    return error_usage(reader->error, "%s: key '%s' is %s, not %s", reader->path, key, case_kind(value), expected);
}

static int read_kv_lengths(struct case_reader *reader)
{
    static const char wanted[] = "a list of integers";
    const json_t *list = json_object_get(reader->root, "kv_lengths");
    reader->spec.kv_lengths = intern("full");
    if (!list || json_is_null(list))
        return 0;
    if (!json_is_array(list))
        return wrong_list(reader, "kv_lengths", list, wanted);
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
            return wrong_list(reader, "kv_lengths", length, wanted);
        }
        used += (size_t)sprintf(text + used, "%s%" JSON_INTEGER_FORMAT, b ? ":" : "", json_integer_value(length));
    }
    if (count > 0)
        reader->spec.kv_lengths = intern(text);
    free(text);
    return 0;
}

/* null, L or [L, R]. */
static int read_window(struct case_reader *reader)
{
    static const char wanted[] = "an integer or a list of two";
    const json_t *window = json_object_get(reader->root, "window"), *left = window, *right = NULL;
    if (!window || json_is_null(window))
        return 0;
    if (json_is_array(window)) {
        left = json_array_get(window, 0);
        right = json_array_get(window, 1);
        if (json_array_size(window) != 2 || !json_is_integer(right))
            return wrong_list(reader, "window", window, wanted);
    }
    if (!json_is_integer(left))
        return wrong_list(reader, "window", left, wanted);
    reader->spec.window = true;
    reader->spec.window_left = json_integer_value(left);
    reader->spec.window_right = right ? json_integer_value(right) : WINDOW_NOT_GIVEN;
    /* WINDOW_NOT_GIVEN is a number too; no file may say it. */
    if (right && reader->spec.window_right < WINDOW_OPEN)
        return error_usage(reader->error, "%s: key 'window': right %" PRId64 " is less than 0 (-1 is open)",
                           reader->path, reader->spec.window_right);
    return 0;
}

/* BSD is BHSD without the heads. */
static int layout_or_bsd(const char *name)
{
    return strcmp(name, "BSD") == 0 ? LAYOUT_HBSD + 1 : layout_from_name(name);
}

static int read_layout(struct case_reader *reader)
{
    int layout = LAYOUT_BHSD;
    int code = case_name(reader, "layout", false, layout_or_bsd, &layout);
    reader->no_heads = layout == LAYOUT_HBSD + 1;
    reader->spec.layout = reader->no_heads ? LAYOUT_BHSD : (enum layout)layout;
    return code;
}

struct wanted_size {
    const char *key;
    bool required;
    int64_t *size;
    const int64_t *otherwise; /* where it is absent; NULL: it stays */
};

static int read_sizes(const struct case_reader *reader, const struct wanted_size *wanted, size_t count)
{
    int code = 0;
    for (size_t i = 0; i < count && code == 0; i++) {
        if (wanted[i].otherwise)
            *wanted[i].size = *wanted[i].otherwise;
        code = case_integer(reader, wanted[i].key, wanted[i].required, wanted[i].size);
    }
    return code;
}

/* Sizes by the names of the golden cases; one that follows from another comes behind it. */
static int read_rule_sizes(struct case_reader *reader)
{
    struct problem_spec *s = &reader->spec;
    const bool single = s->single, scored = s->rule == ATTN_SCALED_DOT_PRODUCT;
    const struct wanted_size scaled[] = {
        {"heads", true, &s->H, NULL},
        {"kv_heads", false, &s->H_kv, &s->H},
        {"head_dim", true, &s->D, NULL},
        {"value_dim", false, &s->D_v, &s->D},
    };
    const struct wanted_size additive[] = {
        {"heads", false, &s->H, NULL},      {"kv_heads", false, &s->H_kv, &s->H},
        {"query_dim", true, &s->D, NULL},   {"key_dim", true, &s->key_dim, NULL},
        {"value_dim", true, &s->D_v, NULL}, {"hidden_dim", true, &s->hidden, NULL},
    };
    const struct wanted_size concat[] = {
        {"heads", false, &s->H, NULL},      {"kv_heads", false, &s->H_kv, &s->H},
        {"query_dim", true, &s->D, NULL},   {"key_dim", true, &s->key_dim, NULL},
        {"value_dim", true, &s->D_v, NULL}, {"out_dim", s->combine, &s->out_dim, NULL},
    };
    const struct wanted_size layer[] = {
        {"model_dim_k", !single, &s->model_dim, single ? &s->D : NULL},
        {"model_dim_v", false, &s->model_dim_v, single ? &s->D_v : &s->model_dim},
        {"out_dim", !single, &s->out_dim, NULL},
        {"input_dim", s->rule == ATTN_SELF_ATTENTION, &s->input_dim, NULL},
    };
    int code = 0;
    if (s->rule == ATTN_ADDITIVE)
        return read_sizes(reader, additive, sizeof additive / sizeof *additive);
    if (s->rule == ATTN_CONCAT)
        return read_sizes(reader, concat, sizeof concat / sizeof *concat);
    code = read_sizes(reader, scaled, sizeof scaled / sizeof *scaled);
    if (code == 0 && !scored)
        code = read_sizes(reader, layer, sizeof layer / sizeof *layer);
    if (s->rule != ATTN_SELF_ATTENTION)
        s->input_dim = 0;
    if (single)
        s->out_dim = 0;
    return code;
}

/* What is told by an array that is there or not. */
static int read_switches(struct case_reader *reader)
{
    struct problem_spec *s = &reader->spec;
    bool heads = true;
    int code = s->rule == ATTN_SELF_ATTENTION ? case_boolean(reader, "multi_head", &heads) : 0;
    const json_t *out_dim = json_object_get(reader->root, "out_dim");
    s->single = !heads;
    s->plain_sum = s->rule == ATTN_ADDITIVE && !case_has_array(reader, "inputs", "u");
    s->combine =
        s->rule == ATTN_CONCAT && ((out_dim && !json_is_null(out_dim)) || case_has_array(reader, "inputs", "w_out"));
    return code;
}

int case_read_spec(struct case_reader *reader)
{
    struct problem_spec *spec = &reader->spec;
    const enum attn_rule rule = spec->rule;
    int dtype = ATTN_F32, causal = CAUSAL_NONE, code;
    *spec = spec_default();
    spec->rule = rule;
    spec->seed = 0;
    if ((code = read_layout(reader)) < 0 || (code = read_switches(reader)) < 0 ||
        (code = case_integer(reader, "batch", true, &spec->B)) < 0 || (code = read_rule_sizes(reader)) < 0 ||
        (code = case_integer(reader, "q_len", true, &spec->S_q)) < 0)
        return code;
    spec->S_kv = spec->S_q;
    if ((code = case_integer(reader, "kv_len", rule != ATTN_SELF_ATTENTION, &spec->S_kv)) < 0 ||
        (code = case_number(reader, "scale", &spec->scale)) < 0 ||
        (code = case_number(reader, "softcap", &spec->softcap)) < 0 ||
        (code = case_name(reader, "causal", false, causal_from_name, &causal)) < 0 ||
        (code = case_name(reader, "dtype", false, dtype_from_name, &dtype)) < 0 || (code = read_window(reader)) < 0 ||
        (code = read_kv_lengths(reader)) < 0)
        return code;
    spec->dtype = (enum attn_dtype)dtype;
    spec->causal = (enum causal)causal;
    code = spec_validate(spec, true, reader->error);
    if (code < 0)
        return error_prefix(reader->error, code, "%s", reader->path);
    const bool layer = rule == ATTN_MULTI_HEAD || rule == ATTN_SELF_ATTENTION;
    /* A layer's arrays have no heads: its layout tells whether heads are copied together. */
    if (layer && spec->layout == LAYOUT_BSHD)
        spec->layout = LAYOUT_BHSD;
    if (layer)
        reader->no_heads = true;
    if (reader->no_heads && !layer && spec->H != 1)
        return error_usage(reader->error, "%s: layout BSD has no heads, but key 'heads' is %" PRId64, reader->path,
                           spec->H);
    return 0;
}
