/* SPDX-License-Identifier: Apache-2.0
 *
 * Command lines of the smaller commands; see arguments.h.
 */
#include "arguments.h"

#include <string.h>

int arguments_next(const struct arguments *arguments, bool first, const char **value, struct error *error)
{
    /* 0, not 1: makes glibc forget where in a cluster of short flags an earlier parse stood. */
    if (first)
        optind = 0;
    opterr = 0;
    int flag = getopt_long(arguments->argc, arguments->argv, arguments->short_flags, arguments->long_flags, NULL);
    *value = optarg;
    if (flag == -1)
        return 0;
    if (flag != '?' && flag != ':')
        return flag;
    /* A letter may stand within a cluster, so the last word is not the flag; a long flag's value is above all letters.
     */
    const char *word = arguments->argv[optind - 1];
    bool is_letter = optopt > 0 && optopt < ARGUMENTS_LONG_ONLY;
    if (flag == ':')
        return is_letter ? error_usage(error, "-%c needs a value", optopt)
                         : error_usage(error, "%s needs a value", word);
    if (is_letter)
        return error_usage(error, "unknown flag -%c (attnbench %s --help lists them)", optopt, arguments->argv[0]);
    if (optopt)
        return error_usage(error, "%.200s: this flag takes no value", word);
    return error_usage(error, "unknown flag %.200s (attnbench %s --help lists them)", word, arguments->argv[0]);
}

static int mode_of(const char *text)
{
    static const char *const names[] = {[COLOR_AUTO] = "auto", [COLOR_ALWAYS] = "always", [COLOR_NEVER] = "never"};
    for (int mode = 0; mode < 3; mode++) {
        if (text && strcmp(text, names[mode]) == 0)
            return mode;
    }
    return -1;
}

int arguments_color(const struct arguments *arguments, const char *value, enum color_mode *mode, struct error *error)
{
    if (!value && optind < arguments->argc && mode_of(arguments->argv[optind]) >= 0)
        value = arguments->argv[optind++];
    int found = value ? mode_of(value) : COLOR_ALWAYS;
    if (found < 0)
        return error_usage(error, "--color %.100s: auto, always or never", value);
    *mode = (enum color_mode)found;
    return 0;
}
