/* SPDX-License-Identifier: Apache-2.0
 *
 * Configs by libyaml's document loader, whose nodes know their line and column; see config.h.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yaml.h>

#include "intern.h"

/* Where reading stands: the document, and which nodes were met (a second visit means an alias). */
struct reader {
    const char *path;
    yaml_document_t document;
    bool *met;
    struct error *error;
};

static const char *place(const char *path, yaml_mark_t mark)
{
    return intern_format("%s:%zu:%zu", path, mark.line + 1, mark.column + 1);
}

static const char *node_place(const struct reader *reader, const yaml_node_t *node)
{
    return place(reader->path, node->start_mark);
}

/* The node of this index, met for the first time. */
static int visit(struct reader *reader, int index, yaml_node_t **node)
{
    *node = yaml_document_get_node(&reader->document, index);
    if (reader->met[index])
        return error_usage(reader->error, "%s: aliases are not understood; repeat what '&' names here",
                           node_place(reader, *node));
    reader->met[index] = true;
    return 0;
}

static const char *node_kind(const yaml_node_t *node)
{
    return node->type == YAML_SCALAR_NODE ? "a value" : node->type == YAML_SEQUENCE_NODE ? "a list" : "a mapping";
}

static const char *node_text(const yaml_node_t *node)
{
    return (const char *)node->data.scalar.value;
}

/* A scalar without NUL bytes, so that it is a C string; key names it in errors. */
static int check_scalar(struct reader *reader, const yaml_node_t *node, const char *key)
{
    char shown[QUOTED_BYTES];
    if (node->type != YAML_SCALAR_NODE)
        return error_usage(reader->error, "%s: key %s: expected a value, found %s", node_place(reader, node),
                           quoted(key, shown), node_kind(node));
    if (strlen(node_text(node)) != node->data.scalar.length)
        return error_usage(reader->error, "%s: key %s: a NUL byte", node_place(reader, node), quoted(key, shown));
    return 0;
}

/* One key and its value of a mapping, both visited; the key is a scalar not met before in this mapping. */
static int visit_pair(struct reader *reader, const yaml_node_t *mapping, const yaml_node_pair_t *pair,
                      yaml_node_t **key, yaml_node_t **value)
{
    char shown[QUOTED_BYTES];
    int code = visit(reader, pair->key, key);
    if (code)
        return code;
    if ((*key)->type != YAML_SCALAR_NODE)
        return error_usage(reader->error, "%s: a key is a name, not %s", node_place(reader, *key), node_kind(*key));
    if ((code = check_scalar(reader, *key, node_text(*key))))
        return code;
    for (const yaml_node_pair_t *before = mapping->data.mapping.pairs.start; before < pair; before++)
        if (strcmp(node_text(yaml_document_get_node(&reader->document, before->key)), node_text(*key)) == 0)
            return error_usage(reader->error, "%s: duplicate key %s", node_place(reader, *key),
                               quoted(node_text(*key), shown));
    return visit(reader, pair->value, value);
}

/* A free text: name, description, source. */
static int read_string(struct reader *reader, const yaml_node_t *node, const char *key, const char **text)
{
    int code = check_scalar(reader, node, key);
    if (!code)
        *text = intern(node_text(node));
    return code;
}

static int read_value(struct reader *reader, const yaml_node_t *node, enum key_id id, struct value_list *list)
{
    int code = check_scalar(reader, node, keys[id].name);
    if (code)
        return code;
    const char *where = intern_format("%s: key '%s'", node_place(reader, node), keys[id].name);
    if (!*node_text(node))
        return error_usage(reader->error, "%s: has no value", where);
    return key_read(id, node_text(node), where, list, reader->error);
}

/* A value, or a list of values that is not empty. */
static int read_values(struct reader *reader, yaml_node_t *node, enum key_id id, struct value_list *list)
{
    if (node->type != YAML_SEQUENCE_NODE)
        return read_value(reader, node, id, list);
    const yaml_node_item_t *item = node->data.sequence.items.start, *end = node->data.sequence.items.top;
    if (item == end)
        return error_usage(reader->error, "%s: key '%s': an empty list", node_place(reader, node), keys[id].name);
    if (key_is_single(id))
        return error_usage(reader->error, "%s: key '%s': takes one value, not a list", node_place(reader, node),
                           keys[id].name);
    for (; item < end; item++) {
        yaml_node_t *value;
        int code = visit(reader, *item, &value);
        if (!code)
            code = read_value(reader, value, id, list);
        if (code)
            return code;
    }
    return 0;
}

/* The slowdown that matters, which verdicts of duet and gate are about and which changes nothing of what is run. */
static int read_tau(struct reader *reader, const yaml_node_t *node, double *tau)
{
    int code = check_scalar(reader, node, "tau");
    if (!code)
        code = value_share(node_text(node), tau, reader->error);
    return code ? error_prefix(reader->error, code, "%s: key 'tau'", node_place(reader, node)) : 0;
}

/* The keys of `defaults` (sweep NULL) or of one sweep. */
static int read_keys(struct reader *reader, yaml_node_t *node, const char *what, struct key_values *values, double *tau,
                     struct config_sweep *sweep)
{
    char shown[QUOTED_BYTES];
    if (node->type != YAML_MAPPING_NODE)
        return error_usage(reader->error, "%s: %s: expected a mapping, found %s", node_place(reader, node), what,
                           node_kind(node));
    const yaml_node_pair_t *pair = node->data.mapping.pairs.start, *end = node->data.mapping.pairs.top;
    for (; pair < end; pair++) {
        yaml_node_t *key, *value;
        int code = visit_pair(reader, node, pair, &key, &value);
        if (code)
            return code;
        const char *name = node_text(key);
        enum key_id id = key_find(name);
        if (sweep && strcmp(name, "name") == 0)
            code = read_string(reader, value, name, &sweep->name);
        else if (sweep && strcmp(name, "source") == 0)
            code = read_string(reader, value, name, &sweep->source);
        else if (strcmp(name, "tau") == 0)
            code = read_tau(reader, value, tau);
        else if (id == KEY_COUNT)
            code = error_usage(reader->error, "%s: unknown key %s", node_place(reader, key), quoted(name, shown));
        else if (sweep && key_is_single(id))
            code = error_usage(reader->error, "%s: key '%s' holds for the whole run: it belongs under defaults",
                               node_place(reader, key), name);
        else
            code = read_values(reader, value, id, &values->lists[id]);
        if (code)
            return code;
    }
    return 0;
}

static int read_sweeps(struct reader *reader, yaml_node_t *node, struct config *config)
{
    if (node->type != YAML_SEQUENCE_NODE)
        return error_usage(reader->error, "%s: key 'sweeps': expected a list, found %s", node_place(reader, node),
                           node_kind(node));
    const yaml_node_item_t *items = node->data.sequence.items.start;
    size_t count = (size_t)(node->data.sequence.items.top - items);
    if (count == 0)
        return error_usage(reader->error, "%s: key 'sweeps': an empty list", node_place(reader, node));
    config->sweeps = calloc(count, sizeof *config->sweeps);
    if (!config->sweeps)
        return error_system(reader->error, ENOMEM, "%s", reader->path);
    for (size_t i = 0; i < count; i++) {
        struct config_sweep *sweep = &config->sweeps[config->sweep_count++];
        yaml_node_t *item;
        int code = visit(reader, items[i], &item);
        if (code)
            return code;
        sweep->where = node_place(reader, item);
        if ((code = read_keys(reader, item, "a sweep", &sweep->values, &sweep->tau, sweep)))
            return code;
    }
    return 0;
}

static int read_root(struct reader *reader, struct config *config)
{
    char shown[QUOTED_BYTES];
    yaml_node_t *root;
    int code = visit(reader, 1, &root);
    if (code)
        return code;
    if (root->type != YAML_MAPPING_NODE)
        return error_usage(reader->error, "%s: expected a mapping with name, description, defaults, sweeps, found %s",
                           node_place(reader, root), node_kind(root));
    const yaml_node_pair_t *pair = root->data.mapping.pairs.start, *end = root->data.mapping.pairs.top;
    for (; pair < end; pair++) {
        yaml_node_t *key, *value;
        if ((code = visit_pair(reader, root, pair, &key, &value)))
            return code;
        const char *name = node_text(key);
        if (strcmp(name, "name") == 0)
            code = read_string(reader, value, name, &config->name);
        else if (strcmp(name, "description") == 0)
            code = read_string(reader, value, name, &config->description);
        else if (strcmp(name, "defaults") == 0)
            code = read_keys(reader, value, "key 'defaults'", &config->defaults, &config->tau, NULL);
        else if (strcmp(name, "sweeps") == 0)
            code = read_sweeps(reader, value, config);
        else
            code = error_usage(reader->error, "%s: unknown key %s (name, description, defaults, sweeps)",
                               node_place(reader, key), quoted(name, shown));
        if (code)
            return code;
    }
    return config->sweep_count ? 0 : error_usage(reader->error, "%s: key 'sweeps' is missing", reader->path);
}

static int syntax_error(const char *path, const yaml_parser_t *parser, struct error *error)
{
    const char *problem = parser->problem ? parser->problem : "not YAML";
    if (parser->error == YAML_READER_ERROR)
        return error_usage(error, "%s: %s at byte %zu", path, problem, parser->problem_offset);
    return error_usage(error, "%s: %s", place(path, parser->problem_mark), problem);
}

/* Nothing may stand behind the first document. */
static int check_end(const char *path, yaml_parser_t *parser, struct error *error)
{
    yaml_document_t next;
    if (!yaml_parser_load(parser, &next))
        return syntax_error(path, parser, error);
    int code = 0;
    const yaml_node_t *root = yaml_document_get_root_node(&next);
    if (root)
        code = error_usage(error, "%s: a second document; a config is one", place(path, root->start_mark));
    yaml_document_delete(&next);
    return code;
}

static int read_stream(const char *path, yaml_parser_t *parser, struct config *config, struct error *error)
{
    struct reader reader = {.path = path, .error = error};
    if (!yaml_parser_load(parser, &reader.document))
        return syntax_error(path, parser, error);
    int code = 0;
    size_t nodes = (size_t)(reader.document.nodes.top - reader.document.nodes.start);
    reader.met = calloc(nodes + 1, sizeof *reader.met);
    if (nodes == 0)
        code = error_usage(error, "%s: an empty file", path);
    else if (!reader.met)
        code = error_system(error, ENOMEM, "%s", path);
    if (!code)
        code = read_root(&reader, config);
    if (!code)
        code = check_end(path, parser, error);
    free(reader.met);
    yaml_document_delete(&reader.document);
    return code;
}

int config_read(const char *path, struct config *config, struct error *error)
{
    *config = (struct config){.path = intern(path)};
    FILE *file = fopen(path, "rb");
    if (!file) {
        int code = error_system(error, errno, "%s", path);
        error->exit_code = EXIT_USAGE;
        return code;
    }
    yaml_parser_t parser;
    int code;
    if (yaml_parser_initialize(&parser)) {
        yaml_parser_set_input_file(&parser, file);
        code = read_stream(path, &parser, config, error);
        yaml_parser_delete(&parser);
    } else {
        code = error_system(error, ENOMEM, "%s", path);
    }
    fclose(file);
    if (code)
        config_release(config);
    return code;
}

void config_release(struct config *config)
{
    for (size_t i = 0; i < config->sweep_count; i++)
        key_values_release(&config->sweeps[i].values);
    free(config->sweeps);
    key_values_release(&config->defaults);
    *config = (struct config){0};
}

int config_folders(const char **folders, int max)
{
    char program[PATH_MAX];
    int count = 0;
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = 0;
    char *slash = strrchr(program, '/');
    if (slash)
        *slash = 0;
    /* The working folder; an installation's share folder; the source tree of build/<mode>/ and build/<mode>/tests/. */
    const char *const beside[] = {"../share/attnbench/configs", "../../configs", "../../../configs"};
    const char *const here = "configs";
    if (count < max && access(here, R_OK) == 0)
        folders[count++] = here;
    for (size_t i = 0; slash && i < sizeof beside / sizeof beside[0]; i++) {
        char path[PATH_MAX + 64], real[PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", program, beside[i]);
        if (count < max && realpath(path, real) && access(real, R_OK) == 0)
            folders[count++] = intern(real);
    }
    return count;
}

const char *config_find(const char *name, struct error *error)
{
    char shown[QUOTED_BYTES];
    const char *folders[4];
    size_t length = strlen(name);
    if (strchr(name, '/') || (length > 5 && strcmp(name + length - 5, ".yaml") == 0))
        return intern(name);
    int count = config_folders(folders, 4);
    for (int i = 0; i < count; i++) {
        const char *path = intern_format("%s/%s.yaml", folders[i], name);
        if (access(path, F_OK) == 0)
            return path;
    }
    error_usage(error, "no config %s (attnbench list configs; a file ends in .yaml)", quoted(name, shown));
    return NULL;
}
