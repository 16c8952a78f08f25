/* SPDX-License-Identifier: Apache-2.0
 *
 * The bounds of all rules hold what they promise: a plain machine that rounds to f32 and stores in the dtype stays
 * below the bound at many random problems in several orders of summation, not by a mile, and each planted fault exceeds
 * it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rule_cases.h"

/* Largest error over bound of sound machines. */
static double worst[VARIANTS][3];

/* Data that are anything but random: rows that climb, take two values or alternate, matrices of one sign. */
enum structure { UNSTRUCTURED, CLIMBING, TWO_LEVELS, ALTERNATING, STRUCTURES };

static void structure_rows(const struct attn_tensor *t, enum attn_dtype dtype, enum structure structure)
{
    for (int64_t e = 0; t->data && e < t->size[0] * t->size[1] * t->size[2] * t->size[3]; e++) {
        int64_t d = e % t->size[3], row = e / t->size[3], s = row % t->size[2], h = row / t->size[2] % t->size[1];
        double place = (double)s / (double)t->size[2];
        double x = structure == CLIMBING     ? 0.3 + place
                   : structure == TWO_LEVELS ? (s % 3 == 0 ? 0.7 : 1.1)
                                             : ((s + d) % 2 ? 1.3 : -1.1);
        put_element(t, dtype, row / t->size[2] / t->size[1], h, s, d, x);
    }
}

static void structure_data(const struct operands *o, enum structure structure)
{
    struct operand_param params[ATTN_MOST_PARAMS];
    int count = operands_params(&o->spec, params);
    if (structure == UNSTRUCTURED)
        return;
    const struct attn_tensor *inputs[] = {&o->args.q, &o->args.k, &o->args.v};
    for (int t = 0; t < 3; t++)
        structure_rows(inputs[t], o->problem.dtype, structure);
    for (int i = 0; i < count; i++) {
        enum attn_dtype dtype = params[i].bias ? ATTN_F32 : o->problem.dtype;
        const struct attn_tensor *t = &o->param[i];
        for (int64_t e = 0; t->data && e < t->size[2] * t->size[3]; e++) {
            int64_t s = e / t->size[3], d = e % t->size[3];
            double x = element(t, dtype, 0, 0, s, d);
            put_element(t, dtype, 0, 0, s, d, structure == CLIMBING ? fabs(x) : 1.2 / (double)params[i].fan_in);
        }
    }
}

static void expect_clean(const struct problem_spec *spec, enum variant variant, enum structure structure)
{
    struct session session;
    open_operands(spec, &session);
    structure_data(&session.operands, structure);
    consult(&session, 1e12, 1);
    for (int order = 0; order < ORDERS; order++) {
        struct machine machine = {.order = (enum order)order};
        struct judgement judgement = judge_machine(&session, &machine);
        worst[variant][spec->dtype] = fmax(worst[variant][spec->dtype], judgement.err_over_bound);
        if (judgement.wrong || !(judgement.err_over_bound < 0.7))
            fail_msg("%s, structure %d, order %d, %s, %s, seed %d, B %d H %d/%d S %d/%d D %d/%d: %.3g x bound %s",
                     variant_names[variant], (int)structure, order, dtype_name(spec->dtype), fill_name(spec->fill),
                     (int)spec->seed, (int)spec->B, (int)spec->H, (int)spec->H_kv, (int)spec->S_q, (int)spec->S_kv,
                     (int)spec->D, (int)spec->D_v, judgement.err_over_bound, judgement.reason);
    }
    close_session(&session);
}

static void sound_machines_stay_below_the_bound(void **state)
{
    (void)state;
    for (int variant = 0; variant < VARIANTS; variant++)
        for (uint64_t seed = 1; seed <= 75; seed++) {
            struct problem_spec spec = draw_spec((enum variant)variant, seed, seed % 3 ? 24 : 70);
            spec.dtype = (enum attn_dtype)(seed % 3);
            spec.fill = (enum fill)(seed / 3 % 5);
            expect_clean(&spec, (enum variant)variant, UNSTRUCTURED);
        }
}

static void long_rows_and_wide_layers_too(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{1, 400, 16}, {8, 30, 64}, {2, 120, 128}};
    for (int variant = 0; variant < VARIANTS; variant++)
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
            for (int dtype = ATTN_F32; dtype <= ATTN_BF16; dtype++) {
                struct problem_spec spec =
                    variant_spec((enum variant)variant, shapes[s][0], shapes[s][1], shapes[s][2]);
                spec.B = 1;
                spec.S_q = variant == SELF_HEADS || variant == SELF_SINGLE ? spec.S_kv : 8;
                spec.dtype = (enum attn_dtype)dtype;
                expect_clean(&spec, (enum variant)variant, UNSTRUCTURED);
            }
}

static void structured_data_stay_below_the_bound(void **state)
{
    (void)state;
    for (int variant = 0; variant < VARIANTS; variant++)
        for (int structure = CLIMBING; structure < STRUCTURES; structure++)
            for (int64_t length = 5; length < 200; length *= 6)
                for (int dtype = ATTN_F32; dtype <= ATTN_F16; dtype++) {
                    struct problem_spec spec = variant_spec((enum variant)variant, 2, length, 70);
                    spec.B = 1;
                    spec.S_q = variant == SELF_HEADS || variant == SELF_SINGLE ? length : 3;
                    spec.dtype = (enum attn_dtype)dtype;
                    expect_clean(&spec, (enum variant)variant, (enum structure)structure);
                }
}

/* Bounds that nobody comes near would catch nothing. */
static void bounds_are_not_far_off(void **state)
{
    (void)state;
    for (int variant = 0; variant < VARIANTS; variant++)
        for (int dtype = ATTN_F32; dtype <= ATTN_F16; dtype++) {
            print_message("# %s %s: largest clean error %.3g x bound\n", variant_names[variant],
                          dtype_name((enum attn_dtype)dtype), worst[variant][dtype]);
            assert_true(worst[variant][dtype] > 0.05);
        }
}

static void expect_caught(enum variant variant, enum fault fault, const char *what)
{
    static const int64_t shapes[][3] = {{2, 9, 16}, {4, 40, 32}, {2, 130, 64}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        struct session session;
        struct problem_spec spec = variant_spec(variant, shapes[s][0], shapes[s][1], shapes[s][2]);
        spec.S_q = is_layer(variant) || fault == SOFTMAX_OVER_QUERIES ? spec.S_q : 8;
        if (fault == IGNORE_PADDING)
            spec.kv_lengths = intern("7:3");
        open_session(&spec, &session);
        for (int order = 0; order < ORDERS; order += LANES) {
            struct machine sound = {.order = (enum order)order}, faulty = {.order = (enum order)order, .fault = fault};
            struct judgement judgement = judge_machine(&session, &sound);
            assert_false(judgement.wrong);
            judgement = judge_machine(&session, &faulty);
            if (!judgement.wrong || !(judgement.err_over_bound > 2))
                fail_msg("%s, %s, S %d, order %d: only %.3g x bound", variant_names[variant], what, (int)shapes[s][1],
                         order, judgement.err_over_bound);
            /* and by out alone */
            struct judgement by_out;
            oracle_judge(&session.oracle, &session.operands.problem, &session.operands.args.out, NULL, &by_out);
            if (!by_out.wrong)
                fail_msg("%s, %s, S %d, order %d: out alone is only %.3g x bound", variant_names[variant], what,
                         (int)shapes[s][1], order, by_out.err_over_bound);
        }
        close_session(&session);
    }
}

static void faults_are_caught(void **state)
{
    (void)state;
    static const struct {
        enum variant variant;
        enum fault fault;
        const char *what;
    } faults[] = {
        {MATMUL, DROP_LAST_TERM, "last term dropped"},
        {MATMUL, BF16_SUMS, "sums in bf16"},
        {ADDITIVE, IGNORE_U, "u ignored"},
        {ADDITIVE, COARSE_TANH, "coarse tanh"},
        {ADDITIVE_SUM, COARSE_TANH, "coarse tanh"},
        {ADDITIVE, DROP_W_BIAS, "w_bias dropped"},
        {ADDITIVE, SWAP_HALVES, "halves of w swapped"},
        {ADDITIVE, IGNORE_PADDING, "padding ignored"},
        {ADDITIVE, SOFTMAX_OVER_QUERIES, "softmax over queries"},
        {ADDITIVE, BF16_SUMS, "sums in bf16"},
        {CONCAT, DROP_W_BIAS, "w_bias dropped"},
        {CONCAT, SWAP_HALVES, "halves swapped"},
        {CONCAT, SOFTMAX_OVER_QUERIES, "softmax over queries"},
        {CONCAT, DROP_LAST_TERM, "last term dropped"},
        {CONCAT_COMBINE, DROP_OUT_BIAS, "w_out_bias dropped"},
        {CONCAT_COMBINE, DROP_W_BIAS, "w_bias dropped"},
        {CONCAT_COMBINE, BF16_SUMS, "sums in bf16"},
        {MULTI_HEAD, DROP_Q_BIAS, "w_q_bias dropped"},
        {MULTI_HEAD, DROP_V_BIAS, "w_v_bias dropped"},
        {MULTI_HEAD, DROP_OUT_BIAS, "w_o_bias dropped"},
        {MULTI_HEAD, INTERLEAVE_HEADS, "heads interleaved"},
        {MULTI_HEAD, SOFTMAX_OVER_QUERIES, "softmax over queries"},
        {MULTI_HEAD, IGNORE_PADDING, "padding ignored"},
        {MULTI_HEAD, DROP_SCALE, "scale dropped"},
        {MULTI_HEAD, TRANSPOSE_W_O, "w_o transposed"},
        {MULTI_HEAD, BF16_SUMS, "sums in bf16"},
        {SELF_HEADS, SHARE_MATRIX, "one matrix for k and v"},
        {SELF_HEADS, INTERLEAVE_HEADS, "heads interleaved"},
        {SELF_HEADS, IGNORE_PADDING, "padding ignored"},
        {SELF_HEADS, DROP_SCALE, "scale dropped"},
        {SELF_SINGLE, SHARE_MATRIX, "one matrix for k and v"},
        {SELF_SINGLE, DROP_SCALE, "scale dropped"},
        {SELF_SINGLE, BF16_SUMS, "sums in bf16"},
    };
    for (size_t f = 0; f < sizeof faults / sizeof faults[0]; f++)
        expect_caught(faults[f].variant, faults[f].fault, faults[f].what);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sound_machines_stay_below_the_bound),
        cmocka_unit_test(long_rows_and_wide_layers_too),
        cmocka_unit_test(bounds_are_not_far_off),
        cmocka_unit_test(structured_data_stay_below_the_bound),
        cmocka_unit_test(faults_are_caught),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
