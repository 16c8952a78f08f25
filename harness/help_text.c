/* SPDX-License-Identifier: Apache-2.0
 *
 * Taking a --help apart; see help_text.h.
 */
#include "help_text.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Flags stand to the left of this column, what they do from about there on. */
enum { FLAG_INDENT = 8 };

static char *copy_of(const char *text, size_t length)
{
    char *copy = strndup(text, length);
    if (!copy)
        abort(); /* memory is exhausted; a manual with flags left out would be worse than none */
    return copy;
}

static struct help_part *add_part(struct help_text *help, enum help_kind kind)
{
    struct help_part *grown = realloc(help->parts, (help->count + 1) * sizeof *grown);
    if (!grown)
        abort();
    help->parts = grown;
    grown[help->count] = (struct help_part){.kind = kind};
    return &grown[help->count++];
}

/* Adds a line to the part's text, after `gap` where something stands there already. */
static void add_text(struct help_part *part, const char *gap, const char *text, size_t length)
{
    size_t used = part->text ? strlen(part->text) : 0, size = used + strlen(gap) + length + 1;
    char *grown = realloc(part->text, size);
    if (!grown)
        abort();
    snprintf(grown + used, size - used, "%s%.*s", used ? gap : "", (int)length, text);
    part->text = grown;
}

/* The value behind a flag's name, "=FILE", "[=true,false]" or " FILE"; returns what stands behind it. */
static const char *read_argument(struct help_part *part, const char *at)
{
    part->optional_value |= at[0] == '[';
    bool is_word = at[0] == ' ' && at[1] && at[1] != ' ' && at[1] != '-';
    if (at[0] != '=' && strncmp(at, "[=", 2) != 0 && !is_word)
        return at;
    at += at[0] == '[' ? 2 : 1;
    size_t length = strcspn(at, part->optional_value ? "]" : " "), end = length;
    bool goes_on = at[length > 0 ? length - 1 : 0] == ','; /* "-o OUT, --output OUT" */
    free(part->argument);
    part->argument = copy_of(at, length - goes_on);
    return at + end - goes_on + (part->optional_value && at[end] == ']');
}

/* "-o OUT, --output OUT  file to write": names, value, what it does. */
static void read_flag(struct help_part *part, const char *line, size_t length)
{
    char *copy = copy_of(line, length);
    const char *at = copy + strspn(copy, " ");
    for (;;) {
        size_t name = strcspn(at, " =[,");
        char **slot = at[1] == '-' ? &part->long_name : &part->short_name;
        free(*slot);
        *slot = copy_of(at, name);
        at = read_argument(part, at + name);
        if (strncmp(at, ", -", 3) != 0)
            break;
        at += 2;
    }
    at += strspn(at, " ");
    if (*at)
        add_text(part, "", at, strlen(at));
    free(copy);
}

static bool is_flag_line(const char *line, size_t length, size_t indent)
{
    return indent > 0 && indent <= FLAG_INDENT && indent + 1 < length && line[indent] == '-' &&
           (isalnum((unsigned char)line[indent + 1]) || line[indent + 1] == '-');
}

/* What a line is, from its indentation and what stands above it. */
static void read_line(struct help_text *help, const char *line, size_t length, bool after_gap)
{
    size_t indent = strspn(line, " ");
    struct help_part *last = help->count ? &help->parts[help->count - 1] : NULL;
    bool goes_on = last && !after_gap;
    if (is_flag_line(line, length, indent))
        read_flag(add_part(help, HELP_FLAG), line, length);
    else if (!last || (goes_on && last->kind == HELP_USAGE && indent > 0))
        add_text(last ? last : add_part(help, HELP_USAGE), strncmp(line + indent, "attnbench ", 10) ? " " : "\n",
                 line + indent, length - indent);
    else if (goes_on && last->kind == HELP_FLAG && indent > 2)
        add_text(last, " ", line + indent, length - indent);
    else if (indent == 1 && line[length - 1] == ':')
        add_text(add_part(help, HELP_HEADING), "", line + indent, length - indent);
    else if (indent > 0)
        add_text(goes_on && last->kind == HELP_VERBATIM ? last : add_part(help, HELP_VERBATIM), "\n", line, length);
    else
        add_text(goes_on && last->kind == HELP_TEXT ? last : add_part(help, HELP_TEXT), " ", line, length);
}

void help_text_parse(const char *text, struct help_text *help)
{
    static const char usage[] = "Usage: ";
    bool after_gap = false;
    *help = (struct help_text){0};
    if (strncmp(text, usage, strlen(usage)) == 0)
        text += strlen(usage);
    while (*text) {
        size_t length = strcspn(text, "\n"), shown = length;
        while (shown > 0 && text[shown - 1] == ' ')
            shown--;
        if (shown > 0)
            read_line(help, text, shown, after_gap);
        after_gap = shown == 0;
        text += length + (text[length] == '\n');
    }
}

/* Commands print to stdout: for one call it is a file in memory. malloc'd, or NULL with errno set. */
static char *captured_help(const struct command *command)
{
    char *text = NULL, name[32];
    int file = memfd_create("help", MFD_CLOEXEC), saved = dup(STDOUT_FILENO);
    struct error error;
    snprintf(name, sizeof name, "%s", command->name);
    char flag[] = "--help", *argv[] = {name, flag, NULL};
    if (file < 0 || saved < 0 || fflush(stdout) != 0 || dup2(file, STDOUT_FILENO) < 0)
        goto cleanup;
    int code = command->run(2, argv, &error);
    int flushed = fflush(stdout);
    if (dup2(saved, STDOUT_FILENO) < 0 || flushed != 0 || code != 0)
        goto cleanup;
    off_t size = lseek(file, 0, SEEK_END);
    text = size >= 0 ? calloc((size_t)size + 1, 1) : NULL;
    if (text && pread(file, text, (size_t)size, 0) != size) {
        free(text);
        text = NULL;
    }
cleanup:
    if (file >= 0)
        close(file);
    if (saved >= 0)
        close(saved);
    return text;
}

int help_text_of(const struct command *command, struct help_text *help, struct error *error)
{
    char *text = captured_help(command);
    if (!text)
        return error_system(error, errno ? errno : EIO, "the help of %s", command->name);
    help_text_parse(text, help);
    free(text);
    return 0;
}

void help_text_release(struct help_text *help)
{
    for (size_t i = 0; i < help->count; i++) {
        free(help->parts[i].text);
        free(help->parts[i].short_name);
        free(help->parts[i].long_name);
        free(help->parts[i].argument);
    }
    free(help->parts);
    *help = (struct help_text){0};
}
