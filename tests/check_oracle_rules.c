/* SPDX-License-Identifier: Apache-2.0
 *
 * The oracle's answers for all rules against definitions in plain loops and against closed forms.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rule_cases.h"

static void agrees_with_the_definition(void **state)
{
    (void)state;
    for (int variant = 0; variant < VARIANTS; variant++)
        for (uint64_t seed = 1; seed <= 60; seed++) {
            struct session session;
            struct problem_spec spec = draw_spec((enum variant)variant, seed, seed % 3 ? 24 : 70);
            spec.dtype = (enum attn_dtype)(seed % 3);
            open_session(&spec, &session);
            struct machine machine = {.exact = true};
            struct answer answer = run_rule(&machine, &session.operands);
            const struct oracle *oracle = &session.oracle;
            assert_true(oracle->full && oracle->inputs_finite);
            int64_t width = session.operands.args.out.size[3];
            assert_int_equal(oracle->D_v, width);
            assert_int_equal(oracle->out_heads, session.operands.args.out.size[1]);
            for (int64_t e = 0; e < oracle->rows * width; e++)
                if (!(fabs(oracle->out[e] - answer.out[e]) <= 1e-12 * fmax(1, fabs(answer.out[e]))))
                    fail_msg("%s, seed %d: out %d is %.17g, by the definition %.17g", variant_names[variant], (int)seed,
                             (int)e, oracle->out[e], answer.out[e]);
            /* rows of weights are [b][h][i] in the answer, [b][i][h] in the oracle where out has one head */
            int64_t S_q = session.operands.problem.S_q, H = session.operands.problem.H, S_kv = oracle->S_kv;
            for (int64_t r = 0; oracle->weights && r < oracle->rows; r++)
                for (int64_t w = 0; w < oracle->weight_heads; w++) {
                    int64_t h = oracle->h[r] * oracle->weight_heads + w;
                    const double *mine = oracle->weights + (r * oracle->weight_heads + w) * S_kv;
                    const double *other = answer.weights + ((oracle->b[r] * H + h) * S_q + oracle->i[r]) * S_kv;
                    for (int64_t j = 0; j < S_kv; j++)
                        assert_true(fabs(mine[j] - other[j]) <= 1e-13);
                }
            free(answer.out);
            free(answer.weights);
            close_session(&session);
        }
}

static void fill_tensor_with(const struct attn_tensor *t, enum attn_dtype dtype, bool identity, double x)
{
    for (int64_t s = 0; s < t->size[2]; s++)
        for (int64_t d = 0; d < t->size[3]; d++)
            put_element(t, dtype, 0, 0, s, d, identity && s != d ? 0 : x);
}

/* Identity matrices and no bias: multi_head is scaled dot product, head by head, and its bound not much wider. */
static void identity_weights_leave_scaled_dot_product(void **state)
{
    (void)state;
    enum { H = 3, S = 37, D = 16 };
    struct problem_spec plain = spec_default();
    plain.B = 2;
    plain.H = plain.H_kv = H;
    plain.S_q = plain.S_kv = S;
    plain.D = plain.D_v = D;
    plain.weights = true;
    plain.causal = CAUSAL_TOP_LEFT;
    struct problem_spec spec = variant_spec(MULTI_HEAD, H, S, D);
    spec.causal = CAUSAL_TOP_LEFT;
    struct session heads, layer;
    open_session(&plain, &heads);
    open_operands(&spec, &layer);
    const struct attn_tensor *from[] = {&heads.operands.args.q, &heads.operands.args.k, &heads.operands.args.v};
    const struct attn_tensor *to[] = {&layer.operands.args.q, &layer.operands.args.k, &layer.operands.args.v};
    for (int t = 0; t < 3; t++)
        for (int64_t e = 0; e < 2 * S * H * D; e++) {
            int64_t b = e / (S * H * D), s = e / (H * D) % S, d = e % (H * D);
            put_element(to[t], ATTN_F32, b, 0, s, d, element(from[t], ATTN_F32, b, d / D, s, d % D));
        }
    for (int p = 0; p < ATTN_LAYER_PARAMS; p++)
        fill_tensor_with(&layer.operands.args.param[p], ATTN_F32, p % 2 == 0, p % 2 == 0 ? 1 : 0);
    consult(&layer, 1e12, 1);
    double widest = 0;
    for (int64_t r = 0; r < layer.oracle.rows; r++)
        for (int64_t d = 0; d < H * D; d++) {
            int64_t row = (layer.oracle.b[r] * H + d / D) * S + layer.oracle.i[r], at = row * D + d % D;
            assert_true(fabs(layer.oracle.out[r * H * D + d] - heads.oracle.out[at]) < 1e-14);
            widest = fmax(widest, layer.oracle.bound[r * H * D + d] / heads.oracle.bound[at]);
            for (int64_t j = 0; j < S && d % D == 0; j++)
                assert_true(fabs(layer.oracle.weights[(r * H + d / D) * S + j] - heads.oracle.weights[row * S + j]) <
                            1e-14);
        }
    print_message("# bound of the layer: at most %.3g of that of its attention\n", widest);
    assert_true(widest < 25);
    close_session(&layer);
    close_session(&heads);
}

/* Zero matrices: scores are equal whatever the biases, applied is w_v_bias, and out a linear map of that. */
static void zero_weights_leave_the_biases(void **state)
{
    (void)state;
    struct problem_spec spec = variant_spec(MULTI_HEAD, 2, 11, 5);
    spec.kv_lengths = "11:0"; /* the second batch entry has no key at all */
    struct session s;
    open_operands(&spec, &s);
    struct attn_tensor *param = s.operands.param;
    for (int p = 0; p < ATTN_LAYER_W_O; p += 2)
        fill_tensor_with(&param[p], ATTN_F32, false, 0);
    consult(&s, 1e12, 1);
    for (int64_t r = 0; r < s.oracle.rows; r++) {
        for (int64_t n = 0; n < 10; n++) {
            double sum = element(&param[ATTN_LAYER_W_O_BIAS], ATTN_F32, 0, 0, 0, n);
            for (int64_t k = 0; k < 10 && s.oracle.b[r] == 0; k++)
                sum += element(&param[ATTN_LAYER_W_O], ATTN_F32, 0, 0, n, k) *
                       element(&param[ATTN_LAYER_W_V_BIAS], ATTN_F32, 0, 0, 0, k);
            assert_true(fabs(s.oracle.out[r * 10 + n] - sum) < 1e-15);
            assert_true(s.oracle.bound[r * 10 + n] < 1e-5);
        }
        for (int64_t j = 0; j < 22; j++)
            assert_true(fabs(s.oracle.weights[r * 22 + j] - (s.oracle.b[r] == 0 ? 1.0 / 11 : 0)) < 1e-15);
    }
    close_session(&s);
}

static void additive_without_u_is_the_mean_of_v(void **state)
{
    (void)state;
    struct problem_spec spec = variant_spec(ADDITIVE, 2, 13, 6);
    struct session s;
    open_operands(&spec, &s);
    fill_tensor_with(&s.operands.param[ATTN_ADDITIVE_U], ATTN_F32, false, 0);
    consult(&s, 1e12, 1);
    for (int64_t e = 0; e < s.oracle.rows * 6; e++) {
        double mean = 0;
        for (int64_t j = 0; j < 13; j++)
            mean += element(&s.operands.args.v, ATTN_F32, s.oracle.b[e / 6], s.oracle.h[e / 6], j, e % 6) / 13;
        assert_true(fabs(s.oracle.out[e] - mean) < 1e-15);
        assert_true(s.oracle.bound[e] < 1e-5);
    }
    close_session(&s);
}

/* No w: the weights are the softmax of w_bias, the same for every row. */
static void concat_without_w_has_the_weights_of_its_bias(void **state)
{
    (void)state;
    struct problem_spec spec = variant_spec(CONCAT, 1, 9, 4);
    struct session s;
    open_operands(&spec, &s);
    const struct attn_tensor *bias = &s.operands.param[ATTN_CONCAT_W_BIAS];
    fill_tensor_with(&s.operands.param[ATTN_CONCAT_W], ATTN_F32, false, 0);
    consult(&s, 1e12, 1);
    double sum = 0;
    for (int64_t j = 0; j < 9; j++)
        sum += exp(element(bias, ATTN_F32, 0, 0, 0, j));
    for (int64_t e = 0; e < s.oracle.rows * 9; e++)
        assert_true(fabs(s.oracle.weights[e] - exp(element(bias, ATTN_F32, 0, 0, 0, e % 9)) / sum) < 1e-15);
    close_session(&s);
}

static void the_identity_matrix_changes_nothing(void **state)
{
    (void)state;
    struct problem_spec spec = variant_spec(MATMUL, 1, 7, 12);
    spec.broadcast = BROADCAST_B;
    struct session s;
    open_operands(&spec, &s);
    fill_tensor_with(&s.operands.args.k, ATTN_F32, true, 1);
    consult(&s, 1e12, 1);
    assert_int_equal(s.oracle.rows, 2 * 7);
    for (int64_t e = 0; e < s.oracle.rows * 12; e++) {
        assert_true(s.oracle.out[e] ==
                    element(&s.operands.args.q, ATTN_F32, s.oracle.b[e / 12], 0, e / 12 % 7, e % 12));
        assert_true(s.oracle.bound[e] < 1e-5);
    }
    close_session(&s);
}

static void threads_and_layout_change_nothing(void **state)
{
    (void)state;
    for (int variant = 0; variant < VARIANTS; variant++) {
        struct problem_spec spec = variant_spec((enum variant)variant, 4, 70, 33);
        struct session one, three;
        open_session(&spec, &one);
        spec.layout = variant == MATMUL ? LAYOUT_BHSD : LAYOUT_HBSD;
        open_operands(&spec, &three);
        consult(&three, 1e12, 3);
        size_t bytes = (size_t)(one.oracle.rows * one.oracle.D_v) * sizeof(double);
        assert_memory_equal(one.oracle.out, three.oracle.out, bytes);
        assert_memory_equal(one.oracle.bound, three.oracle.bound, bytes);
        assert_memory_equal(one.oracle.sigma, three.oracle.sigma, bytes);
        close_session(&one);
        close_session(&three);
    }
}

/* NaN and infinity in rows of K and V that no query may see. */
static void garbage_in_padding_does_not_matter(void **state)
{
    (void)state;
    static const enum variant padded[] = {ADDITIVE, MULTI_HEAD};
    for (size_t v = 0; v < sizeof padded / sizeof padded[0]; v++) {
        struct problem_spec spec = variant_spec(padded[v], 2, 20, 8);
        spec.kv_lengths = "20:7";
        struct session clean, dirty;
        open_session(&spec, &clean);
        open_operands(&spec, &dirty);
        const struct attn_args *args = &dirty.operands.args;
        for (int64_t h = 0; h < args->k.size[1]; h++)
            for (int64_t s = 7; s < 20; s++) {
                put_element(&args->k, ATTN_F32, 1, h, s, s % 8, s % 2 ? (double)NAN : (double)INFINITY);
                put_element(&args->v, ATTN_F32, 1, h, s, s % 8, s % 2 ? (double)NAN : -(double)INFINITY);
            }
        consult(&dirty, 1e12, 1);
        size_t bytes = (size_t)(clean.oracle.rows * clean.oracle.D_v) * sizeof(double);
        assert_true(dirty.oracle.inputs_finite);
        assert_memory_equal(clean.oracle.out, dirty.oracle.out, bytes);
        assert_memory_equal(clean.oracle.bound, dirty.oracle.bound, bytes);
        oracle_destroy(&dirty.oracle);
        /* A value that the first entry's rows see must make all of them NaN, and those alone. */
        put_element(&args->v, ATTN_F32, 0, 0, 3, 2, (double)NAN);
        consult(&dirty, 1e12, 1);
        for (int64_t r = 0; r < dirty.oracle.rows; r++) {
            bool sees = dirty.oracle.b[r] == 0 && dirty.oracle.h[r] == 0;
            for (int64_t d = 0; d < dirty.oracle.D_v; d++)
                assert_true(isnan(dirty.oracle.out[r * dirty.oracle.D_v + d]) ==
                            (sees && (padded[v] == MULTI_HEAD || d == 2)));
        }
        close_session(&clean);
        close_session(&dirty);
    }
}

/* Rows that are not checked: NaN, and what no weighted mean or product can be. */
static void the_judge_sees_every_element(void **state)
{
    (void)state;
    for (int variant = 0; variant < VARIANTS; variant++) {
        struct problem_spec spec = variant_spec((enum variant)variant, 2, 90, 16);
        struct session s;
        open_session(&spec, &s);
        struct machine machine = {0};
        assert_false(judge_machine(&s, &machine).wrong);
        oracle_destroy(&s.oracle);
        consult(&s, 1, 1);
        assert_false(s.oracle.full);
        assert_int_equal(s.oracle.rows, 2 * 2 * s.oracle.out_heads);
        assert_false(judge(&s).wrong);
        const double wrong[] = {(double)NAN, (double)INFINITY, -1e4};
        const struct attn_tensor *out = &s.operands.args.out;
        double kept = element(out, ATTN_F32, 1, 0, 41, 3);
        for (int w = 0; w < 3; w++) {
            put_element(out, ATTN_F32, 1, 0, 41, 3, wrong[w]);
            struct judgement judgement = judge(&s);
            assert_true(judgement.wrong);
            assert_non_null(strstr(judgement.reason, "b=1 h=0 i=41 column 3"));
        }
        put_element(out, ATTN_F32, 1, 0, 41, 3, kept);
        assert_false(judge(&s).wrong);
        close_session(&s);
    }
}

/* Layers whose projections would take more than the budget are checked in some batch entries. work: multiplications of
 * one entry's projections of K and V. */
static void check_small_budget(struct problem_spec spec, double work)
{
    spec.B = 12;
    struct session s;
    open_operands(&spec, &s);
    consult(&s, 2 * 5.5 * work, 1);
    int seen[12] = {0}, entries = 0;
    for (int64_t r = 0; r < s.oracle.rows; r++)
        entries += !seen[s.oracle.b[r]]++;
    assert_int_equal(entries, 5);
    assert_true(seen[0] && seen[11]);
    struct machine machine = {0};
    assert_false(judge_machine(&s, &machine).wrong);
    for (int64_t b = 0; b < 12; b++) { /* entries that are left out are still held to be finite */
        double kept = element(&s.operands.args.out, ATTN_F32, b, 0, 20, 1);
        put_element(&s.operands.args.out, ATTN_F32, b, 0, 20, 1, (double)NAN);
        assert_true(judge(&s).wrong);
        put_element(&s.operands.args.out, ATTN_F32, b, 0, 20, 1, kept);
    }
    close_session(&s);
}

static void a_small_budget_leaves_batch_entries_out(void **state)
{
    (void)state;
    check_small_budget(variant_spec(MULTI_HEAD, 2, 40, 16), 40 * 2 * 2 * 32 * 16);
    struct problem_spec additive = variant_spec(ADDITIVE, 2, 40, 16);
    check_small_budget(additive, (double)(additive.H_kv * additive.S_kv * additive.key_dim * additive.hidden));
}

static void zero_sizes_have_empty_or_zero_answers(void **state)
{
    (void)state;
    for (int variant = 0; variant < VARIANTS; variant++)
        for (int zero = 0; zero < 3; zero++) {
            struct problem_spec spec = variant_spec((enum variant)variant, 2, 9, 6);
            if (zero == 0)
                spec.B = 0;
            if (zero == 1 || variant == SELF_HEADS || variant == SELF_SINGLE)
                spec.S_q = 0;
            if (zero == 2 || variant == SELF_HEADS || variant == SELF_SINGLE)
                spec.S_kv = 0;
            if (variant == MATMUL)
                spec.S_kv = spec.D_v = zero == 2 ? 0 : 6;
            struct session s;
            open_session(&spec, &s);
            assert_true(s.oracle.full);
            operands_poison(&s.operands, 1);
            bool empty = s.operands.args.out.size[0] * s.operands.args.out.size[2] * s.operands.args.out.size[3] == 0;
            assert_true(judge(&s).wrong == !empty);
            struct machine machine = {0};
            assert_false(judge_machine(&s, &machine).wrong);
            close_session(&s);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_the_definition),
        cmocka_unit_test(identity_weights_leave_scaled_dot_product),
        cmocka_unit_test(zero_weights_leave_the_biases),
        cmocka_unit_test(additive_without_u_is_the_mean_of_v),
        cmocka_unit_test(concat_without_w_has_the_weights_of_its_bias),
        cmocka_unit_test(the_identity_matrix_changes_nothing),
        cmocka_unit_test(threads_and_layout_change_nothing),
        cmocka_unit_test(garbage_in_padding_does_not_matter),
        cmocka_unit_test(the_judge_sees_every_element),
        cmocka_unit_test(a_small_budget_leaves_batch_entries_out),
        cmocka_unit_test(zero_sizes_have_empty_or_zero_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
