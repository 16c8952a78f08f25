/* SPDX-License-Identifier: Apache-2.0
 *
 * avx512: flash attention, 16 floats a vector. Any D and D_v, every mask, weights returned where they are asked for.
 *
 * Algorithm. Up to 64 query rows of one key head are vector lanes (flash/lanes.h): Q^T[d][64], scaled by scale *
 * log2(e), then a block of up to 192 keys at a time: scores = K . Q^T, online softmax with vertical operations only,
 * output^T += V^T . weights. One micro-kernel (flash/product.h) does both products, reading K and V where they lie. Up
 * to 8 rows (decode; the heads of a group) go through the keys as one stream instead (flash/stream.h).
 *
 * Tiling. 6 keys (or features of V) x 4 vectors of queries; 1..5 rows and 1..3 vectors have tiles of their own, so a
 * block of 17 queries costs two vectors, not four. Blocks of keys that no row sees are not touched; only blocks that a
 * causal line or window crosses are masked, and there V is searched for NaN and infinities first, which must not meet a
 * weight of 0.
 *
 * Weights (flash/weights.h). A block's weights, relative to the maximum so far, are turned and stored to their rows
 * while they are in the cache, and scaled in place when the row's maximum and sum are known: 1.12 times the time at S
 * 2048, D 64; 1.24 times with a causal line, where the zeros take as long to store as the weights.
 *
 * Registers. 24 accumulators, 4 vectors of Q^T or weights, 1 broadcast: 29 of 32. A step: 24 FMAs, 10 loads.
 *
 * Memory. Each K and V row is read once per 64 queries. Per thread 4 (64 (D + D_v) + 64 x 192) bytes: 80 KiB at D = 64,
 * a part of L2; per 24 FMAs it gives 256 bytes, 11 a cycle. The stream reads K and V once in all.
 * Values, queries and output lines are fetched into L2 during the product before they are needed.
 * bf16 and f16: a block of keys and values is converted first, which takes 4 x 192 (D + D_v) bytes more. Weights: 256
 * bytes more for each 192 keys.
 *
 * gcc's -O2 and -O3, with and without -mtune=znver3, stay within each other's noise here (0.80-0.87 of the FMA peak at
 * S 2048, D 64, clang the same): unrolling and the order of DRAM reads are spelled out, so no flags of its own.
 */
#include "../flash/flash.h"

const struct attn_kernel attn_kernel_avx512 = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "avx512",
    .summary = "flash attention, queries as lanes of 16 floats; decode as a stream",
    .isa = ATTN_ISA_AVX2 | ATTN_ISA_FMA | ATTN_ISA_F16C | ATTN_ISA_AVX512F | ATTN_ISA_AVX512BW | ATTN_ISA_AVX512DQ |
           ATTN_ISA_AVX512VL,
    .rules = ATTN_BIT(ATTN_SCALED_DOT_PRODUCT),
    .dtypes = ATTN_BIT(ATTN_F32) | ATTN_BIT(ATTN_BF16) | ATTN_BIT(ATTN_F16),
    .caps = ATTN_CAP_PARTIAL | ATTN_CAP_WEIGHTS | ATTN_CAP_SPLIT_KEYS,
    .plan = flash_plan,
    .run = flash_run,
};
