/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers, ranges, durations and lists as users type them; see values.h.
 */
#include "values.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *quoted(const char *text, char buffer[QUOTED_BYTES])
{
    enum { KEPT = QUOTED_BYTES - 6 };
    size_t length = strlen(text), out = 0;
    buffer[out++] = '\'';
    for (size_t i = 0; i < length && i < KEPT; i++)
        buffer[out++] = iscntrl((unsigned char)text[i]) ? '?' : text[i];
    snprintf(buffer + out, QUOTED_BYTES - out, "%s'", length > KEPT ? "..." : "");
    return buffer;
}

int value_list_add(struct value_list *list, struct value value, struct error *error)
{
    if (list->count == VALUES_MAX)
        return error_usage(error, "more than %d values", VALUES_MAX);
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 8;
        struct value *items = realloc(list->items, room * sizeof *items);
        if (!items)
            return error_system(error, ENOMEM, "%zu values", room);
        list->items = items;
        list->room = room;
    }
    list->items[list->count++] = value;
    return 0;
}

void value_list_release(struct value_list *list)
{
    free(list->items);
    *list = (struct value_list){0};
}

/* Digits with an optional k or m, from text on. *end: behind them. -ERANGE: does not fit; -EINVAL: no number. */
static int scan_size(const char *text, const char **end, int64_t *size)
{
    if (!isdigit((unsigned char)*text))
        return -EINVAL;
    char *behind;
    errno = 0;
    long long number = strtoll(text, &behind, 10);
    if (errno)
        return -ERANGE;
    int shift = *behind == 'k' || *behind == 'K' ? 10 : *behind == 'm' || *behind == 'M' ? 20 : 0;
    if (number > INT64_MAX >> shift)
        return -ERANGE;
    *size = number << shift;
    *end = behind + (shift != 0);
    return 0;
}

static int size_error(const char *text, int code, struct error *error)
{
    char shown[QUOTED_BYTES];
    if (code == -ERANGE)
        return error_usage(error, "%s is too large", quoted(text, shown));
    return error_usage(error, "%s is not a whole number of at least 0 (like 512 or 2k)", quoted(text, shown));
}

int value_size(const char *text, int64_t *size, struct error *error)
{
    const char *end = text;
    int code = scan_size(text, &end, size);
    return code || *end ? size_error(text, code ? code : -EINVAL, error) : 0;
}

/* How many values first, first * factor or first + step, ... not above last. */
static double range_count(int64_t first, int64_t last, bool multiply, int64_t step)
{
    if (!multiply)
        return (double)((last - first) / step) + 1;
    double count = 1;
    for (int64_t x = first; x <= last / step; x *= step)
        count++;
    return count;
}

int value_range(const char *text, const char *where, struct value_list *list, struct error *error)
{
    char shown[QUOTED_BYTES];
    int64_t first = 0, last = 0, step = 0;
    const char *at = text;
    int code = scan_size(text, &at, &first);
    if (!code && !*at)
        return value_list_add(list, (struct value){.integer = first, .where = where}, error);
    if (code == -ERANGE)
        return size_error(text, code, error);
    if (code || *at != '-')
        return error_usage(error, "%s is not a whole number of at least 0 or a range (like 512, 2k, 128-4096x2)",
                           quoted(text, shown));
    code = scan_size(at + 1, &at, &last);
    bool multiply = *at == 'x' || *at == '*';
    if (!code && (multiply || *at == '+'))
        code = scan_size(at + 1, &at, &step);
    else if (!code)
        return error_usage(error, "range %s needs a step (like 128-4096x2 or 128-1024+128)", quoted(text, shown));
    if (code == -ERANGE)
        return size_error(text, code, error);
    if (code || *at)
        return error_usage(error, "%s is not a range (like 128-4096x2 or 128-1024+128)", quoted(text, shown));
    if (step == 0 || (multiply && (step == 1 || first == 0)))
        return error_usage(error, "range %s never ends", quoted(text, shown));
    if (last < first)
        return error_usage(error, "range %s ends below its start", quoted(text, shown));
    double count = range_count(first, last, multiply, step);
    if (count > VALUES_MAX)
        return error_usage(error, "range %s has %.15g values, more than %d", quoted(text, shown), count, VALUES_MAX);
    int64_t x = first;
    for (double i = 0; i < count; i++) {
        code = value_list_add(list, (struct value){.integer = x, .where = where}, error);
        if (code)
            return code;
        if (i + 1 < count)
            x = multiply ? x * step : x + step;
    }
    return 0;
}

/* strtod without its hexadecimal, "inf" and "nan" forms. */
static bool scan_number(const char *text, const char **end, double *number)
{
    size_t length = strspn(text, "+-.0123456789eE");
    char *behind;
    errno = 0;
    *number = strtod(text, &behind);
    *end = behind;
    return behind > text && behind <= text + length && isfinite(*number);
}

int value_number(const char *text, double *number, struct error *error)
{
    char shown[QUOTED_BYTES];
    const char *end;
    if (!scan_number(text, &end, number) || *end)
        return error_usage(error, "%s is not a finite number", quoted(text, shown));
    return 0;
}

int value_duration(const char *text, double *seconds, struct error *error)
{
    static const struct {
        const char *unit;
        double seconds;
    } units[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}};
    char shown[QUOTED_BYTES];
    const char *end;
    double number;
    if (!scan_number(text, &end, &number))
        return error_usage(error, "%s is not a duration (like 0.5s, 200ms, 10m)", quoted(text, shown));
    if (!*end)
        return error_usage(error, "%s has no unit (like 0.5s, 200ms, 10m)", quoted(text, shown));
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(end, units[i].unit) != 0)
            continue;
        *seconds = number * units[i].seconds;
        if (!(*seconds > 0) || isinf(*seconds))
            return error_usage(error, "%s is not a duration of more than 0", quoted(text, shown));
        return 0;
    }
    return error_usage(error, "%s is not a duration (like 0.5s, 200ms, 10m)", quoted(text, shown));
}

int value_bytes(const char *text, double *bytes, struct error *error)
{
    static const char units[] = "kmg";
    char shown[QUOTED_BYTES];
    const char *end;
    double number, unit = 1;
    if (!scan_number(text, &end, &number))
        return error_usage(error, "%s is not an amount of memory (like 500m, 4g)", quoted(text, shown));
    const char *letter = *end ? strchr(units, *end | 0x20) : NULL;
    if (*end && (!letter || end[1]))
        return error_usage(error, "%s is not an amount of memory (like 500m, 4g)", quoted(text, shown));
    for (const char *u = units; letter && u <= letter; u++)
        unit *= 1024;
    *bytes = number * unit;
    if (!(*bytes >= 1) || isinf(*bytes))
        return error_usage(error, "%s is not an amount of memory of at least a byte", quoted(text, shown));
    return 0;
}

int value_share(const char *text, double *share, struct error *error)
{
    char shown[QUOTED_BYTES];
    const char *end;
    double number;
    const bool read = scan_number(text, &end, &number), percent = read && strcmp(end, "%") == 0;
    if (percent)
        number /= 100;
    if (!read || (*end && !percent) || !(number > 0 && number < 1))
        return error_usage(error, "%s is not a share between 0 and 1 (like 2%% or 0.02)", quoted(text, shown));
    *share = number;
    return 0;
}

int value_seed(const char *text, int64_t *seed, struct error *error)
{
    char shown[QUOTED_BYTES];
    char *end;
    errno = 0;
    long long number = isdigit((unsigned char)*text) ? strtoll(text, &end, 10) : -1;
    if (number < 0 || errno || *end)
        return error_usage(error, "%s is not a seed (0 to %" PRId64 ")", quoted(text, shown), INT64_MAX);
    *seed = number;
    return 0;
}
