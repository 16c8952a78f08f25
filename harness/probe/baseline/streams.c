/* SPDX-License-Identifier: Apache-2.0
 *
 * Read, write and copy bandwidth with the baseline's 128-bit registers. Reading folds every byte into 16 running XORs,
 * so that no load can be left out and no chain of them limits the rate; writing and copying use ordinary stores, as
 * kernels do. Assembly, because compilers regroup the XORs, spill them, or turn the stores into memset.
 */
#include "../../probe.h"
#include "../quarters.h"

enum { VECTOR_BYTES = 16, LANES = 2 };

#ifdef __SSE2__
static uint64_t read_streams(const void *buffer, size_t bytes, int streams)
{
    struct quarters q = quarters_of(buffer, bytes, streams, VECTOR_BYTES);
    uint64_t lanes[LANES] = {0};
    if (q.rounds == 0)
        return 0;
    __asm__ volatile(".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n\t"
                     "pxor %%xmm\\i, %%xmm\\i\n\t"
                     ".endr\n"
                     ".balign 32\n"
                     "1:\n\t"
                     ".irp i,0,1,2,3\n\t"
                     "pxor 16*\\i(%[a]), %%xmm\\i\n\t"
                     ".endr\n\t"
                     ".irp i,4,5,6,7\n\t"
                     "pxor 16*\\i-64(%[b]), %%xmm\\i\n\t"
                     ".endr\n\t"
                     ".irp i,8,9,10,11\n\t"
                     "pxor 16*\\i-128(%[c]), %%xmm\\i\n\t"
                     ".endr\n\t"
                     ".irp i,12,13,14,15\n\t"
                     "pxor 16*\\i-192(%[d]), %%xmm\\i\n\t"
                     ".endr\n\t"
                     "add %[step], %[a]\n\t"
                     "add %[step], %[b]\n\t"
                     "add %[step], %[c]\n\t"
                     "add %[step], %[d]\n\t"
                     "dec %[n]\n\t"
                     "jnz 1b\n\t"
                     ".irp i,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n\t"
                     "pxor %%xmm\\i, %%xmm0\n\t"
                     ".endr\n\t"
                     "movups %%xmm0, (%[lanes])"
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
    __asm__ volatile("movss %[one], %%xmm15\n\t"
                     "shufps $0, %%xmm15, %%xmm15\n"
                     ".balign 32\n"
                     "1:\n\t"
                     ".irp i,0,1,2,3\n\t"
                     "movaps %%xmm15, 16*\\i(%[a])\n\t"
                     ".endr\n\t"
                     ".irp i,0,1,2,3\n\t"
                     "movaps %%xmm15, 16*\\i(%[b])\n\t"
                     ".endr\n\t"
                     ".irp i,0,1,2,3\n\t"
                     "movaps %%xmm15, 16*\\i(%[c])\n\t"
                     ".endr\n\t"
                     ".irp i,0,1,2,3\n\t"
                     "movaps %%xmm15, 16*\\i(%[d])\n\t"
                     ".endr\n\t"
                     "add %[step], %[a]\n\t"
                     "add %[step], %[b]\n\t"
                     "add %[step], %[c]\n\t"
                     "add %[step], %[d]\n\t"
                     "dec %[n]\n\t"
                     "jnz 1b"
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
                     "movaps 16*\\i(%[from]), %%xmm\\i\n\t"
                     ".endr\n\t"
                     ".irp i,0,1,2,3,4,5,6,7\n\t"
                     "movaps %%xmm\\i, 16*\\i(%[to])\n\t"
                     ".endr\n\t"
                     "add %[step], %[from]\n\t"
                     "add %[step], %[to]\n\t"
                     "dec %[n]\n\t"
                     "jnz 1b"
                     : [from] "+r"(from), [to] "+r"(to), [n] "+r"(rounds)
                     : [step] "r"((size_t)(8 * VECTOR_BYTES))
                     : "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7");
}
#else
static uint64_t read_streams(const void *buffer, size_t bytes, int streams)
{
    const struct quarters q = quarters_of(buffer, bytes, streams, VECTOR_BYTES);
    uint64_t sum[4][4 * LANES] = {{0}};
    for (size_t n = 0; n < q.rounds; n++)
        for (size_t i = 0; i < 4 * LANES; i++) {
            sum[0][i] ^= ((const uint64_t *)(q.a + n * q.step))[i];
            sum[1][i] ^= ((const uint64_t *)(q.b + n * q.step))[i];
            sum[2][i] ^= ((const uint64_t *)(q.c + n * q.step))[i];
            sum[3][i] ^= ((const uint64_t *)(q.d + n * q.step))[i];
        }
    return quarters_fold(sum[0], 16 * LANES);
}

static void write_streams(void *buffer, size_t bytes, int streams)
{
    const struct quarters q = quarters_of(buffer, bytes, streams, VECTOR_BYTES);
    for (size_t n = 0; n < q.rounds; n++)
        for (size_t i = 0; i < 4 * LANES; i++) {
            ((volatile uint64_t *)(q.a + n * q.step))[i] = i;
            ((volatile uint64_t *)(q.b + n * q.step))[i] = i;
            ((volatile uint64_t *)(q.c + n * q.step))[i] = i;
            ((volatile uint64_t *)(q.d + n * q.step))[i] = i;
        }
}

static void copy(void *to, const void *from, size_t bytes)
{
    for (size_t i = 0; i < bytes / sizeof(uint64_t); i++)
        ((volatile uint64_t *)to)[i] = ((const uint64_t *)from)[i];
}
#endif

const struct stream_probe stream_probe_sse2 = {
    .name = "sse2",
    .isa = 0,
    .read = read_streams,
    .write = write_streams,
    .copy = copy,
};
