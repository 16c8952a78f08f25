/* SPDX-License-Identifier: Apache-2.0
 *
 * FLOPs and tanh of the other rules, as `list rules` states them, against loops that count each multiplication and
 * addition where it is done; bytes against the operands.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "harness/fill.h"
#include "harness/intern.h"
#include "harness/operands.h"
#include "harness/rules.h"
#include "harness/work.h"

struct count {
    double flops, tanh;
};

/* rows times a matrix of outputs x inputs, one multiplication and one addition at a time. */
static void linear(struct count *count, int64_t rows, int64_t inputs, int64_t outputs)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t o = 0; o < outputs; o++)
            for (int64_t i = 0; i < inputs; i++)
                count->flops += 2;
}

static bool allowed(const struct attn_problem *p, int64_t b, int64_t i, int64_t j)
{
    const int64_t at = i + (p->diag ? p->diag[b] : 0);
    return j < (p->kv_len ? p->kv_len[b] : p->S_kv) && (p->left == INT64_MAX || at - p->left < j) &&
           (p->right == INT64_MAX || j <= at + p->right);
}

/* One score and its share of the result: additive's hidden units are added, go through tanh, are weighted and summed.
 */
static void pair(struct count *count, const struct attn_problem *p)
{
    if (p->rule == ATTN_ADDITIVE) {
        for (int64_t h = 0; h < p->hidden; h++) {
            count->flops += 3;
            count->tanh++;
        }
    } else {
        linear(count, 1, p->D + (p->rule == ATTN_CONCAT ? p->key_dim : 0), 1);
    }
    linear(count, 1, 1, p->D_v);
}

static void attention(struct count *count, const struct attn_problem *p, bool dense)
{
    for (int64_t b = 0; b < p->B; b++)
        for (int64_t h = 0; h < p->H; h++)
            for (int64_t i = 0; i < p->S_q; i++)
                for (int64_t j = 0; j < p->S_kv; j++)
                    if (dense || allowed(p, b, i, j))
                        pair(count, p);
}

/* The rule's definition, projections and output included. */
static struct count count_by_loops(const struct attn_problem *p, bool dense)
{
    const bool single = p->flags & ATTN_FLAG_SINGLE;
    struct count count = {0};
    if (p->rule == ATTN_MATMUL) {
        for (int64_t batch = 0; batch < p->B * p->H; batch++)
            linear(&count, p->S_q, p->D, p->D_v);
        return count;
    }
    attention(&count, p, dense);
    if (p->rule == ATTN_ADDITIVE) {
        linear(&count, p->B * p->H * p->S_q, p->D, p->hidden);
        linear(&count, p->B * p->H_kv * p->S_kv, p->key_dim, p->hidden);
    }
    if (p->flags & ATTN_FLAG_COMBINE)
        linear(&count, p->B * p->H * p->S_q, p->D + p->D_v, p->out_dim);
    if (p->rule == ATTN_SELF_ATTENTION) {
        linear(&count, p->B * p->S_q, p->input_dim, p->model_dim);
        linear(&count, p->B * p->S_q, p->input_dim, p->model_dim);
        linear(&count, p->B * p->S_q, p->input_dim, p->model_dim_v);
    }
    if (p->rule == ATTN_MULTI_HEAD || (p->rule == ATTN_SELF_ATTENTION && !single)) {
        linear(&count, p->B * p->S_q, p->model_dim, p->H * p->D);
        linear(&count, p->B * p->S_kv, p->model_dim, p->H_kv * p->D);
        linear(&count, p->B * p->S_kv, p->model_dim_v, p->H_kv * p->D_v);
        linear(&count, p->B * p->S_q, p->H * p->D_v, p->out_dim);
    }
    return count;
}

static int64_t draw(uint64_t *counter, int64_t below)
{
    return (int64_t)(fill_bits(20261130, 0, FILL_Q, (*counter)++) % (uint64_t)below);
}

static struct problem_spec draw_spec(enum attn_rule rule, uint64_t *counter)
{
    struct problem_spec s = spec_default();
    s.rule = rule;
    s.B = 1 + draw(counter, 3);
    s.H_kv = 1 + draw(counter, 2);
    s.H = s.H_kv * (rule == ATTN_CONCAT || rule == ATTN_MATMUL ? 1 : 1 + draw(counter, 2));
    s.S_q = 1 + draw(counter, 7);
    s.S_kv = rule == ATTN_SELF_ATTENTION ? s.S_q : 1 + draw(counter, 7);
    s.D = 1 + draw(counter, 5);
    s.D_v = 1 + draw(counter, 5);
    s.key_dim = 1 + draw(counter, 5);
    s.hidden = 1 + draw(counter, 5);
    s.model_dim = 1 + draw(counter, 5);
    s.model_dim_v = 1 + draw(counter, 5);
    s.input_dim = 1 + draw(counter, 5);
    s.combine = rule == ATTN_CONCAT && draw(counter, 2);
    s.plain_sum = rule == ATTN_ADDITIVE && draw(counter, 2);
    s.single = rule == ATTN_SELF_ATTENTION && draw(counter, 2);
    s.out_dim = s.combine || (rule >= ATTN_MULTI_HEAD && !s.single) ? 1 + draw(counter, 5) : 0;
    if (s.single) {
        s.H = s.H_kv = 1;
        s.D = s.model_dim;
        s.D_v = s.model_dim_v;
    }
    if (rule == ATTN_MATMUL) {
        s.semantics = (enum semantics)draw(counter, 2);
        s.broadcast = s.semantics == SEMANTICS_DOT ? BROADCAST_NONE : (enum broadcast)draw(counter, 3);
        s.H = s.H_kv = s.semantics == SEMANTICS_DOT ? 1 : s.H;
        s.S_kv = s.D_v;
    }
    return s;
}

static void mask(struct problem_spec *s, uint64_t *counter)
{
    if (s->rule == ATTN_MATMUL)
        return;
    s->causal = (enum causal)draw(counter, 4);
    s->kv_lengths = draw(counter, 2) ? intern("ragged") : intern("full");
    s->window = draw(counter, 2);
    s->window_left = draw(counter, 9) - 1;
    s->window_right = draw(counter, 9) - 1;
}

static struct count count_spec(const struct problem_spec *s, bool dense)
{
    int64_t lengths[8];
    struct attn_problem problem;
    spec_problem(s, lengths, lengths + 4, &problem);
    return count_by_loops(&problem, dense);
}

static void formulas_agree_with_loops(void **state)
{
    (void)state;
    uint64_t counter = 0;
    struct error error;
    for (int r = 0; r < rules_built_count; r++)
        for (int n = 0; n < 300; n++) {
            struct problem_spec s = draw_spec(rules_built[r].rule, &counter);
            mask(&s, &counter);
            if (s.rule != ATTN_SCALED_DOT_PRODUCT && spec_validate(&s, true, &error))
                fail_msg("%s", error.text);
            struct work work;
            struct count useful = count_spec(&s, false), dense = count_spec(&s, true);
            work_count(&s, &work);
            if (work.flops_useful != useful.flops || work.tanh_count != useful.tanh || work.flops_dense != dense.flops)
                fail_msg("%s: useful %g, loops %g; tanh %g, loops %g; dense %g, loops %g", rule_name(s.rule),
                         work.flops_useful, useful.flops, work.tanh_count, useful.tanh, work.flops_dense, dense.flops);
        }
}

/* The formulas that `list rules` prints, evaluated by hand. */
static void stated_formulas(void **state)
{
    (void)state;
    struct problem_spec s = spec_default();
    struct work work;
    s.rule = ATTN_ADDITIVE;
    s.B = 2;
    s.S_q = 3;
    s.S_kv = 5;
    s.key_dim = 32;
    s.hidden = 48;
    work_count(&s, &work);
    assert_true(work.flops_useful == 2 * 48 * 2 * (3 * 64 + 5 * 32) + (3 * 48 + 2 * 64) * 2 * 3 * 5);
    assert_true(work.tanh_count == 48 * 2 * 3 * 5);
    s = spec_default();
    s.rule = ATTN_MULTI_HEAD;
    s.H = 8;
    s.H_kv = 2;
    s.S_q = s.S_kv = 10;
    s.D = s.D_v = 4;
    s.model_dim = s.model_dim_v = s.out_dim = 32;
    work_count(&s, &work);
    assert_true(work.flops_useful == 2 * (10 * 32 * 32 + 10 * 2 * (32 * 4 + 32 * 4) + 10 * 32 * 32) + 16 * 8 * 100);
    s = spec_default();
    s.rule = ATTN_MATMUL;
    s.B = 10;
    s.S_q = 3;
    s.D = 4;
    s.D_v = s.S_kv = 5;
    work_count(&s, &work);
    assert_true(work.flops_useful == 2 * 3 * 4 * 5 * 10 && work.flops_dense == work.flops_useful);
    s.semantics = SEMANTICS_DOT;
    work_count(&s, &work);
    assert_true(work.flops_useful == 2 * 3 * 4 * 5 * 100);
}

/* Where every key is seen, each operand is read once and out written once: no more, no less. */
static void least_bytes_are_those_of_the_operands(void **state)
{
    (void)state;
    uint64_t counter = 0;
    for (int r = 0; r < rules_built_count; r++)
        for (int n = 0; n < 100; n++) {
            struct problem_spec s = draw_spec(rules_built[r].rule, &counter);
            struct work work;
            s.dtype = (enum attn_dtype)draw(&counter, 3);
            if (s.rule == ATTN_SCALED_DOT_PRODUCT)
                s.key_dim = s.hidden = s.model_dim = s.model_dim_v = s.input_dim = 0;
            if (s.rule != ATTN_MATMUL)
                s.weights = draw(&counter, 2);
            work_count(&s, &work);
            if (work.bytes_min != operands_bytes(&s))
                fail_msg("%s: %g bytes, operands %g", rule_name(s.rule), work.bytes_min, operands_bytes(&s));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formulas_agree_with_loops),
        cmocka_unit_test(stated_formulas),
        cmocka_unit_test(least_bytes_are_those_of_the_operands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
