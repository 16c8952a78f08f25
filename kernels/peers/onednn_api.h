/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of oneDNN's C interface that attention needs, of versions 2 (from 2.6) and 3 alike: they differ in how
 * tensors and primitives are described. Constants are those of its documentation.
 */
#ifndef KERNELS_PEERS_ONEDNN_API_H
#define KERNELS_PEERS_ONEDNN_API_H

#include <stdbool.h>
#include <stdint.h>

#include "library.h"

enum onednn_type { ONEDNN_F16 = 1, ONEDNN_BF16 = 2, ONEDNN_F32 = 3 };
enum onednn_argument { ONEDNN_SRC = 1, ONEDNN_SRC_1 = 2, ONEDNN_WEIGHTS = 33, ONEDNN_DST = 17 };
enum onednn_runtime { ONEDNN_SERIAL = 1, ONEDNN_OPENMP = 2, ONEDNN_TBB = 4, ONEDNN_POOL = 8, ONEDNN_SYCL = 512 };

struct onednn_version {
    int major, minor, patch;
    const char *hash;
    unsigned cpu_runtime, gpu_runtime;
};

/* A tensor of three dimensions: batch, rows, columns; strides count elements. A stride of 0 is not allowed. */
struct onednn_shape {
    enum onednn_type type;
    int64_t size[3], stride[3];
};

struct onednn_argument_pair {
    int argument;
    void *memory;
};

/* What follows a product, in this order. */
struct onednn_after {
    float scale;                    /* times this */
    float softcap;                  /* 0: none; else softcap tanh(x / softcap) */
    const struct onednn_shape *add; /* NULL: none; else a tensor of this shape is added; size 1 repeats */
};

struct onednn_product {
    void *primitive;
    int add_argument; /* where the tensor to be added is handed over */
    bool reference;   /* the library has nothing better than plain loops, far slower */
};

/* Opens the library and its CPU engine, once; false with onednn_library()->reason. */
bool onednn_ready(void);
struct peer_library *onednn_library(void);
const struct onednn_version *onednn_version(void);

/* Its CPU engine and the one stream. */
void *onednn_engine(void);
void *onednn_stream(void);

/* The calling thread's primitives are made for, and run on, this many threads; returns what was before. Only OpenMP's
 * number can be set: onednn_sets_threads says whether it can. */
int onednn_set_threads(int threads);
bool onednn_sets_threads(void);

/* A tensor without data, or NULL. */
void *onednn_memory(const struct onednn_shape *shape);
void onednn_memory_destroy(void *memory);
int onednn_memory_set(void *memory, const void *data); /* 0 or -EINVAL */

/* dst = after(src weights); what the library refuses is -ENOTSUP. after may be NULL. */
int onednn_product(const struct onednn_shape *src, const struct onednn_shape *weights, const struct onednn_shape *dst,
                   const struct onednn_after *after, struct onednn_product *product);
/* Softmax of rows. 0 or -ENOTSUP. */
int onednn_softmax(const struct onednn_shape *src, const struct onednn_shape *dst, void **primitive);
void onednn_primitive_destroy(void *primitive);

/* Runs a primitive; onednn_wait waits for all that were run. 0 or -EIO. */
int onednn_run(void *primitive, const struct onednn_argument_pair *arguments, int count);
int onednn_wait(void);

#endif
