/* SPDX-License-Identifier: Apache-2.0
 *
 * Multiply and add of f32 and f64 without any ISA flag: what portable C can hope for where the baseline has no FMA
 * (x86-64: SSE2).
 *
 * A step is one multiply and one add on each of 14 vectors, x = x * 0.5 + 0.5: the fixed point 1 keeps every value
 * normal. 14 independent chains of 6 cycles (8 on older cores) keep two multipliers and two adders busy, and leave
 * two of the 16 registers for the constants. All multiplies, then all adds: with each add right behind its multiply
 * the slack of one cycle in seven was often lost. Assembly, so that no compiler can spill or fuse.
 */
#include "../../probe.h"

enum { CHAINS = 14, LANES = 4, LANES_F64 = 2 };

#ifdef __SSE2__
static void run(uint64_t iterations)
{
    const float half[LANES] = {0.5f, 0.5f, 0.5f, 0.5f};
    if (iterations == 0)
        return;
    __asm__ volatile("movups %[half], %%xmm14\n\t"
                     "movups %[half], %%xmm15\n\t"
                     ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13\n\t"
                     "movaps %%xmm14, %%xmm\\i\n\t"
                     ".endr\n"
                     ".balign 32\n"
                     "1:\n\t"
                     ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13\n\t"
                     "mulps %%xmm14, %%xmm\\i\n\t"
                     ".endr\n\t"
                     ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13\n\t"
                     "addps %%xmm15, %%xmm\\i\n\t"
                     ".endr\n\t"
                     "dec %[n]\n\t"
                     "jnz 1b"
                     : [n] "+r"(iterations)
                     : [half] "m"(half)
                     : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
                       "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}

static void run_f64(uint64_t iterations)
{
    const double half[LANES_F64] = {0.5, 0.5};
    if (iterations == 0)
        return;
    __asm__ volatile("movupd %[half], %%xmm14\n\t"
                     "movupd %[half], %%xmm15\n\t"
                     ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13\n\t"
                     "movapd %%xmm14, %%xmm\\i\n\t"
                     ".endr\n"
                     ".balign 32\n"
                     "1:\n\t"
                     ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13\n\t"
                     "mulpd %%xmm14, %%xmm\\i\n\t"
                     ".endr\n\t"
                     ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13\n\t"
                     "addpd %%xmm15, %%xmm\\i\n\t"
                     ".endr\n\t"
                     "dec %[n]\n\t"
                     "jnz 1b"
                     : [n] "+r"(iterations)
                     : [half] "m"(half)
                     : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
                       "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}
#else
typedef float vector __attribute__((vector_size(LANES * sizeof(float))));

static void run(uint64_t iterations)
{
    const vector half = {0.5f, 0.5f, 0.5f, 0.5f};
    vector x[CHAINS];
    for (int i = 0; i < CHAINS; i++)
        x[i] = half;
    for (uint64_t n = 0; n < iterations; n++)
        for (int i = 0; i < CHAINS; i++)
            x[i] = x[i] * half + half;
    for (int i = 0; i < CHAINS; i++)
        __asm__ volatile("" : : "m"(x[i]));
}

typedef double vector_f64 __attribute__((vector_size(LANES_F64 * sizeof(double))));

static void run_f64(uint64_t iterations)
{
    const vector_f64 half = {0.5, 0.5};
    vector_f64 x[CHAINS];
    for (int i = 0; i < CHAINS; i++)
        x[i] = half;
    for (uint64_t n = 0; n < iterations; n++)
        for (int i = 0; i < CHAINS; i++)
            x[i] = x[i] * half + half;
    for (int i = 0; i < CHAINS; i++)
        __asm__ volatile("" : : "m"(x[i]));
}
#endif

const struct flop_probe flop_probe_sse2 = {
    .name = "sse2 mul+add f32",
    .isa = 0,
    .dtype = ATTN_F32,
    .element = "f32",
    .vector = "sse2",
    .flops_per_iteration = 2.0 * CHAINS * LANES,
    .run = run,
};

const struct flop_probe flop_probe_sse2_f64 = {
    .name = "sse2 mul+add f64",
    .isa = 0,
    .element = "f64",
    .vector = "sse2",
    .flops_per_iteration = 2.0 * CHAINS * LANES_F64,
    .run = run_f64,
};
