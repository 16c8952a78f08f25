/* SPDX-License-Identifier: Apache-2.0
 *
 * Specs as JSON: the field names of the results file; see spec.h.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "intern.h"
#include "spec.h"
#include "spec_sizes.h"

static json_t *mask_to_json(const struct problem_spec *spec)
{
    char text[32];
    return spec->mask_share >= 0 ? json_sprintf("random:%s", number_text(spec->mask_share, text)) : json_null();
}

static json_t *window_to_json(const struct problem_spec *spec)
{
    if (!spec->window)
        return json_null();
    int64_t right = spec->window_right == WINDOW_NOT_GIVEN ? 0 : spec->window_right;
    return json_sprintf("%" PRId64 ":%" PRId64, spec->window_left, right);
}

static json_t *sizes_to_json(const struct problem_spec *spec)
{
    if (spec->rule == ATTN_SCALED_DOT_PRODUCT)
        return json_null();
    json_t *sizes = json_object();
    for (int i = 0; i < spec_sizes_count; i++)
        if (spec_has_size(spec, &spec_sizes[i]))
            json_object_set_new(sizes, spec_sizes[i].field, json_integer(spec_size_value(spec, &spec_sizes[i])));
    for (int i = 0; i < spec_switches_count; i++)
        if (spec_has_switch(spec, &spec_switches[i]))
            json_object_set_new(sizes, spec_switches[i].field,
                                json_boolean(spec_switch_value(spec, &spec_switches[i])));
    if (spec->rule == ATTN_MATMUL) {
        json_object_set_new(sizes, "broadcast", json_string(broadcast_name(spec->broadcast)));
        json_object_set_new(sizes, "semantics", json_string(semantics_name(spec->semantics)));
    }
    return sizes;
}

json_t *spec_to_json(const struct problem_spec *spec)
{
    json_t *object = json_object();
    json_object_set_new(object, "rule", json_string(rule_name(spec->rule)));
    json_object_set_new(object, "dtype", json_string(dtype_name(spec->dtype)));
    json_object_set_new(object, "layout", json_string(spec->rule == ATTN_MATMUL ? "none" : layout_name(spec->layout)));
    json_object_set_new(object, "B", json_integer(spec->B));
    json_object_set_new(object, "H", json_integer(spec->H));
    json_object_set_new(object, "H_kv", json_integer(spec->H_kv));
    json_object_set_new(object, "S_q", json_integer(spec->S_q));
    json_object_set_new(object, "S_kv", json_integer(spec->S_kv));
    json_object_set_new(object, "D", json_integer(spec->D));
    json_object_set_new(object, "D_v", json_integer(spec->D_v));
    json_object_set_new(object, "scale", rule_has_scale(spec->rule) ? json_real(spec_scale(spec)) : json_null());
    json_object_set_new(object, "causal", json_string(causal_name(spec->causal)));
    json_object_set_new(object, "kv_lengths", json_string(spec->kv_lengths));
    json_object_set_new(object, "mask", mask_to_json(spec));
    json_object_set_new(object, "bias", json_boolean(spec->bias));
    json_object_set_new(object, "window", window_to_json(spec));
    json_object_set_new(object, "softcap", spec->softcap > 0 ? json_real(spec->softcap) : json_null());
    json_object_set_new(object, "weights", json_boolean(spec->weights));
    json_object_set_new(object, "alias", json_string(alias_name(spec->alias)));
    json_object_set_new(object, "fill", json_string(fill_name(spec->fill)));
    json_object_set_new(object, "seed", json_integer((json_int_t)spec->seed));
    json_object_set_new(object, "sizes", sizes_to_json(spec));
    return object;
}

static int field_name(const json_t *object, const char *field, int (*from_name)(const char *), int *value,
                      struct error *error)
{
    const char *text = json_string_value(json_object_get(object, field));
    if (!text)
        return error_usage(error, "field '%s' is missing or not a string", field);
    *value = from_name(text);
    return *value < 0 ? error_usage(error, "field '%s': unknown value '%s'", field, text) : 0;
}

static int field_integer(const json_t *object, const char *field, int64_t *value, struct error *error)
{
    const json_t *item = json_object_get(object, field);
    if (!json_is_integer(item))
        return error_usage(error, "field '%s' is missing or not an integer", field);
    *value = json_integer_value(item);
    return 0;
}

static int field_boolean(const json_t *object, const char *field, bool *value, struct error *error)
{
    const json_t *item = json_object_get(object, field);
    if (!json_is_boolean(item) && !json_is_null(item))
        return error_usage(error, "field '%s' is missing or not a boolean", field);
    *value = json_is_true(item);
    return 0;
}

/* null reads as the value given. */
static int field_number(const json_t *object, const char *field, double if_null, double *value, struct error *error)
{
    const json_t *item = json_object_get(object, field);
    if (!json_is_number(item) && !json_is_null(item))
        return error_usage(error, "field '%s' is missing or not a number", field);
    *value = json_is_null(item) ? if_null : json_number_value(item);
    return 0;
}

static int field_mask(const json_t *object, struct problem_spec *spec, struct error *error)
{
    const json_t *item = json_object_get(object, "mask");
    spec->mask_share = -1;
    if (json_is_null(item))
        return 0;
    const char *text = json_string_value(item);
    char *end = NULL;
    if (text && strncmp(text, "random:", 7) == 0)
        spec->mask_share = strtod(text + 7, &end);
    return end && end > text + 7 && !*end ? 0 : error_usage(error, "field 'mask' is neither null nor 'random:P'");
}

static int field_window(const json_t *object, struct problem_spec *spec, struct error *error)
{
    const json_t *item = json_object_get(object, "window");
    spec->window = !json_is_null(item);
    if (!spec->window)
        return 0;
    const char *text = json_string_value(item);
    int used = 0;
    if (!text || sscanf(text, "%" SCNd64 ":%" SCNd64 "%n", &spec->window_left, &spec->window_right, &used) != 2 ||
        text[used])
        return error_usage(error, "field 'window' is neither null nor 'L:R'");
    return 0;
}

/* matmul has no layout. */
static int field_layout(const json_t *object, enum attn_rule rule, int *layout, struct error *error)
{
    const char *text = json_string_value(json_object_get(object, "layout"));
    *layout = LAYOUT_BHSD;
    if (rule == ATTN_MATMUL && text && strcmp(text, "none") == 0)
        return 0;
    return field_name(object, "layout", layout_from_name, layout, error);
}

static int field_sizes(const json_t *object, struct problem_spec *spec, struct error *error)
{
    const json_t *sizes = json_object_get(object, "sizes");
    int code = 0, broadcast = BROADCAST_NONE, semantics = SEMANTICS_MATMUL;
    if (spec->rule == ATTN_SCALED_DOT_PRODUCT)
        return 0;
    if (!json_is_object(sizes))
        return error_usage(error, "field 'sizes' is missing or not an object");
    for (int i = 0; i < spec_switches_count && !code; i++)
        if (spec_has_switch(spec, &spec_switches[i]))
            code = field_boolean(sizes, spec_switches[i].field, spec_switch_place(spec, &spec_switches[i]), error);
    for (int i = 0; i < spec_sizes_count && !code; i++)
        if (spec_has_size(spec, &spec_sizes[i]))
            code = field_integer(sizes, spec_sizes[i].field, spec_size_place(spec, &spec_sizes[i]), error);
    if (spec->rule == ATTN_MATMUL && !code &&
        !(code = field_name(sizes, "broadcast", broadcast_from_name, &broadcast, error)))
        code = field_name(sizes, "semantics", semantics_from_name, &semantics, error);
    spec->broadcast = (enum broadcast)broadcast;
    spec->semantics = (enum semantics)semantics;
    return code ? error_prefix(error, code, "field 'sizes'") : 0;
}

int spec_from_json(const json_t *object, struct problem_spec *spec, struct error *error)
{
    int rule = -1, dtype = -1, layout = -1, causal = -1, alias = -1, fill = -1, code;
    int64_t seed = 0;
    *spec = spec_default();
    if ((code = field_name(object, "rule", rule_from_name, &rule, error)) ||
        (code = field_name(object, "dtype", dtype_from_name, &dtype, error)) ||
        (code = field_layout(object, (enum attn_rule)rule, &layout, error)) ||
        (code = field_name(object, "causal", causal_from_name, &causal, error)) ||
        (code = field_name(object, "alias", alias_from_name, &alias, error)) ||
        (code = field_name(object, "fill", fill_from_name, &fill, error)) ||
        (code = field_integer(object, "B", &spec->B, error)) || (code = field_integer(object, "H", &spec->H, error)) ||
        (code = field_integer(object, "H_kv", &spec->H_kv, error)) ||
        (code = field_integer(object, "S_q", &spec->S_q, error)) ||
        (code = field_integer(object, "S_kv", &spec->S_kv, error)) ||
        (code = field_integer(object, "D", &spec->D, error)) ||
        (code = field_integer(object, "D_v", &spec->D_v, error)) ||
        (code = field_integer(object, "seed", &seed, error)) ||
        (code = field_boolean(object, "bias", &spec->bias, error)) ||
        (code = field_boolean(object, "weights", &spec->weights, error)) ||
        (code = field_number(object, "scale", NAN, &spec->scale, error)) ||
        (code = field_number(object, "softcap", 0, &spec->softcap, error)) ||
        (code = field_mask(object, spec, error)) || (code = field_window(object, spec, error)))
        return code;
    const char *kv_lengths = json_string_value(json_object_get(object, "kv_lengths"));
    if (!kv_lengths)
        return error_usage(error, "field 'kv_lengths' is missing or not a string");
    spec->rule = (enum attn_rule)rule;
    spec->dtype = (enum attn_dtype)dtype;
    spec->layout = (enum layout)layout;
    spec->causal = (enum causal)causal;
    spec->alias = (enum alias)alias;
    spec->fill = (enum fill)fill;
    spec->seed = (uint64_t)seed;
    spec->kv_lengths = intern(kv_lengths);
    return field_sizes(object, spec, error);
}
