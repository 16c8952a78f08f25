/* SPDX-License-Identifier: Apache-2.0
 *
 * The sizes and switches that only some rules have: one table for records, ids, repro lines and what is refused.
 */
#ifndef HARNESS_SPEC_SIZES_H
#define HARNESS_SPEC_SIZES_H

#include "spec.h"

struct spec_size {
    const char *field; /* in a record's sizes */
    const char *flag;  /* the key that sets it */
    uint64_t rules;    /* ATTN_BIT of the rules that have it */
    size_t offset;     /* of an int64_t in struct problem_spec; some rules call D, S_q or D_v by another name */
};
extern const struct spec_size spec_sizes[];
extern const int spec_sizes_count;

struct spec_switch {
    const char *field, *flag;
    uint64_t rules;
    size_t offset; /* of a bool */
};
extern const struct spec_switch spec_switches[];
extern const int spec_switches_count;

/* Does this problem have the size? concat has out_dim only with combine, self_attention only without single. */
bool spec_has_size(const struct problem_spec *spec, const struct spec_size *size);
int64_t spec_size_value(const struct problem_spec *spec, const struct spec_size *size);
int64_t *spec_size_place(struct problem_spec *spec, const struct spec_size *size);

bool spec_has_switch(const struct problem_spec *spec, const struct spec_switch *one);
bool spec_switch_value(const struct problem_spec *spec, const struct spec_switch *one);
bool *spec_switch_place(struct problem_spec *spec, const struct spec_switch *one);

/* Does the rule scale its scores by a factor of one's choice, and cap them? */
bool rule_has_scale(enum attn_rule rule);

#endif
