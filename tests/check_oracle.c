/* SPDX-License-Identifier: Apache-2.0
 *
 * The oracle against closed forms and against answers computed elsewhere (tests/golden); which rows it checks; what it
 * says to NaN, infinity and garbage; what the judge sees beyond the checked rows.
 */
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "harness/case_folder.h"
#include "harness/fill.h"
#include "harness/intern.h"
#include "harness/oracle.h"

static struct problem_spec small(void)
{
    struct problem_spec spec = spec_default();
    spec.B = 2;
    spec.H = 4;
    spec.H_kv = 2;
    spec.S_q = 19;
    spec.S_kv = 23;
    spec.D = 17;
    spec.D_v = 9;
    return spec;
}

static struct operands make(const struct problem_spec *spec)
{
    struct operands operands;
    struct error error;
    assert_int_equal(operands_create(spec, MEMORY_PLAIN, &operands, &error), 0);
    operands_fill(&operands, 0, 1);
    return operands;
}

static struct oracle consult(const struct operands *operands, int threads)
{
    struct oracle oracle;
    struct error error;
    assert_int_equal(oracle_create(&operands->problem, &operands->args, 1, 1e12, threads, &oracle, &error), 0);
    return oracle;
}

static float *at(const struct attn_tensor *t, int64_t b, int64_t h, int64_t s)
{
    return (float *)t->data + b * t->stride[0] + h * t->stride[1] + s * t->stride[2];
}

/* Stores the oracle's own answer, rounded, as the result to be judged. */
static void answer(const struct operands *o, const struct oracle *oracle)
{
    for (int64_t r = 0; r < oracle->rows; r++) {
        for (int64_t d = 0; d < oracle->D_v; d++)
            at(&o->args.out, oracle->b[r], oracle->h[r], oracle->i[r])[d] = (float)oracle->out[r * oracle->D_v + d];
        for (int64_t w = 0; oracle->weights && w < oracle->weight_heads; w++)
            for (int64_t j = 0; j < oracle->S_kv; j++)
                at(&o->args.weights, oracle->b[r], oracle->h[r] * oracle->weight_heads + w, oracle->i[r])[j] =
                    (float)oracle->weights[(r * oracle->weight_heads + w) * oracle->S_kv + j];
    }
}

static struct judgement judge(const struct operands *o, const struct oracle *oracle)
{
    struct judgement judgement;
    oracle_judge(oracle, &o->problem, &o->args.out, &o->args.weights, &judgement);
    return judgement;
}

/* Equal scores: the mean of the allowed values, counted here by the definition, pair by pair. */
static void equal_scores_give_the_mean_of_v(void **state)
{
    (void)state;
    static const char *const lengths[] = {"full", "23:7", "0:20"};
    for (int causal = CAUSAL_NONE; causal <= CAUSAL_BOTTOM_RIGHT_VALID; causal++)
        for (int l = 0; l < 3; l++)
            for (int window = 0; window < 2; window++) {
                struct problem_spec spec = small();
                spec.fill = FILL_EQUAL;
                spec.causal = (enum causal)causal;
                spec.kv_lengths = intern(lengths[l]);
                spec.window = window;
                spec.window_left = 5;
                spec.window_right = 3;
                struct operands o = make(&spec);
                struct oracle oracle = consult(&o, 1);
                assert_int_equal(oracle.rows, 2 * 4 * 19);
                assert_true(oracle.full && oracle.inputs_finite);
                for (int64_t r = 0; r < oracle.rows; r++) {
                    int64_t b = oracle.b[r], length = l == 0 ? 23 : l == 1 ? (b ? 7 : 23) : (b ? 20 : 0);
                    int64_t offset = causal == CAUSAL_BOTTOM_RIGHT         ? 23 - 19
                                     : causal == CAUSAL_BOTTOM_RIGHT_VALID ? length - 19
                                                                           : 0;
                    int64_t p = oracle.i[r] + offset, count = 0;
                    double mean[9] = {0};
                    for (int64_t j = 0; j < length; j++) {
                        if ((causal != CAUSAL_NONE && j > p) || (window && (j <= p - 5 || j > p + 3)))
                            continue;
                        count++;
                        for (int64_t d = 0; d < 9; d++)
                            mean[d] += (double)at(&o.args.v, b, oracle.h[r] / 2, j)[d];
                    }
                    for (int64_t d = 0; d < 9; d++) {
                        double expected = count ? mean[d] / (double)count : 0;
                        assert_true(fabs(oracle.out[r * 9 + d] - expected) < 1e-14);
                        assert_true(count ? oracle.bound[r * 9 + d] < 1e-5 : oracle.bound[r * 9 + d] == 0);
                    }
                }
                answer(&o, &oracle);
                assert_false(judge(&o, &oracle).wrong);
                oracle_destroy(&oracle);
                operands_destroy(&o);
            }
}

static void one_key_gives_its_value(void **state)
{
    (void)state;
    for (int fill = FILL_NORMAL; fill <= FILL_SUBNORMAL; fill++) {
        struct problem_spec spec = small();
        spec.fill = (enum fill)fill;
        spec.S_kv = 1;
        spec.weights = true;
        struct operands o = make(&spec);
        struct oracle oracle = consult(&o, 1);
        for (int64_t r = 0; r < oracle.rows; r++) {
            assert_true(oracle.weights[r] == 1);
            for (int64_t d = 0; d < 9; d++)
                assert_true(oracle.out[r * 9 + d] == (double)at(&o.args.v, oracle.b[r], oracle.h[r] / 2, 0)[d]);
        }
        oracle_destroy(&oracle);
        operands_destroy(&o);
    }
}

static void order_of_keys_layout_and_threads_change_nothing(void **state)
{
    (void)state;
    struct problem_spec spec = small();
    struct operands o = make(&spec);
    struct oracle first = consult(&o, 1), again = consult(&o, 3);
    assert_memory_equal(first.out, again.out, (size_t)first.rows * 9 * sizeof(double));
    assert_memory_equal(first.bound, again.bound, (size_t)first.rows * 9 * sizeof(double));
    oracle_destroy(&again);
    for (int64_t b = 0; b < 2; b++) /* reverse the keys */
        for (int64_t h = 0; h < 2; h++)
            for (int64_t j = 0; j < 23 / 2; j++) {
                for (int64_t d = 0; d < 17; d++) {
                    float *x = at(&o.args.k, b, h, j) + d, *y = at(&o.args.k, b, h, 22 - j) + d, z = *x;
                    *x = *y;
                    *y = z;
                }
                for (int64_t d = 0; d < 9; d++) {
                    float *x = at(&o.args.v, b, h, j) + d, *y = at(&o.args.v, b, h, 22 - j) + d, z = *x;
                    *x = *y;
                    *y = z;
                }
            }
    struct oracle reversed = consult(&o, 1);
    for (int64_t e = 0; e < first.rows * 9; e++)
        assert_true(fabs(first.out[e] - reversed.out[e]) < 1e-14);
    oracle_destroy(&reversed);
    operands_destroy(&o);
    spec.layout = LAYOUT_HBSD;
    o = make(&spec);
    struct oracle other = consult(&o, 1);
    assert_memory_equal(first.out, other.out, (size_t)first.rows * 9 * sizeof(double));
    oracle_destroy(&other);
    oracle_destroy(&first);
    operands_destroy(&o);
}

static void agrees_with_the_golden_cases(void **state)
{
    (void)state;
    DIR *folder = opendir("tests/golden");
    assert_non_null(folder);
    int cases = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        struct case_folder golden;
        struct error error;
        char path[300];
        if (entry->d_name[0] == '.' || strcmp(entry->d_name, "README.md") == 0)
            continue;
        snprintf(path, sizeof path, "tests/golden/%s", entry->d_name);
        if (case_folder_read(path, &golden, &error) < 0)
            fail_msg("%s", error.text);
        struct oracle oracle = consult(&golden.operands, 1);
        const struct attn_problem *p = &golden.operands.problem;
        assert_true(oracle.full && golden.expect_out);
        assert_true(p->rule == ATTN_MATMUL || (oracle.weights && golden.expect_weights));
        /* Kernels and oracle take the scale as a float. Where that is not the case's, errors of its size remain. */
        bool exact = (double)p->scale == golden.operands.spec.scale || p->rule == ATTN_MATMUL ||
                     p->rule == ATTN_ADDITIVE || p->rule == ATTN_CONCAT;
        for (int64_t e = 0; e < oracle.rows * oracle.D_v; e++) {
            double distance = fabs(oracle.out[e] - golden.expect_out[e]);
            if (!(distance <= (exact ? 1e-12 * fmax(1, fabs(oracle.out[e])) : 0.5 * oracle.bound[e])))
                fail_msg("%s: out %d is %.17g, expected %.17g", path, (int)e, oracle.out[e], golden.expect_out[e]);
        }
        for (int64_t e = 0; oracle.weights && e < oracle.rows * oracle.weight_heads * oracle.S_kv; e++) {
            int64_t line = e / oracle.S_kv, r = line / oracle.weight_heads;
            int64_t h = oracle.h[r] * oracle.weight_heads + line % oracle.weight_heads;
            double expected =
                golden
                    .expect_weights[((oracle.b[r] * p->H + h) * p->S_q + oracle.i[r]) * oracle.S_kv + e % oracle.S_kv];
            double distance = fabs(oracle.weights[e] - expected);
            if (!(distance <= (exact ? 1e-12 : 0.5 * oracle.weight_bound[e])))
                fail_msg("%s: weight %d is %.17g, expected %.17g", path, (int)e, oracle.weights[e], expected);
        }
        answer(&golden.operands, &oracle);
        assert_true(judge(&golden.operands, &oracle).err_over_bound < 0.5);
        oracle_destroy(&oracle);
        case_folder_release(&golden);
        cases++;
    }
    closedir(folder);
    assert_int_equal(cases, 38);
}

/* NaN and infinity where no query looks: beyond the length, the causal line, the window. */
static void garbage_out_of_sight_does_not_matter(void **state)
{
    (void)state;
    struct problem_spec spec = small();
    spec.kv_lengths = intern("11:20");
    spec.causal = CAUSAL_TOP_LEFT;
    spec.window = true;
    spec.window_left = 4;
    spec.window_right = WINDOW_NOT_GIVEN;
    spec.S_q = 15;
    struct operands o = make(&spec);
    struct oracle clean = consult(&o, 1);
    for (int64_t b = 0; b < 2; b++)
        for (int64_t h = 0; h < 2; h++)
            for (int64_t j = b ? 15 : 11; j < 23; j++) {
                at(&o.args.k, b, h, j)[j % 17] = j % 2 ? NAN : INFINITY;
                at(&o.args.v, b, h, j)[j % 9] = j % 2 ? NAN : -INFINITY;
            }
    struct oracle dirty = consult(&o, 1);
    assert_true(dirty.inputs_finite);
    assert_memory_equal(clean.out, dirty.out, (size_t)clean.rows * 9 * sizeof(double));
    assert_memory_equal(clean.bound, dirty.bound, (size_t)clean.rows * 9 * sizeof(double));
    assert_memory_equal(clean.v_min, dirty.v_min, 4 * 9 * sizeof(double));
    assert_memory_equal(clean.v_max, dirty.v_max, 4 * 9 * sizeof(double));
    /* A NaN that some rows see and others don't: the others keep their answer. */
    at(&o.args.v, 0, 0, 6)[2] = NAN;
    struct oracle partly = consult(&o, 1);
    assert_false(partly.inputs_finite);
    for (int64_t r = 0; r < partly.rows; r++) {
        bool sees = partly.b[r] == 0 && partly.h[r] < 2 && partly.i[r] >= 6 && partly.i[r] < 10;
        for (int64_t d = 0; d < 9; d++)
            assert_true(sees && d == 2
                            ? isnan(partly.out[r * 9 + d])
                            : partly.out[r * 9 + d] == clean.out[r * 9 + d] && partly.bound[r * 9 + d] < 1e-3);
    }
    answer(&o, &partly);
    assert_false(judge(&o, &partly).wrong);
    at(&o.args.out, 0, 1, 8)[2] = 0; /* finite where the reference is not */
    assert_true(judge(&o, &partly).wrong);
    oracle_destroy(&partly);
    oracle_destroy(&dirty);
    oracle_destroy(&clean);
    operands_destroy(&o);
}

static void nan_behind_an_explicit_mask_may_leak(void **state)
{
    (void)state;
    struct problem_spec spec = small();
    spec.mask_share = 1;
    struct operands o = make(&spec);
    uint8_t *mask = o.mask.data;
    for (int64_t i = 0; i < 19; i++)
        mask[i * 23 + 5] = 0;
    at(&o.args.v, 0, 0, 5)[1] = NAN;
    struct oracle oracle = consult(&o, 1);
    assert_true(oracle.bound[1] == INFINITY && oracle.bound[0] < 1e-3 && isfinite(oracle.out[1]));
    answer(&o, &oracle);
    at(&o.args.out, 0, 0, 0)[1] = NAN;
    assert_false(judge(&o, &oracle).wrong);
    at(&o.args.out, 0, 0, 0)[0] = NAN;
    assert_true(judge(&o, &oracle).wrong);
    oracle_destroy(&oracle);
    at(&o.args.q, 1, 3, 4)[0] = NAN; /* a NaN query has a NaN answer */
    oracle = consult(&o, 1);
    assert_true(isnan(oracle.out[((1 * 4 + 3) * 19 + 4) * 9]));
    oracle_destroy(&oracle);
    operands_destroy(&o);
}

static void the_judge_sees_every_element_and_weight(void **state)
{
    (void)state;
    struct problem_spec spec = small();
    spec.weights = true;
    spec.causal = CAUSAL_TOP_LEFT;
    struct operands o = make(&spec);
    struct oracle oracle = consult(&o, 1), sampled;
    struct error error;
    answer(&o, &oracle);
    struct judgement judgement = judge(&o, &oracle);
    assert_false(judgement.wrong);
    assert_true(judgement.err_over_bound > 0 && judgement.err_over_bound < 0.2 && judgement.max_abs_err > 0);
    float *weight = at(&o.args.weights, 1, 2, 3) + 4, *out = at(&o.args.out, 1, 2, 7) + 5, kept = *out;
    *weight = 1e-30f; /* beyond the causal line: must be 0 exactly */
    assert_true(judge(&o, &oracle).wrong);
    *weight = 0;
    *out = nextafterf(kept, INFINITY);
    assert_false(judge(&o, &oracle).wrong);
    const float wrong[] = {kept + 1e-3f, NAN, INFINITY, -INFINITY};
    for (int w = 0; w < 4; w++) {
        *out = wrong[w];
        judgement = judge(&o, &oracle);
        assert_true(judgement.wrong && judgement.err_over_bound > 4);
        assert_non_null(strstr(judgement.reason, "b=1 h=2 i=7 column 5"));
    }
    /* A row that is not checked: out of V's range, or not finite. */
    assert_int_equal(oracle_create(&o.problem, &o.args, 1, 1, 1, &sampled, &error), 0);
    assert_int_equal(sampled.rows, 2 * 2 * 4);
    for (int w = 0; w < 4; w++) {
        *out = w ? wrong[w] : 100;
        judgement = judge(&o, &sampled);
        assert_true(judgement.wrong && judgement.err_over_bound > 4);
        assert_non_null(strstr(judgement.reason, "b=1 h=2 i=7 column 5"));
    }
    *out = kept;
    assert_false(judge(&o, &sampled).wrong);
    oracle_destroy(&sampled);
    oracle_destroy(&oracle);
    operands_destroy(&o);
}

static void sampled_rows_are_ends_and_seeded_edges(void **state)
{
    (void)state;
    struct problem_spec spec = small();
    spec.S_q = spec.S_kv = 700;
    struct operands o = make(&spec);
    struct oracle a, b, other;
    struct error error;
    double budget = 200.0 * 700 * 26;
    assert_int_equal(oracle_create(&o.problem, &o.args, 5, budget, 1, &a, &error), 0);
    assert_int_equal(oracle_create(&o.problem, &o.args, 5, budget, 2, &b, &error), 0);
    assert_int_equal(oracle_create(&o.problem, &o.args, 6, budget, 1, &other, &error), 0);
    assert_false(a.full);
    assert_true(a.rows > 150 && a.rows <= 200);
    assert_int_equal(a.rows, b.rows);
    assert_memory_equal(a.i, b.i, (size_t)a.rows * sizeof *a.i);
    assert_true(a.rows != other.rows || memcmp(a.i, other.i, (size_t)a.rows * sizeof *a.i) != 0);
    int first[8] = {0}, last[8] = {0}, edges = 0;
    for (int64_t r = 0; r < a.rows; r++) {
        first[a.b[r] * 4 + a.h[r]] += a.i[r] == 0;
        last[a.b[r] * 4 + a.h[r]] += a.i[r] == 699;
        edges += (a.i[r] + 1) % 16 <= 2;
    }
    for (int h = 0; h < 8; h++)
        assert_true(first[h] == 1 && last[h] == 1);
    assert_true(edges > a.rows / 2);
    oracle_destroy(&a);
    oracle_destroy(&b);
    oracle_destroy(&other);
    operands_destroy(&o);
}

static void zero_sizes_have_empty_or_zero_answers(void **state)
{
    (void)state;
    for (int zero = 0; zero < 3; zero++) {
        struct problem_spec spec = small();
        spec.weights = true;
        *(zero == 0 ? &spec.B : zero == 1 ? &spec.S_q : &spec.S_kv) = 0;
        struct operands o = make(&spec);
        struct oracle oracle = consult(&o, 2);
        assert_true(oracle.full);
        assert_int_equal(oracle.rows, zero == 2 ? 2 * 4 * 19 : 0);
        operands_poison(&o, 1);
        assert_true(judge(&o, &oracle).wrong == (zero == 2));
        answer(&o, &oracle);
        assert_false(judge(&o, &oracle).wrong);
        oracle_destroy(&oracle);
        operands_destroy(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_scores_give_the_mean_of_v),
        cmocka_unit_test(one_key_gives_its_value),
        cmocka_unit_test(order_of_keys_layout_and_threads_change_nothing),
        cmocka_unit_test(agrees_with_the_golden_cases),
        cmocka_unit_test(garbage_out_of_sight_does_not_matter),
        cmocka_unit_test(nan_behind_an_explicit_mask_may_leak),
        cmocka_unit_test(the_judge_sees_every_element_and_weight),
        cmocka_unit_test(sampled_rows_are_ends_and_seeded_edges),
        cmocka_unit_test(zero_sizes_have_empty_or_zero_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
