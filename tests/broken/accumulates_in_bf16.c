/* SPDX-License-Identifier: Apache-2.0
 *
 * accumulates_in_bf16: the output is summed up in bf16 (8 bits) instead of float. The more keys the worse, 1e-3 to
 * 1e-2 of the output: shows under any bound of the order of float's epsilon, already at two keys.
 */
#include <string.h>

#include "base.h"

static float add(float sum, float term)
{
    const float exact = sum + term;
    uint32_t bits;
    memcpy(&bits, &exact, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
    float rounded;
    memcpy(&rounded, &bits, sizeof rounded);
    return rounded;
}

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    static const struct base_steps steps = {.add = add};
    (void)phase;
    (void)state;
    return base_run(problem, args, span, &steps, scratch);
}

const struct attn_kernel attn_kernel_accumulates_in_bf16 = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "accumulates_in_bf16",
    .summary = "planted fault: the weighted sum of V is rounded to bf16 at every step",
    .rules = ATTN_BIT(ATTN_SCALED_DOT_PRODUCT),
    .dtypes = ATTN_BIT(ATTN_F32),
    .plan = base_plan,
    .run = run,
};
