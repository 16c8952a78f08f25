/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys and rules: sizes that follow from others, keys that a rule does not know, sweeps over several rules.
 */
#include "plan_words.h"

static const struct problem_spec *first_of(struct plan *plan, const char *const *words)
{
    plan_or_fail(words, plan);
    return &plan->points[0].spec;
}

#define FIRST(...) first_of(&plan, (const char *const[]){"run", "--kernel", "naive", __VA_ARGS__, NULL})

static void rules_have_defaults_of_their_own(void **state)
{
    (void)state;
    struct plan plan;
    const struct problem_spec *s = FIRST("--rule", "additive");
    assert_true(s->D == 64 && s->key_dim == 64 && s->D_v == 64 && s->hidden == 64 && !s->plain_sum && s->S_q == 512);
    plan_release(&plan);
    s = FIRST("--rule", "additive", "-D", "32", "--key-dim", "48", "--hidden", "16", "--plain-sum", "--kv-heads", "1",
              "-H", "2");
    assert_true(s->D == 32 && s->key_dim == 48 && s->D_v == 32 && s->hidden == 16 && s->plain_sum && s->H_kv == 1);
    plan_release(&plan);
    s = FIRST("--rule", "concat", "--value-dim", "24");
    assert_true(s->D == 64 && s->key_dim == 64 && s->D_v == 24 && s->out_dim == 0 && s->hidden == 0 && !s->combine);
    plan_release(&plan);
    s = FIRST("--rule", "concat", "--combine", "--q-len", "1", "--kv-len", "32", "--query-dim", "16");
    assert_true(s->D == 16 && s->key_dim == 64 && s->out_dim == 64 && s->combine && s->S_q == 1 && s->S_kv == 32);
    plan_release(&plan);
    s = FIRST("--rule", "multi_head", "-H", "12", "--kv-heads", "4", "-D", "32", "--value-dim", "16");
    assert_true(s->model_dim == 384 && s->model_dim_v == 384 && s->out_dim == 384 && s->input_dim == 0);
    plan_release(&plan);
    s = FIRST("--rule", "multi_head", "--model-dim", "20", "--model-dim-v", "10", "--out-dim", "5");
    assert_true(s->model_dim == 20 && s->model_dim_v == 10 && s->out_dim == 5 && s->D == 64 && s->H == 1);
    plan_release(&plan);
    s = FIRST("--rule", "self_attention", "-H", "2", "-S", "16");
    assert_true(s->input_dim == 128 && s->model_dim == 128 && s->out_dim == 128 && s->S_q == 16 && s->S_kv == 16);
    plan_release(&plan);
    s = FIRST("--rule", "self_attention", "--no-mha", "--input-dim", "80", "--model-dim", "128", "--model-dim-v", "32");
    assert_true(s->single && s->H == 1 && s->D == 128 && s->D_v == 32 && s->out_dim == 0 && s->input_dim == 80);
    plan_release(&plan);
    s = FIRST("--rule", "matmul");
    assert_true(s->S_q == 512 && s->D == 512 && s->D_v == 512 && s->S_kv == 512 && s->B == 1 && s->H == 1);
    plan_release(&plan);
    s = FIRST("--rule", "matmul", "-B", "10", "-M", "3", "-N", "5", "-K", "4", "--broadcast", "b");
    assert_true(s->B == 10 && s->S_q == 3 && s->D == 4 && s->D_v == 5 && s->S_kv == 5 && s->broadcast == BROADCAST_B);
    plan_release(&plan);
}

static void keys_that_no_rule_knows_are_named(void **state)
{
    (void)state;
    REFUSE("-S: rule matmul has no S", "run", "--rule", "matmul", "-S", "8");
    REFUSE("--causal: rule matmul has no causal", "run", "--rule", "matmul", "--causal", "top_left");
    REFUSE("--bias: rule concat has no bias", "run", "--rule", "concat", "--bias");
    REFUSE("--alias: rule concat has no alias", "run", "--rule", "concat", "--alias", "kv");
    REFUSE("--scale: rule additive has no scale", "run", "--rule", "additive", "--scale", "2");
    REFUSE("--hidden: none of the rules has hidden", "run", "--rule", "matmul,concat", "--hidden", "2");
    REFUSE("--out-dim: rule concat without combine has no out-dim", "run", "--rule", "concat", "--out-dim", "8");
    REFUSE("-H: rule self_attention with no-mha has no H", "run", "--rule", "self_attention", "--no-mha", "-H", "8");
    REFUSE("-M: rule additive has no M", "run", "--rule", "additive", "-M", "8");
    REFUSE("model: model is for rule scaled_dot_product alone", "run", "--rule", "multi_head", "gpt2");
    write_config("sweeps:\n  - {rule: matmul, M: 8}\n  - {rule: additive, S: 8,\n     M: 8}\n");
    REFUSE(".yaml:4:9: key 'M': rule additive has no M", "run", "--config", path);
    write_config("defaults: {softcap: 3}\nsweeps:\n  - {rule: matmul, M: 8}\n  - {rule: additive}\n");
    REFUSE(".yaml:1:21: key 'softcap': none of the rules has softcap", "run", "--config", path);
    REFUSE("alias kv needs value-dim = key-dim, not 32 and 64", "run", "--kernel", "naive", "--rule", "additive",
           "--alias", "kv", "--value-dim", "32");
    REFUSE("alias qkv needs model-dim-v = model-dim", "run", "--kernel", "naive", "--rule", "multi_head", "--alias",
           "qkv", "--model-dim-v", "8");
    REFUSE("semantics dot needs H = 1", "run", "--kernel", "naive", "--rule", "matmul", "-H", "2", "--semantics",
           "dot");
    REFUSE("semantics dot broadcasts nothing", "run", "--kernel", "naive", "--rule", "matmul", "--broadcast", "a",
           "--semantics", "dot");
}

/* A key holds for the rules of a sweep that know it; the others are planned once, as if it were not given. */
static void keys_hold_for_the_rules_that_know_them(void **state)
{
    (void)state;
    struct plan plan;
    PLAN(&plan, "run", "--kernel", "naive", "--rule", "scaled_dot_product,additive,matmul", "--hidden", "8,16", "-S",
         "32", "-M", "4,5,6", "--scale", "2");
    assert_int_equal(plan.count, 1 + 2 + 3);
    assert_true(plan.points[0].spec.hidden == 0 && plan.points[0].spec.scale == 2);
    assert_true(plan.points[1].spec.hidden == 8 && plan.points[2].spec.hidden == 16 && plan.points[2].spec.S_q == 32);
    assert_true(plan.points[3].spec.rule == ATTN_MATMUL && plan.points[3].spec.S_q == 4);
    plan_release(&plan);
    PLAN(&plan, "run", "--kernel", "naive", "--rule", "self_attention", "--no-mha=true,false", "-H", "2,4", "-D", "8",
         "--q-len", "3", "--kv-len", "4", "-S", "5", "--rule", "self_attention,multi_head");
    assert_int_equal(plan.count, 1 + 2 + 2);
    assert_true(plan.points[0].spec.single && plan.points[0].spec.H == 1 && plan.points[0].spec.S_q == 5);
    assert_true(!plan.points[1].spec.single && plan.points[1].spec.H == 2 && plan.points[1].spec.S_kv == 5);
    assert_true(plan.points[3].spec.S_q == 3 && plan.points[3].spec.S_kv == 4);
    plan_release(&plan);
    write_config("defaults: {kernel: naive, H: 4, threads: 1}\nsweeps:\n  - {rule: concat, combine: [true, false], "
                 "out-dim: [3, 4]}\n  - {rule: multi_head, layout: [BHSD, BSHD, HBSD]}\n");
    PLAN(&plan, "run", "--config", path, "-S", "8");
    assert_int_equal(plan.count, 3 + 2);
    assert_true(plan.points[3].spec.layout == LAYOUT_BHSD && plan.points[4].spec.layout == LAYOUT_HBSD);
    assert_true(plan.points[4].spec.H == 4 && plan.points[4].spec.model_dim == 256);
    plan_release(&plan);
}

static void repro_lines_plan_the_same_point(void **state)
{
    (void)state;
    static const char *const rules =
        "sweeps:\n"
        "  - {rule: additive, B: 2, H: [1, 4], kv-heads: 1, hidden: [8, 9], plain-sum: [true, false], key-dim: 5,\n"
        "     causal: [none, top_left], bias: [true, false], kv-lengths: ragged}\n"
        "  - {rule: concat, combine: [true, false], q-len: 3, kv-len: 7, query-dim: 4, key-dim: 6, value-dim: 9,\n"
        "     out-dim: [3, 9], weights: true, mask: \"random:0.5\"}\n"
        "  - {rule: multi_head, H: 6, kv-heads: [2, 6], D: 8, value-dim: [5, 8], model-dim: [12, 48], scale: 0.3,\n"
        "     model-dim-v: 7, out-dim: 11, layout: [BHSD, HBSD], dtype: bf16, softcap: 20, window: 4,\n"
        "     causal: bottom_right}\n"
        "  - {rule: multi_head, H: 2, alias: [none, kv, qkv]}\n"
        "  - {rule: self_attention, S: 5, H: 2, no-mha: [true, false], input-dim: 3, model-dim: 10, model-dim-v: 4}\n"
        "  - {rule: matmul, B: [1, 3], H: [1, 2], M: 4, N: 5, K: 6, broadcast: [none, a, b]}\n"
        "  - {rule: matmul, B: 3, M: 4, N: 5, K: 6, semantics: dot, fill: dominant}\n";
    struct plan plan;
    write_config(rules);
    PLAN(&plan, "run", "--config", path, "--kernel", "naive");
    assert_int_equal(plan.count, 32 + 3 + 16 + 3 + 2 + 12 + 1);
    for (size_t i = 0; i < plan.count; i++)
        comes_back(&plan.points[i]);
    plan_release(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_have_defaults_of_their_own),
        cmocka_unit_test(keys_that_no_rule_knows_are_named),
        cmocka_unit_test(keys_hold_for_the_rules_that_know_them),
        cmocka_unit_test(repro_lines_plan_the_same_point),
    };
    return cmocka_run_group_tests(tests, prepare, clean_up);
}
