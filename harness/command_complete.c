/* SPDX-License-Identifier: Apache-2.0
 *
 * attnbench @complete WORD...: what may stand in place of the last word, for the completion of a shell. A line each:
 * the whole word, a tab, what it means; ":files" or ":folders" where the shell knows better. All of it comes from the
 * commands' own help, the keys' table and the lists, so there is nothing to keep up to date.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "help_text.h"
#include "json_util.h"
#include "keys.h"
#include "output.h"

/* One word under way. */
struct completion {
    const char *prefix; /* of the word, before the value: "--dtype=" or "" */
    size_t prefix_length;
    const char *value; /* what is typed of the value */
    json_t *told;      /* words that were offered already, as keys */
};

static void offer(const struct completion *completion, const char *value, size_t length, const char *summary)
{
    /* Of a list only what stands behind its last comma is under way. */
    const char *comma = strrchr(completion->value, ',');
    size_t kept = comma ? (size_t)(comma + 1 - completion->value) : 0;
    if (length == 0 || strncmp(value, completion->value + kept, strlen(completion->value + kept)) != 0)
        return;
    json_t *word = json_sprintf("%.*s%.*s%.*s", (int)completion->prefix_length, completion->prefix, (int)kept,
                                completion->value, (int)length, value);
    if (!json_object_get(completion->told, json_string_value(word)))
        printf("%s\t%s\n", json_string_value(word), summary ? summary : "");
    json_object_set_new(completion->told, json_string_value(word), json_true());
    json_decref(word);
}

static void offer_list(const struct completion *completion, const char *name)
{
    json_t *list = list_named(name), *entry;
    size_t index;
    json_array_foreach(list, index, entry)
    {
        const char *value = json_get_string(entry, "name", "");
        /* "core:I", "PLACE/nosmt": up to what is to be filled in; "S0:0-3" and the like are examples. */
        size_t length = strcspn(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
        bool is_name =
            !isdigit((unsigned char)value[0]) && (value[length] == '\0' || value[length - (length > 0)] == ':');
        offer(completion, value, is_name ? length : 0, json_get_string(entry, "summary", ""));
    }
    json_decref(list);
}

/* The items of "none,random:P" or "auto|always" that are values; those in capitals are placeholders, unless all are
 * names. */
static void offer_items(const struct completion *completion, const char *items, bool all_names)
{
    while (*items) {
        size_t length = strcspn(items, ",| ");
        size_t fixed = all_names ? length : strcspn(items, "ABCDEFGHIJKLMNOPQRSTUVWXYZ[.<,| ");
        bool is_value = fixed == length || (fixed > 0 && items[fixed - 1] == ':');
        offer(completion, items, is_value && fixed <= length ? fixed : 0, "");
        items += length;
        items += strspn(items, ",| ");
    }
}

/* "(auto; list schedules)": the list that a flag's text refers to. */
static void offer_lists_named_in(const struct completion *completion, const char *text)
{
    static const char mention[] = "list ";
    char name[32];
    for (const char *at = text ? strstr(text, mention) : NULL; at; at = strstr(at, mention)) {
        at += strlen(mention);
        snprintf(name, sizeof name, "%.*s", (int)strspn(at, "abcdefghijklmnopqrstuvwxyz"), at);
        offer_list(completion, name);
    }
}

/* Values that the help of a command tells in words. */
static const struct {
    const char *flag, *items;
} told_in_words[] = {{"--color", "auto,always,never"}, {"--format", EXPORT_FORMATS}};

static void offer_values(const struct completion *completion, const struct help_part *flag)
{
    const char *argument = flag->argument ? flag->argument : "", *name = flag->long_name ? flag->long_name : "";
    enum key_id key = key_find(name[0] ? name + 2 : flag->short_name ? flag->short_name + 1 : "");
    bool is_key = key != KEY_COUNT && keys[key].argument;
    offer_lists_named_in(completion, flag->text);
    for (size_t i = 0; i < sizeof told_in_words / sizeof told_in_words[0]; i++) {
        if (strcmp(name, told_in_words[i].flag) == 0)
            offer_items(completion, told_in_words[i].items, true);
    }
    offer_items(completion, is_key ? keys[key].argument : argument, is_key && keys[key].from_name);
    if (strstr(argument, "FILE") || strstr(argument, "OUT"))
        puts(":files");
    else if (strstr(argument, "DIR"))
        puts(":folders");
}

static const struct help_part *find_flag(const struct help_text *help, const char *word, size_t length)
{
    for (size_t i = 0; i < help->count; i++) {
        const char *const names[] = {help->parts[i].long_name, help->parts[i].short_name};
        for (size_t n = 0; n < 2; n++) {
            if (names[n] && strlen(names[n]) == length && strncmp(names[n], word, length) == 0)
                return &help->parts[i];
        }
    }
    return NULL;
}

static void offer_flags(const struct completion *completion, const struct help_text *help)
{
    for (size_t i = 0; i < help->count; i++) {
        const char *const names[] = {help->parts[i].long_name, help->parts[i].short_name};
        for (size_t n = 0; n < 2; n++) {
            if (names[n])
                offer(completion, names[n], strlen(names[n]), help->parts[i].text);
        }
    }
}

/* What may stand without a flag, from "attnbench list [--json] [kernels|rules ...]" and "attnbench show FILE", and from
 * what the paragraphs say of it: "A and B: kernels (list kernels)". */
static void offer_operands(const struct completion *completion, const struct help_text *help)
{
    const char *usage = help->count ? help->parts[0].text : "";
    bool files = strstr(usage, "FILE") || strstr(usage, ".so");
    if (strstr(usage, "[MODEL"))
        offer_list(completion, "models");
    for (size_t i = 1; i < help->count; i++) {
        if (help->parts[i].kind != HELP_TEXT)
            continue;
        offer_lists_named_in(completion, help->parts[i].text);
        files |= strstr(help->parts[i].text, "FILE") != NULL;
    }
    for (const char *at = strchr(usage, '['); at; at = strchr(at + 1, '[')) {
        size_t length = strcspn(at + 1, " ]");
        if (at[1] != '-' && memchr(at + 1, '|', length)) {
            char items[256];
            snprintf(items, sizeof items, "%.*s", (int)length, at + 1);
            offer_items(completion, items, false);
        }
    }
    if (files)
        puts(":files");
}

/* Completes the last of the words behind the command. */
static void complete_word(const struct help_text *help, int count, char **words, json_t *told)
{
    const char *word = words[count - 1], *before = count > 1 ? words[count - 2] : "";
    const char *equals = strncmp(word, "--", 2) == 0 ? strchr(word, '=') : NULL;
    const struct help_part *flag;
    if (equals) {
        struct completion value = {word, (size_t)(equals + 1 - word), equals + 1, told};
        flag = find_flag(help, word, (size_t)(equals - word));
        if (flag)
            offer_values(&value, flag);
        return;
    }
    struct completion whole = {"", 0, word, told};
    flag = before[0] == '-' ? find_flag(help, before, strlen(before)) : NULL;
    if (flag && flag->argument && !flag->optional_value)
        offer_values(&whole, flag);
    else if (word[0] == '-')
        offer_flags(&whole, help);
    else
        offer_operands(&whole, help);
}

int command_complete(int argc, char **argv, struct error *error)
{
    static const struct command general[] = {{"--help", "the commands", NULL},
                                             {"--version", "the commit that was built", NULL}};
    json_t *told = json_object();
    const struct completion first = {"", 0, argc > 1 ? argv[1] : "", told};
    int code = EXIT_OK;
    const struct command *command = argc > 2 && argv[1][0] != '@' ? command_find(argv[1]) : NULL;
    if (command) {
        struct help_text help;
        code = help_text_of(command, &help, error);
        if (code == 0)
            complete_word(&help, argc - 2, argv + 2, told);
        if (code == 0)
            help_text_release(&help);
    } else if (argc <= 2) {
        for (size_t i = 0; i < command_count; i++)
            offer(&first, commands[i].name, strlen(commands[i].name), commands[i].summary);
        for (size_t i = 0; i < sizeof general / sizeof general[0]; i++)
            offer(&first, general[i].name, strlen(general[i].name), general[i].summary);
    }
    json_decref(told);
    return code;
}
