/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of rules; see rules.h.
 */
#include "rules.h"

const struct rule_info rules_built[] = {
    {
        .rule = ATTN_SCALED_DOT_PRODUCT,
        .summary = "softmax(scale Q K^T) V, with softcap, bias, masks, window, grouped heads",
        .definition = "s = scale q.k; s = c tanh(s/c) with a softcap c; s = s + bias; masked; out = softmax(s) v",
        .flops_useful = "2 (D + D_v) pairs; pairs: (query, key) of every head left by causal, window and kv-lengths",
        .flops_dense = "2 (D + D_v) B H S_q S_kv",
        .bytes_min = "K and V rows that some query may see (once per key head; once if aliased) + q + out + weights + "
                     "mask + bias",
        .tokens = "B S_q a call",
    },
};
const int rules_built_count = sizeof rules_built / sizeof rules_built[0];

const struct rule_info *rule_find(enum attn_rule rule)
{
    for (int i = 0; i < rules_built_count; i++)
        if (rules_built[i].rule == rule)
            return &rules_built[i];
    return NULL;
}

uint64_t rules_built_bits(void)
{
    uint64_t bits = 0;
    for (int i = 0; i < rules_built_count; i++)
        bits |= ATTN_BIT(rules_built[i].rule);
    return bits;
}
