/* SPDX-License-Identifier: Apache-2.0
 *
 * plans_many_phases: says that it has more phases than a plan has room for.
 */
#include "sound.h"

static int plan(const struct attn_problem *problem, int32_t threads, void *state, struct attn_plan *plan)
{
    base_plan(problem, threads, state, plan);
    plan->phases = 99;
    return 0;
}

const struct attn_kernel *const *attn_kernels(uint32_t *abi)
{
    struct attn_kernel kernel = sound_kernel("plans_many_phases", "plan has 99 phases", sound_run);
    kernel.plan = plan;
    return sound_table(kernel, abi);
}
