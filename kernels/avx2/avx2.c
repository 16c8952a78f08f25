/* SPDX-License-Identifier: Apache-2.0
 *
 * avx2: flash attention, 8 floats a vector. Any D and D_v, every mask, weights returned where they are asked for.
 *
 * Algorithm. As avx512 (see there): lanes are queries, one micro-kernel for both products, few rows as a stream,
 * weights block by block.
 *
 * Tiling. 6 keys (or features of V) x 2 vectors: a strip of 16 queries. Up to 4 strips go through a block of up to 192
 * keys one after the other, each with its own range of keys, so a causal line is followed in steps of 16 rows.
 *
 * Registers. 12 accumulators, 2 vectors of Q^T or weights, 1 broadcast: 15 of 16. A step: 12 FMAs, 8 loads.
 *
 * Memory. A strip's scores (12 KiB) and Q^T (4 KiB at D = 64) stay in L1; the keys and values of a block (96 KiB at
 * D = 64) stay in L2 for the other strips and are read once from beyond per 64 queries. Per thread
 * 4 (64 (D + D_v) + 16 x 192) bytes, and 4 x 192 (D + D_v) more for a block converted from bf16 or f16. Weights
 * cost 1.13 times the time at S 2048, D 64.
 *
 * gcc's -O2 and -O3, with and without -mtune=znver3, stay within each other's noise here (0.79-0.83 of the FMA peak at
 * S 2048, D 64, clang the same): unrolling and the order of DRAM reads are spelled out, so no flags of its own.
 */
#include "../flash/flash.h"

const struct attn_kernel attn_kernel_avx2 = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "avx2",
    .summary = "flash attention, queries as lanes of 8 floats; decode as a stream",
    .isa = ATTN_ISA_AVX2 | ATTN_ISA_FMA | ATTN_ISA_F16C,
    .rules = ATTN_BIT(ATTN_SCALED_DOT_PRODUCT),
    .dtypes = ATTN_BIT(ATTN_F32) | ATTN_BIT(ATTN_BF16) | ATTN_BIT(ATTN_F16),
    .caps = ATTN_CAP_PARTIAL | ATTN_CAP_WEIGHTS | ATTN_CAP_SPLIT_KEYS,
    .plan = flash_plan,
    .run = flash_run,
};
