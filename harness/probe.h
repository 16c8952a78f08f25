/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops that measure a core's ceilings. Each file under harness/probe/<isa>/ is compiled with that ISA's flags and
 * called only where isa_available() has its bits. They run on the calling thread and are timed by the caller.
 */
#ifndef HARNESS_PROBE_H
#define HARNESS_PROBE_H

#include <stddef.h>
#include <stdint.h>

#include "../kernels/attn.h"

/* Multiply+add throughput from registers: enough independent chains to hide the latency, no memory. */
struct flop_probe {
    const char *name; /* "sse2 mul+add f32", "ymm fma f32", "zmm fma f32", "zmm vdpbf16ps" */
    uint64_t isa;
    enum attn_dtype dtype; /* what it is a ceiling for; f16 uses f32's. Means nothing in other_flop_probes */
    const char *element;   /* "f32", "bf16", "f64", "int8" */
    const char *vector;    /* "sse2", "ymm", "zmm" */
    double flops_per_iteration;
    void (*run)(uint64_t iterations);
};
extern const struct flop_probe *const flop_probes[]; /* NULL-terminated */
/* Ceilings of element types that no attention point has: shown by `peak`, never taken as a roof. NULL-terminated. */
extern const struct flop_probe *const other_flop_probes[];

/* Read and write bandwidth over one buffer (64-byte aligned, bytes a multiple of 4096). streams: 1, 2 or 4 equal pieces
 * walked side by side. read returns a value that depends on every byte read, so that nothing can be left out. */
struct stream_probe {
    const char *name; /* "sse2", "ymm", "zmm" */
    uint64_t isa;
    uint64_t (*read)(const void *buffer, size_t bytes, int streams);
    void (*write)(void *buffer, size_t bytes, int streams);
    void (*copy)(void *to, const void *from, size_t bytes); /* both 64-byte aligned; moves 2 x bytes */
};
extern const struct stream_probe *const stream_probes[]; /* NULL-terminated, widest last */

/* A function of one argument as the kernels compute it, over arrays that stay in the first-level cache. */
struct function_probe {
    const char *function; /* "exp" (of x <= 0, as in a softmax), "tanh" */
    const char *vector;   /* "sse2", "ymm", "zmm" */
    uint64_t isa;
    void (*apply)(const float *x, float *y, size_t count); /* 64-byte aligned; count a multiple of 64 */
};
extern const struct function_probe *const function_probes[]; /* NULL-terminated */

/* The entries of the tables, each defined in its ISA's folder. */
extern const struct flop_probe flop_probe_sse2, flop_probe_ymm_fma, flop_probe_zmm_fma;
extern const struct flop_probe flop_probe_ymm_bf16, flop_probe_zmm_bf16;
extern const struct flop_probe flop_probe_sse2_f64, flop_probe_ymm_fma_f64, flop_probe_zmm_fma_f64;
extern const struct flop_probe flop_probe_ymm_int8, flop_probe_zmm_int8;
extern const struct function_probe function_probe_sse2_exp, function_probe_ymm_exp, function_probe_zmm_exp;
extern const struct function_probe function_probe_sse2_tanh, function_probe_ymm_tanh, function_probe_zmm_tanh;
extern const struct stream_probe stream_probe_sse2, stream_probe_ymm, stream_probe_zmm;

/* How the calling thread's floating-point mode differs from the default: bits of MXCSR (flush to zero, denormals are
 * zero, rounding, exceptions not masked), 0: not at all. And the default restored. */
unsigned probe_float_mode(void);
void probe_clear_float_mode(void);

#endif
