/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention on a BLAS; see blas.h. A block has 128 query rows for each thread that works on it: spans are done by the
 * calling thread alone, schedule own gives every product to all of the library's threads (the softmax between them
 * stays with the calling thread, as in any program that leaves its threads to its BLAS).
 */
#include "blas.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCK_ROWS = 128 };

struct blas_state {
    struct peer_blas *blas;
    int threads; /* of a product */
    struct peer_multiplier multiplier;
    char text[PATH_MAX + 1032];
};

/* One row is a matrix times a vector, which libraries do faster than their general product does. */
static int multiply(void *context, const struct peer_product *p)
{
    const struct peer_blas *blas = context;
    const int m = (int)p->m, n = (int)p->n, k = (int)p->k, ldb = (int)p->b_stride;
    if (m == 1)
        blas->gemv(CBLAS_ROW_MAJOR, p->transposed ? CBLAS_NO_TRANSPOSE : CBLAS_TRANSPOSE, p->transposed ? n : k,
                   p->transposed ? k : n, p->alpha, p->b, ldb, p->a, 1, p->beta, p->c, 1);
    else
        blas->gemm(CBLAS_ROW_MAJOR, CBLAS_NO_TRANSPOSE, p->transposed ? CBLAS_TRANSPOSE : CBLAS_NO_TRANSPOSE, m, n, k,
                   p->alpha, p->a, (int)p->a_stride, p->b, ldb, p->beta, p->c, (int)p->c_stride);
    return 0;
}

const char *peer_blas_refuse(struct peer_blas *blas, const struct attn_problem *problem)
{
    if (!blas->ready)
        blas->ready = peer_library_open(&blas->library) &&
                      peer_library_need(&blas->library, "cblas_sgemm", &blas->gemm) &&
                      peer_library_need(&blas->library, "cblas_sgemv", &blas->gemv) && blas->prepare(blas);
    return blas->ready ? peer_blocks_refuse(problem) : blas->library.reason;
}

int peer_blas_open(struct peer_blas *blas, const struct attn_problem *problem, int32_t threads, void **state)
{
    if (peer_blas_refuse(blas, problem))
        return -ENOTSUP;
    struct blas_state *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->blas = blas;
    s->threads = problem->flags & ATTN_FLAG_OWN ? threads : 1;
    s->multiplier = (struct peer_multiplier){multiply, blas, (int64_t)BLOCK_ROWS * s->threads, blas->slack};
    /* Threads are started now, and show themselves, rather than in the first call. */
    const int before = blas->set_threads(s->threads);
    char told[1024];
    blas->tell(told, sizeof told);
    blas->set_threads(before);
    snprintf(s->text, sizeof s->text, "%s; %s", told, blas->library.path);
    *state = s;
    return 0;
}

void peer_blas_close(void *state)
{
    free(state);
}

int peer_blas_plan(const struct attn_problem *problem, int32_t threads, void *state, struct attn_plan *plan)
{
    const struct blas_state *s = state;
    peer_blocks_plan(problem, problem->flags & ATTN_FLAG_OWN ? 1 : threads, &s->multiplier, plan);
    return 0;
}

int peer_blas_run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
                  int32_t phase, void *state, void *scratch)
{
    (void)phase;
    const struct blas_state *s = state;
    const int before = s->blas->set_threads(s->threads);
    const int rc = peer_blocks_run(problem, args, span, &s->multiplier, scratch);
    s->blas->set_threads(before);
    return rc;
}

const char *peer_blas_describe(void *state)
{
    const struct blas_state *s = state;
    return s->text;
}
