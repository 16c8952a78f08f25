/* SPDX-License-Identifier: Apache-2.0
 *
 * Read, write and copy bandwidth with 256-bit registers. Reading folds every byte into 16 running XORs, so that no load
 * can be left out and no chain of them limits the rate; writing and copying use ordinary stores, as kernels do.
 * Assembly, because compilers regroup the XORs, spill them, or turn the stores into memset.
 */
#include "../../probe.h"
#include "../quarters.h"

enum { VECTOR_BYTES = 32, LANES = 4 };

static uint64_t read_streams(const void *buffer, size_t bytes, int streams)
{
    struct quarters q = quarters_of(buffer, bytes, streams, VECTOR_BYTES);
    uint64_t lanes[LANES] = {0};
    if (q.rounds == 0)
        return 0;
    __asm__ volatile(".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n\t"
                     "vpxor %%ymm\\i, %%ymm\\i, %%ymm\\i\n\t"
                     ".endr\n"
                     ".balign 32\n"
                     "1:\n\t"
                     ".irp i,0,1,2,3\n\t"
                     "vpxor 32*\\i(%[a]), %%ymm\\i, %%ymm\\i\n\t"
                     ".endr\n\t"
                     ".irp i,4,5,6,7\n\t"
                     "vpxor 32*\\i-128(%[b]), %%ymm\\i, %%ymm\\i\n\t"
                     ".endr\n\t"
                     ".irp i,8,9,10,11\n\t"
                     "vpxor 32*\\i-256(%[c]), %%ymm\\i, %%ymm\\i\n\t"
                     ".endr\n\t"
                     ".irp i,12,13,14,15\n\t"
                     "vpxor 32*\\i-384(%[d]), %%ymm\\i, %%ymm\\i\n\t"
                     ".endr\n\t"
                     "add %[step], %[a]\n\t"
                     "add %[step], %[b]\n\t"
                     "add %[step], %[c]\n\t"
                     "add %[step], %[d]\n\t"
                     "dec %[n]\n\t"
                     "jnz 1b\n\t"
                     ".irp i,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n\t"
                     "vpxor %%ymm\\i, %%ymm0, %%ymm0\n\t"
                     ".endr\n\t"
                     "vmovups %%ymm0, (%[lanes])\n\t"
                     "vzeroupper"
                     : [a] "+r"(q.a), [b] "+r"(q.b), [c] "+r"(q.c), [d] "+r"(q.d), [n] "+r"(q.rounds)
                     : [step] "r"(q.step), [lanes] "r"(lanes)
                     : "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
                       "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
    return quarters_fold(lanes, LANES);
}

static void write_streams(void *buffer, size_t bytes, int streams)
{
    struct quarters q = quarters_of(buffer, bytes, streams, VECTOR_BYTES);
    const float one = 1.0f;
    if (q.rounds == 0)
        return;
    __asm__ volatile("vbroadcastss %[one], %%ymm15\n"
                     ".balign 32\n"
                     "1:\n\t"
                     ".irp i,0,1,2,3\n\t"
                     "vmovaps %%ymm15, 32*\\i(%[a])\n\t"
                     ".endr\n\t"
                     ".irp i,0,1,2,3\n\t"
                     "vmovaps %%ymm15, 32*\\i(%[b])\n\t"
                     ".endr\n\t"
                     ".irp i,0,1,2,3\n\t"
                     "vmovaps %%ymm15, 32*\\i(%[c])\n\t"
                     ".endr\n\t"
                     ".irp i,0,1,2,3\n\t"
                     "vmovaps %%ymm15, 32*\\i(%[d])\n\t"
                     ".endr\n\t"
                     "add %[step], %[a]\n\t"
                     "add %[step], %[b]\n\t"
                     "add %[step], %[c]\n\t"
                     "add %[step], %[d]\n\t"
                     "dec %[n]\n\t"
                     "jnz 1b\n\t"
                     "vzeroupper"
                     : [a] "+r"(q.a), [b] "+r"(q.b), [c] "+r"(q.c), [d] "+r"(q.d), [n] "+r"(q.rounds)
                     : [step] "r"(q.step), [one] "m"(one)
                     : "memory", "cc", "xmm15");
}

static void copy(void *to, const void *from, size_t bytes)
{
    size_t rounds = bytes / (8 * VECTOR_BYTES);
    if (rounds == 0)
        return;
    __asm__ volatile(".balign 32\n"
                     "1:\n\t"
                     ".irp i,0,1,2,3,4,5,6,7\n\t"
                     "vmovaps 32*\\i(%[from]), %%ymm\\i\n\t"
                     ".endr\n\t"
                     ".irp i,0,1,2,3,4,5,6,7\n\t"
                     "vmovaps %%ymm\\i, 32*\\i(%[to])\n\t"
                     ".endr\n\t"
                     "add %[step], %[from]\n\t"
                     "add %[step], %[to]\n\t"
                     "dec %[n]\n\t"
                     "jnz 1b\n\tvzeroupper"
                     : [from] "+r"(from), [to] "+r"(to), [n] "+r"(rounds)
                     : [step] "r"((size_t)(8 * VECTOR_BYTES))
                     : "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7");
}

const struct stream_probe stream_probe_ymm = {
    .name = "ymm",
    .isa = ATTN_ISA_AVX2,
    .read = read_streams,
    .write = write_streams,
    .copy = copy,
};
