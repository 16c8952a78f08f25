/* SPDX-License-Identifier: Apache-2.0
 *
 * Which layers there are, and the names of their phases; see layer.h.
 */
#include "layer.h"

#include <assert.h>

#include "steps.h"

const char *const attn_phase_names[ATTN_PHASES] = {
    [ATTN_PHASE_PROJECTIONS] = "projections",
    [ATTN_PHASE_PERMUTE] = "permute",
    [ATTN_PHASE_ATTENTION] = "attention",
    [ATTN_PHASE_OUTPUT] = "output",
};

bool attn_rule_is_layered(uint32_t rule)
{
    return rule == ATTN_ADDITIVE || rule == ATTN_CONCAT || rule == ATTN_MULTI_HEAD || rule == ATTN_SELF_ATTENTION;
}

void attn_layer_make(const struct attn_problem *problem, const struct attn_args *args, bool permute, void *workspace,
                     struct attn_layer *layer)
{
    assert(attn_rule_is_layered(problem->rule) && !(problem->flags & ATTN_FLAG_PARTIAL));
    assert((uintptr_t)workspace % 64 == 0);
    layer->count = 0;
    layer->workspace_bytes = 0;
    static const struct attn_args nothing;
    const struct layer_build build = {.problem = problem,
                                      .args = args ? args : &nothing,
                                      .shapes_alone = !args,
                                      .workspace = workspace,
                                      .layer = layer};
    switch (problem->rule) {
    case ATTN_ADDITIVE:
        layer_additive(&build);
        break;
    case ATTN_CONCAT:
        layer_concat(&build);
        break;
    case ATTN_MULTI_HEAD:
        layer_multi_head(&build, permute);
        break;
    default:
        layer_self_attention(&build, permute);
    }
}
