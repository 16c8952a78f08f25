/* SPDX-License-Identifier: Apache-2.0
 *
 * matmul_drops_last: the sum over the inner dimension ends one early.
 */
#include "../../kernels/attn.h"

extern const struct attn_kernel attn_kernel_naive_matmul;

static int plan(const struct attn_problem *problem, int32_t threads, void *state, struct attn_plan *out)
{
    const struct attn_kernel *naive = &attn_kernel_naive_matmul;
    return naive->plan ? naive->plan(problem, threads, state, out) : 0;
}

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    struct attn_problem shorter = *problem;
    shorter.D -= shorter.D > 0;
    return attn_kernel_naive_matmul.run(&shorter, args, span, phase, state, scratch);
}

const struct attn_kernel attn_kernel_matmul_drops_last = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "matmul_drops_last",
    .summary = "planted fault: the last product of every sum is dropped",
    .rules = ATTN_BIT(ATTN_MATMUL),
    .dtypes = ATTN_BIT(ATTN_F32),
    .plan = plan,
    .run = run,
};
