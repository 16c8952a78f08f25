/* SPDX-License-Identifier: Apache-2.0
 *
 * plans_much_scratch: asks for more scratch than there is address space.
 */
#include "sound.h"

static int plan(const struct attn_problem *problem, int32_t threads, void *state, struct attn_plan *plan)
{
    base_plan(problem, threads, state, plan);
    plan->thread_bytes = (size_t)1 << 60;
    return 0;
}

const struct attn_kernel *const *attn_kernels(uint32_t *abi)
{
    struct attn_kernel kernel = sound_kernel("plans_much_scratch", "plan wants an exabyte of scratch", sound_run);
    kernel.plan = plan;
    return sound_table(kernel, abi);
}
