/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of ceiling loops, and the floating-point mode of a thread; see probe.h.
 */
#include "probe.h"

#ifdef __SSE2__
#include <xmmintrin.h>
#endif

const struct flop_probe *const flop_probes[] = {
    &flop_probe_sse2, &flop_probe_ymm_fma, &flop_probe_zmm_fma, &flop_probe_ymm_bf16, &flop_probe_zmm_bf16, 0,
};

const struct flop_probe *const other_flop_probes[] = {
    &flop_probe_sse2_f64, &flop_probe_ymm_fma_f64, &flop_probe_zmm_fma_f64,
    &flop_probe_ymm_int8, &flop_probe_zmm_int8,    0,
};

const struct function_probe *const function_probes[] = {
    &function_probe_sse2_exp,
    &function_probe_ymm_exp,
    &function_probe_zmm_exp,
    &function_probe_sse2_tanh,
    &function_probe_ymm_tanh,
    &function_probe_zmm_tanh,
    0,
};

const struct stream_probe *const stream_probes[] = {&stream_probe_sse2, &stream_probe_ymm, &stream_probe_zmm, 0};

/* MXCSR: flush results that are subnormal (bit 15), take subnormal inputs for zero (bit 6). */
#define FLUSH_TO_ZERO (1u << 15)
#define DENORMALS_ARE_ZERO (1u << 6)

#define ROUNDING (3u << 13)
#define EXCEPTIONS_MASKED (0x3fu << 7)

unsigned probe_float_mode(void)
{
#ifdef __SSE2__
    const unsigned mode = _mm_getcsr();
    return (mode & (FLUSH_TO_ZERO | DENORMALS_ARE_ZERO | ROUNDING)) | (~mode & EXCEPTIONS_MASKED);
#else
    return 0;
#endif
}

void probe_clear_float_mode(void)
{
#ifdef __SSE2__
    _mm_setcsr((_mm_getcsr() & ~(FLUSH_TO_ZERO | DENORMALS_ARE_ZERO | ROUNDING)) | EXCEPTIONS_MASKED);
#endif
}
