/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels' 2^x over every float from -0 to -inf, 2.1 billion of them, against the double function of libm, whose
 * own error is below 2^-28 of a float's last place: within 2 ulp where the result counts, and 0 below. Sanitizers and
 * -O0 make that take minutes, so those builds try one batch of 509.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "exp2/exp2.h"
#include "harness/isa.h"
#include "kernels/attn.h"

#if defined(__OPTIMIZE__) && defined(NDEBUG)
enum { STEP = 1 };
#else
enum { STEP = 509 };
#endif

#define MOST_ULPS 2.0
#define SIGN UINT32_C(0x80000000) /* the bits of -0 */
#define MINUS_INFINITY UINT32_C(0xff800000)

struct variant {
    const char *name;
    exp2_batch *compute;
    uint64_t isa;
    float least; /* below it 2^x is 0 */
};

static const struct variant variants[] = {
    {"portable", exp2_portable, 0,
     -160.0f}, /* gradual underflow: what is below half of the last subnormal rounds to 0 */
    {"avx2", exp2_avx2, ATTN_ISA_AVX2 | ATTN_ISA_FMA, -126.0f},
    {"avx512", exp2_avx512, ATTN_ISA_AVX512F | ATTN_ISA_FMA, -126.0f},
};
enum { VARIANTS = sizeof variants / sizeof *variants };

static float float_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Error of y against 2^x in units of the last place of a float there; those of subnormals are 2^-149 apart. */
static inline double ulps(float y, double exact)
{
    uint64_t bits;
    memcpy(&bits, &exact, sizeof bits);
    int64_t exponent = (int64_t)(bits >> 52) - 1023; /* exact > 0 */
    exponent = exponent < -126 ? -126 : exponent;
    bits = (uint64_t)(23 - exponent + 1023) << 52;
    double places; /* in 1 */
    memcpy(&places, &bits, sizeof places);
    return fabs((double)y - exact) * places;
}

/* Largest error of the batch whose first argument has the bits `first`; *at: where. INFINITY: not 0 where it ought to.
 */
static double worst_of_batch(const struct variant *variant, uint32_t first, float *at)
{
    float x[EXP2_BATCH], y[EXP2_BATCH];
    double worst = 0;
    for (uint32_t i = 0; i < EXP2_BATCH; i++)
        x[i] = float_of_bits(first + i <= MINUS_INFINITY ? first + i : MINUS_INFINITY);
    variant->compute(x, y);
    for (int i = 0; i < EXP2_BATCH; i++) {
        const double error = x[i] < variant->least ? (y[i] == 0.0f ? 0.0 : INFINITY) : ulps(y[i], exp2((double)x[i]));
        if (!(error <= worst)) { /* a NaN is worse than any */
            worst = isnan(error) ? INFINITY : error;
            *at = x[i];
        }
    }
    return worst;
}

static void check_every_float(void **state)
{
    const struct variant *variant = *state;
    const int64_t batches = ((int64_t)MINUS_INFINITY - SIGN) / EXP2_BATCH + 1;
    double worst = 0;
    float at = 0;
    if (variant->isa & ~isa_available())
        skip();
#pragma omp parallel for schedule(dynamic, 64)
    for (int64_t b = 0; b < batches; b += STEP) {
        float where = 0;
        const double error = worst_of_batch(variant, SIGN + (uint32_t)(b * EXP2_BATCH), &where);
#pragma omp critical
        if (error > worst) {
            worst = error;
            at = where;
        }
    }
    print_message("%s: at most %.3f ulp, at %a\n", variant->name, worst, (double)at);
    assert_true(worst > 0.5 && worst <= MOST_ULPS);
}

static void check_ends(void **state)
{
    const struct variant *variant = *state;
    float x[EXP2_BATCH] = {0.0f, -0.0f, -INFINITY, NAN, -NAN, -FLT_MAX, -FLT_MIN, -1.0f, -126.0f}, y[EXP2_BATCH];
    if (variant->isa & ~isa_available())
        skip();
    variant->compute(x, y);
    assert_true(y[0] == 1.0f && y[1] == 1.0f && y[2] == 0.0f && isnan(y[3]) && isnan(y[4]) && y[5] == 0.0f);
    assert_true(y[6] == 1.0f && y[7] == 0.5f && y[8] == 0x1p-126f);
}

int main(void)
{
    static char titles[2 * VARIANTS][64];
    struct CMUnitTest tests[2 * VARIANTS];
    for (int v = 0; v < VARIANTS; v++) {
        snprintf(titles[2 * v], sizeof titles[0], "%s: every float", variants[v].name);
        snprintf(titles[2 * v + 1], sizeof titles[0], "%s: ends", variants[v].name);
        for (int t = 0; t < 2; t++)
            tests[2 * v + t] = (struct CMUnitTest){.name = titles[2 * v + t],
                                                   .test_func = t ? check_ends : check_every_float,
                                                   .initial_state = (void *)&variants[v]};
    }
    return _cmocka_run_group_tests("exp2", tests, 2 * VARIANTS, NULL, NULL);
}
