/* SPDX-License-Identifier: Apache-2.0
 *
 * openblas: attention by blocks of query rows on OpenBLAS's products (blas.h).
 *
 * Threads. OpenBLAS is built in three ways. With POSIX threads their number is one for the whole process: 1, but for
 * the duration of a call of schedule own. With OpenMP openblas_set_num_threads also sets the calling thread's number
 * for parallel regions, so that a caller's own next one would be serial: there it is set by OpenMP's function, of the
 * very runtime that the library uses, for the calling thread and for the duration of a call. A build without threads
 * refuses nothing: its own threads are one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "blas.h"

enum { BUILT_SERIAL, BUILT_PTHREAD, BUILT_OPENMP }; /* what openblas_get_parallel returns */

static struct {
    int (*get_parallel)(void);
    void (*set_num_threads)(int);
    int (*get_num_threads)(void);
    char *(*get_config)(void);
    char *(*get_corename)(void);
    void (*omp_set_num_threads)(int);
    int (*omp_get_max_threads)(void);
    int built;
} openblas;

static bool prepare(struct peer_blas *blas)
{
    struct peer_library *library = &blas->library;
    if (!peer_library_need(library, "openblas_get_parallel", &openblas.get_parallel) ||
        !peer_library_need(library, "openblas_set_num_threads", &openblas.set_num_threads) ||
        !peer_library_need(library, "openblas_get_num_threads", &openblas.get_num_threads) ||
        !peer_library_need(library, "openblas_get_config", &openblas.get_config) ||
        !peer_library_need(library, "openblas_get_corename", &openblas.get_corename))
        return false;
    openblas.built = openblas.get_parallel();
    if (openblas.built == BUILT_OPENMP)
        return peer_library_need(library, "omp_set_num_threads", &openblas.omp_set_num_threads) &&
               peer_library_need(library, "omp_get_max_threads", &openblas.omp_get_max_threads);
    openblas.set_num_threads(1);
    return true;
}

static int set_threads(int threads)
{
    if (openblas.built == BUILT_OPENMP) {
        const int before = openblas.omp_get_max_threads();
        openblas.omp_set_num_threads(threads);
        return before;
    }
    /* Not even set to 1 where it is 1: calls of several threads would meet. */
    const int before = openblas.get_num_threads();
    if (openblas.built == BUILT_PTHREAD && before != threads)
        openblas.set_num_threads(threads);
    return before;
}

/* The core type that would serve this CPU where the library has taken one without AVX2, NULL where it need not be told.
 * A release falls back to such a one on every CPU model that is newer than itself. */
static const char *better_core(const char *core)
{
    static const char *const old[] = {"Prescott",    "Core2",     "Penryn",     "Dunnington",  "Nehalem",
                                      "Sandybridge", "Atom",      "Opteron",    "Barcelona",   "Opteron_SSE3",
                                      "Bobcat",      "Bulldozer", "Piledriver", "Steamroller", "Nano",
                                      "Northwood",   "Generic",   NULL};
    bool is_old = false;
    for (const char *const *name = old; *name; name++)
        is_old |= strcasecmp(*name, core) == 0;
    if (!is_old)
        return NULL;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return "SKYLAKEX";
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? "HASWELL" : NULL;
}

static void tell(char *text, size_t size)
{
    static const char *const threads[] = {"no threads", "POSIX threads", "OpenMP"};
    const char *config = openblas.get_config(), *forced = getenv("OPENBLAS_CORETYPE"), *l2 = getenv("OPENBLAS_L2_SIZE");
    const char *how = "", *better = forced ? NULL : better_core(openblas.get_corename());
    if (forced) /* it takes what it finds itself for a name that it does not know */
        how = strcasecmp(forced, openblas.get_corename()) == 0 ? ", forced by OPENBLAS_CORETYPE="
                                                               : ", in spite of OPENBLAS_CORETYPE=";
    snprintf(text, size, "%s, core type %s%s%s%s%s%s%s%s, %s", config, openblas.get_corename(), how,
             forced ? forced : "", better ? ": OpenBLAS does not know this CPU, OPENBLAS_CORETYPE=" : "",
             better ? better : "", better ? " would serve it" : "", l2 ? ", OPENBLAS_L2_SIZE=" : "", l2 ? l2 : "",
             openblas.built >= 0 && openblas.built <= BUILT_OPENMP ? threads[openblas.built] : "threads unknown");
}

static struct peer_blas blas = {
    .library = {.names = (const char *const[]){"libopenblas.so.0", "libopenblas.so", NULL},
                .remedy = "make peers or the package libopenblas-dev installs it"},
    .prepare = prepare,
    .set_threads = set_threads,
    .tell = tell,
};

static const char *refuse(const struct attn_problem *problem)
{
    return peer_blas_refuse(&blas, problem);
}

static int open_openblas(const struct attn_problem *problem, const struct attn_tensor *param, const int32_t *cpus,
                         int32_t threads, void **state)
{
    (void)param;
    (void)cpus;
    return peer_blas_open(&blas, problem, threads, state);
}

extern const struct attn_kernel attn_kernel_openblas;

const struct attn_kernel attn_kernel_openblas = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "openblas",
    .summary = "OpenBLAS: product, softmax, product by blocks of 128 queries",
    .rules = ATTN_BIT(ATTN_SCALED_DOT_PRODUCT) | ATTN_BIT(ATTN_MATMUL),
    .dtypes = ATTN_BIT(ATTN_F32),
    .caps = ATTN_CAP_WEIGHTS | ATTN_CAP_OWN_THREADS | ATTN_CAP_SPANS,
    .refuse = refuse,
    .open = open_openblas,
    .close = peer_blas_close,
    .plan = peer_blas_plan,
    .run = peer_blas_run,
    .describe = peer_blas_describe,
};
