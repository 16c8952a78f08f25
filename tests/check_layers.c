/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers: the steps of additive, concat, multi_head and self_attention, run in order by plain kernels, give what the
 * rule's formula gives in float64, whatever sizes, strides and masks; permuted heads change nothing; the workspace is
 * written nowhere outside, inputs and the gaps of the output not at all. And the copy kernel.
 */
#include "layer_reference.h"

extern const struct attn_kernel attn_kernel_naive;

enum { CASES = 500, CANARY = 128 };

/* ---- kernels of the steps --------------------------------------------------------------------------------------- */

static void run_matmul(const struct attn_problem *p, const struct attn_args *a)
{
    const bool transposed = p->flags & ATTN_FLAG_TRANSPOSED;
    for (int64_t row = 0; row < p->B * p->H * p->S_q; row++) {
        const int64_t m = row % p->S_q, h = row / p->S_q % p->H, b = row / p->S_q / p->H;
        for (int64_t n = 0; n < p->D_v; n++) {
            double sum = a->bias.data ? get(&a->bias, ATTN_F32, b, h, m, n) : 0;
            for (int64_t k = 0; k < p->D; k++)
                sum += get(&a->q, p->dtype, b, h, m, k) *
                       get(&a->k, p->dtype, b, h, transposed ? n : k, transposed ? k : n);
            write_element(p->dtype, row_in(&a->out, p->dtype, b, h, m), n, (float)sum);
        }
    }
}

static void run_additive(const struct attn_problem *p, const struct attn_args *a)
{
    double *out = array(p->B * p->H * p->S_q * p->D_v), *weights = array(p->B * p->H * p->S_q * p->S_kv);
    attend(p, a, gather(&a->q, p->dtype), gather(&a->k, p->dtype), gather(&a->v, p->dtype), a->param, NULL, out,
           weights);
    for (int64_t row = 0; row < p->B * p->H * p->S_q; row++) {
        const int64_t i = row % p->S_q, h = row / p->S_q % p->H, b = row / p->S_q / p->H;
        for (int64_t d = 0; d < p->D_v; d++)
            write_element(p->dtype, row_in(&a->out, p->dtype, b, h, i), d, (float)out[row * p->D_v + d]);
        for (int64_t j = 0; j < p->S_kv && p->flags & ATTN_FLAG_WEIGHTS; j++)
            ((float *)row_in(&a->weights, ATTN_F32, b, h, i))[j] = (float)weights[row * p->S_kv + j];
    }
}

static void run_kernel(const struct attn_kernel *kernel, const struct attn_problem *p, const struct attn_args *a)
{
    struct attn_plan plan = {.phases = 1, .q_grain = 1, .k_grain = 1, .head_grain = 1};
    if (kernel->plan)
        assert_int_equal(kernel->plan(p, 1, NULL, &plan), 0);
    void *scratch = aligned_alloc(64, (plan.thread_bytes + 64) / 64 * 64);
    assert_non_null(scratch);
    const struct attn_span span = {.b1 = p->B, .h1 = p->H, .q1 = p->S_q, .k1 = p->S_kv};
    assert_int_equal(kernel->run(p, a, &span, 0, NULL, scratch), 0);
    free(scratch);
}

/* ---- running a layer -------------------------------------------------------------------------------------------- */

static void expect_size(const struct attn_tensor *t, int64_t B, int64_t H, int64_t S, int64_t D)
{
    assert_int_equal(t->size[0], B);
    assert_int_equal(t->size[1], H);
    assert_int_equal(t->size[2], S);
    assert_int_equal(t->size[3], D);
    assert_int_equal(t->stride[3], 1);
}

static void check_step(const struct attn_step *step)
{
    const struct attn_problem *p = &step->problem;
    const struct attn_args *a = &step->args;
    assert_int_equal(p->struct_size, sizeof *p);
    expect_size(&a->q, p->B, p->H, p->S_q, p->D);
    expect_size(&a->out, p->B, p->H, p->S_q, p->D_v);
    if (step->kind == ATTN_STEP_COPY) {
        assert_int_equal(step->phase, ATTN_PHASE_PERMUTE);
        assert_int_equal(p->D, p->D_v);
    } else if (step->kind == ATTN_STEP_MATMUL) {
        assert_int_equal(p->rule, ATTN_MATMUL);
        assert_int_equal(p->S_kv, p->D_v);
        assert_int_equal(p->H_kv, p->H);
        assert_true(step->phase == ATTN_PHASE_PROJECTIONS || step->phase == ATTN_PHASE_OUTPUT);
        const bool transposed = p->flags & ATTN_FLAG_TRANSPOSED;
        expect_size(&a->k, p->B, p->H, transposed ? p->D_v : p->D, transposed ? p->D : p->D_v);
    } else {
        assert_int_equal(step->phase, ATTN_PHASE_ATTENTION);
        expect_size(&a->k, p->B, p->H_kv, p->S_kv, p->D);
        expect_size(&a->v, p->B, p->H_kv, p->S_kv, p->D_v);
    }
}

/* The shapes without data are those of the real steps, but that rows merge. */
static void check_shapes_alone(const struct attn_problem *p, bool permute, const struct attn_layer *layer)
{
    struct attn_layer shapes;
    attn_layer_make(p, NULL, permute, NULL, &shapes);
    assert_int_equal(shapes.count, layer->count);
    assert_int_equal(shapes.workspace_bytes, layer->workspace_bytes);
    for (int s = 0; s < shapes.count; s++) {
        const struct attn_problem *a = &shapes.steps[s].problem, *b = &layer->steps[s].problem;
        check_step(&shapes.steps[s]);
        assert_int_equal(shapes.steps[s].kind, layer->steps[s].kind);
        assert_int_equal(shapes.steps[s].phase, layer->steps[s].phase);
        assert_int_equal(a->B * a->H * a->S_q, b->B * b->H * b->S_q);
        assert_int_equal(a->D, b->D);
        assert_int_equal(a->D_v, b->D_v);
        assert_int_equal(a->S_kv, b->S_kv);
        assert_int_equal(a->flags, b->flags);
        if (a->rule == ATTN_MATMUL && a->S_q > 0)
            assert_int_equal(a->B * a->H, 1);
    }
}

static void run_layer(const struct example *x, bool permute)
{
    struct attn_layer *layer = malloc(sizeof *layer);
    assert_non_null(layer);
    attn_layer_make(&x->problem, &x->args, permute, NULL, layer);
    const size_t bytes = layer->workspace_bytes;
    char *block = aligned_alloc(64, (bytes + 2 * CANARY + 63) / 64 * 64);
    assert_non_null(block);
    memset(block, 0xff, bytes + 2 * CANARY); /* NaN: reading what no step wrote shows */
    attn_layer_make(&x->problem, &x->args, permute, block + CANARY, layer);
    assert_int_equal(layer->workspace_bytes, bytes);
    check_shapes_alone(&x->problem, permute, layer);
    for (int s = 0; s < layer->count; s++) {
        const struct attn_step *step = &layer->steps[s];
        check_step(step);
        if (step->kind == ATTN_STEP_COPY)
            run_kernel(&attn_kernel_copy, &step->problem, &step->args);
        else if (step->kind == ATTN_STEP_MATMUL)
            run_matmul(&step->problem, &step->args);
        else if (step->problem.rule == ATTN_ADDITIVE)
            run_additive(&step->problem, &step->args);
        else
            run_kernel(&attn_kernel_naive, &step->problem, &step->args);
    }
    for (size_t n = 0; n < CANARY; n++)
        assert_true(block[n] == '\xff' && block[CANARY + bytes + n] == '\xff');
    free(block);
    free(layer);
}

static void compare(const struct example *x, const struct attn_tensor *t, uint32_t dtype, const double *expected,
                    double tolerance)
{
    for (int64_t b = 0; b < t->size[0]; b++)
        for (int64_t h = 0; h < t->size[1]; h++)
            for (int64_t i = 0; i < t->size[2]; i++)
                for (int64_t d = 0; d < t->size[3]; d++, expected++) {
                    const double found = get(t, dtype, b, h, i, d);
                    if (!(fabs(found - *expected) <= tolerance))
                        fail_msg("%s: [%d][%d][%d][%d] is %g, not %g", x->text, (int)b, (int)h, (int)i, (int)d, found,
                                 *expected);
                }
}

/* Inputs are as they were, and the output was written in its elements alone. */
static void check_memory(const struct example *x)
{
    const struct attn_tensor *out = &x->args.out;
    const size_t size = element_size(x->problem.dtype);
    for (int n = 0; n < x->block_count; n++)
        if (n != x->out_block && x->blocks[n].data != x->args.weights.data)
            assert_memory_equal(x->blocks[n].data, x->blocks[n].copy, x->blocks[n].bytes);
    const struct block *block = &x->blocks[x->out_block];
    size_t written = 0;
    for (size_t n = 0; n < block->bytes; n += size)
        written += memcmp(block->data + n, block->copy + n, size) != 0;
    assert_int_equal(written, out->size[0] * out->size[1] * out->size[2] * out->size[3]);
}

/* Numbers are of order 1, scores up to about 20, sums of up to 100 products: f32 stays below 1e-4, bf16, of which every
 * step's results are rounded to 2^-9, below 0.2. A wrong head, row or column is off by about 1. */
static void check_rule(uint32_t rule, uint32_t dtype)
{
    const double tolerance = dtype == ATTN_F32 ? 1e-4 : 0.2;
    for (uint64_t seed = 1; seed <= CASES; seed++) {
        struct example x;
        draw_example(&x, rule, dtype, seed);
        const struct attn_problem *p = &x.problem;
        double *weights = array(p->B * p->H * p->S_q * p->S_kv);
        const double *out = expect_out(&x, weights);
        run_layer(&x, false);
        compare(&x, &x.args.out, dtype, out, tolerance);
        if (p->flags & ATTN_FLAG_WEIGHTS)
            compare(&x, &x.args.weights, ATTN_F32, weights, tolerance);
        check_memory(&x);

        struct block *block = &x.blocks[x.out_block];
        char *strided = malloc(block->bytes + 1);
        assert_non_null(strided);
        memcpy(strided, block->data, block->bytes);
        memcpy(block->data, block->copy, block->bytes);
        run_layer(&x, true);
        assert_memory_equal(block->data, strided, block->bytes);
        free(strided);
        release_arrays();
        release_example(&x);
    }
}

static void test_additive(void **state)
{
    (void)state;
    check_rule(ATTN_ADDITIVE, ATTN_F32);
}

static void test_concat(void **state)
{
    (void)state;
    check_rule(ATTN_CONCAT, ATTN_F32);
    check_rule(ATTN_CONCAT, ATTN_BF16);
}

static void test_multi_head(void **state)
{
    (void)state;
    check_rule(ATTN_MULTI_HEAD, ATTN_F32);
    check_rule(ATTN_MULTI_HEAD, ATTN_BF16);
}

static void test_self_attention(void **state)
{
    (void)state;
    check_rule(ATTN_SELF_ATTENTION, ATTN_F32);
    check_rule(ATTN_SELF_ATTENTION, ATTN_BF16);
}

/* ---- what steps look like --------------------------------------------------------------------------------------- */

/* Rows become one matrix wherever they lie at equal distances, in whatever order, and a batch of matrices else. */
static void test_rows_merge(void **state)
{
    (void)state;
    enum { B = 3, H = 4, S = 5, D = 7 };
    static const int64_t strides[][3] = {
        {H * S * D, S * D, D}, {H * S * D, D, H * D}, {S * D, B * S * D, D}, {H * S * D + 1, S * D, D}};
    static float buffer[B * H * S * D + B], w[2 * D], u[1];
    const struct attn_tensor matrix = {.data = w, .size = {1, 1, 1, 2 * D}, .stride = {0, 0, 2 * D, 1}};
    const struct attn_tensor row = {.data = u, .size = {1, 1, 1, 1}, .stride = {0, 0, 0, 1}};
    const struct attn_tensor param[ATTN_ADDITIVE_PARAMS] = {matrix, row, row};
    const struct attn_problem problem = {.struct_size = sizeof problem,
                                         .rule = ATTN_ADDITIVE,
                                         .B = B,
                                         .H = H,
                                         .H_kv = H,
                                         .S_q = S,
                                         .S_kv = S,
                                         .D = D,
                                         .D_v = D,
                                         .key_dim = D,
                                         .hidden = 1};
    static struct attn_layer layer;
    for (size_t n = 0; n < sizeof strides / sizeof *strides; n++) {
        const struct attn_tensor t = {
            .data = buffer, .size = {B, H, S, D}, .stride = {strides[n][0], strides[n][1], strides[n][2], 1}};
        const struct attn_args args = {.q = t, .k = t, .v = t, .out = t, .param = param};
        attn_layer_make(&problem, &args, false, NULL, &layer);
        const struct attn_step *step = &layer.steps[0];
        const bool merges = n < 3;
        assert_int_equal(step->problem.B, 1);
        assert_int_equal(step->problem.H, merges ? 1 : B);
        assert_int_equal(step->problem.S_q, merges ? B * H * S : H * S);
        assert_int_equal(step->args.q.stride[2], D);
        assert_int_equal(step->args.q.stride[1], merges ? 0 : H * S * D + 1);
        assert_int_equal(step->args.k.stride[0], 0);
        assert_int_equal(step->args.k.stride[1], 0);
    }
}

/* Every row of the workspace begins a cache line, and no row stands a multiple of 8 KiB behind the one before. */
static void test_rows_spread_over_cache_sets(void **state)
{
    (void)state;
    static struct attn_layer layer;
    for (int64_t D = 1; D <= 256; D += D < 20 ? 1 : 59) {
        for (uint32_t dtype = ATTN_F32; dtype <= ATTN_F16; dtype++) {
            const struct attn_problem problem = {.struct_size = sizeof problem,
                                                 .rule = ATTN_MULTI_HEAD,
                                                 .dtype = dtype,
                                                 .B = 2,
                                                 .H = 8,
                                                 .H_kv = 4,
                                                 .S_q = 3,
                                                 .S_kv = 5,
                                                 .D = D,
                                                 .D_v = 2 * D,
                                                 .model_dim = 6,
                                                 .model_dim_v = 9,
                                                 .out_dim = 11};
            attn_layer_make(&problem, NULL, false, NULL, &layer);
            for (int s = 0; s < 3; s++) {
                const int64_t row_bytes = layer.steps[s].args.out.stride[2] * (int64_t)element_size(dtype);
                const int64_t lines = (layer.steps[s].problem.D_v * (int64_t)element_size(dtype) + 63) / 64;
                assert_int_equal((uintptr_t)layer.steps[s].args.out.data % 64, 0);
                assert_int_equal(row_bytes, lines * 64 + (lines * 64 % 8192 == 0 ? 64 : 0));
            }
        }
    }
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(attn_phase_names[ATTN_PHASE_PROJECTIONS], "projections");
    assert_string_equal(attn_phase_names[ATTN_PHASE_PERMUTE], "permute");
    assert_string_equal(attn_phase_names[ATTN_PHASE_ATTENTION], "attention");
    assert_string_equal(attn_phase_names[ATTN_PHASE_OUTPUT], "output");
    assert_true(attn_rule_is_layered(ATTN_ADDITIVE) && attn_rule_is_layered(ATTN_CONCAT));
    assert_true(attn_rule_is_layered(ATTN_MULTI_HEAD) && attn_rule_is_layered(ATTN_SELF_ATTENTION));
    assert_false(attn_rule_is_layered(ATTN_SCALED_DOT_PRODUCT) || attn_rule_is_layered(ATTN_MATMUL));
}

/* By spans of one head each, whatever the strides and the dtype; the gaps of the target stay as they were. */
static void test_copy(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= CASES; seed++) {
        struct example x = {.problem.dtype = (uint32_t)(seed % 3)};
        random_state = seed;
        struct attn_problem *p = &x.problem;
        p->B = below(4);
        p->H = p->H_kv = 1 + below(4);
        p->S_q = below(9);
        p->D = p->D_v = 1 + below(70);
        x.args.q = make_tensor(&x, p->dtype, p->B, p->H, p->S_q, p->D, 1);
        x.out_block = x.block_count;
        x.args.out = make_tensor(&x, p->dtype, p->B, p->H, p->S_q, p->D, 1);
        memset(x.args.out.data, 0xff, x.blocks[x.out_block].bytes);
        for (int n = 0; n < x.block_count; n++)
            memcpy(x.blocks[n].copy, x.blocks[n].data, x.blocks[n].bytes);
        const int64_t cut = below(p->S_q + 1);
        for (int64_t b = 0; b < p->B; b++)
            for (int64_t h = 0; h < p->H; h++)
                for (int part = 0; part < 2; part++) {
                    const struct attn_span span = {b, b + 1, h, h + 1, part ? cut : 0, part ? p->S_q : cut, 0, 0, 0};
                    assert_int_equal(attn_kernel_copy.run(p, &x.args, &span, 0, NULL, NULL), 0);
                }
        snprintf(x.text, sizeof x.text, "copy seed %d", (int)seed);
        compare(&x, &x.args.out, p->dtype, gather(&x.args.q, p->dtype).at, 0);
        check_memory(&x);
        release_arrays();
        release_example(&x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_additive),   cmocka_unit_test(test_concat),
        cmocka_unit_test(test_multi_head), cmocka_unit_test(test_self_attention),
        cmocka_unit_test(test_rows_merge), cmocka_unit_test(test_rows_spread_over_cache_sets),
        cmocka_unit_test(test_names),      cmocka_unit_test(test_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
