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
    const char *command = arguments->argv[0], *word = arguments->argv[optind - 1];
    /* A letter in optopt that is no long flag's: it may stand within a cluster, so the word is not the flag. */
    bool is_long = strncmp(word, "--", 2) == 0;
    if (flag == ':')
        return is_long ? error_usage(error, "%s: %s needs a value", command, word)
                       : error_usage(error, "%s: -%c needs a value", command, optopt);
    if (optopt && !is_long)
        return error_usage(error, "%s: unknown flag -%c (see attnbench %s --help)", command, optopt, command);
    return error_usage(error, "%s: unknown, ambiguous or valueless flag %s (see attnbench %s --help)", command, word,
                       command);
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
        return error_usage(error, "%s: --color %.100s: auto, always or never", arguments->argv[0], value);
    *mode = (enum color_mode)found;
    return 0;
}
