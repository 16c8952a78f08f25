/* SPDX-License-Identifier: Apache-2.0
 *
 * avx512: flash attention in f32, 16 floats a vector.
 */
#include "../flash/flash.h"

const struct attn_kernel attn_kernel_avx512 = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "avx512",
    .summary = "flash attention, queries as lanes of 16 floats; decode as a stream",
    .isa = ATTN_ISA_AVX2 | ATTN_ISA_FMA | ATTN_ISA_AVX512F | ATTN_ISA_AVX512BW | ATTN_ISA_AVX512DQ | ATTN_ISA_AVX512VL,
    .rules = ATTN_BIT(ATTN_SCALED_DOT_PRODUCT),
    .dtypes = ATTN_BIT(ATTN_F32),
    .caps = ATTN_CAP_PARTIAL | ATTN_CAP_SPLIT_KEYS,
    .plan = flash_plan,
    .run = flash_run,
};
