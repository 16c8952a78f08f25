/* SPDX-License-Identifier: Apache-2.0
 *
 * The sound layer under the broken ones: the steps of kernels/layers, each done whole by the naive kernels. A fault
 * spoils one step before it runs. The one item of the first phase does everything, so that no schedule can interfere.
 */
#ifndef TESTS_BROKEN_BASE_LAYER_H
#define TESTS_BROKEN_BASE_LAYER_H

#include "../../kernels/layers/layer.h"

extern const struct attn_kernel attn_kernel_naive, attn_kernel_naive_matmul;

/* Spoils a step; returns whether it has also done it. */
typedef bool base_spoil(const struct attn_problem *problem, const struct attn_args *args, struct attn_step *step);

static inline const struct attn_kernel *base_step_kernel(const struct attn_step *step)
{
    return step->kind == ATTN_STEP_COPY     ? &attn_kernel_copy
           : step->kind == ATTN_STEP_MATMUL ? &attn_kernel_naive_matmul
                                            : &attn_kernel_naive;
}

static inline struct attn_plan base_step_plan(const struct attn_step *step)
{
    struct attn_plan plan = {.phases = 1, .q_grain = 1, .k_grain = 1, .head_grain = 1};
    if (base_step_kernel(step)->plan)
        base_step_kernel(step)->plan(&step->problem, 1, NULL, &plan);
    return plan;
}

/* In shared: what steps hand on, then the largest scratch of a step. */
static inline int base_layer_plan(const struct attn_problem *problem, int32_t threads, void *state,
                                  struct attn_plan *plan)
{
    struct attn_layer layer;
    size_t scratch = 0;
    (void)threads;
    (void)state;
    attn_layer_make(problem, NULL, false, NULL, &layer);
    for (int s = 0; s < layer.count; s++) {
        const size_t bytes = base_step_plan(&layer.steps[s]).thread_bytes;
        scratch = bytes > scratch ? bytes : scratch;
    }
    plan->phases = 2;
    plan->items[0] = 1;
    plan->shared_bytes = (layer.workspace_bytes + 63) / 64 * 64 + scratch;
    return 0;
}

static inline int base_layer_run(const struct attn_problem *problem, const struct attn_args *args, int32_t phase,
                                 base_spoil *spoil)
{
    struct attn_layer layer;
    int rc = 0;
    if (phase != 0)
        return 0;
    attn_layer_make(problem, args, false, args->shared, &layer);
    char *scratch = (char *)args->shared + (layer.workspace_bytes + 63) / 64 * 64;
    for (int s = 0; s < layer.count && rc == 0; s++) {
        struct attn_step *step = &layer.steps[s];
        if (spoil(problem, args, step))
            continue;
        const struct attn_problem *p = &step->problem;
        const struct attn_span whole = {.b1 = p->B, .h1 = p->H, .q1 = p->S_q, .k1 = p->S_kv};
        rc = base_step_kernel(step)->run(p, &step->args, &whole, 0, NULL, scratch);
    }
    return rc;
}

#endif
