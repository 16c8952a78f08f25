/* SPDX-License-Identifier: Apache-2.0
 *
 * avx2: flash attention in f32, 8 floats a vector.
 */
#include "../flash/flash.h"

const struct attn_kernel attn_kernel_avx2 = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "avx2",
    .summary = "flash attention, queries as lanes of 8 floats; decode as a stream",
    .isa = ATTN_ISA_AVX2 | ATTN_ISA_FMA,
    .rules = ATTN_BIT(ATTN_SCALED_DOT_PRODUCT),
    .dtypes = ATTN_BIT(ATTN_F32),
    .caps = ATTN_CAP_PARTIAL | ATTN_CAP_SPLIT_KEYS,
    .plan = flash_plan,
    .run = flash_run,
};
