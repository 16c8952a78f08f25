/* SPDX-License-Identifier: Apache-2.0
 *
 * Command lines of the smaller commands: getopt with errors of one line that name the flag.
 */
#ifndef HARNESS_ARGUMENTS_H
#define HARNESS_ARGUMENTS_H

#include <getopt.h>
#include <stdbool.h>

#include "options.h"

/* Each `val` of long_flags is at least this, so that an error about it is told from one about a letter. */
enum { ARGUMENTS_LONG_ONLY = 256 };

struct arguments {
    int argc;
    char **argv;             /* argv[0] is the command's name; reordered so that operands come last */
    const char *short_flags; /* getopt's string, beginning with ':' */
    const struct option *long_flags;
};

/* The next flag's letter, or `val` of a long one; its value in *value; 0: no more, operands begin at argv[optind];
 * -EINVAL: unknown flag or missing value. first: begins anew (getopt's state is the process's). */
int arguments_next(const struct arguments *arguments, bool first, const char **value, struct error *error);

/* The WHEN of --color, --color=WHEN and --color WHEN (auto, always, never; always if there is none). value: what
 * arguments_next gave; takes the next word if it is one of the three. */
int arguments_color(const struct arguments *arguments, const char *value, enum color_mode *mode, struct error *error);

#endif
