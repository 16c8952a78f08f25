/* SPDX-License-Identifier: Apache-2.0
 *
 * mkl: attention by blocks of query rows on the products of Intel's oneMKL (blas.h).
 *
 * Opened is its single dynamic library, which loads the rest by what is set before its first call: integers of 32 bits,
 * and threads by GNU's OpenMP, the runtime that a program built with gcc has already, so that no second one spins
 * beside it. Spans use the same layer with one thread for
 * the calling thread alone: the layer cannot be changed later.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blas.h"

/* Values of the library's documented constants. */
enum { MKL_INTERFACE_LP64 = 0, MKL_THREADING_GNU = 3 };

static struct {
    int (*set_interface_layer)(int);
    int (*set_threading_layer)(int);
    int (*set_num_threads_local)(int);
    void (*set_dynamic)(int);
    void (*get_version_string)(char *, int);
} mkl;

static bool prepare(struct peer_blas *blas)
{
    struct peer_library *library = &blas->library;
    if (!peer_library_need(library, "MKL_Set_Interface_Layer", &mkl.set_interface_layer) ||
        !peer_library_need(library, "MKL_Set_Threading_Layer", &mkl.set_threading_layer) ||
        !peer_library_need(library, "MKL_Set_Num_Threads_Local", &mkl.set_num_threads_local) ||
        !peer_library_need(library, "MKL_Set_Dynamic", &mkl.set_dynamic) ||
        !peer_library_need(library, "MKL_Get_Version_String", &mkl.get_version_string))
        return false;
    if (mkl.set_interface_layer(MKL_INTERFACE_LP64) != MKL_INTERFACE_LP64 ||
        mkl.set_threading_layer(MKL_THREADING_GNU) != MKL_THREADING_GNU) {
        snprintf(library->reason, sizeof library->reason, "%s does not take 32-bit integers and GNU's OpenMP",
                 library->path);
        return false;
    }
    mkl.set_dynamic(0); /* as many threads as were asked for */
    return true;
}

static int set_threads(int threads)
{
    return mkl.set_num_threads_local(threads);
}

static void tell(char *text, size_t size)
{
    char version[256] = "";
    mkl.get_version_string(version, sizeof version - 1);
    for (size_t end = strlen(version); end > 0 && version[end - 1] == ' '; end--)
        version[end - 1] = '\0';
    const char *forced = getenv("MKL_ENABLE_INSTRUCTIONS");
    snprintf(text, size, "%s%s%s, GNU OpenMP", version, forced ? ", MKL_ENABLE_INSTRUCTIONS=" : "",
             forced ? forced : "");
}

static struct peer_blas blas = {
    .library = {.names =
                    (const char *const[]){"libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so.1", "libmkl_rt.so", NULL},
                .remedy = "make peers or pip's package mkl installs it"},
    .prepare = prepare,
    .set_threads = set_threads,
    .tell = tell,
};

static const char *refuse(const struct attn_problem *problem)
{
    return peer_blas_refuse(&blas, problem);
}

static int open_mkl(const struct attn_problem *problem, const struct attn_tensor *param, const int32_t *cpus,
                    int32_t threads, void **state)
{
    (void)param;
    (void)cpus;
    return peer_blas_open(&blas, problem, threads, state);
}

extern const struct attn_kernel attn_kernel_mkl;

const struct attn_kernel attn_kernel_mkl = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "mkl",
    .summary = "Intel oneMKL: product, softmax, product by blocks of 128 queries",
    .rules = ATTN_BIT(ATTN_SCALED_DOT_PRODUCT) | ATTN_BIT(ATTN_MATMUL),
    .dtypes = ATTN_BIT(ATTN_F32),
    .caps = ATTN_CAP_WEIGHTS | ATTN_CAP_OWN_THREADS | ATTN_CAP_SPANS,
    .refuse = refuse,
    .open = open_mkl,
    .close = peer_blas_close,
    .plan = peer_blas_plan,
    .run = peer_blas_run,
    .describe = peer_blas_describe,
};
