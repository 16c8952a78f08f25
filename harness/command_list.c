/* SPDX-License-Identifier: Apache-2.0
 *
 * attnbench list: what this build has, and why some of it cannot run here. Every list is made as JSON and printed from
 * there, so that both forms tell the same.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../kernels/schedule/schedule.h"
#include "arguments.h"
#include "commands.h"
#include "config.h"
#include "counters.h"
#include "foreign.h"
#include "intern.h"
#include "kernels_list.h"
#include "models.h"
#include "rules.h"
#include "text.h"

static const char help[] = "Usage: attnbench list [--json] [--plugin FILE ...]\n"
                           "           [kernels|rules|schedules|placements|configs|models|counters ...]\n"
                           "\n"
                           "What this build has, with the reason where something cannot run here. Without\n"
                           "an argument: everything.\n"
                           "\n"
                           "  --json         the same as one JSON object\n"
                           "  --plugin FILE  with the kernels of this shared object or program\n"
                           "  --help         this text\n"
                           "\n"
                           "Exit codes: 0 ok, 2 usage, 5 the output could not be written.\n";

static const struct {
    const char *name, *summary;
} placements[] = {
    {"compact", "one thread a core in logical order, then the second hardware threads"},
    {"scatter", "round robin over sockets, NUMA nodes, L3 caches"},
    {"smt", "all hardware threads of a core before the next core"},
    {"core:I", "the hardware threads of core I (hwloc's logical number among usable ones)"},
    {"l3:I", "those that share L3 cache I, one a core first"},
    {"numa:I", "those of NUMA node I, one a core first"},
    {"socket:I", "those of socket I, one a core first"},
    {"l3:each", "one core of each L3 cache; so too numa:each, socket:each"},
    {"pcores", "the fastest kind of core of a hybrid machine, one thread a core first"},
    {"ecores", "all other kinds of core of a hybrid machine, one thread a core first"},
    {"all", "every usable hardware thread, one a core first"},
    {"PLACE/nosmt", "of any of these one hardware thread a core"},
    {"none", "threads are not bound"},
    {"ladder",
     "a series: one core, that core with its siblings, one L3, one core per L3, one NUMA node, one socket, all "
     "cores, all hardware threads, pcores, ecores; what exists here and differs from those before"},
    {"0,2-5", "these CPUs by the operating system's numbers, thread by thread"},
    {"S0:0-3",
     "the first four of socket 0, cores before siblings (LIKWID; N machine, D die, C last-level cache, M NUMA "
     "node; parts joined by @)"},
    {"E:N:4:1:2", "4 hardware threads, siblings side by side, in chunks of 1 every 2 (LIKWID)"},
    {"M:scatter", "NUMA nodes take turns, cores before siblings (LIKWID; also S:, D:, C:, balanced, cbalanced)"},
};

static json_t *list_rules(void)
{
    json_t *array = json_array();
    for (int i = 0; i < rules_built_count; i++) {
        const struct rule_info *rule = &rules_built[i];
        json_t *object = list_entry(rule_name(rule->rule), rule->summary);
        json_object_set_new(object, "definition", json_string(rule->definition));
        json_object_set_new(object, "flops_useful", json_string(rule->flops_useful));
        json_object_set_new(object, "flops_dense", json_string(rule->flops_dense));
        json_object_set_new(object, "bytes_min", json_string(rule->bytes_min));
        json_object_set_new(object, "tokens", json_string(rule->tokens));
        json_array_append_new(array, object);
    }
    return array;
}

static json_t *list_schedules(void)
{
    json_t *array = json_array();
    json_array_append_new(
        array,
        list_entry(
            "auto",
            "one choice a point: serial at 1 thread, splitkv where heads and queries are too few, else bh or bhq"));
    for (const struct attn_schedule *const *s = attn_schedules; *s; s++)
        json_array_append_new(array, list_entry((*s)->name, (*s)->summary));
    return array;
}

static json_t *list_placements(void)
{
    json_t *array = json_array();
    for (size_t i = 0; i < sizeof placements / sizeof placements[0]; i++)
        json_array_append_new(array, list_entry(placements[i].name, placements[i].summary));
    return array;
}

static bool is_listed(const json_t *array, const char *name)
{
    size_t i;
    const json_t *object;
    json_array_foreach((json_t *)array, i, object)
    {
        if (strcmp(json_string_value(json_object_get(object, "name")), name) == 0)
            return true;
    }
    return false;
}

static void add_config(json_t *array, const char *folder, const char *file)
{
    const char *name = intern_format("%.*s", (int)(strlen(file) - strlen(".yaml")), file);
    const char *path = intern_format("%s/%s", folder, file);
    if (is_listed(array, name))
        return;
    struct config config;
    struct error error;
    int code = config_read(path, &config, &error);
    json_t *object = list_entry(name, code ? NULL : config.description);
    json_object_set_new(object, "file", json_string(path));
    json_object_set_new(object, "reason", code ? json_sprintf("not understood: %s", error.text) : json_null());
    json_array_append_new(array, object);
    if (!code)
        config_release(&config);
}

static int is_yaml(const struct dirent *file)
{
    const char *dot = strrchr(file->d_name, '.');
    return dot && dot > file->d_name && strcmp(dot, ".yaml") == 0;
}

static json_t *list_configs(void)
{
    json_t *array = json_array();
    const char *folders[4];
    int count = config_folders(folders, 4);
    for (int i = 0; i < count; i++) {
        struct dirent **files = NULL;
        int found = scandir(folders[i], &files, is_yaml, alphasort);
        for (int f = 0; f < found; f++) {
            add_config(array, folders[i], files[f]->d_name);
            free(files[f]);
        }
        free(files);
    }
    return array;
}

static json_t *list_models(void)
{
    json_t *array = json_array();
    for (int i = 0; i < models_count; i++) {
        const struct model *m = &models[i];
        json_t *object = list_entry(m->name, m->source);
        json_object_set_new(object, "H", json_integer(m->H));
        json_object_set_new(object, "H_kv", json_integer(m->H_kv));
        json_object_set_new(object, "D", json_integer(m->D));
        json_object_set_new(object, "D_v", json_integer(m->D_v));
        json_object_set_new(object, "S", json_integer(m->S));
        json_object_set_new(object, "causal", json_string(causal_name(m->causal)));
        json_object_set_new(object, "window", m->window ? json_integer(m->window) : json_null());
        json_object_set_new(object, "softcap", m->softcap > 0 ? json_real(m->softcap) : json_null());
        json_object_set_new(object, "scale", m->scale > 0 ? json_real(m->scale) : json_null());
        json_object_set_new(object, "bias", json_boolean(m->bias));
        json_object_set_new(object, "decodes", json_boolean(m->decodes));
        json_array_append_new(array, object);
    }
    return array;
}

static json_t *list_counters(void)
{
    return counters_list();
}

static void print_string(FILE *file, const json_t *object, const char *field, const char *label)
{
    const char *text = json_string_value(json_object_get(object, field));
    if (text && *text)
        fprintf(file, "%s%s", label, text);
}

/* A list of names on one line; nothing where there is none. */
static void print_names(FILE *file, const json_t *object, const char *field)
{
    size_t i;
    const json_t *name, *names = json_object_get(object, field);
    json_array_foreach((json_t *)names, i, name)
    {
        fprintf(file, i ? ", %s" : "%s", json_string_value(name));
    }
}

static void print_model(FILE *file, const json_t *object)
{
    static const char *const sizes[] = {"H", "H_kv", "D", "D_v", "S"};
    static const char *const numbers[] = {"window", "softcap", "scale"};
    fputs("     ", file);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        fprintf(file, " %s %lld", sizes[i], (long long)json_integer_value(json_object_get(object, sizes[i])));
    fprintf(file, " causal %s", json_string_value(json_object_get(object, "causal")));
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (json_is_number(json_object_get(object, numbers[i])))
            fprintf(file, " %s %g", numbers[i], json_number_value(json_object_get(object, numbers[i])));
    fprintf(file, "%s%s\n", json_is_true(json_object_get(object, "bias")) ? " bias" : "",
            json_is_true(json_object_get(object, "decodes")) ? "; --decode" : "");
}

static void print_details(FILE *file, const json_t *object)
{
    static const char *const formulas[] = {"definition", "flops_useful", "flops_dense", "bytes_min", "tokens"};
    print_string(file, object, "isa", "; needs ");
    print_string(file, object, "runs", "; ");
    print_string(file, object, "reason", "; ");
    fputc('\n', file);
    if (json_object_get(object, "H_kv"))
        print_model(file, object);
    if (json_object_get(object, "dtypes")) {
        fputs("      ", file);
        print_names(file, object, "dtypes");
        fputs("; ", file);
        print_names(file, object, "rules");
        fputc('\n', file);
    }
    for (size_t i = 0; i < sizeof formulas / sizeof formulas[0]; i++) {
        print_string(file, object, formulas[i], intern_format("      %-13s ", formulas[i]));
        if (json_object_get(object, formulas[i]))
            fputc('\n', file);
    }
}

static void print_list(FILE *file, const char *title, const json_t *array)
{
    size_t i, width = 0;
    const json_t *object;
    fprintf(file, "%s\n", title);
    json_array_foreach((json_t *)array, i, object)
    {
        size_t columns = text_columns(json_string_value(json_object_get(object, "name")));
        width = columns > width ? columns : width;
    }
    json_array_foreach((json_t *)array, i, object)
    {
        const char *summary = json_string_value(json_object_get(object, "summary"));
        fprintf(file, "  %-*s  %s", (int)width, json_string_value(json_object_get(object, "name")),
                summary ? summary : "");
        print_details(file, object);
    }
}

static const struct {
    const char *name;
    json_t *(*make)(void);
} lists[] = {
    {"kernels", kernels_list}, {"rules", list_rules},   {"schedules", list_schedules}, {"placements", list_placements},
    {"configs", list_configs}, {"models", list_models}, {"counters", list_counters},
};
enum { LISTS = sizeof lists / sizeof lists[0] };

json_t *list_named(const char *name)
{
    for (int i = 0; i < LISTS; i++) {
        if (strcmp(lists[i].name, name) == 0)
            return lists[i].make();
    }
    return NULL;
}

enum { FLAG_JSON = ARGUMENTS_LONG_ONLY, FLAG_PLUGIN, FLAG_HELP };

/* wanted: [LISTS], set for what was named; all if nothing was. */
static int parse(int argc, char **argv, bool *wanted, bool *json, bool *wants_help, struct value_list *plugins,
                 struct error *error)
{
    static const struct option long_flags[] = {{"json", no_argument, NULL, FLAG_JSON},
                                               {"plugin", required_argument, NULL, FLAG_PLUGIN},
                                               {"help", no_argument, NULL, FLAG_HELP},
                                               {0}};
    struct arguments arguments = {argc, argv, ":h", long_flags};
    const char *value;
    int flag = arguments_next(&arguments, true, &value, error);
    for (; flag > 0; flag = arguments_next(&arguments, false, &value, error)) {
        *json |= flag == FLAG_JSON;
        *wants_help |= flag == FLAG_HELP || flag == 'h';
        if (flag == FLAG_PLUGIN) {
            int code = value_list_add(plugins, (struct value){.text = intern(value), .where = "--plugin"}, error);
            if (code)
                return code;
        }
    }
    if (flag < 0)
        return flag;
    for (int i = 0; i < LISTS; i++)
        wanted[i] = optind == argc;
    for (int a = optind; a < argc; a++) {
        char shown[QUOTED_BYTES];
        int i = 0;
        while (i < LISTS && strcmp(lists[i].name, argv[a]) != 0)
            i++;
        if (i == LISTS)
            return error_usage(error, "no list %s (kernels, rules, schedules, placements, configs, models, counters)",
                               quoted(argv[a], shown));
        wanted[i] = true;
    }
    return 0;
}

int command_list(int argc, char **argv, struct error *error)
{
    bool wanted[LISTS] = {false}, json = false, wants_help = false;
    struct value_list plugins = {0};
    int code = parse(argc, argv, wanted, &json, &wants_help, &plugins, error);
    if (code == 0 && !wants_help)
        code = foreign_add_plugins(&plugins, error);
    value_list_release(&plugins);
    if (code)
        return code;
    if (wants_help) {
        fputs(help, stdout);
        return EXIT_OK;
    }
    json_t *all = json_object();
    bool first = true;
    for (int i = 0; i < LISTS; i++) {
        if (!wanted[i])
            continue;
        json_t *list = lists[i].make();
        if (lists[i].make == kernels_list)
            kernels_list_ask_peers(list);
        json_object_set_new(all, lists[i].name, list);
        if (!json && !first)
            putchar('\n');
        if (!json)
            print_list(stdout, lists[i].name, list);
        first = false;
    }
    if (json) {
        json_dumpf(all, stdout, JSON_INDENT(2));
        putchar('\n');
    }
    json_decref(all);
    return EXIT_OK;
}
