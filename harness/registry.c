/* SPDX-License-Identifier: Apache-2.0
 *
 * Look-ups in the generated kernel table; see registry.h.
 */
#include "registry.h"

#include <string.h>

#include "intern.h"
#include "isa.h"
#include "spec.h"

const struct attn_kernel *registry_find(const char *name)
{
    for (const struct attn_kernel *const *k = attn_registry; *k; k++)
        if (strcmp((*k)->name, name) == 0)
            return *k;
    return NULL;
}

const char *registry_refusal(const struct attn_kernel *kernel, const struct attn_problem *problem, uint64_t isa)
{
    if (kernel->isa & ~isa)
        return intern_format("this machine lacks %s", isa_names(kernel->isa & ~isa));
    if (!(kernel->rules & ATTN_BIT(problem->rule)))
        return intern_format("%s does not do rule %s", kernel->name, rule_name(problem->rule));
    if (!(kernel->dtypes & ATTN_BIT(problem->dtype)))
        return intern_format("%s does not do dtype %s", kernel->name, dtype_name(problem->dtype));
    if ((problem->flags & ATTN_FLAG_WEIGHTS) && !(kernel->caps & ATTN_CAP_WEIGHTS))
        return intern_format("%s does not return weights", kernel->name);
    if ((problem->flags & ATTN_FLAG_PARTIAL) && !(kernel->caps & ATTN_CAP_PARTIAL))
        return intern_format("%s does not return partial results", kernel->name);
    return kernel->refuse ? intern(kernel->refuse(problem)) : NULL;
}
