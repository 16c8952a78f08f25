/* SPDX-License-Identifier: Apache-2.0
 *
 * attnbench @man: the part of the manual page that tells of commands and flags, made from the --help of each. Make puts
 * it into scripts/attnbench.1.in, which holds the rest.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "help_text.h"

/* Text as roff takes it: a hyphen that is a minus stays one, and nothing is a request or an escape. */
static void put_text(const char *text, size_t length)
{
    bool line_begins = true;
    for (size_t i = 0; i < length; i++) {
        if (line_begins && (text[i] == '.' || text[i] == '\''))
            fputs("\\&", stdout);
        if (text[i] == '\\')
            fputs("\\e", stdout);
        else if (text[i] == '-')
            fputs("\\-", stdout);
        else if (text[i] == '\'')
            fputs("\\(aq", stdout);
        else if (text[i] == '`')
            fputs("\\(ga", stdout);
        else if (text[i] == '^')
            fputs("\\(ha", stdout);
        else if (text[i] == '~')
            fputs("\\(ti", stdout);
        else
            putchar(text[i]);
        line_begins = text[i] == '\n';
    }
}

/* A paragraph in source lines of less than 80 columns, broken between words. */
static void put_paragraph(const char *text)
{
    enum { WIDTH = 70 };
    size_t column = 0;
    while (*text) {
        text += strspn(text, " ");
        size_t length = strcspn(text, " ");
        if (column > 0 && column + 1 + length > WIDTH) {
            putchar('\n');
            column = 0;
        } else if (column > 0) {
            putchar(' ');
            column++;
        }
        /* At the start of a line put_text guards it; within one a dot is only a dot. */
        put_text(text, length);
        column += length;
        text += length;
    }
    putchar('\n');
}

static void put_bold(const char *text)
{
    fputs("\\fB", stdout);
    put_text(text, strlen(text));
    fputs("\\fR", stdout);
}

static void put_flag(const struct help_part *flag)
{
    fputs(".TP\n", stdout);
    if (flag->short_name)
        put_bold(flag->short_name);
    if (flag->short_name && flag->long_name)
        fputs(", ", stdout);
    if (flag->long_name)
        put_bold(flag->long_name);
    if (flag->argument) {
        fputs(flag->optional_value ? "[=\\fI" : flag->long_name ? "=\\fI" : " \\fI", stdout);
        put_text(flag->argument, strlen(flag->argument));
        fputs(flag->optional_value ? "\\fR]" : "\\fR", stdout);
    }
    putchar('\n');
    put_paragraph(flag->text ? flag->text : "");
}

static void put_usage(const char *usage)
{
    fputs(".nf\n", stdout);
    while (*usage) {
        size_t length = strcspn(usage, "\n");
        put_text(usage, length);
        putchar('\n');
        usage += length + (usage[length] == '\n');
    }
    fputs(".fi\n", stdout);
}

static void put_part(const struct help_part *part)
{
    switch (part->kind) {
    case HELP_USAGE:
        put_usage(part->text);
        break;
    case HELP_TEXT:
        fputs(".PP\n", stdout);
        put_paragraph(part->text);
        break;
    case HELP_HEADING:
        fputs(".PP\n", stdout);
        put_bold(part->text);
        putchar('\n');
        break;
    case HELP_FLAG:
        put_flag(part);
        break;
    case HELP_VERBATIM:
        fputs(".PP\n.nf\n", stdout);
        put_text(part->text, strlen(part->text));
        fputs("\n.fi\n", stdout);
        break;
    }
}

int command_man(int argc, char **argv, struct error *error)
{
    (void)argc;
    (void)argv;
    for (size_t c = 0; c < command_count; c++) {
        struct help_text help;
        int code = help_text_of(&commands[c], &help, error);
        if (code)
            return code;
        printf(".SS %s\n", commands[c].name);
        put_paragraph(commands[c].summary);
        fputs(".PP\n", stdout);
        for (size_t i = 0; i < help.count; i++)
            put_part(&help.parts[i]);
        help_text_release(&help);
    }
    return EXIT_OK;
}
