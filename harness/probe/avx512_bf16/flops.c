/* SPDX-License-Identifier: Apache-2.0
 *
 * The bf16 peak: vdpbf16ps adds two bf16 products to each f32 lane, four flops a lane. 24 independent chains with
 * 512-bit and with 256-bit registers. Both factors are 1, so that a lane grows to 2^25, where adding 2 no longer
 * changes it: never subnormal, never infinite. Assembly, so that no compiler can spill or hoist.
 */
#include "../../probe.h"

enum { CHAINS = 24, LANES_ZMM = 16, LANES_YMM = 8 };

/* Two bf16 ones. */
static const uint32_t ones = 0x3f803f80u;

static void run_zmm(uint64_t iterations)
{
    if (iterations == 0)
        return;
    __asm__ volatile("vpbroadcastd %[ones], %%zmm31\n\t"
                     ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23\n\t"
                     "vmovaps %%zmm31, %%zmm\\i\n\t"
                     ".endr\n"
                     ".balign 32\n"
                     "1:\n\t"
                     ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23\n\t"
                     "vdpbf16ps %%zmm31, %%zmm31, %%zmm\\i\n\t"
                     ".endr\n\t"
                     "dec %[n]\n\t"
                     "jnz 1b\n\t"
                     "vzeroupper"
                     : [n] "+r"(iterations)
                     : [ones] "m"(ones)
                     : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
                       "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "xmm16", "xmm17", "xmm18", "xmm19", "xmm20",
                       "xmm21", "xmm22", "xmm23", "xmm31");
}

static void run_ymm(uint64_t iterations)
{
    if (iterations == 0)
        return;
    __asm__ volatile("vpbroadcastd %[ones], %%ymm31\n\t"
                     ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23\n\t"
                     "vmovaps %%ymm31, %%ymm\\i\n\t"
                     ".endr\n"
                     ".balign 32\n"
                     "1:\n\t"
                     ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23\n\t"
                     "vdpbf16ps %%ymm31, %%ymm31, %%ymm\\i\n\t"
                     ".endr\n\t"
                     "dec %[n]\n\t"
                     "jnz 1b\n\t"
                     "vzeroupper"
                     : [n] "+r"(iterations)
                     : [ones] "m"(ones)
                     : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
                       "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "xmm16", "xmm17", "xmm18", "xmm19", "xmm20",
                       "xmm21", "xmm22", "xmm23", "xmm31");
}

const struct flop_probe flop_probe_zmm_bf16 = {
    .name = "zmm vdpbf16ps",
    .isa = ATTN_ISA_AVX512F | ATTN_ISA_AVX512_BF16,
    .dtype = ATTN_BF16,
    .element = "bf16",
    .vector = "zmm",
    .flops_per_iteration = 4.0 * CHAINS * LANES_ZMM,
    .run = run_zmm,
};

const struct flop_probe flop_probe_ymm_bf16 = {
    .name = "ymm vdpbf16ps",
    .isa = ATTN_ISA_AVX512F | ATTN_ISA_AVX512VL | ATTN_ISA_AVX512_BF16,
    .dtype = ATTN_BF16,
    .element = "bf16",
    .vector = "ymm",
    .flops_per_iteration = 4.0 * CHAINS * LANES_YMM,
    .run = run_ymm,
};
