/* SPDX-License-Identifier: Apache-2.0
 *
 * Look-ups in the generated kernel table; see registry.h.
 */
#include "registry.h"

#include <errno.h>
#include <string.h>

#include "intern.h"
#include "isa.h"
#include "peer_programs.h"
#include "spec.h"

enum { MOST_KERNELS = 1024 };

static struct {
    const struct attn_kernel *kernel;
    struct registry_origin origin;
} added[MOST_KERNELS];
static size_t added_count;
static bool runs_foreign;

const struct attn_kernel *registry_entry(size_t index)
{
    const struct attn_kernel *const *const tables[] = {attn_registry, attn_peers, peer_programs};
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const struct attn_kernel *const *k = tables[t]; *k; k++)
            if (index-- == 0)
                return *k;
    return index < added_count ? added[index].kernel : NULL;
}

static bool has(const struct attn_kernel *const *table, const char *name)
{
    while (*table && strcmp((*table)->name, name) != 0)
        table++;
    return *table != NULL;
}

const struct registry_origin *registry_origin(const char *name)
{
    static struct registry_origin built_in, library;
    if (!built_in.source) {
        built_in = (struct registry_origin){REGISTRY_BUILT_IN, intern("builtin"), NULL};
        library = (struct registry_origin){REGISTRY_PEER, intern("peer"), json_pack("[s]", "@peer")};
    }
    if (has(attn_registry, name))
        return &built_in;
    if (has(attn_peers, name))
        return &library;
    if (has(peer_programs, name))
        return peer_program_origin(name);
    for (size_t i = 0; i < added_count; i++)
        if (strcmp(added[i].kernel->name, name) == 0)
            return &added[i].origin;
    return NULL;
}

int registry_add(const struct attn_kernel *kernel, const struct registry_origin *origin, struct error *error)
{
    const struct registry_origin *taken = registry_origin(kernel->name);
    if (taken && taken->source != origin->source) {
        error_usage(error, "%s: a kernel named '%s' is there already (%s)", origin->source, kernel->name,
                    taken->source);
        return -EEXIST;
    }
    if (added_count == MOST_KERNELS)
        return error_system(error, ENOMEM, "more than %d kernels of plug-ins", MOST_KERNELS);
    added[added_count].kernel = kernel;
    added[added_count].origin = *origin;
    json_incref(origin->command);
    added_count++;
    return 0;
}

void registry_run_foreign(void)
{
    runs_foreign = true;
}

bool registry_is_default(const char *name)
{
    const struct registry_origin *origin = registry_origin(name);
    return origin && origin->kind != REGISTRY_PEER;
}

const struct attn_kernel *registry_find(const char *name, uint32_t rule)
{
    const struct attn_kernel *kernel;
    for (size_t i = 0; (kernel = registry_entry(i)); i++)
        if (strcmp(kernel->name, name) == 0 && (kernel->rules & ATTN_BIT(rule)))
            return kernel;
    return NULL;
}

/* The rule of a layer's attention step. */
static uint32_t attention_rule(uint32_t rule)
{
    return rule == ATTN_ADDITIVE ? ATTN_ADDITIVE : ATTN_SCALED_DOT_PRODUCT;
}

/* Programs of their own have no steps that we could put together. */
static bool is_program(const char *name)
{
    const struct registry_origin *origin = registry_origin(name);
    const char *first = origin ? json_string_value(json_array_get(origin->command, 0)) : NULL;
    return first && strcmp(first, "@peer") != 0;
}

bool registry_layers(const char *name, uint32_t rule)
{
    /* An entry of additive does the core alone. */
    return attn_rule_is_layered(rule) && (rule == ATTN_ADDITIVE || !registry_find(name, rule));
}

bool registry_does(const char *name, uint32_t rule)
{
    return registry_find(name, rule) ||
           (attn_rule_is_layered(rule) && !is_program(name) && registry_find(name, attention_rule(rule)));
}

const struct attn_kernel *registry_attention(const char *name, uint32_t rule)
{
    return registry_find(name, registry_layers(name, rule) ? attention_rule(rule) : rule);
}

static const char *entry_refusal(const struct attn_kernel *kernel, const struct attn_problem *problem, uint64_t isa)
{
    if (kernel->isa & ~isa)
        return intern_format("this machine lacks %s", isa_names(kernel->isa & ~isa));
    if (!(kernel->dtypes & ATTN_BIT(problem->dtype)))
        return intern_format("%s does not do dtype %s", kernel->name, dtype_name((enum attn_dtype)problem->dtype));
    if ((problem->flags & ATTN_FLAG_WEIGHTS) && !(kernel->caps & ATTN_CAP_WEIGHTS))
        return intern_format("%s does not return weights", kernel->name);
    if ((problem->flags & ATTN_FLAG_PARTIAL) && !(kernel->caps & ATTN_CAP_PARTIAL))
        return intern_format("%s does not return partial results", kernel->name);
    const struct registry_origin *origin = registry_origin(kernel->name); /* NULL: the copy of layers */
    const bool may_ask = runs_foreign || !origin || origin->kind == REGISTRY_BUILT_IN;
    return may_ask && kernel->refuse ? intern(kernel->refuse(problem)) : NULL;
}

const struct attn_kernel *registry_step(const char *name, const struct attn_step *step, uint64_t isa)
{
    static const char *const lenders[] = {"avx512_bf16", "avx512", "avx2", "tiled", "naive"};
    if (step->kind == ATTN_STEP_COPY)
        return &attn_kernel_copy;
    const struct attn_kernel *own = registry_find(name, step->problem.rule);
    if (step->kind == ATTN_STEP_ATTENTION || (own && !entry_refusal(own, &step->problem, isa)))
        return own;
    /* Of two libraries side by side ("a:avx2", "b:avx2"), each lends to its own. */
    const char *colon = strrchr(name, ':');
    const int prefix = colon ? (int)(colon + 1 - name) : 0;
    for (size_t l = 0; l < sizeof lenders / sizeof *lenders; l++) {
        const struct attn_kernel *lent = registry_find(intern_format("%.*s%s", prefix, name, lenders[l]), ATTN_MATMUL);
        if (lent && !entry_refusal(lent, &step->problem, isa))
            return lent;
    }
    return own;
}

/* A kernel's ISA and dtypes hold for the whole layer, whoever lends the matmul. */
static const char *layer_refusal(const char *name, const struct attn_problem *problem, uint64_t isa)
{
    struct attn_layer layer;
    const char *reason = NULL;
    attn_layer_make(problem, NULL, false, NULL, &layer);
    for (int s = 0; s < layer.count && !reason; s++) {
        const struct attn_kernel *kernel = registry_step(name, &layer.steps[s], isa);
        reason = kernel ? entry_refusal(kernel, &layer.steps[s].problem, isa) : intern_format("%s has no matmul", name);
    }
    return reason;
}

const char *registry_refusal(const char *name, const struct attn_problem *problem, uint64_t isa)
{
    if (!registry_does(name, problem->rule))
        return intern_format("%s does not do rule %s", name, rule_name((enum attn_rule)problem->rule));
    const struct attn_kernel *attention = registry_attention(name, problem->rule);
    if (!registry_layers(name, problem->rule))
        return entry_refusal(attention, problem, isa);
    if (attention->isa & ~isa)
        return intern_format("this machine lacks %s", isa_names(attention->isa & ~isa));
    return layer_refusal(name, problem, isa);
}

const char *const *registry_names(void)
{
    static const char *names[MOST_KERNELS + 1];
    const struct attn_kernel *kernel;
    size_t count = 0;
    for (size_t i = 0; (kernel = registry_entry(i)) && count < MOST_KERNELS; i++) {
        size_t at = 0;
        while (at < count && strcmp(names[at], kernel->name) != 0)
            at++;
        if (at == count)
            names[count++] = kernel->name;
    }
    names[count] = NULL;
    return names;
}
