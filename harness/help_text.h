/* SPDX-License-Identifier: Apache-2.0
 *
 * The --help of a command, taken apart: the one source of what completion offers and the manual page tells.
 */
#ifndef HARNESS_HELP_TEXT_H
#define HARNESS_HELP_TEXT_H

#include <stddef.h>

#include "commands.h"

/* Where a line of a help text belongs. */
enum help_kind {
    HELP_USAGE,   /* "attnbench run [OPTION...]": what --help begins with */
    HELP_TEXT,    /* a paragraph */
    HELP_HEADING, /* of the flags below it */
    HELP_FLAG,    /* one flag with all of its names */
    HELP_VERBATIM /* lines that stand as they are */
};

struct help_part {
    enum help_kind kind;
    char *text;         /* of a flag: what it does; of usage: a line each way to call it */
    char *short_name;   /* "-o"; NULL: has none */
    char *long_name;    /* "--out"; NULL: has none */
    char *argument;     /* "FILE"; NULL: takes no value */
    int optional_value; /* the value may be left out */
};

struct help_text {
    struct help_part *parts;
    size_t count;
};

/* Runs the command with --help. 0 or -errno. Release with help_text_release. */
int help_text_of(const struct command *command, struct help_text *help, struct error *error);
/* The same of a text, as --help prints it. */
void help_text_parse(const char *text, struct help_text *help);
void help_text_release(struct help_text *help);

#endif
