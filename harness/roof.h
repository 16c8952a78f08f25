/* SPDX-License-Identifier: Apache-2.0
 *
 * The measured roof of a point: peak FLOP/s of this machine for the dtype, and read and write bandwidth over a buffer
 * of the point's working-set size, on the team's own CPUs, in the same minute as the kernels.
 */
#ifndef HARNESS_ROOF_H
#define HARNESS_ROOF_H

#include <jansson.h>

#include "error.h"
#include "operands.h"
#include "team.h"
#include "work.h"

/* Peak FLOP/s of the team for each flop probe that runs here (same order as flop_probes; 0: can't run). */
enum { ROOF_MOST_PROBES = 16 };
struct roof_peaks {
    double flops_per_s[ROOF_MOST_PROBES];
};
/* Raises *peaks, which comes zeroed for a new team, to what the probes reach now. */
void roof_measure_peaks(const struct team *team, struct roof_peaks *peaks);
/* Index of the fastest probe for dtype among those whose ISA bits are within isa; -1: none. f16 has no FMA of its own
 * here and uses f32's; so does bf16 where its instruction is missing. */
int roof_best_probe(const struct roof_peaks *peaks, enum attn_dtype dtype, uint64_t isa);

/* A larger fraction of a roof means that either the roof or the time is wrong. */
#define ROOF_FRACTION_MOST 1.02

struct roof_rates {
    double flops_per_s, read_bytes_per_s, write_bytes_per_s;
    double tanh_per_s; /* 0: not asked for */
};

struct roof {
    const struct team *team;
    int flop_probe; /* index of the best for the dtype */
    int tanh_probe; /* index of the best function probe so far; -1: tanh is not asked for */
    struct memory_block buffer;
    size_t part, window;             /* bytes of each thread's part; bytes a pass reads of it */
    size_t offset;                   /* where in the part the next window starts */
    bool rotates;                    /* the buffer exceeds the caches: windows move on and on */
    int read_streams, write_streams; /* best so far: index into {1, 2, 4} */
    unsigned turn;
};

/* work: of the point, whose working set is what bandwidth is measured on. cold_bytes: 0 for warm, else bytes that all
 * copies have together. cache_bytes: last-level cache in all. */
int roof_create(const struct team *team, const struct roof_peaks *peaks, enum attn_dtype dtype, const struct work *work,
                double cold_bytes, double cache_bytes, struct roof *roof, struct error *error);
void roof_release(struct roof *roof);

/* One turn of the probes: a few milliseconds. */
void roof_probe(struct roof *roof, struct roof_rates *rates);

/* What sets the roof: the largest term of the phase, or of all phases where one kind makes up three quarters. */
enum roof_bound { ROOF_COMPUTE, ROOF_TANH, ROOF_MEMORY, ROOF_MIXED };
extern const char *const roof_bound_names[]; /* "compute", "tanh", "memory", "mixed" */

/* Sum over the phases of max(flops / peak, tanh / tanh rate, read / read bandwidth + written / write bandwidth), in
 * seconds. */
double roof_time_s(const struct work *work, const struct roof_rates *rates, enum roof_bound *bound);

#endif
