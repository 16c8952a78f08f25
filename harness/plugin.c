/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening a shared object of kernels; see plugin.h.
 */
#include "plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "intern.h"

enum { MOST_KERNELS = 256, LONGEST_NAME = 64 };

/* A name that can stand in lists, globs and file names. */
static bool is_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.+";
    return name && *name && strlen(name) <= LONGEST_NAME && strspn(name, letters) == strlen(name);
}

static bool is_text(const char *text)
{
    json_t *string = text ? json_string(text) : NULL;
    json_decref(string);
    return string != NULL;
}

static int check_entry(const struct plugin *plugin, int index, struct error *error)
{
    const struct attn_kernel *kernel = plugin->kernels[index];
    const uint64_t all_rules = ATTN_BIT(ATTN_MATMUL + 1) - 1, all_dtypes = ATTN_BIT(ATTN_F16 + 1) - 1;
    if (kernel->abi != ATTN_ABI || kernel->struct_size != sizeof *kernel)
        return error_usage(error, "%s: kernel %d tells ABI %u and %u bytes, not %u and %zu", plugin->path, index,
                           kernel->abi, kernel->struct_size, ATTN_ABI, sizeof *kernel);
    if (!is_name(kernel->name))
        return error_usage(error, "%s: kernel %d has no name of letters, digits and _-.+", plugin->path, index);
    if (!is_text(kernel->summary))
        return error_usage(error, "%s: kernel %s has no summary that is UTF-8 text", plugin->path, kernel->name);
    if (!kernel->run)
        return error_usage(error, "%s: kernel %s has no run function", plugin->path, kernel->name);
    if (!(kernel->rules & all_rules) || (kernel->rules & ~all_rules))
        return error_usage(error, "%s: kernel %s does no rule that there is", plugin->path, kernel->name);
    if (!(kernel->dtypes & all_dtypes) || (kernel->dtypes & ~all_dtypes))
        return error_usage(error, "%s: kernel %s does no dtype that there is", plugin->path, kernel->name);
    for (int other = 0; other < index; other++)
        if (strcmp(plugin->kernels[other]->name, kernel->name) == 0 && (plugin->kernels[other]->rules & kernel->rules))
            return error_usage(error, "%s: kernels %d and %d are both named '%s' and do the same rule", plugin->path,
                               other, index, kernel->name);
    return 0;
}

static int check(struct plugin *plugin, struct error *error)
{
    uint32_t abi = 0;
    attn_kernels_function *kernels;
    void *symbol = dlsym(plugin->handle, ATTN_KERNELS_SYMBOL);
    if (!symbol)
        return error_usage(error, "%s exports no function %s (kernels/attn.h tells how)", plugin->path,
                           ATTN_KERNELS_SYMBOL);
    memcpy(&kernels, &symbol, sizeof kernels); /* C has no cast from an object to a function */
    plugin->kernels = kernels(&abi);
    if (abi != ATTN_ABI) {
        error_usage(error, "%s was built for ABI %u of kernels/attn.h; this is ABI %u", plugin->path, abi, ATTN_ABI);
        error->exit_code = EXIT_INCONCLUSIVE;
        return -EINVAL;
    }
    if (!plugin->kernels || !plugin->kernels[0])
        return error_usage(error, "%s has no kernels", plugin->path);
    int rc = 0;
    for (plugin->count = 0; plugin->kernels[plugin->count] && rc == 0; plugin->count++) {
        if (plugin->count == MOST_KERNELS)
            return error_usage(error, "%s: its table of kernels has no end", plugin->path);
        rc = check_entry(plugin, plugin->count, error);
    }
    return rc;
}

int plugin_open(const char *path, struct plugin *plugin, struct error *error)
{
    /* A name without a slash would be looked for among the system's libraries. */
    const char *file = strchr(path, '/') ? path : intern_format("./%s", path);
    *plugin = (struct plugin){.path = intern(path)};
    plugin->handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!plugin->handle) {
        const char *why = dlerror();
        return error_usage(error, "%s can't be opened: %s", path, why ? why : "no reason is given");
    }
    int rc = check(plugin, error);
    if (rc < 0) {
        dlclose(plugin->handle);
        *plugin = (struct plugin){0};
    }
    return rc;
}
