/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of sizes and switches that only some rules have; see spec_sizes.h.
 */
#include "spec_sizes.h"

#include <stddef.h>

#define ADDITIVE ATTN_BIT(ATTN_ADDITIVE)
#define CONCAT ATTN_BIT(ATTN_CONCAT)
#define MULTI_HEAD ATTN_BIT(ATTN_MULTI_HEAD)
#define SELF ATTN_BIT(ATTN_SELF_ATTENTION)
#define MATMUL ATTN_BIT(ATTN_MATMUL)

/* The order is that of repro lines and of ids: new entries go to the end. */
const struct spec_size spec_sizes[] = {
    {"query_dim", "query-dim", ADDITIVE | CONCAT, offsetof(struct problem_spec, D)},
    {"key_dim", "key-dim", ADDITIVE | CONCAT, offsetof(struct problem_spec, key_dim)},
    {"hidden", "hidden", ADDITIVE, offsetof(struct problem_spec, hidden)},
    {"input_dim", "input-dim", SELF, offsetof(struct problem_spec, input_dim)},
    {"model_dim", "model-dim", MULTI_HEAD | SELF, offsetof(struct problem_spec, model_dim)},
    {"model_dim_v", "model-dim-v", MULTI_HEAD | SELF, offsetof(struct problem_spec, model_dim_v)},
    {"out_dim", "out-dim", CONCAT | MULTI_HEAD | SELF, offsetof(struct problem_spec, out_dim)},
    {"M", "M", MATMUL, offsetof(struct problem_spec, S_q)},
    {"N", "N", MATMUL, offsetof(struct problem_spec, D_v)},
    {"K", "K", MATMUL, offsetof(struct problem_spec, D)},
};
const int spec_sizes_count = sizeof spec_sizes / sizeof spec_sizes[0];

const struct spec_switch spec_switches[] = {
    {"combine", "combine", CONCAT, offsetof(struct problem_spec, combine)},
    {"plain_sum", "plain-sum", ADDITIVE, offsetof(struct problem_spec, plain_sum)},
    {"single", "no-mha", SELF, offsetof(struct problem_spec, single)},
};
const int spec_switches_count = sizeof spec_switches / sizeof spec_switches[0];

bool spec_has_size(const struct problem_spec *spec, const struct spec_size *size)
{
    if (!(size->rules & ATTN_BIT(spec->rule)))
        return false;
    if (size->offset != offsetof(struct problem_spec, out_dim))
        return true;
    return spec->rule == ATTN_CONCAT ? spec->combine : !spec->single;
}

int64_t spec_size_value(const struct problem_spec *spec, const struct spec_size *size)
{
    return *(const int64_t *)((const char *)spec + size->offset);
}

int64_t *spec_size_place(struct problem_spec *spec, const struct spec_size *size)
{
    return (int64_t *)((char *)spec + size->offset);
}

bool spec_has_switch(const struct problem_spec *spec, const struct spec_switch *one)
{
    return (one->rules & ATTN_BIT(spec->rule)) != 0;
}

bool spec_switch_value(const struct problem_spec *spec, const struct spec_switch *one)
{
    return *(const bool *)((const char *)spec + one->offset);
}

bool *spec_switch_place(struct problem_spec *spec, const struct spec_switch *one)
{
    return (bool *)((char *)spec + one->offset);
}

bool rule_has_scale(enum attn_rule rule)
{
    return rule == ATTN_SCALED_DOT_PRODUCT || rule == ATTN_MULTI_HEAD || rule == ATTN_SELF_ATTENTION;
}
