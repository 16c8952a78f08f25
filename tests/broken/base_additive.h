/* SPDX-License-Identifier: Apache-2.0
 *
 * The additive scores under the broken kernels of that rule: base.h with another score. Sound as it stands.
 */
#ifndef TESTS_BROKEN_BASE_ADDITIVE_H
#define TESTS_BROKEN_BASE_ADDITIVE_H

#include "base.h"

static inline const float *additive_u(const struct attn_args *args)
{
    return args->param ? args->param[0].data : NULL;
}

/* sum_h u_h tanh(q_h + k_h); u NULL: ones. */
static inline float additive_sum(const struct attn_problem *problem, const float *u, float (*tanh_of)(float),
                                 const float *q, const float *k)
{
    float score = 0;
    for (int64_t h = 0; h < problem->D; h++)
        score += (u ? u[h] : 1) * tanh_of(q[h] + k[h]);
    return score;
}

static inline float additive_score(const struct attn_problem *problem, const struct attn_args *args, const float *q,
                                   const float *k)
{
    return additive_sum(problem, additive_u(args), tanhf, q, k);
}

#endif
