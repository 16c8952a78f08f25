/* SPDX-License-Identifier: Apache-2.0
 *
 * stops_at_2_31: offsets are computed in 32 bits and wrap around at 2^31 elements. No real tensor of a test is that
 * large, but a view may be: rows (or heads) of K 2^32 elements apart in untouched address space (mmap with
 * MAP_NORESERVE, a few pages touched) wrap to the same place, so that every row reads the first one, without a crash.
 * tests/check_kernels_basic.c has such a view.
 */
#include "base.h"

static int64_t offset(const struct attn_tensor *t, int64_t b, int64_t h, int64_t row)
{
    return (int32_t)((uint32_t)b * (uint32_t)t->stride[0] + (uint32_t)h * (uint32_t)t->stride[1] +
                     (uint32_t)row * (uint32_t)t->stride[2]);
}

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    static const struct base_steps steps = {.offset = offset};
    (void)phase;
    (void)state;
    return base_run(problem, args, span, &steps, scratch);
}

const struct attn_kernel attn_kernel_stops_at_2_31 = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "stops_at_2_31",
    .summary = "planted fault: offsets are 32 bits wide",
    .rules = ATTN_BIT(ATTN_SCALED_DOT_PRODUCT),
    .dtypes = ATTN_BIT(ATTN_F32),
    .plan = base_plan,
    .run = run,
};
