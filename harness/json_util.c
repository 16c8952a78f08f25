/* SPDX-License-Identifier: Apache-2.0
 *
 * Small helpers over jansson; see json_util.h.
 */
#include "json_util.h"

#include <math.h>
#include <stdlib.h>

json_t *json_number_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *json_count_or_null(int64_t value)
{
    return value >= 0 ? json_integer(value) : json_null();
}

json_t *json_text(const char *text, size_t length)
{
    json_t *value = json_stringn(text, length);
    if (value)
        return value;
    char *copy = malloc(length + 1);
    if (!copy)
        abort(); /* memory is exhausted; text that is left out would be worse than none of what it stands in */
    for (size_t i = 0; i < length; i++)
        copy[i] = (unsigned char)text[i] < 128 ? text[i] : '?';
    value = json_stringn(copy, length);
    free(copy);
    return value;
}

double json_get_number(const json_t *object, const char *key, double fallback)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : fallback;
}

int64_t json_get_int(const json_t *object, const char *key, int64_t fallback)
{
    const json_t *value = json_object_get(object, key);
    if (json_is_integer(value))
        return json_integer_value(value);
    /* Within 2^53 a real holds every integer exactly. */
    if (json_is_real(value) && fabs(json_real_value(value)) <= 9007199254740992.0 &&
        json_real_value(value) == trunc(json_real_value(value)))
        return (int64_t)json_real_value(value);
    return fallback;
}

const char *json_get_string(const json_t *object, const char *key, const char *fallback)
{
    const json_t *value = json_object_get(object, key);
    return json_is_string(value) ? json_string_value(value) : fallback;
}
