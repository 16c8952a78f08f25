/* SPDX-License-Identifier: Apache-2.0
 *
 * blis: attention by blocks of query rows on the products of BLIS (blas.h), through its C interface to BLAS.
 *
 * Threads. bli_thread_set_num_threads sets them for the whole process in some releases and for the calling thread in
 * others, so every call sets its own number and 1 behind it; nothing else in the process calls the library.
 *
 * Small products of release 0.9 (its Haswell kernels for operands that are not packed) read rows and columns behind the
 * last ones, up to a whole tile, to no effect but a fault where memory ends there: no operand may end at a page that
 * cannot be read. Scratch goes on long enough. And its product of a matrix with a vector leaves out zeros of the
 * vector: with one query a block, the NaN in a value whose weight is zero is lost.
 */
#include <stdio.h>
#include <string.h>

#include "blas.h"

enum { TILE_ROWS = 6 };

/* Its integers (dim_t, gint_t) have 64 bits on 64-bit machines unless it was built otherwise. */
static struct {
    void (*set_num_threads)(int64_t);
    const char *(*get_version)(void);
    int (*query_arch)(void);
    const char *(*arch_string)(int);
    int64_t (*has_openmp)(void), (*has_pthreads)(void);
} blis;

static bool prepare(struct peer_blas *blas)
{
    struct peer_library *library = &blas->library;
    if (!peer_library_need(library, "bli_thread_set_num_threads", &blis.set_num_threads) ||
        !peer_library_need(library, "bli_info_get_version_str", &blis.get_version))
        return false;
    peer_library_may(library, "bli_arch_query_id", &blis.query_arch);
    peer_library_may(library, "bli_arch_string", &blis.arch_string);
    peer_library_may(library, "bli_info_get_enable_openmp", &blis.has_openmp);
    peer_library_may(library, "bli_info_get_enable_pthreads", &blis.has_pthreads);
    return true;
}

static int set_threads(int threads)
{
    blis.set_num_threads(threads);
    return 1;
}

static void tell(char *text, size_t size)
{
    const char *threads = "no threads";
    if (!blis.has_openmp || !blis.has_pthreads)
        threads = "threads unknown";
    else if (blis.has_openmp() & 1)
        threads = "OpenMP";
    else if (blis.has_pthreads() & 1)
        threads = "POSIX threads";
    snprintf(text, size, "BLIS %s, architecture %s, %s", blis.get_version(),
             blis.query_arch && blis.arch_string ? blis.arch_string(blis.query_arch()) : "unknown", threads);
}

static struct peer_blas blas = {
    .library = {.names = (const char *const[]){"libblis.so.4", "libblis.so.5", "libblis.so.3", "libblis.so", NULL},
                .remedy = "make peers or the package libblis-dev installs it"},
    .prepare = prepare,
    .set_threads = set_threads,
    .tell = tell,
    .slack = TILE_ROWS,
};

static const char *refuse(const struct attn_problem *problem)
{
    return peer_blas_refuse(&blas, problem);
}

static int open_blis(const struct attn_problem *problem, const struct attn_tensor *param, const int32_t *cpus,
                     int32_t threads, void **state)
{
    (void)param;
    (void)cpus;
    return peer_blas_open(&blas, problem, threads, state);
}

extern const struct attn_kernel attn_kernel_blis;

const struct attn_kernel attn_kernel_blis = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "blis",
    .summary = "BLIS: product, softmax, product by blocks of 128 queries",
    .rules = ATTN_BIT(ATTN_SCALED_DOT_PRODUCT) | ATTN_BIT(ATTN_MATMUL),
    .dtypes = ATTN_BIT(ATTN_F32),
    .caps = ATTN_CAP_WEIGHTS | ATTN_CAP_OWN_THREADS | ATTN_CAP_SPANS,
    .refuse = refuse,
    .open = open_blis,
    .close = peer_blas_close,
    .plan = peer_blas_plan,
    .run = peer_blas_run,
    .describe = peer_blas_describe,
};
