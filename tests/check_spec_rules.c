/* SPDX-License-Identifier: Apache-2.0
 *
 * Specs of the other rules: what each refuses, how it resolves, its sizes in JSON and in ids.
 */
#include "spec_words.h"

#define ADDITIVE(...) WITH(.rule = ATTN_ADDITIVE, .key_dim = 4, .hidden = 3, __VA_ARGS__)
#define CONCAT(...) WITH(.rule = ATTN_CONCAT, .key_dim = 3, __VA_ARGS__)
#define MULTI_HEAD(...) WITH(.rule = ATTN_MULTI_HEAD, .model_dim = 6, .model_dim_v = 7, .out_dim = 5, __VA_ARGS__)
#define SELF(...)                                                                                                      \
    WITH(.rule = ATTN_SELF_ATTENTION, .input_dim = 9, .model_dim = 6, .model_dim_v = 7, .out_dim = 5, __VA_ARGS__)
#define MATMUL(...) WITH(.rule = ATTN_MATMUL, .S_kv = 4, __VA_ARGS__)

/* Each rule's sizes and ties; what it does not have. */
static void rules_refuse_what_they_do_not_have(void **state)
{
    (void)state;
    accept(ADDITIVE());
    refuse(ADDITIVE(.hidden = 0), "hidden 0 is less than 1");
    refuse(ADDITIVE(.D = 0), "query-dim 0 is less than 1");
    refuse(ADDITIVE(.key_dim = -4), "key-dim -4 is less than 1");
    refuse(ADDITIVE(.scale = 2), "rule additive has no scale");
    refuse(ADDITIVE(.softcap = 2), "rule additive has no softcap");
    refuse(ADDITIVE(.combine = true), "rule additive has no combine");
    refuse(ADDITIVE(.alias = ALIAS_KV, .key_dim = 5), "alias kv needs value-dim = key-dim, not 4 and 5");
    refuse(ADDITIVE(.alias = ALIAS_QKV, .D = 5, .key_dim = 4), "alias qkv needs query-dim = key-dim");
    refuse(ADDITIVE(.S_q = INT64_C(1) << 36, .hidden = INT64_C(1) << 36), "addressed");
    accept(CONCAT());
    accept(CONCAT(.combine = true, .out_dim = 3));
    refuse(CONCAT(.combine = true), "out-dim 0 is less than 1");
    refuse(CONCAT(.bias = true), "rule concat has no bias");
    refuse(CONCAT(.H = 2), "concat needs kv-heads = H, not 1 and 2");
    refuse(CONCAT(.alias = ALIAS_KV), "rule concat has no alias");
    accept(MULTI_HEAD());
    refuse(MULTI_HEAD(.model_dim = 0), "model-dim 0 is less than 1");
    refuse(MULTI_HEAD(.out_dim = 0), "out-dim 0 is less than 1");
    refuse(MULTI_HEAD(.D = 0), "D 0 is less than 1");
    refuse(MULTI_HEAD(.H = 3, .H_kv = 2), "H 3 is not a multiple of kv-heads 2");
    accept(MULTI_HEAD(.alias = ALIAS_QKV, .model_dim_v = 6, .H = 2));
    refuse(MULTI_HEAD(.alias = ALIAS_QKV), "alias qkv needs model-dim-v = model-dim, not 7 and 6");
    accept(SELF());
    refuse(SELF(.input_dim = 0), "input-dim 0 is less than 1");
    refuse(SELF(.S_q = 7), "self_attention needs q-len = kv-len, not 7 and 8");
    refuse(SELF(.alias = ALIAS_QKV), "rule self_attention has no alias");
    accept(SELF(.single = true, .D = 6, .D_v = 7, .out_dim = 0));
    refuse(SELF(.single = true, .D = 6, .D_v = 7, .H = 2), "no-mha needs H = 1, not 2 and 1");
    refuse(SELF(.single = true, .D = 5, .D_v = 7), "no-mha needs D = model-dim, not 5 and 6");
    refuse(SELF(.single = true, .D = 6, .D_v = 5), "no-mha needs value-dim = model-dim-v, not 5 and 7");
    accept(MATMUL());
    accept(MATMUL(.S_q = 0));
    refuse(MATMUL(.D = 0), "K 0 is less than 1");
    refuse(MATMUL(.D_v = 0, .S_kv = 0), "N 0 is less than 1");
    refuse(MATMUL(.S_q = -1), "M -1 is less than 0");
    refuse(MATMUL(.weights = true), "rule matmul has no weights");
    refuse(MATMUL(.causal = CAUSAL_TOP_LEFT), "rule matmul has no causal");
    refuse(MATMUL(.kv_lengths = "ragged"), "rule matmul has no kv-lengths");
    refuse(MATMUL(.semantics = SEMANTICS_DOT, .broadcast = BROADCAST_A), "semantics dot broadcasts nothing");
    refuse(MATMUL(.semantics = SEMANTICS_DOT, .H = 2), "semantics dot needs H = 1, not 2 and 1");
    refuse(WITH(.broadcast = BROADCAST_A), "rule scaled_dot_product has no broadcast");
    refuse(WITH(.plain_sum = true), "rule scaled_dot_product has no plain-sum");
}

static void rules_resolve(void **state)
{
    (void)state;
    int64_t kv_len[3], diag[3];
    struct attn_problem p = resolve(ADDITIVE(.plain_sum = true, .weights = true), kv_len, diag);
    assert_true(p.rule == ATTN_ADDITIVE && p.hidden == 3 && p.key_dim == 4 && p.scale == 1);
    assert_int_equal(p.flags, ATTN_FLAG_WEIGHTS);
    p = resolve(CONCAT(.combine = true, .out_dim = 3), kv_len, diag);
    assert_true(p.flags == ATTN_FLAG_COMBINE && p.out_dim == 3 && p.key_dim == 3 && p.scale == 1);
    p = resolve(MULTI_HEAD(.D = 16, .causal = CAUSAL_TOP_LEFT), kv_len, diag);
    assert_true(p.model_dim == 6 && p.model_dim_v == 7 && p.out_dim == 5 && p.scale == 0.25f && p.right == 0);
    p = resolve(SELF(.single = true, .D = 6, .D_v = 7, .out_dim = 0), kv_len, diag);
    assert_true(p.flags == ATTN_FLAG_SINGLE && p.input_dim == 9 && p.D == 6);
    p = resolve(MATMUL(.B = 3, .H = 2, .S_q = 5, .D = 6), kv_len, diag);
    assert_true(p.B == 3 && p.H == 2 && p.H_kv == 2 && p.S_q == 5 && p.D == 6 && p.D_v == 4 && p.S_kv == 4);
    assert_true(p.left == INT64_MAX && p.right == INT64_MAX && !p.kv_len && !p.diag && p.scale == 1);
    p = resolve(MATMUL(.B = 3, .S_q = 5, .semantics = SEMANTICS_DOT), kv_len, diag);
    assert_true(p.B == 1 && p.H == 3 && p.H_kv == 3 && p.S_q == 15 && p.D_v == 4);
}

static void assert_json_keeps(struct problem_spec spec)
{
    struct problem_spec back;
    struct error error = {0};
    json_t *json = spec_to_json(&spec);
    if (spec_from_json(json, &back, &error))
        fail_msg("%s", error.text);
    json_t *again = spec_to_json(&back);
    assert_true(spec_digest(&spec) == spec_digest(&back) && json_equal(json, again));
    const json_t *sizes = json_object_get(json, "sizes");
    const char *field;
    json_t *value;
    json_object_foreach((json_t *)sizes, field, value)
    {
        json_t *spoilt = json_deep_copy(json);
        json_object_set_new(json_object_get(spoilt, "sizes"), field, json_real(0.5));
        assert_int_not_equal(spec_from_json(spoilt, &back, &error), 0);
        if (!strstr(error.text, "'sizes'") || !strstr(error.text, field))
            fail_msg("'%s' should name sizes and %s", error.text, field);
        json_decref(spoilt);
    }
    json_decref(again);
    json_decref(json);
}

static void json_keeps_the_sizes_of_every_rule(void **state)
{
    (void)state;
    assert_json_keeps(ADDITIVE());
    assert_json_keeps(ADDITIVE(.plain_sum = true, .bias = true));
    assert_json_keeps(CONCAT());
    assert_json_keeps(CONCAT(.combine = true, .out_dim = 3));
    assert_json_keeps(MULTI_HEAD(.layout = LAYOUT_HBSD, .scale = 0.3));
    assert_json_keeps(SELF());
    assert_json_keeps(SELF(.single = true, .D = 6, .D_v = 7, .out_dim = 0));
    assert_json_keeps(MATMUL(.broadcast = BROADCAST_B, .S_q = 3, .D = 2));
    assert_json_keeps(MATMUL(.B = 4, .semantics = SEMANTICS_DOT));
    struct problem_spec matmul = MATMUL(.S_q = 3, .D = 2);
    json_t *json = spec_to_json(&matmul), *sizes = json_object_get(json, "sizes");
    assert_string_equal(json_string_value(json_object_get(json, "layout")), "none");
    assert_true(json_is_null(json_object_get(json, "scale")));
    assert_int_equal(json_integer_value(json_object_get(sizes, "M")), 3);
    assert_int_equal(json_integer_value(json_object_get(sizes, "N")), 4);
    assert_int_equal(json_integer_value(json_object_get(sizes, "K")), 2);
    assert_null(json_object_get(sizes, "hidden"));
    json_decref(json);
    struct problem_spec usual = spec_default();
    json = spec_to_json(&usual);
    assert_true(json_is_null(json_object_get(json, "sizes")));
    json_decref(json);
}

static void ids_tell_the_sizes_of_rules_apart(void **state)
{
    (void)state;
    const struct problem_spec specs[] = {
        WITH(.B = 1),
        ADDITIVE(.B = 1),
        ADDITIVE(.hidden = 4),
        ADDITIVE(.key_dim = 5),
        ADDITIVE(.plain_sum = true),
        CONCAT(.B = 1),
        CONCAT(.key_dim = 5),
        CONCAT(.combine = true, .out_dim = 3),
        CONCAT(.combine = true, .out_dim = 4),
        MULTI_HEAD(.B = 1),
        MULTI_HEAD(.model_dim = 8),
        MULTI_HEAD(.model_dim_v = 8),
        MULTI_HEAD(.out_dim = 8),
        SELF(.B = 1),
        SELF(.input_dim = 8),
        SELF(.single = true, .D = 6, .D_v = 7),
        MATMUL(.B = 1),
        MATMUL(.broadcast = BROADCAST_A),
        MATMUL(.broadcast = BROADCAST_B),
        MATMUL(.semantics = SEMANTICS_DOT),
    };
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++)
        for (size_t j = 0; j < i; j++)
            if (spec_digest(&specs[i]) == spec_digest(&specs[j]))
                fail_msg("problems %zu and %zu have one digest", i, j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_refuse_what_they_do_not_have),
        cmocka_unit_test(rules_resolve),
        cmocka_unit_test(json_keeps_the_sizes_of_every_rule),
        cmocka_unit_test(ids_tell_the_sizes_of_rules_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
