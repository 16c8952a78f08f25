/* SPDX-License-Identifier: Apache-2.0
 *
 * Input data: the same for every layout and thread count, normal where they should be, free of subnormals by default,
 * and rounded to nearest even in the 16-bit types.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "harness/fill.h"
#include "harness/operands.h"

static float read_element(const struct attn_tensor *t, enum attn_dtype dtype, int64_t b, int64_t h, int64_t s,
                          int64_t d)
{
    int64_t at = b * t->stride[0] + h * t->stride[1] + s * t->stride[2] + d;
    if (dtype == ATTN_F32)
        return ((const float *)t->data)[at];
    uint16_t x = ((const uint16_t *)t->data)[at];
    return dtype == ATTN_BF16 ? float_from_bf16(x) : float_from_f16(x);
}

static struct operands make(const struct problem_spec *spec, uint32_t set, int threads)
{
    struct operands operands;
    struct error error;
    assert_int_equal(operands_create(spec, MEMORY_PLAIN, &operands, &error), 0);
    operands_fill(&operands, set, threads);
    return operands;
}

static struct problem_spec spec_of(enum fill fill, enum attn_dtype dtype)
{
    struct problem_spec spec = spec_default();
    spec.B = 2;
    spec.H = 4;
    spec.H_kv = 2;
    spec.S_q = 37;
    spec.S_kv = 53;
    spec.D = 19;
    spec.D_v = 23;
    spec.fill = fill;
    spec.dtype = dtype;
    return spec;
}

static void assert_same_values(const struct operands *a, const struct operands *b, const struct attn_tensor *x,
                               const struct attn_tensor *y)
{
    assert_memory_equal(x->size, y->size, sizeof x->size);
    for (int64_t i0 = 0; i0 < x->size[0]; i0++)
        for (int64_t i1 = 0; i1 < x->size[1]; i1++)
            for (int64_t i2 = 0; i2 < x->size[2]; i2++)
                for (int64_t i3 = 0; i3 < x->size[3]; i3++) {
                    float u = read_element(x, a->spec.dtype, i0, i1, i2, i3);
                    float v = read_element(y, b->spec.dtype, i0, i1, i2, i3);
                    if (!(u == v))
                        fail_msg("element %d %d %d %d: %g and %g", (int)i0, (int)i1, (int)i2, (int)i3, u, v);
                }
}

static void same_for_every_layout_and_thread_count(void **state)
{
    (void)state;
    for (int fill = FILL_NORMAL; fill <= FILL_SUBNORMAL; fill++)
        for (int dtype = ATTN_F32; dtype <= ATTN_F16; dtype++) {
            struct problem_spec spec = spec_of((enum fill)fill, (enum attn_dtype)dtype);
            struct operands first = make(&spec, 0, 1);
            for (int layout = LAYOUT_BHSD; layout <= LAYOUT_HBSD; layout++) {
                spec.layout = (enum layout)layout;
                struct operands other = make(&spec, 0, 1 + layout);
                assert_same_values(&first, &other, &first.args.q, &other.args.q);
                assert_same_values(&first, &other, &first.args.k, &other.args.k);
                assert_same_values(&first, &other, &first.args.v, &other.args.v);
                operands_destroy(&other);
            }
            operands_destroy(&first);
        }
}

static void seed_set_and_tensor_make_other_data(void **state)
{
    (void)state;
    uint64_t base = fill_bits(1, 0, FILL_Q, 0);
    assert_true(base != fill_bits(2, 0, FILL_Q, 0));
    assert_true(base != fill_bits(1, 1, FILL_Q, 0));
    assert_true(base != fill_bits(1, 0, FILL_K, 0));
    assert_true(base != fill_bits(1, 0, FILL_Q, 1));
    assert_true(base == fill_bits(1, 0, FILL_Q, 0));
    struct problem_spec spec = spec_of(FILL_NORMAL, ATTN_F32);
    struct operands a = make(&spec, 0, 1), b = make(&spec, 1, 1), again = make(&spec, 0, 2);
    assert_true(operands_input_digest(&a) == operands_input_digest(&again));
    assert_true(operands_input_digest(&a) != operands_input_digest(&b));
    ((uint8_t *)a.v.data)[a.v.bytes - 1] ^= 1;
    assert_true(operands_input_digest(&a) != operands_input_digest(&again));
    operands_destroy(&a);
    operands_destroy(&b);
    operands_destroy(&again);
}

/* The numbers themselves, so that a change of the generator does not slip by: seeds in old results would lie. */
static void generator_is_the_one_that_results_were_made_with(void **state)
{
    (void)state;
    assert_true(fill_bits(1, 0, FILL_Q, 0) == UINT64_C(0x8f5db0a20602cc40));
    assert_true(fill_bits(42, 1, FILL_V, 123456789) == UINT64_C(0x00d8af7475432cd8));
}

static void normal_numbers_invert_the_normal_distribution(void **state)
{
    (void)state;
    const uint64_t bits[] = {0,
                             UINT64_MAX,
                             UINT64_MAX / 2,
                             UINT64_MAX / 2 + 1,
                             UINT64_MAX / 13,
                             UINT64_MAX / 13 * 12,
                             UINT64_C(1) << 40,
                             UINT64_C(1) << 20};
    for (size_t i = 0; i < sizeof bits / sizeof bits[0]; i++) {
        double u = fill_uniform(bits[i]), z = fill_normal(bits[i]);
        assert_true(u > 0 && u < 1);
        double back = u < 0.5 ? 0.5 * erfc(-z / sqrt(2)) : 0.5 * erfc(z / sqrt(2)), tail = u < 0.5 ? u : 1 - u;
        if (!(fabs(back / tail - 1) < 2e-5))
            fail_msg("u %.17g gives z %g, whose probability is %g", u, z, back);
    }
    for (int i = 1; i < 2000; i++) {
        double u = i / 2000.0, z = fill_normal((uint64_t)(u * 0x1p52) << 12);
        assert_true(fabs(0.5 * erfc(-z / sqrt(2)) - u) < 1e-6);
    }
}

static void normal_fill_has_mean_0_variance_1_kurtosis_3(void **state)
{
    (void)state;
    enum { COUNT = 1000000 };
    double sum = 0, square = 0, fourth = 0, neighbour = 0, before = 0;
    for (int i = 0; i < COUNT; i++) {
        double z = fill_normal(fill_bits(7, 0, FILL_K, (uint64_t)i));
        sum += z;
        square += z * z;
        fourth += z * z * z * z;
        neighbour += z * before;
        before = z;
    }
    /* Five standard errors: 1, sqrt 2, sqrt 96, 1, over sqrt COUNT. */
    assert_true(fabs(sum / COUNT) < 5e-3);
    assert_true(fabs(square / COUNT - 1) < 7.1e-3);
    assert_true(fabs(fourth / COUNT - 3) < 4.9e-2);
    assert_true(fabs(neighbour / COUNT) < 5e-3);
}

/* Rows are made in bulk; each element must be the one that its own bits give. Widths below, at and above the bulk. */
static void rows_hold_the_normal_number_of_each_element(void **state)
{
    (void)state;
    const int64_t widths[] = {1, 7, 256, 257, 1000};
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
        enum { ROWS = 5 };
        static float data[ROWS * 1000];
        const int64_t D = widths[w];
        struct problem_spec spec = spec_of(FILL_NORMAL, ATTN_F32);
        struct attn_tensor k = {data, {1, 1, ROWS, D}, {ROWS * D, ROWS * D, D, 1}};
        fill_tensor(&spec, 1, FILL_K, &k, 1);
        for (int64_t i = 0; i < ROWS * D; i++)
            assert_true(data[i] == fill_normal(fill_bits(spec.seed, 1, FILL_K, (uint64_t)i)));
    }
}

static int count_subnormals(const struct attn_tensor *t, enum attn_dtype dtype)
{
    int subnormals = 0;
    double least = dtype == ATTN_F16 ? 0x1p-14 : 0x1p-126;
    for (int64_t b = 0; b < t->size[0]; b++)
        for (int64_t h = 0; h < t->size[1]; h++)
            for (int64_t s = 0; s < t->size[2]; s++)
                for (int64_t d = 0; d < t->size[3]; d++) {
                    double x = fabs((double)read_element(t, dtype, b, h, s, d));
                    assert_true(isfinite(x));
                    subnormals += x < least;
                }
    return subnormals;
}

static void only_the_subnormal_fill_makes_subnormals(void **state)
{
    (void)state;
    for (int dtype = ATTN_F32; dtype <= ATTN_F16; dtype++)
        for (int fill = FILL_NORMAL; fill <= FILL_SUBNORMAL; fill++) {
            struct problem_spec spec = spec_of((enum fill)fill, (enum attn_dtype)dtype);
            spec.S_kv = spec.S_q = 300;
            spec.D = spec.D_v = 64;
            struct operands o = make(&spec, 0, 1);
            int keys = count_subnormals(&o.args.q, spec.dtype) + count_subnormals(&o.args.k, spec.dtype);
            int values = count_subnormals(&o.args.v, spec.dtype);
            if (fill == FILL_SUBNORMAL)
                assert_true(values > 2 * 2 * 300 * 64 / 2);
            else
                assert_int_equal(keys + values, 0);
            operands_destroy(&o);
        }
}

/* Scores of head 0, row by row, through the stored values. */
static double score(const struct operands *o, int64_t i, int64_t j)
{
    double sum = 0;
    for (int64_t d = 0; d < o->spec.D; d++)
        sum += (double)read_element(&o->args.q, o->spec.dtype, 0, 0, i, d) *
               (double)read_element(&o->args.k, o->spec.dtype, 0, 0, j, d);
    return sum * spec_scale(&o->spec);
}

static void fills_make_the_scores_they_promise(void **state)
{
    (void)state;
    for (int dtype = ATTN_F32; dtype <= ATTN_F16; dtype++)
        for (int fill = FILL_NORMAL; fill <= FILL_DOMINANT; fill++) {
            struct problem_spec spec = spec_of((enum fill)fill, (enum attn_dtype)dtype);
            spec.D = 64;
            struct operands o = make(&spec, 0, 1);
            double square = 0;
            for (int64_t i = 0; i < spec.S_q; i++) {
                double largest = -INFINITY, second = -INFINITY;
                for (int64_t j = 0; j < spec.S_kv; j++) {
                    double s = score(&o, i, j);
                    square += s * s;
                    second = s > largest ? largest : s > second ? s : second;
                    largest = s > largest ? s : largest;
                }
                if (fill == FILL_EQUAL)
                    assert_true(largest == second);
                if (fill == FILL_DOMINANT)
                    assert_true(largest - second > 20);
            }
            double typical = sqrt(square / (double)(spec.S_q * spec.S_kv));
            if (fill == FILL_NORMAL)
                assert_true(typical > 0.5 && typical < 2);
            if (fill == FILL_HUGE)
                assert_true(typical > 3e3 && typical < 3e4);
            operands_destroy(&o);
        }
}

static void mask_and_bias_follow_their_share_and_distribution(void **state)
{
    (void)state;
    struct problem_spec spec = spec_of(FILL_NORMAL, ATTN_F16);
    spec.S_q = spec.S_kv = 400;
    spec.bias = true;
    const double shares[] = {0, 0.25, 1};
    for (int i = 0; i < 3; i++) {
        spec.mask_share = shares[i];
        struct operands o = make(&spec, 0, 2);
        assert_int_equal(o.mask.bytes, 2 * 400 * 400);
        assert_int_equal(o.args.mask.stride[1], 0);
        double allowed = 0, bias = 0;
        for (size_t m = 0; m < o.mask.bytes; m++)
            allowed += ((uint8_t *)o.mask.data)[m];
        assert_true(fabs(allowed / (double)o.mask.bytes - shares[i]) <= 0.005);
        assert_int_equal(o.args.bias.stride[0], 0);
        for (size_t m = 0; m < o.bias.bytes / 4; m++)
            bias += ((float *)o.bias.data)[m] * ((float *)o.bias.data)[m];
        assert_true(fabs(bias * sizeof(float) / (double)o.bias.bytes - 1) < 0.01);
        operands_destroy(&o);
    }
}

static void sixteen_bit_conversions_round_to_nearest_even(void **state)
{
    (void)state;
    for (uint32_t x = 0; x < 0x10000; x++) {
        float b = float_from_bf16((uint16_t)x), h = float_from_f16((uint16_t)x);
        if (isnan(b))
            assert_true(isnan(float_from_bf16(bf16_from_float(b))));
        else
            assert_int_equal(bf16_from_float(b), x);
        if (isnan(h))
            assert_true(isnan(float_from_f16(f16_from_float(h))));
        else
            assert_int_equal(f16_from_float(h), x);
    }
    /* Between each two neighbours: below, at (to even) and above the midpoint. */
    for (uint32_t x = 0; x < 0x7bff; x++) {
        float low = float_from_f16((uint16_t)x), middle = (low + float_from_f16((uint16_t)(x + 1))) / 2;
        assert_int_equal(f16_from_float(nextafterf(middle, 0)), x);
        assert_int_equal(f16_from_float(middle), x + (x & 1));
        assert_int_equal(f16_from_float(nextafterf(middle, 1e30f)), x + 1);
        assert_int_equal(f16_from_float(-middle), 0x8000 | (x + (x & 1)));
    }
    for (uint32_t x = 0; x < 0x7f7f; x++) {
        uint32_t word = x << 16 | 0x8000;
        float middle;
        memcpy(&middle, &word, sizeof middle);
        assert_int_equal(bf16_from_float(nextafterf(middle, 0)), x);
        assert_int_equal(bf16_from_float(middle), x + (x & 1));
        assert_int_equal(bf16_from_float(nextafterf(middle, INFINITY)), x + 1);
    }
    assert_int_equal(f16_from_float(65519.0f), 0x7bff);
    assert_int_equal(f16_from_float(65520.0f), 0x7c00);
    assert_int_equal(f16_from_float(-INFINITY), 0xfc00);
    assert_int_equal(bf16_from_float(INFINITY), 0x7f80);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_for_every_layout_and_thread_count),
        cmocka_unit_test(seed_set_and_tensor_make_other_data),
        cmocka_unit_test(generator_is_the_one_that_results_were_made_with),
        cmocka_unit_test(normal_numbers_invert_the_normal_distribution),
        cmocka_unit_test(rows_hold_the_normal_number_of_each_element),
        cmocka_unit_test(normal_fill_has_mean_0_variance_1_kurtosis_3),
        cmocka_unit_test(only_the_subnormal_fill_makes_subnormals),
        cmocka_unit_test(fills_make_the_scores_they_promise),
        cmocka_unit_test(mask_and_bias_follow_their_share_and_distribution),
        cmocka_unit_test(sixteen_bit_conversions_round_to_nearest_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
