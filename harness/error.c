/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors as values; see error.h.
 */
#include "error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int error_usage(struct error *error, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(error->text, sizeof error->text, format, list);
    va_end(list);
    error->exit_code = EXIT_USAGE;
    return -EINVAL;
}

int error_system(struct error *error, int number, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(error->text, sizeof error->text, format, list);
    va_end(list);
    size_t used = strlen(error->text);
    snprintf(error->text + used, sizeof error->text - used, ": %s", strerror(number));
    error->exit_code = EXIT_WRONG;
    return -number;
}

int error_wrong(struct error *error, int number, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(error->text, sizeof error->text, format, list);
    va_end(list);
    error->exit_code = EXIT_WRONG;
    return -number;
}

int error_machine(struct error *error, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(error->text, sizeof error->text, format, list);
    va_end(list);
    error->exit_code = EXIT_NOTHING_RAN;
    return -ENOTSUP;
}

int error_prefix(struct error *error, int code, const char *format, ...)
{
    char prefix[sizeof error->text / 2];
    char rest[sizeof error->text];
    va_list list;
    va_start(list, format);
    vsnprintf(prefix, sizeof prefix, format, list);
    va_end(list);
    memcpy(rest, error->text, sizeof rest);
    snprintf(error->text, sizeof error->text, "%s: %.*s", prefix, (int)(sizeof rest - sizeof prefix - 3), rest);
    return code;
}
