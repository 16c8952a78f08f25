/* SPDX-License-Identifier: Apache-2.0
 *
 * Case folders of the other rules: what is written is read back to the same operands, parameters and expectations; a
 * parameter that is missing, a size that does not match and a layer without units are named in one line.
 */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "harness/case_folder.h"
#include "harness/intern.h"
#include "harness/oracle.h"

static char directory[] = P_tmpdir "/attnbench-rules-XXXXXX";
static char json_path[sizeof directory + 16];

static int make_directory(void **state)
{
    (void)state;
    if (!mkdtemp(directory))
        return -1;
    snprintf(json_path, sizeof json_path, "%s/case.json", directory);
    return 0;
}

static int remove_directory(void **state)
{
    (void)state;
    DIR *folder = opendir(directory);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char path[400];
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        unlink(path);
    }
    if (folder)
        closedir(folder);
    return rmdir(directory);
}

static struct problem_spec small(enum attn_rule rule)
{
    struct problem_spec spec = spec_default();
    spec.rule = rule;
    spec.B = 2;
    spec.S_q = 5;
    spec.S_kv = 7;
    spec.D = 6;
    spec.D_v = 3;
    switch (rule) {
    case ATTN_ADDITIVE:
        spec.H = 4;
        spec.H_kv = 2;
        spec.key_dim = 8;
        spec.hidden = 9;
        break;
    case ATTN_CONCAT:
        spec.key_dim = 8;
        break;
    case ATTN_SELF_ATTENTION:
        spec.S_kv = 5;
        spec.input_dim = 10;
        /* fallthrough */
    case ATTN_MULTI_HEAD:
        spec.H = 4;
        spec.H_kv = 2;
        spec.model_dim = 11;
        spec.model_dim_v = 12;
        spec.out_dim = 13;
        break;
    default:
        spec.S_kv = spec.D_v;
    }
    return spec;
}

static void make_operands(const struct problem_spec *spec, struct operands *operands)
{
    struct error error;
    if (spec_validate(spec, true, &error) || operands_create(spec, MEMORY_PLAIN, operands, &error))
        fail_msg("%s", error.text);
    operands_fill(operands, 1, 1);
}

static void write_case(const struct problem_spec *spec)
{
    struct operands operands;
    struct error error;
    make_operands(spec, &operands);
    if (case_folder_write(directory, &operands, "", &error) < 0)
        fail_msg("%s", error.text);
    operands_destroy(&operands);
}

static void assert_same_block(const struct memory_block *a, const struct memory_block *b)
{
    assert_int_equal(a->bytes, b->bytes);
    if (a->bytes)
        assert_memory_equal(a->data, b->data, a->bytes);
}

/* Expectations in the order of out and of weights are those of the oracle's rows. */
static void assert_expected(const struct operands *operands, const struct case_folder *folder)
{
    struct oracle oracle;
    struct error error;
    assert_int_equal(oracle_create(&operands->problem, &operands->args, 1, INFINITY, 1, &oracle, &error), 0);
    const int64_t rows = operands->problem.S_q, heads = oracle.weight_heads, S_kv = oracle.S_kv;
    assert_true(oracle.full && folder->expect_out);
    for (int64_t r = 0; r < oracle.rows; r++) {
        int64_t row = (oracle.b[r] * oracle.out_heads + oracle.h[r]) * rows + oracle.i[r];
        for (int64_t d = 0; d < oracle.D_v; d++)
            assert_true(folder->expect_out[row * oracle.D_v + d] == oracle.out[r * oracle.D_v + d]);
        for (int64_t w = 0; oracle.weights && w < heads; w++) {
            row = (oracle.b[r] * operands->problem.H + oracle.h[r] * heads + w) * rows + oracle.i[r];
            assert_memory_equal(folder->expect_weights + row * S_kv, oracle.weights + (r * heads + w) * S_kv,
                                (size_t)S_kv * sizeof(double));
        }
    }
    assert_int_equal(folder->expect_weights != NULL, oracle.weights != NULL);
    oracle_destroy(&oracle);
}

static void assert_reads_back(struct problem_spec spec)
{
    struct operands operands;
    struct case_folder folder;
    struct error error;
    write_case(&spec);
    if (case_folder_read(directory, &folder, &error) < 0)
        fail_msg("%s: %s", rule_name(spec.rule), error.text);
    make_operands(&spec, &operands);
    assert_same_block(&operands.q, &folder.operands.q);
    if (spec.alias != ALIAS_QKV)
        assert_same_block(&operands.k, &folder.operands.k);
    if (spec.alias == ALIAS_NONE)
        assert_same_block(&operands.v, &folder.operands.v);
    assert_same_block(&operands.bias, &folder.operands.bias);
    assert_same_block(&operands.mask, &folder.operands.mask);
    assert_int_equal(operands.params, folder.operands.params);
    for (int p = 0; p < operands.params; p++)
        assert_same_block(&operands.param_block[p], &folder.operands.param_block[p]);
    const struct attn_problem *a = &operands.problem, *b = &folder.operands.problem;
    assert_int_equal(a->flags & ~ATTN_FLAG_ALIASED, b->flags);
    assert_int_equal(operands.args.out.data != NULL, folder.operands.args.out.data != NULL);
    assert_int_equal(operands.spec.layout, folder.operands.spec.layout);
    assert_int_equal(operands.spec.plain_sum, folder.operands.spec.plain_sum);
    const struct problem_spec *s = &folder.operands.spec;
    assert_true(s->hidden == spec.hidden && s->key_dim == spec.key_dim && s->out_dim == spec.out_dim);
    assert_true(s->model_dim == spec.model_dim && s->model_dim_v == spec.model_dim_v);
    assert_true(s->input_dim == spec.input_dim && s->D == spec.D && s->D_v == spec.D_v);
    assert_expected(&operands, &folder);
    case_folder_release(&folder);
    operands_destroy(&operands);
}

static void what_is_written_is_read_back(void **state)
{
    (void)state;
    for (int rule = ATTN_ADDITIVE; rule <= ATTN_SELF_ATTENTION; rule++)
        for (int dtype = ATTN_F32; dtype <= ATTN_BF16; dtype++)
            for (int layout = LAYOUT_BHSD; layout <= LAYOUT_HBSD; layout++) {
                struct problem_spec spec = small((enum attn_rule)rule);
                if (layout == LAYOUT_BSHD && rule >= ATTN_MULTI_HEAD)
                    continue;
                spec.dtype = (enum attn_dtype)dtype;
                spec.layout = (enum layout)layout;
                assert_reads_back(spec);
                spec.weights = true;
                spec.mask_share = 0.6;
                spec.bias = rule != ATTN_CONCAT;
                spec.kv_lengths = intern("ragged");
                spec.causal = CAUSAL_BOTTOM_RIGHT_VALID;
                assert_reads_back(spec);
            }
}

static void switches_are_read_back(void **state)
{
    (void)state;
    struct problem_spec spec = small(ATTN_ADDITIVE);
    spec.plain_sum = true;
    assert_reads_back(spec);
    spec = small(ATTN_CONCAT);
    spec.combine = true;
    spec.out_dim = 4;
    spec.H = spec.H_kv = 3;
    spec.weights = true;
    assert_reads_back(spec);
    spec = small(ATTN_SELF_ATTENTION);
    spec.single = spec.weights = true;
    spec.H = spec.H_kv = 1;
    spec.D = spec.model_dim;
    spec.D_v = spec.model_dim_v;
    spec.out_dim = 0;
    assert_reads_back(spec);
    spec = small(ATTN_MULTI_HEAD);
    spec.alias = ALIAS_QKV;
    spec.S_q = spec.S_kv;
    spec.model_dim_v = spec.model_dim;
    assert_reads_back(spec);
}

/* The product stays, though the batch may come back in other dimensions. */
static void matmuls_are_read_back(void **state)
{
    (void)state;
    for (int kind = 0; kind < 5; kind++) {
        struct problem_spec spec = small(ATTN_MATMUL);
        struct operands operands;
        struct case_folder folder;
        struct error error;
        spec.H = spec.H_kv = kind == 4 ? 1 : 3;
        spec.broadcast = kind < 3 ? (enum broadcast)kind : BROADCAST_NONE;
        spec.semantics = kind == 4 ? SEMANTICS_DOT : SEMANTICS_MATMUL;
        write_case(&spec);
        make_operands(&spec, &operands);
        if (case_folder_read(directory, &folder, &error) < 0)
            fail_msg("%s", error.text);
        assert_same_block(&operands.q, &folder.operands.q);
        assert_same_block(&operands.k, &folder.operands.k);
        assert_int_equal(operands.out.bytes, folder.operands.out.bytes);
        assert_expected(&operands, &folder);
        case_folder_release(&folder);
        operands_destroy(&operands);
    }
}

static void expect_error(const char *what, const char *needle)
{
    struct case_folder folder;
    struct error error = {0};
    int code = case_folder_read(directory, &folder, &error);
    if (code == 0 || !strstr(error.text, needle) || !strstr(error.text, directory) || strchr(error.text, '\n'))
        fail_msg("%s: '%s' should hold '%s'", what, error.text, needle);
    assert_int_equal(error.exit_code, EXIT_USAGE);
}

/* A sound case with one key of a group (NULL: the root) replaced; value NULL: removed. */
static void with_key(enum attn_rule rule, const char *group, const char *key, const char *value, const char *needle)
{
    struct problem_spec spec = small(rule);
    if (rule == ATTN_CONCAT) {
        spec.combine = true;
        spec.out_dim = 4;
    }
    write_case(&spec);
    json_t *root = json_load_file(json_path, 0, NULL), *object = group ? json_object_get(root, group) : root;
    assert_non_null(object);
    if (value)
        json_object_set_new(object, key, json_loads(value, JSON_DECODE_ANY, NULL));
    else
        json_object_del(object, key);
    assert_int_equal(json_dump_file(root, json_path, 0), 0);
    json_decref(root);
    expect_error(key, needle);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    for (int rule = ATTN_ADDITIVE; rule <= ATTN_SELF_ATTENTION; rule++) {
        struct problem_spec spec = small((enum attn_rule)rule);
        struct operand_param params[ATTN_MOST_PARAMS];
        spec.combine = rule == ATTN_CONCAT;
        int count = operands_params(&spec, params);
        for (int p = 0; p < count; p++) {
            char needle[64];
            snprintf(needle, sizeof needle, "case.json: key 'inputs.%s' is missing", params[p].name);
            if (strcmp(params[p].name, "u") != 0)
                with_key((enum attn_rule)rule, "inputs", params[p].name, NULL, needle);
        }
    }
    with_key(ATTN_ADDITIVE, NULL, "hidden_dim", "0", "hidden 0 is less than 1");
    with_key(ATTN_ADDITIVE, NULL, "hidden_dim", "5", "w.npy: shape (9, 14), case.json says (5, 14)");
    with_key(ATTN_ADDITIVE, NULL, "hidden_dim", NULL, "key 'hidden_dim' is missing");
    with_key(ATTN_ADDITIVE, NULL, "key_dim", "6", "k.npy: shape (2, 2, 7, 8), case.json says (2, 2, 7, 6)");
    with_key(ATTN_ADDITIVE, NULL, "scale", "2", "rule additive has no scale");
    with_key(ATTN_ADDITIVE, NULL, "layout", "\"BSD\"", "layout BSD has no heads, but key 'heads' is 4");
    with_key(ATTN_ADDITIVE, "inputs", "u", "\"w.npy\"", "w.npy: shape (9, 14), case.json says (9,)");
    with_key(ATTN_CONCAT, NULL, "kv_len", "8", "v.npy: shape (2, 1, 7, 3), case.json says (2, 1, 8, 3)");
    with_key(ATTN_CONCAT, NULL, "out_dim", NULL, "key 'out_dim' is missing");
    with_key(ATTN_CONCAT, NULL, "softcap", "2", "rule concat has no softcap");
    with_key(ATTN_MULTI_HEAD, NULL, "model_dim_k", "12", "q.npy: shape (2, 5, 11), case.json says (2, 5, 12)");
    with_key(ATTN_MULTI_HEAD, NULL, "model_dim_v", "11", "v.npy: shape (2, 7, 12), case.json says (2, 7, 11)");
    with_key(ATTN_MULTI_HEAD, NULL, "head_dim", "5", "w_q.npy: shape (24, 11), case.json says (20, 11)");
    with_key(ATTN_MULTI_HEAD, NULL, "out_dim", "0", "out-dim 0 is less than 1");
    with_key(ATTN_MULTI_HEAD, NULL, "kv_heads", "3", "H 4 is not a multiple of kv-heads 3");
    with_key(ATTN_MULTI_HEAD, "inputs", "w_o", "\"w_q.npy\"", "w_q.npy: shape (24, 11), case.json says (13, 12)");
    with_key(ATTN_SELF_ATTENTION, NULL, "kv_len", "6", "self_attention needs q-len = kv-len, not 5 and 6");
    with_key(ATTN_SELF_ATTENTION, NULL, "input_dim", "9", "x.npy: shape (2, 5, 10), case.json says (2, 5, 9)");
    with_key(ATTN_SELF_ATTENTION, NULL, "multi_head", "false", "no-mha needs H = 1, not 4 and 1");
    with_key(ATTN_SELF_ATTENTION, NULL, "multi_head", "7", "key 'multi_head' is an integer");
    with_key(ATTN_SELF_ATTENTION, "inputs", "x", NULL, "key 'inputs.x' is missing");
    with_key(ATTN_MATMUL, NULL, "semantics", "\"einsum\"", "key 'semantics' has the unknown value 'einsum'");
    with_key(ATTN_MATMUL, NULL, "rule", "\"einsum\"", "key 'rule' has the unknown value 'einsum'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(switches_are_read_back),
        cmocka_unit_test(matmuls_are_read_back),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
