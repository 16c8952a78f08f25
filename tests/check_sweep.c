/* SPDX-License-Identifier: Apache-2.0
 *
 * From flags and configs to points: defaults, what overrides what, order, counts, skips, errors. Machines are
 * synthetic.
 */
#include "plan_words.h"

#include "harness/registry.h"

static void defaults_are_the_contract_s(void **state)
{
    (void)state;
    struct plan plan;
    size_t kernels = 0;
    for (const char *const *name = registry_names(); *name; name++)
        kernels += registry_is_default(*name) && registry_does(*name, ATTN_SCALED_DOT_PRODUCT);
    PLAN(&plan, "run", "-B", "1");
    assert_int_equal(plan.count, kernels);
    const struct point *p = &plan.points[0];
    assert_true(p->spec.B == 1 && p->spec.H == 1 && p->spec.H_kv == 1 && p->spec.S_q == 512 && p->spec.S_kv == 512);
    assert_true(p->spec.D == 64 && p->spec.D_v == 64 && p->spec.dtype == ATTN_F32 && p->spec.layout == LAYOUT_BHSD);
    assert_true(p->spec.causal == CAUSAL_NONE && p->spec.mask_share < 0 && !p->spec.window && p->spec.seed == 1);
    assert_true(p->cache == CACHE_WARM && p->threads == topology_max_threads(&topology));
    assert_string_equal(p->kernel, attn_registry[0]->name);
    assert_string_equal(p->placement, "compact");
    assert_string_equal(p->schedule_requested, "auto");
    assert_non_null(p->cpus);
    assert_true(plan.effort.min_time_s == 0.5 && plan.effort.point_timeout_s == 60 && plan.effort.launches == 1);
    assert_null(plan.name);
    plan_release(&plan);
}

/* Done-means 3 of the first issue: each combination once, the points of a problem side by side. */
static void every_combination_once(void **state)
{
    (void)state;
    struct plan plan;
    PLAN(&plan, "run", "--kernel", "naive,tiled", "-B", "1,2", "-H", "4", "-S", "64-512x2", "-D", "64,80", "--threads",
         "1,2", "--causal", "none,bottom_right");
    assert_int_equal(plan.count, 2 * 2 * 4 * 2 * 2 * 2);
    size_t changes = 0;
    for (size_t i = 0; i < plan.count; i++) {
        changes += i == 0 || spec_digest(&plan.points[i].spec) != spec_digest(&plan.points[i - 1].spec);
        for (size_t j = 0; j < i; j++)
            assert_true(point_digest(&plan.points[i]) != point_digest(&plan.points[j]));
        assert_non_null(plan.points[i].cpus);
    }
    assert_int_equal(changes, 2 * 4 * 2 * 2);
    /* B varies slowest, then S, D, causal; within a problem threads, then kernels. */
    assert_true(plan.points[0].spec.causal == CAUSAL_NONE && plan.points[4].spec.causal == CAUSAL_BOTTOM_RIGHT);
    assert_true(plan.points[8].spec.D == 80 && plan.points[16].spec.S_q == 128 && plan.points[64].spec.B == 2);
    assert_true(plan.points[0].threads == 1 && plan.points[2].threads == 2);
    assert_string_equal(plan.points[0].kernel, "naive");
    assert_string_equal(plan.points[1].kernel, "tiled");
    plan_release(&plan);
}

static void sizes_follow_each_other(void **state)
{
    (void)state;
    struct plan plan;
    PLAN(&plan, "run", "-S", "100", "--q-len", "1", "-H", "6", "--kv-heads", "1,3", "-D", "32", "--kernel", "naive");
    assert_int_equal(plan.count, 2);
    assert_true(plan.points[0].spec.S_q == 1 && plan.points[0].spec.S_kv == 100 && plan.points[0].spec.D_v == 32);
    assert_true(plan.points[0].spec.H_kv == 1 && plan.points[1].spec.H_kv == 3);
    plan_release(&plan);
    /* Where both lengths are given, S has nothing left to say. */
    PLAN(&plan, "run", "-S", "1-9+1", "--q-len", "2", "--kv-len", "3", "--kernel", "naive");
    assert_int_equal(plan.count, 1);
    plan_release(&plan);
}

static void equal_points_are_planned_once(void **state)
{
    (void)state;
    struct plan plan;
    PLAN(&plan, "run", "-S", "64,64", "--threads", "8,max", "--kernel", "naive,na*", "--window", "4,4:0", "--causal",
         "top_left");
    assert_int_equal(plan.count, 1);
    assert_true(plan.points[0].spec.window_left == 4 && plan.points[0].spec.window_right == 0);
    plan_release(&plan);
}

static void what_cannot_run_is_planned_with_its_reason(void **state)
{
    (void)state;
    struct plan plan;
    PLAN(&plan, "run", "-S", "8", "--kernel", "naive", "--threads", "1,2,17", "--schedule", "serial");
    assert_int_equal(plan.count, 3);
    assert_null(plan.points[0].skip_reason);
    assert_string_equal(plan.points[1].skip_reason, "serial uses one thread");
    assert_int_equal(plan.points[2].threads, 17);
    assert_non_null(strstr(plan.points[2].skip_reason, "17"));
    assert_null(plan.points[2].cpus);
    plan_release(&plan);
    PLAN(&plan, "run", "-S", "8", "--kernel", "avx512_bf16");
    assert_true(strcmp(plan.points[0].skip_reason, "avx512_bf16 does not do dtype f32") == 0 ||
                strncmp(plan.points[0].skip_reason, "this machine lacks ", 19) == 0);
    plan_release(&plan);
    PLAN(&plan, "run", "-S", "8", "--kernel", "naive", "--place", "core:1,none,0,2-3");
    assert_int_equal(plan.count, 3);
    assert_int_equal(plan.points[0].threads, 2);
    assert_null(plan.points[1].cpus);
    assert_string_equal(plan.points[2].placement, "0,2-3");
    assert_int_equal(plan.points[2].threads, 3);
    assert_int_equal(plan.points[2].cpus[1], 2);
    plan_release(&plan);
}

static void models_give_sizes_that_flags_override(void **state)
{
    (void)state;
    struct plan plan;
    PLAN(&plan, "run", "llama-3-8b", "--decode", "--kernel", "naive");
    const struct problem_spec *s = &plan.points[0].spec;
    assert_true(s->H == 32 && s->H_kv == 8 && s->D == 128 && s->D_v == 128);
    assert_true(s->S_q == 1 && s->S_kv == 2048 && s->causal == CAUSAL_BOTTOM_RIGHT);
    plan_release(&plan);
    PLAN(&plan, "run", "--model", "mistral-7b,gemma-2-9b", "-S", "1k", "--kernel", "naive");
    assert_int_equal(plan.count, 2);
    s = &plan.points[0].spec;
    assert_true(s->S_q == 1024 && s->S_kv == 1024 && s->window && s->window_left == 4096 && s->window_right == 0);
    s = &plan.points[1].spec;
    assert_true(s->D == 256 && s->softcap == 50 && !s->window && s->H_kv == 8);
    plan_release(&plan);
    PLAN(&plan, "run", "gpt2", "-H", "2", "-D", "32", "--decode=true,false", "--kernel", "naive", "-S", "64");
    assert_int_equal(plan.count, 2);
    s = &plan.points[0].spec;
    assert_true(s->H_kv == 2 && s->D_v == 32 && s->S_q == 1 && s->S_kv == 64);
    assert_int_equal(plan.points[1].spec.S_q, 64);
    plan_release(&plan);
    REFUSE("bert-base has no decode phase", "run", "bert-base", "--decode");
    REFUSE("unknown model 'llama-9'", "run", "llama-9");
}

static void mistakes_are_named(void **state)
{
    (void)state;
    REFUSE("--kernel: no kernel matches 'frobnicate'", "run", "-S", "8", "--kernel", "naive,frobnicate");
    REFUSE("unknown flag '--frobnicate'", "run", "--frobnicate", "3");
    REFUSE("unknown flag '--frobnicate'", "run", "gpt2", "--quiet", "-B", "1k", "--frobnicate");
    REFUSE("--kernel: needs a value", "run", "-S", "8", "--kernel");
    REFUSE("--wide: takes no value", "run", "--wide=3");
    REFUSE("-S: '0' is less than 1", "run", "-S", "0");
    REFUSE("--kv-len: '0' is less than 1", "run", "--kv-len", "0,8");
    REFUSE("-S: 'abc'", "run", "-S", "abc");
    REFUSE("-B: '-1'", "run", "-B", "-1");
    REFUSE("-S: an empty value", "run", "-S", "8,");
    REFUSE("H 12 is not a multiple of kv-heads 8", "run", "-H", "8,12", "--kv-heads", "8");
    REFUSE("never ends", "run", "-S", "128-4096x1");
    REFUSE("1000000000000 points", "run", "--kernel", "naive", "-S", "1-1000000+1", "-B", "1-1000000+1");
    REFUSE("1e+30 points", "run", "--kernel", "naive", "-S", "1-1000000+1", "-B", "1-1000000+1", "-H", "1-1000000+1",
           "-D", "1-1000000+1", "--value-dim", "1-1000000+1");
    REFUSE("window 4 has one number", "run", "-S", "8", "--window", "4");
    REFUSE("--window: '-2'", "run", "-S", "8", "--window", "-2:0");
    REFUSE("--schedule: unknown schedule 'tuesdays'", "run", "-S", "8", "--schedule", "tuesdays");
    REFUSE("--place: placement 'core:99'", "run", "-S", "8", "--place", "core:99");
    REFUSE("--hidden: rule scaled_dot_product has no hidden", "run", "--hidden", "8");
    REFUSE("--rule: 'thumb' is not a rule", "run", "--rule", "thumb");
    REFUSE("no config 'frobnicate'", "run", "--config", "frobnicate");
    REFUSE("given twice", "run", "--config", "quick", "--config", "ci");
    REFUSE("--min-time: '0s'", "run", "--min-time", "0s");
    REFUSE("unknown flag '--min-time'", "verify", "--min-time", "1s");
}

static void verify_takes_empty_problems(void **state)
{
    (void)state;
    struct plan plan;
    PLAN(&plan, "verify", "-S", "0,1", "-B", "0", "--kernel", "naive");
    assert_int_equal(plan.count, 2);
    plan_release(&plan);
    REFUSE("-D: '0' is less than 1", "verify", "-D", "0");
}

static void flags_override_sweeps_override_defaults(void **state)
{
    (void)state;
    struct plan plan;
    write_config("name: trial\n"
                 "description: two sweeps\n"
                 "defaults: {kernel: naive, H: [1, 2], D: 16, seed: 7, min-time: 3s, threads: 1}\n"
                 "sweeps:\n"
                 "  - {q-len: 1, kv-len: 32, H: 4}\n"
                 "  - {S: 64, model: gpt2, decode: true}\n"
                 "  - {S: 8}\n");
    PLAN(&plan, "run", "--config", path);
    assert_string_equal(plan.name, "trial");
    assert_true(plan.seed == 7 && plan.effort.min_time_s == 3);
    assert_int_equal(plan.count, 4);
    assert_true(plan.points[0].spec.S_q == 1 && plan.points[0].spec.H == 4 && plan.points[0].spec.D == 16);
    /* The sweep's model stands above the defaults, below the sweep's own keys. */
    assert_true(plan.points[1].spec.H == 12 && plan.points[1].spec.D == 64 && plan.points[1].spec.S_kv == 64);
    assert_true(plan.points[2].spec.H == 1 && plan.points[3].spec.H == 2 && plan.points[3].spec.seed == 7);
    plan_release(&plan);
    /* -S sets both lengths, those of the config too; an equal point of a later sweep is planned once. */
    PLAN(&plan, "run", "--config", path, "-S", "16", "-D", "8", "-H", "2", "--seed", "9", "--min-time", "1s");
    assert_int_equal(plan.count, 2);
    assert_true(plan.points[0].spec.S_q == 16 && plan.points[0].spec.S_kv == 16 && plan.points[0].spec.D == 8);
    assert_true(plan.points[1].spec.S_q == 1 && plan.points[1].spec.S_kv == 16);
    assert_true(plan.seed == 9 && plan.effort.min_time_s == 1);
    plan_release(&plan);
    PLAN(&plan, "run", "--config", path, "--model", "bert-base", "--decode=false");
    assert_int_equal(plan.count, 1);
    assert_true(plan.points[0].spec.H == 12 && plan.points[0].spec.S_q == 512 && plan.points[0].spec.D == 64);
    plan_release(&plan);
}

static void points_of_one_problem_stand_together(void **state)
{
    (void)state;
    struct plan plan;
    write_config("sweeps:\n"
                 "  - {S: [8, 16], kernel: naive, threads: 1}\n"
                 "  - {S: [16, 8], kernel: [naive, tiled], threads: [1, 2]}\n");
    PLAN(&plan, "run", "--config", path);
    assert_int_equal(plan.count, 8);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(plan.points[i].spec.S_q, i < 4 ? 8 : 16);
    plan_release(&plan);
}

static void mistakes_in_configs_name_the_place(void **state)
{
    (void)state;
    write_config("sweeps:\n  - {S: 8}\n  - H: [8, 12]\n    kv-heads: 8\n");
    REFUSE(".yaml:3:5: H 12 is not a multiple of kv-heads 8", "run", "--config", path);
    write_config("sweeps:\n  - S: [8, 0]\n");
    REFUSE(".yaml:2:12: key 'S': '0' is less than 1", "run", "--config", path);
    write_config("sweeps:\n  - kernel: [naive, zz*]\n");
    REFUSE(".yaml:2:21: key 'kernel': no kernel matches 'zz*'", "run", "--config", path);
    write_config("sweeps:\n  - place: core:99\n");
    REFUSE(".yaml:2:12: key 'place': placement 'core:99'", "run", "--config", path);
}

static void quick_is_what_run_means(void **state)
{
    (void)state;
    struct plan plan;
    PLAN(&plan, "run");
    assert_string_equal(plan.name, "quick");
    size_t count = plan.count;
    plan_release(&plan);
    PLAN(&plan, "run", "--kernel", "naive", "--threads", "1");
    assert_string_equal(plan.name, "quick");
    assert_true(plan.count > 1 && plan.count < count);
    plan_release(&plan);
}

static void every_config_plans(void **state)
{
    (void)state;
    static const char *const names[] = {"quick", "models", "ci", "full", "masks", "rules", "layers", "seeds"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct plan plan;
        PLAN(&plan, "run", "--config", names[i]);
        assert_string_equal(plan.name, names[i]);
        size_t runs = 0;
        for (size_t p = 0; p < plan.count; p++)
            runs += !plan.points[p].skip_reason;
        assert_true(runs > 0);
        plan_release(&plan);
    }
}

static void repro_lines_plan_the_same_point(void **state)
{
    (void)state;
    struct plan plan;
    PLAN(&plan, "run", "--config", "masks", "--kernel", "naive", "--threads", "1,2", "--place", "scatter,0,2-5");
    for (size_t i = 0; i < plan.count; i++)
        comes_back(&plan.points[i]);
    plan_release(&plan);
}

static void fields_of_the_command_line(void **state)
{
    (void)state;
    char *argv[] = {"run", "--resume", "r.jsonl",       "--retry-failed", "-o",
                    "csv", "-q",       "--color=never", "--dry-run",      NULL};
    struct options options;
    struct error error;
    bool done;
    assert_int_equal(options_parse("run", 9, argv, &options, &done, &error), 0);
    assert_true(options.request_is_default && options.retry_failed && options.quiet && options.dry_run && !done);
    assert_true(!options.wide && options.color == COLOR_NEVER && options.cases == -1 && !options.config_name);
    assert_string_equal(options.resume, "r.jsonl");
    assert_string_equal(options.formats, "csv");
    options_release(&options);
    char *verify[] = {"verify", "--cases", "9", "--case", "d", "-S", "4", NULL};
    assert_int_equal(options_parse("verify", 7, verify, &options, &done, &error), 0);
    assert_true(options.cases == 9 && !options.request_is_default);
    assert_string_equal(options.case_dir, "d");
    options_release(&options);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_the_contract_s),
        cmocka_unit_test(every_combination_once),
        cmocka_unit_test(sizes_follow_each_other),
        cmocka_unit_test(equal_points_are_planned_once),
        cmocka_unit_test(what_cannot_run_is_planned_with_its_reason),
        cmocka_unit_test(models_give_sizes_that_flags_override),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(verify_takes_empty_problems),
        cmocka_unit_test(flags_override_sweeps_override_defaults),
        cmocka_unit_test(points_of_one_problem_stand_together),
        cmocka_unit_test(mistakes_in_configs_name_the_place),
        cmocka_unit_test(quick_is_what_run_means),
        cmocka_unit_test(every_config_plans),
        cmocka_unit_test(repro_lines_plan_the_same_point),
        cmocka_unit_test(fields_of_the_command_line),
    };
    return cmocka_run_group_tests(tests, prepare, clean_up);
}
