/* SPDX-License-Identifier: Apache-2.0
 *
 * The f32 and f64 FMA peaks with 256-bit registers: 12 independent chains (two FMAs a cycle of up to 5 cycles'
 * latency), each x = x * 0.5 + 0.5, whose fixed point 1 keeps every value normal. Assembly, so that no compiler can
 * spill or hoist.
 */
#include "../../probe.h"

enum { CHAINS = 12, LANES = 8, LANES_F64 = 4 };

static void run(uint64_t iterations)
{
    const float half = 0.5f;
    if (iterations == 0)
        return;
    __asm__ volatile("vbroadcastss %[half], %%ymm15\n\t"
                     ".irp i,0,1,2,3,4,5,6,7,8,9,10,11\n\t"
                     "vmovaps %%ymm15, %%ymm\\i\n\t"
                     ".endr\n"
                     ".balign 32\n"
                     "1:\n\t"
                     ".irp i,0,1,2,3,4,5,6,7,8,9,10,11\n\t"
                     "vfmadd213ps %%ymm15, %%ymm15, %%ymm\\i\n\t"
                     ".endr\n\t"
                     "dec %[n]\n\t"
                     "jnz 1b\n\t"
                     "vzeroupper"
                     : [n] "+r"(iterations)
                     : [half] "m"(half)
                     : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
                       "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}

static void run_f64(uint64_t iterations)
{
    const double half = 0.5;
    if (iterations == 0)
        return;
    __asm__ volatile("vbroadcastsd %[half], %%ymm15\n\t"
                     ".irp i,0,1,2,3,4,5,6,7,8,9,10,11\n\t"
                     "vmovapd %%ymm15, %%ymm\\i\n\t"
                     ".endr\n"
                     ".balign 32\n"
                     "1:\n\t"
                     ".irp i,0,1,2,3,4,5,6,7,8,9,10,11\n\t"
                     "vfmadd213pd %%ymm15, %%ymm15, %%ymm\\i\n\t"
                     ".endr\n\t"
                     "dec %[n]\n\t"
                     "jnz 1b\n\t"
                     "vzeroupper"
                     : [n] "+r"(iterations)
                     : [half] "m"(half)
                     : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
                       "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}

const struct flop_probe flop_probe_ymm_fma = {
    .name = "ymm fma f32",
    .isa = ATTN_ISA_AVX2 | ATTN_ISA_FMA,
    .dtype = ATTN_F32,
    .element = "f32",
    .vector = "ymm",
    .flops_per_iteration = 2.0 * CHAINS * LANES,
    .run = run,
};

const struct flop_probe flop_probe_ymm_fma_f64 = {
    .name = "ymm fma f64",
    .isa = ATTN_ISA_AVX2 | ATTN_ISA_FMA,
    .element = "f64",
    .vector = "ymm",
    .flops_per_iteration = 2.0 * CHAINS * LANES_F64,
    .run = run_f64,
};
