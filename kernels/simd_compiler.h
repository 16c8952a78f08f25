/* SPDX-License-Identifier: Apache-2.0
 *
 * What the vector code asks of the compiler, in each compiler's words.
 */
#ifndef KERNELS_SIMD_COMPILER_H
#define KERNELS_SIMD_COMPILER_H

#define SIMD_INLINE static inline __attribute__((always_inline))

/* A large function of a header, kept in one place: its registers are allotted without regard to what surrounds a call.
 * Whoever includes the header for something else need not use it. */
#define SIMD_OUTLINE static __attribute__((noinline, unused))

/* Before a loop of constant length whose vectors must become registers: unroll it whole. clang reads "GCC unroll N" as
 * a partial count, unrolls too late and leaves the accumulators in memory (a quarter of the speed with AVX2). */
#ifdef __clang__
#define SIMD_UNROLL _Pragma("clang loop unroll(full)")
#else
#define SIMD_UNROLL _Pragma("GCC unroll 32")
#endif

#endif
