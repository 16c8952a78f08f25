/* SPDX-License-Identifier: Apache-2.0
 *
 * The seeded problems of `attnbench verify`: every rule, odd sizes, masks, GQA, layouts, extreme values.
 */
#ifndef HARNESS_VERIFY_SUITE_H
#define HARNESS_VERIFY_SUITE_H

#include "spec.h"

/* Problem number index of the rule's suite of this seed. *far: k and v shall lie beyond 32-bit element offsets. */
struct problem_spec verify_suite_problem(uint64_t seed, enum attn_rule rule, int64_t index, bool *far);

#endif
