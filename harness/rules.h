/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules: how scores are made, and the formulas that `list rules` prints and work.c counts by.
 */
#ifndef HARNESS_RULES_H
#define HARNESS_RULES_H

#include "../kernels/attn.h"

struct rule_info {
    enum attn_rule rule;
    const char *summary;
    const char *definition; /* what is computed */
    const char *flops_useful, *flops_dense, *bytes_min, *tokens;
};

extern const struct rule_info rules_built[];
extern const int rules_built_count;

#endif
