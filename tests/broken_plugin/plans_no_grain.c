/* SPDX-License-Identifier: Apache-2.0
 *
 * plans_no_grain: says that its spans start at multiples of no query at all.
 */
#include "sound.h"

static int plan(const struct attn_problem *problem, int32_t threads, void *state, struct attn_plan *plan)
{
    base_plan(problem, threads, state, plan);
    plan->q_grain = 0;
    return 0;
}

const struct attn_kernel *const *attn_kernels(uint32_t *abi)
{
    struct attn_kernel kernel = sound_kernel("plans_no_grain", "plan has a q_grain of 0", sound_run);
    kernel.plan = plan;
    return sound_table(kernel, abi);
}
