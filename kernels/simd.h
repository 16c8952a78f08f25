/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the vector operations that fit the ISA flags of this translation unit.
 */
#ifndef KERNELS_SIMD_H
#define KERNELS_SIMD_H

#ifdef __AVX512F__
#include "simd_avx512.h"
#else
#include "simd_avx2.h"
#endif

#endif
