/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention on any library with the C interface to BLAS (cblas_sgemm, cblas_sgemv with 32-bit integers). An adapter
 * opens its library, and says how its number of threads is set.
 */
#ifndef KERNELS_PEERS_BLAS_H
#define KERNELS_PEERS_BLAS_H

#include "blocks.h"
#include "library.h"

/* Values of the C interface's enumerations, as its reference implementation (Netlib) documents them. */
enum { CBLAS_ROW_MAJOR = 101, CBLAS_NO_TRANSPOSE = 111, CBLAS_TRANSPOSE = 112 };

struct peer_blas {
    struct peer_library library;
    /* Looks up what else the library offers and prepares it, once; false with library.reason. */
    bool (*prepare)(struct peer_blas *blas);
    /* The calling thread's next products are done by this many threads. Returns what is to be handed to it to restore
     * what was before. */
    int (*set_threads)(int threads);
    /* Version, variant and what else tells one build from another. */
    void (*tell)(char *text, size_t size);
    int64_t slack; /* of its multiplier (blocks.h) */
    bool ready;
    void (*gemm)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float *a, int lda,
                 const float *b, int ldb, float beta, float *c, int ldc);
    void (*gemv)(int order, int transpose, int m, int n, float alpha, const float *a, int lda, const float *x, int incx,
                 float beta, float *y, int incy);
};

/* What an adapter's table entry holds, with its own peer_blas. */
const char *peer_blas_refuse(struct peer_blas *blas, const struct attn_problem *problem);
int peer_blas_open(struct peer_blas *blas, const struct attn_problem *problem, int32_t threads, void **state);
void peer_blas_close(void *state);
int peer_blas_plan(const struct attn_problem *problem, int32_t threads, void *state, struct attn_plan *plan);
int peer_blas_run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
                  int32_t phase, void *state, void *scratch);
const char *peer_blas_describe(void *state);

#endif
