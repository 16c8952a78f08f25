/* SPDX-License-Identifier: Apache-2.0
 *
 * Look-ups in the generated kernel table; see registry.h.
 */
#include "registry.h"

#include <string.h>

#include "intern.h"
#include "isa.h"
#include "spec.h"

enum { MOST_KERNELS = 1024 };

const struct attn_kernel *registry_find(const char *name, uint32_t rule)
{
    for (const struct attn_kernel *const *k = attn_registry; *k; k++)
        if (strcmp((*k)->name, name) == 0 && ((*k)->rules & ATTN_BIT(rule)))
            return *k;
    return NULL;
}

/* The rule of a layer's attention step. */
static uint32_t attention_rule(uint32_t rule)
{
    return rule == ATTN_ADDITIVE ? ATTN_ADDITIVE : ATTN_SCALED_DOT_PRODUCT;
}

bool registry_layers(const char *name, uint32_t rule)
{
    /* An entry of additive does the core alone. */
    return attn_rule_is_layered(rule) && (rule == ATTN_ADDITIVE || !registry_find(name, rule));
}

bool registry_does(const char *name, uint32_t rule)
{
    return registry_find(name, rule) || (attn_rule_is_layered(rule) && registry_find(name, attention_rule(rule)));
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
    return kernel->refuse ? intern(kernel->refuse(problem)) : NULL;
}

const struct attn_kernel *registry_step(const char *name, const struct attn_step *step, uint64_t isa)
{
    static const char *const lenders[] = {"avx512_bf16", "avx512", "avx2", "tiled", "naive"};
    if (step->kind == ATTN_STEP_COPY)
        return &attn_kernel_copy;
    const struct attn_kernel *own = registry_find(name, step->problem.rule);
    if (step->kind == ATTN_STEP_ATTENTION || (own && !entry_refusal(own, &step->problem, isa)))
        return own;
    for (size_t l = 0; l < sizeof lenders / sizeof *lenders; l++) {
        const struct attn_kernel *lent = registry_find(lenders[l], ATTN_MATMUL);
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
    size_t count = 0;
    for (const struct attn_kernel *const *k = attn_registry; *k && count < MOST_KERNELS; k++) {
        size_t at = 0;
        while (at < count && strcmp(names[at], (*k)->name) != 0)
            at++;
        if (at == count)
            names[count++] = (*k)->name;
    }
    names[count] = NULL;
    return names;
}
