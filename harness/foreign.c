/* SPDX-License-Identifier: Apache-2.0
 *
 * Asking plug-ins and peers what they have; see foreign.h.
 */
#include "foreign.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "intern.h"
#include "json_util.h"
#include "peer.h"
#include "registry.h"

/* Importing a library takes seconds where the disk is slow; a constructor that never returns takes longer. */
static const double patience_s = 30;

static uint64_t bits_of(const json_t *names, int (*from_name)(const char *))
{
    uint64_t bits = 0;
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        const int number = name ? from_name(name) : -1;
        if (number >= 0)
            bits |= ATTN_BIT(number);
    }
    return bits;
}

static uint64_t capability(const json_t *told, const char *field, uint64_t bit)
{
    return json_is_true(json_object_get(told, field)) ? bit : 0;
}

/* A kernel as it tells of itself, without functions; lives as long as the process. */
static struct attn_kernel *described(const json_t *told, const char *prefix)
{
    struct attn_kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel)
        return NULL;
    *kernel = (struct attn_kernel){
        .abi = ATTN_ABI,
        .struct_size = sizeof *kernel,
        .name = intern_format("%s%s", prefix, json_get_string(told, "name", "")),
        .summary = intern(json_get_string(told, "summary", "")),
        .isa = (uint64_t)json_get_int(told, "isa", 0),
        .rules = bits_of(json_object_get(told, "rules"), rule_from_name),
        .dtypes = bits_of(json_object_get(told, "dtypes"), dtype_from_name),
        .caps = capability(told, "own_threads", ATTN_CAP_OWN_THREADS) | capability(told, "spans", ATTN_CAP_SPANS) |
                capability(told, "weights", ATTN_CAP_WEIGHTS) | capability(told, "partial", ATTN_CAP_PARTIAL) |
                capability(told, "split_keys", ATTN_CAP_SPLIT_KEYS),
    };
    return kernel;
}

static int add_described(const json_t *hello, const struct registry_origin *origin, const char *file,
                         const char *prefix, struct error *error)
{
    const json_t *kernels = json_object_get(hello, "kernels");
    int rc = json_array_size(kernels) ? 0 : error_usage(error, "%s tells of no kernel", file);
    for (size_t k = 0; k < json_array_size(kernels) && rc == 0; k++) {
        struct attn_kernel *kernel = described(json_array_get(kernels, k), prefix);
        if (!kernel)
            return error_system(error, ENOMEM, "%s", file);
        if (!*kernel->name || !kernel->rules || !kernel->dtypes)
            rc = error_usage(error, "%s: kernel '%s' has no name, rule or dtype that there is", file, kernel->name);
        else
            rc = registry_add(kernel, origin, error);
        if (rc < 0) /* nobody keeps it */
            free(kernel);
    }
    return rc;
}

static bool is_added(const char *source)
{
    const struct attn_kernel *kernel;
    for (size_t i = 0; (kernel = registry_entry(i)); i++)
        if (registry_origin(kernel->name)->source == source)
            return true;
    return false;
}

const char *foreign_library_suffix(const char *path)
{
    const char *slash = strrchr(path, '/'), *suffix = strstr(slash ? slash + 1 : path, ".so");
    while (suffix && suffix[3] && !strchr(".:", suffix[3]))
        suffix = strstr(suffix + 1, ".so");
    return suffix;
}

static int say_hello(const json_t *command, json_t *request, json_t **answer, struct error *error)
{
    struct peer peer;
    *answer = NULL;
    int rc = peer_start(command, NULL, 0, &peer, error);
    if (rc < 0) {
        json_decref(request);
        return rc;
    }
    *answer = peer_ask(&peer, request, patience_s, "the limit for starting up,", error);
    peer_end(&peer);
    return *answer ? 0 : -EPIPE;
}

static int add_plugin(const char *file, const char *prefix, struct error *error)
{
    const bool is_library = foreign_library_suffix(file);
    const struct registry_origin origin = {
        .kind = REGISTRY_PLUGIN,
        .source = intern_format("plugin:%s%s", prefix, file),
        .command = is_library ? json_pack("[s,s,s]", "@peer", "--plugin", file) : json_pack("[s]", file),
    };
    json_t *answer = NULL;
    int rc = 0;
    if (access(file, is_library ? R_OK : X_OK) < 0)
        rc = error_usage(error, "%s: %s", file, strerror(errno));
    if (rc == 0 && !is_added(origin.source)) {
        rc = say_hello(origin.command, json_pack("{s:s}", "op", "hello"), &answer, error);
        if (rc < 0) {
            error->exit_code = EXIT_USAGE;
            error_prefix(error, rc, "%s, when it was loaded", file);
        } else if (strcmp(json_get_string(answer, "event", ""), "hello") != 0) {
            rc = error_usage(error, "%s", json_get_string(answer, "reason", "it says nothing"));
            error->exit_code = (enum exit_code)json_get_int(answer, "exit_code", EXIT_USAGE);
        } else {
            rc = add_described(answer, &origin, file, prefix, error);
        }
    }
    json_decref(answer);
    json_decref(origin.command);
    return rc;
}

int foreign_add_plugins(const struct value_list *files, struct error *error)
{
    int rc = 0;
    for (size_t f = 0; f < files->count && rc == 0; f++)
        rc = add_plugin(files->items[f].text, "", error);
    return rc < 0 ? error_prefix(error, rc, "--plugin") : 0;
}

int foreign_add_library(const char *file, const char *prefix, struct error *error)
{
    return add_plugin(file, prefix, error);
}

int foreign_probe(const char *kernel, const char **source, struct error *error)
{
    const struct registry_origin *origin = registry_origin(kernel);
    json_t *answer = NULL;
    *source = NULL;
    int rc = say_hello(origin->command, json_pack("{s:s,s:s}", "op", "hello", "kernel", kernel), &answer, error);
    if (rc < 0)
        rc = error_machine(error, "its process says: %s", intern(error->text));
    else if (strcmp(json_get_string(answer, "event", ""), "hello") != 0)
        rc = error_machine(error, "%s", json_get_string(answer, "reason", "it does not say why"));
    else
        *source = intern(json_get_string(answer, "source", kernel));
    json_decref(answer);
    return rc;
}
