/* SPDX-License-Identifier: Apache-2.0
 *
 * libxsmm: attention by blocks of query rows (blocks.h) on the small products that version 1 of LIBXSMM compiles at run
 * time, by spans on the calling thread.
 *
 * Its functions compute column-major matrices, A not transposed: the row-major product is that of the operands in
 * opposite order. So keys are transposed with the library's own function, a tile at a time and within the clock, and
 * scaled there; values are read where they lie. A function belongs to sizes and strides: the first call that meets them
 * has it compiled, later ones find it in the library's table.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "blocks.h"
#include "library.h"

/* A tile of the right operand: columns x depth, which stays in L2 transposed. Rows of a block: as the other adapters.
 */
enum { TILE_COLUMNS = 64, TILE_DEPTH = 256, BLOCK_ROWS = 128 };
enum { PREFETCH_NONE = 0, FLAGS_NONE = 0 }; /* values of its documented constants */

typedef void small_product(const float *a, const float *b, float *c);

static struct {
    small_product *(*dispatch)(int m, int n, int k, const int *lda, const int *ldb, const int *ldc, const float *alpha,
                               const float *beta, const int *flags, const int *prefetch);
    void (*transpose)(void *out, const void *in, unsigned element, int m, int n, int ldi, int ldo);
    const char *(*target)(void);
    bool ready;
} xsmm;

static struct peer_library library = {
    .names = (const char *const[]){"libxsmm.so.1", "libxsmm.so", NULL},
    .remedy = "make peers links it from the archive of the package libxsmm-dev",
};

static small_product *function_for(int m, int n, int k, int lda, int ldb, int ldc, bool add)
{
    const float alpha = 1, beta = add ? 1 : 0; /* it compiles no other alpha */
    const int flags = FLAGS_NONE, prefetch = PREFETCH_NONE;
    return xsmm.dispatch(m, n, k, &lda, &ldb, &ldc, &alpha, &beta, &flags, &prefetch);
}

static int least(int64_t a, int64_t b)
{
    return (int)(a < b ? a : b);
}

/* One tile: columns n0.. and depth k0.. of the right operand. */
static int multiply_tile(const struct peer_product *p, int64_t n0, int64_t k0)
{
    float packed[TILE_COLUMNS * TILE_DEPTH] __attribute__((aligned(64)));
    const int columns = least(p->n - n0, TILE_COLUMNS), depth = least(p->k - k0, TILE_DEPTH);
    const float *b = p->b + k0 * p->b_stride + n0;
    int b_stride = (int)p->b_stride;
    if (p->transposed) {
        xsmm.transpose(packed, p->b + n0 * p->b_stride + k0, sizeof *packed, depth, columns, b_stride, TILE_COLUMNS);
        for (int k = 0; k < depth && p->alpha != 1; k++)
            for (int n = 0; n < columns; n++)
                packed[k * TILE_COLUMNS + n] *= p->alpha;
        b = packed;
        b_stride = TILE_COLUMNS;
    }
    small_product *function =
        function_for(columns, (int)p->m, depth, b_stride, (int)p->a_stride, (int)p->c_stride, k0 > 0 || p->beta != 0);
    if (!function)
        return -ENOTSUP;
    function(b, p->a + k0, p->c + n0);
    return 0;
}

static int multiply(void *context, const struct peer_product *product)
{
    (void)context;
    assert(product->transposed || product->alpha == 1);
    int rc = 0;
    for (int64_t m = 0; m < product->m && !rc; m += BLOCK_ROWS) {
        struct peer_product rows = *product;
        rows.m = least(product->m - m, BLOCK_ROWS);
        rows.a += m * product->a_stride;
        rows.c += m * product->c_stride;
        for (int64_t n = 0; n < product->n && !rc; n += TILE_COLUMNS)
            for (int64_t k = 0; k < product->k && !rc; k += TILE_DEPTH)
                rc = multiply_tile(&rows, n, k);
    }
    return rc;
}

static const struct peer_multiplier multiplier = {.multiply = multiply, .rows = BLOCK_ROWS};

static bool ready(void)
{
    if (xsmm.ready)
        return true;
    if (!peer_library_open(&library) || !peer_library_need(&library, "libxsmm_smmdispatch", &xsmm.dispatch) ||
        !peer_library_need(&library, "libxsmm_otrans", &xsmm.transpose) ||
        !peer_library_need(&library, "libxsmm_get_target_arch", &xsmm.target))
        return false;
    if (!function_for(BLOCK_ROWS, BLOCK_ROWS, BLOCK_ROWS, BLOCK_ROWS, BLOCK_ROWS, BLOCK_ROWS, false)) {
        snprintf(library.reason, sizeof library.reason, "%s compiles no products for this CPU (%s)", library.path,
                 xsmm.target());
        return false;
    }
    return xsmm.ready = true;
}

static const char *refuse(const struct attn_problem *problem)
{
    return ready() ? peer_blocks_refuse(problem) : library.reason;
}

static int open_libxsmm(const struct attn_problem *problem, const struct attn_tensor *param, const int32_t *cpus,
                        int32_t threads, void **state)
{
    (void)param;
    (void)cpus;
    (void)threads;
    if (refuse(problem))
        return -ENOTSUP;
    const char *forced = getenv("LIBXSMM_TARGET");
    const size_t size = PATH_MAX + 200;
    char *text = malloc(size);
    if (!text)
        return -ENOMEM;
    snprintf(text, size, "LIBXSMM 1, target %.60s%s%.60s; %s", xsmm.target(), forced ? ", LIBXSMM_TARGET=" : "",
             forced ? forced : "", library.path);
    *state = text;
    return 0;
}

static int plan(const struct attn_problem *problem, int32_t threads, void *state, struct attn_plan *plan)
{
    (void)state;
    peer_blocks_plan(problem, threads, &multiplier, plan);
    return 0;
}

static int run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
               int32_t phase, void *state, void *scratch)
{
    (void)phase;
    (void)state;
    return peer_blocks_run(problem, args, span, &multiplier, scratch);
}

static const char *describe(void *state)
{
    return state;
}

extern const struct attn_kernel attn_kernel_libxsmm;

const struct attn_kernel attn_kernel_libxsmm = {
    .abi = ATTN_ABI,
    .struct_size = sizeof(struct attn_kernel),
    .name = "libxsmm",
    .summary = "LIBXSMM: small products compiled at run time, softmax, by blocks of 128 queries",
    .rules = ATTN_BIT(ATTN_SCALED_DOT_PRODUCT) | ATTN_BIT(ATTN_MATMUL),
    .dtypes = ATTN_BIT(ATTN_F32),
    .caps = ATTN_CAP_WEIGHTS,
    .refuse = refuse,
    .open = open_libxsmm,
    .close = free,
    .plan = plan,
    .run = run,
    .describe = describe,
};
