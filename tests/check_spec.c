/* SPDX-License-Identifier: Apache-2.0
 *
 * Specs: what is refused, how they resolve to diagonals, lengths and window ends, their JSON form and identity.
 */
#include "spec_words.h"

#include "harness/intern.h"

static void nonsense_is_refused(void **state)
{
    (void)state;
    accept(spec_default());
    accept(WITH(.B = 0, .S_q = 0, .S_kv = 0));
    refuse(WITH(.H = 3, .H_kv = 2), "H 3 is not a multiple of kv-heads 2");
    refuse(WITH(.H = 0), "H 0");
    refuse(WITH(.H_kv = 0), "kv-heads 0");
    refuse(WITH(.D = 0), "D 0");
    refuse(WITH(.D_v = 0), "value-dim 0");
    refuse(WITH(.B = -1), "B -1");
    refuse(WITH(.B = INT64_C(1) << 40), "B 1099511627776");
    refuse(WITH(.S_q = INT64_MAX), "q-len");
    refuse(WITH(.S_q = INT64_C(1) << 40, .D = INT64_C(1) << 40), "addressed");
    refuse(WITH(.S_q = INT64_C(1) << 30, .S_kv = INT64_C(1) << 30, .bias = true), "addressed");
    accept(WITH(.S_q = INT64_C(1) << 30, .S_kv = INT64_C(1) << 30));
    accept(WITH(.B = 2, .kv_lengths = "8:0"));
    refuse(WITH(.B = 2, .kv_lengths = "8"), "1 numbers for B 2");
    refuse(WITH(.B = 2, .kv_lengths = "8:9"), "9 is more than kv-len 8");
    refuse(WITH(.B = 2, .kv_lengths = "8:x"), "entry 2");
    refuse(WITH(.B = 2, .kv_lengths = "8:"), "entry 2");
    refuse(WITH(.kv_lengths = "99999999999999999999"), "entry 1");
    refuse(WITH(.window = true, .window_left = 4, .window_right = WINDOW_NOT_GIVEN), "causal");
    accept(WITH(.window = true, .window_left = 4, .window_right = WINDOW_NOT_GIVEN, .causal = CAUSAL_TOP_LEFT));
    refuse(WITH(.window = true, .window_left = -2, .window_right = 0), "left -2");
    refuse(WITH(.window = true, .window_left = 0, .window_right = -3), "right -3");
    refuse(WITH(.mask_share = 1.5), "random:1.5");
    refuse(WITH(.mask_share = NAN), "random");
    refuse(WITH(.softcap = -1), "softcap -1");
    refuse(WITH(.softcap = NAN), "softcap");
    refuse(WITH(.softcap = 1e-60), "softcap 1e-60");
    refuse(WITH(.scale = 1e60), "scale 1e+60");
    refuse(WITH(.alias = ALIAS_KV, .D_v = 5), "value-dim");
    refuse(WITH(.alias = ALIAS_QKV, .H = 2), "kv-heads");
    refuse(WITH(.alias = ALIAS_QKV, .S_q = 2), "q-len");
    accept(WITH(.alias = ALIAS_QKV));
    struct problem_spec zero = WITH(.S_q = 0);
    struct error error;
    assert_int_not_equal(spec_validate(&zero, false, &error), 0);
}

static void diagonals_follow_the_alignment(void **state)
{
    (void)state;
    int64_t kv_len[2], diag[2];
    struct attn_problem p = resolve(WITH(.B = 2, .S_q = 2, .S_kv = 5), kv_len, diag);
    assert_true(p.left == INT64_MAX && p.right == INT64_MAX && !p.diag && !p.kv_len);
    p = resolve(WITH(.B = 2, .S_q = 2, .S_kv = 5, .causal = CAUSAL_TOP_LEFT), kv_len, diag);
    assert_true(p.left == INT64_MAX && p.right == 0 && !p.diag);
    p = resolve(WITH(.B = 2, .S_q = 2, .S_kv = 5, .causal = CAUSAL_BOTTOM_RIGHT), kv_len, diag);
    assert_true(p.diag == diag && diag[0] == 3 && diag[1] == 3 && p.right == 0);
    p = resolve(WITH(.B = 2, .S_q = 5, .S_kv = 2, .causal = CAUSAL_BOTTOM_RIGHT), kv_len, diag);
    assert_true(p.diag == diag && diag[0] == -3);
    p = resolve(WITH(.B = 2, .S_q = 5, .S_kv = 5, .causal = CAUSAL_BOTTOM_RIGHT), kv_len, diag);
    assert_null(p.diag);
    p = resolve(WITH(.B = 2, .S_q = 2, .S_kv = 5, .kv_lengths = "4:1", .causal = CAUSAL_BOTTOM_RIGHT_VALID), kv_len,
                diag);
    assert_true(p.kv_len == kv_len && kv_len[0] == 4 && kv_len[1] == 1);
    assert_true(p.diag == diag && diag[0] == 2 && diag[1] == -1);
}

static void window_ends_resolve(void **state)
{
    (void)state;
    int64_t kv_len[1], diag[1];
    struct attn_problem p = resolve(WITH(.window = true, .window_left = 3, .window_right = 2), kv_len, diag);
    assert_true(p.left == 3 && p.right == 2);
    p = resolve(WITH(.window = true, .window_left = WINDOW_OPEN, .window_right = 2), kv_len, diag);
    assert_true(p.left == INT64_MAX && p.right == 2);
    p = resolve(WITH(.window = true, .window_left = 3, .window_right = WINDOW_OPEN), kv_len, diag);
    assert_true(p.left == 3 && p.right == INT64_MAX);
    p = resolve(WITH(.window = true, .window_left = 3, .window_right = WINDOW_NOT_GIVEN, .causal = CAUSAL_TOP_LEFT),
                kv_len, diag);
    assert_true(p.left == 3 && p.right == 0);
    p = resolve(WITH(.window = true, .window_left = 3, .window_right = 7, .causal = CAUSAL_TOP_LEFT), kv_len, diag);
    assert_true(p.left == 3 && p.right == 0);
}

static void ragged_lengths_follow_the_seed(void **state)
{
    (void)state;
    enum { B = 64, S_KV = 9 };
    int64_t one[B], again[B], other[B], diag[B], seen[S_KV + 1] = {0};
    resolve(WITH(.B = B, .S_kv = S_KV, .kv_lengths = "ragged", .seed = 3), one, diag);
    resolve(WITH(.B = B, .S_kv = S_KV, .kv_lengths = "ragged", .seed = 3), again, diag);
    resolve(WITH(.B = B, .S_kv = S_KV, .kv_lengths = "ragged", .seed = 4), other, diag);
    assert_memory_equal(one, again, sizeof one);
    assert_memory_not_equal(one, other, sizeof one);
    for (int b = 0; b < B; b++) {
        assert_in_range(one[b], 1, S_KV);
        seen[one[b]]++;
    }
    assert_true(seen[1] > 0 && seen[S_KV] > 0);
}

static void flags_and_scale_resolve(void **state)
{
    (void)state;
    int64_t kv_len[1], diag[1];
    struct attn_problem p = resolve(WITH(.D = 16, .weights = true, .alias = ALIAS_KV), kv_len, diag);
    assert_true(p.scale == 0.25f && p.flags == (ATTN_FLAG_WEIGHTS | ATTN_FLAG_ALIASED));
    assert_int_equal(p.struct_size, sizeof p);
    p = resolve(WITH(.scale = 2), kv_len, diag);
    assert_true(p.scale == 2 && p.flags == 0);
}

static void json_keeps_everything(void **state)
{
    (void)state;
    struct problem_spec spec =
        WITH(.B = 2, .H = 6, .H_kv = 3, .S_q = 7, .S_kv = 9, .D = 80, .D_v = 33, .dtype = ATTN_BF16,
             .layout = LAYOUT_HBSD, .causal = CAUSAL_BOTTOM_RIGHT_VALID, .fill = FILL_DOMINANT, .kv_lengths = "9:4",
             .mask_share = 1.0 / 3, .bias = true, .weights = true, .window = true, .window_left = 5, .window_right = 0,
             .softcap = 0.1, .seed = 77);
    struct problem_spec back;
    struct error error;
    json_t *json = spec_to_json(&spec);
    char *text = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_t *parsed = json_loads(text, 0, NULL);
    assert_int_equal(spec_from_json(parsed, &back, &error), 0);
    assert_true(spec_digest(&spec) == spec_digest(&back));
    assert_true(back.mask_share == spec.mask_share && back.softcap == spec.softcap && back.window_left == 5);
    assert_true(back.D_v == 33 && back.dtype == ATTN_BF16 && back.weights && back.bias && back.seed == 77);
    json_t *again = spec_to_json(&back);
    assert_true(json_equal(json, again));
    json_decref(again);
    json_decref(parsed);
    json_decref(json);
    free(text);
}

static void json_of_another_kind_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *field, *value;
    } faults[] = {{"rule", "\"x\""},       {"dtype", "3"},       {"B", "\"1\""},          {"D", "1.5"},
                  {"bias", "1"},           {"mask", "\"some\""}, {"mask", "\"random:\""}, {"window", "\"3\""},
                  {"window", "\"1:2:3\""}, {"softcap", "\"1\""}, {"kv_lengths", "null"},  {"seed", "null"}};
    struct problem_spec spec = spec_default(), back;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        struct error error = {0};
        json_t *json = spec_to_json(&spec);
        json_object_set_new(json, faults[i].field, json_loads(faults[i].value, JSON_DECODE_ANY, NULL));
        assert_int_not_equal(spec_from_json(json, &back, &error), 0);
        if (!strstr(error.text, faults[i].field))
            fail_msg("'%s' should name %s", error.text, faults[i].field);
        json_object_del(json, faults[i].field);
        if (strcmp(faults[i].field, "mask") != 0 && strcmp(faults[i].field, "window") != 0)
            assert_int_not_equal(spec_from_json(json, &back, &error), 0);
        json_decref(json);
    }
}

static struct point usual_point(void)
{
    return (struct point){.spec = WITH(.seed = 1),
                          .kernel = "naive",
                          .source = "builtin",
                          .schedule_requested = "auto",
                          .placement = "compact",
                          .threads = 2};
}

/* Each field that was asked for makes another id; what is found out later doesn't. */
static void ids_tell_points_apart(void **state)
{
    (void)state;
    struct point points[32];
    int n = 0;
    for (int i = 0; i < 32; i++)
        points[i] = usual_point();
    points[++n].spec.B = 2;
    points[++n].spec.H = 2;
    points[++n].spec.S_q = 9;
    points[++n].spec.S_kv = 9;
    points[++n].spec.D = 5;
    points[++n].spec.D_v = 5;
    points[++n].spec.dtype = ATTN_F16;
    points[++n].spec.layout = LAYOUT_BSHD;
    points[++n].spec.causal = CAUSAL_TOP_LEFT;
    points[++n].spec.alias = ALIAS_KV;
    points[++n].spec.fill = FILL_HUGE;
    points[++n].spec.kv_lengths = "ragged";
    points[++n].spec.mask_share = 0.5;
    points[++n].spec.bias = true;
    points[++n].spec.weights = true;
    points[++n].spec.softcap = 50;
    points[++n].spec.scale = 1;
    points[++n].spec.seed = 2;
    points[++n].spec.window = true;
    points[n].spec.window_left = 4;
    points[++n].spec.window = true;
    points[n].spec.window_left = 5;
    points[++n].kernel = "tiled";
    points[++n].source = "plugin:x.so";
    points[++n].schedule_requested = "bh";
    points[++n].placement = "scatter";
    points[++n].threads = 1;
    points[++n].cache = CACHE_COLD;
    for (int i = 0; i <= n; i++)
        for (int j = 0; j < i; j++)
            if (point_digest(&points[i]) == point_digest(&points[j]))
                fail_msg("points %d and %d have one id", i, j);
    struct point same = usual_point();
    same.skip_reason = "no";
    same.spec.scale = 0.5; /* what it is by default */
    assert_string_equal(point_id(&same), point_id(&points[0]));
    assert_int_equal(strlen(point_id(&same)), 16);
}

/* Journals of earlier builds hold these ids: rules that came later must not change them. */
static void ids_of_scaled_dot_product_stay(void **state)
{
    (void)state;
    struct point point = usual_point();
    point.spec = WITH(.S_q = 16, .S_kv = 16, .D = 64, .D_v = 64, .seed = 1);
    assert_string_equal(point_id(&point), "096eb28d64b62527");
    point.spec =
        WITH(.B = 2, .H = 4, .H_kv = 2, .S_q = 3, .S_kv = 9, .D = 8, .D_v = 5, .window = true, .window_left = 4,
             .window_right = 2, .mask_share = 0.5, .scale = 0.3, .softcap = 3, .kv_lengths = "ragged", .bias = true,
             .weights = true, .dtype = ATTN_BF16, .layout = LAYOUT_HBSD, .seed = 1);
    assert_string_equal(point_id(&point), "a3de916f21359857");
}

static void repro_is_minimal_and_quoted(void **state)
{
    (void)state;
    struct point point = usual_point();
    char *text = point_repro(&point);
    assert_string_equal(text, "attnbench run -B 1 -H 1 -S 8 -D 4 --kernel naive --threads 2");
    free(text);
    point.spec = WITH(.H = 4, .H_kv = 2, .S_q = 1, .D_v = 3, .causal = CAUSAL_BOTTOM_RIGHT, .window = true,
                      .window_left = WINDOW_OPEN, .window_right = WINDOW_NOT_GIVEN, .mask_share = 0.1, .bias = true,
                      .softcap = 50, .scale = -0.3, .seed = 9);
    point.placement = "M:it's";
    point.schedule_requested = "bh";
    point.cache = CACHE_COLD;
    text = point_repro(&point);
    assert_string_equal(text, "attnbench run -B 1 -H 4 --kv-heads 2 --q-len 1 --kv-len 8 -D 4 --value-dim 3 "
                              "--causal bottom_right --mask random:0.1 --bias --window=-1:0 --softcap 50 --scale=-0.3 "
                              "--seed 9 --cache cold --kernel naive --schedule bh --threads 2 --place 'M:it'\\''s'");
    free(text);
}

static void names_go_both_ways(void **state)
{
    (void)state;
    for (int i = ATTN_SCALED_DOT_PRODUCT; i <= ATTN_MATMUL; i++)
        assert_int_equal(rule_from_name(rule_name((enum attn_rule)i)), i);
    for (int i = CAUSAL_NONE; i <= CAUSAL_BOTTOM_RIGHT_VALID; i++)
        assert_int_equal(causal_from_name(causal_name((enum causal)i)), i);
    for (int i = FILL_NORMAL; i <= FILL_SUBNORMAL; i++)
        assert_int_equal(fill_from_name(fill_name((enum fill)i)), i);
    for (int i = BROADCAST_NONE; i <= BROADCAST_B; i++)
        assert_int_equal(broadcast_from_name(broadcast_name((enum broadcast)i)), i);
    for (int i = SEMANTICS_MATMUL; i <= SEMANTICS_DOT; i++)
        assert_int_equal(semantics_from_name(semantics_name((enum semantics)i)), i);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(dtype_from_name(dtype_name((enum attn_dtype)i)), i);
        assert_int_equal(layout_from_name(layout_name((enum layout)i)), i);
        assert_int_equal(alias_from_name(alias_name((enum alias)i)), i);
    }
    assert_int_equal(cache_from_name("cold"), CACHE_COLD);
    assert_int_equal(dtype_from_name("F32"), -1);
    assert_int_equal(dtype_from_name(""), -1);
    assert_int_equal(dtype_bytes(ATTN_F32), 4);
    assert_int_equal(dtype_bytes(ATTN_F16), 2);
    char text[32];
    assert_string_equal(number_text(0.1, text), "0.1");
    assert_true(strtod(number_text(1.0 / 3, text), NULL) == 1.0 / 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(diagonals_follow_the_alignment),
        cmocka_unit_test(window_ends_resolve),
        cmocka_unit_test(ragged_lengths_follow_the_seed),
        cmocka_unit_test(flags_and_scale_resolve),
        cmocka_unit_test(json_keeps_everything),
        cmocka_unit_test(json_of_another_kind_is_refused),
        cmocka_unit_test(ids_tell_points_apart),
        cmocka_unit_test(ids_of_scaled_dot_product_stay),
        cmocka_unit_test(repro_is_minimal_and_quoted),
        cmocka_unit_test(names_go_both_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
