/* SPDX-License-Identifier: Apache-2.0
 *
 * The int8 peak: vpdpbusd adds four products of bytes to each 32-bit lane, eight operations a lane. 24 independent
 * chains with 512-bit and with 256-bit registers; lanes wrap around, which costs nothing. Assembly, so that no compiler
 * can spill or hoist; the instruction is VNNI's, which the probes ask for beside this folder's flags.
 */
#include "../../probe.h"

enum { CHAINS = 24, LANES_ZMM = 16, LANES_YMM = 8 };

/* Four bytes of 1. */
static const uint32_t ones = 0x01010101u;

static void run_zmm(uint64_t iterations)
{
    if (iterations == 0)
        return;
    __asm__ volatile("vpbroadcastd %[ones], %%zmm31\n\t"
                     ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23\n\t"
                     "vmovdqa32 %%zmm31, %%zmm\\i\n\t"
                     ".endr\n"
                     ".balign 32\n"
                     "1:\n\t"
                     ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23\n\t"
                     "vpdpbusd %%zmm31, %%zmm31, %%zmm\\i\n\t"
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
                     "vmovdqa32 %%ymm31, %%ymm\\i\n\t"
                     ".endr\n"
                     ".balign 32\n"
                     "1:\n\t"
                     ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23\n\t"
                     "vpdpbusd %%ymm31, %%ymm31, %%ymm\\i\n\t"
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

const struct flop_probe flop_probe_zmm_int8 = {
    .name = "zmm vpdpbusd",
    .isa = ATTN_ISA_AVX512F | ATTN_ISA_AVX512_VNNI,
    .element = "int8",
    .vector = "zmm",
    .flops_per_iteration = 8.0 * CHAINS * LANES_ZMM,
    .run = run_zmm,
};

const struct flop_probe flop_probe_ymm_int8 = {
    .name = "ymm vpdpbusd",
    .isa = ATTN_ISA_AVX512F | ATTN_ISA_AVX512VL | ATTN_ISA_AVX512_VNNI,
    .element = "int8",
    .vector = "ymm",
    .flops_per_iteration = 8.0 * CHAINS * LANES_YMM,
    .run = run_ymm,
};
