/* SPDX-License-Identifier: Apache-2.0
 *
 * The f32 and f64 FMA peaks with 512-bit registers: 24 independent chains, each x = x * 0.5 + 0.5, whose fixed point 1
 * keeps every value normal. Assembly, so that no compiler can spill or hoist.
 */
#include "../../probe.h"

enum { CHAINS = 24, LANES = 16, LANES_F64 = 8 };

static void run(uint64_t iterations)
{
    const float half = 0.5f;
    if (iterations == 0)
        return;
    __asm__ volatile("vbroadcastss %[half], %%zmm31\n\t"
                     ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23\n\t"
                     "vmovaps %%zmm31, %%zmm\\i\n\t"
                     ".endr\n"
                     ".balign 32\n"
                     "1:\n\t"
                     ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23\n\t"
                     "vfmadd213ps %%zmm31, %%zmm31, %%zmm\\i\n\t"
                     ".endr\n\t"
                     "dec %[n]\n\t"
                     "jnz 1b\n\t"
                     "vzeroupper"
                     : [n] "+r"(iterations)
                     : [half] "m"(half)
                     : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
                       "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "xmm16", "xmm17", "xmm18", "xmm19", "xmm20",
                       "xmm21", "xmm22", "xmm23", "xmm31");
}

static void run_f64(uint64_t iterations)
{
    const double half = 0.5;
    if (iterations == 0)
        return;
    __asm__ volatile("vbroadcastsd %[half], %%zmm31\n\t"
                     ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23\n\t"
                     "vmovapd %%zmm31, %%zmm\\i\n\t"
                     ".endr\n"
                     ".balign 32\n"
                     "1:\n\t"
                     ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23\n\t"
                     "vfmadd213pd %%zmm31, %%zmm31, %%zmm\\i\n\t"
                     ".endr\n\t"
                     "dec %[n]\n\t"
                     "jnz 1b\n\t"
                     "vzeroupper"
                     : [n] "+r"(iterations)
                     : [half] "m"(half)
                     : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
                       "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "xmm16", "xmm17", "xmm18", "xmm19", "xmm20",
                       "xmm21", "xmm22", "xmm23", "xmm31");
}

const struct flop_probe flop_probe_zmm_fma = {
    .name = "zmm fma f32",
    .isa = ATTN_ISA_AVX512F,
    .dtype = ATTN_F32,
    .element = "f32",
    .vector = "zmm",
    .flops_per_iteration = 2.0 * CHAINS * LANES,
    .run = run,
};

const struct flop_probe flop_probe_zmm_fma_f64 = {
    .name = "zmm fma f64",
    .isa = ATTN_ISA_AVX512F,
    .element = "f64",
    .vector = "zmm",
    .flops_per_iteration = 2.0 * CHAINS * LANES_F64,
    .run = run_f64,
};
