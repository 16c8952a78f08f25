/* SPDX-License-Identifier: Apache-2.0
 *
 * coarse_exp: 2^x between integers by a parabola, up to 2e-3 off in relative error. Every output is plausible: shows
 * only under an error bound (or RMS) of the order of float's epsilon.
 */
#include "base.h"

static float exponential(float x)
{
    const float power = x * 1.44269504f, whole = floorf(power + 0.5f), rest = (power - whole) * 0.693147181f;
    return ldexpf(1 + rest + 0.5f * rest * rest, (int)fmaxf(whole, -1000));
}

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    static const struct base_steps steps = {.exponential = exponential};
    (void)phase;
    (void)state;
    return base_run(problem, args, span, &steps, scratch);
}

const struct attn_kernel attn_kernel_coarse_exp = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "coarse_exp",
    .summary = "planted fault: exp is a parabola, 2e-3 off",
    .rules = ATTN_BIT(ATTN_SCALED_DOT_PRODUCT),
    .dtypes = ATTN_BIT(ATTN_F32),
    .plan = base_plan,
    .run = run,
};
