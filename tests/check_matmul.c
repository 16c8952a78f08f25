/* SPDX-License-Identifier: Apache-2.0
 *
 * Every matmul kernel of the build against a float64 loop: shapes around tile edges, tiny, skinny and empty ones, both
 * ways the right operand can lie, bias, accumulation, all dtypes, strides, broadcast matrices, NaN, all schedules.
 *
 * The bound is a worst case: K products, bias and old output added up in f32 in any order, in FMAs or not, are off by
 * at most (K + 2) u / (1 - (K + 2) u) times the sum of their absolute values, u = 2^-24; then the output is rounded
 * once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "attention_example.h"
#include "harness/isa.h"
#include "harness/registry.h"
#include "kernels/schedule/schedule.h"
#include "kernels/schedule/team.h"

enum { MOST_THREADS = 3, CASES = 400 };

struct product_case {
    struct attn_problem problem;
    struct attn_args args;
    struct guarded a, b, out, bias;
    void *before;          /* what out held, with its gaps */
    double *value, *bound; /* [B][H][M][N] in float64, and how far off an element may be */
    size_t element, out_bytes;
    char text[256];
};

static double element_of(uint32_t dtype, const void *data, int64_t index)
{
    if (dtype == ATTN_F32)
        return ((const float *)data)[index];
    const uint16_t bits = ((const uint16_t *)data)[index];
    const double sign = bits & 0x8000 ? -1 : 1;
    const int mantissa = dtype == ATTN_BF16 ? 7 : 10, bias = dtype == ATTN_BF16 ? 127 : 15;
    const int exponent = (bits & 0x7fff) >> mantissa, fraction = bits & ((1 << mantissa) - 1);
    if (exponent == 2 * bias + 1)
        return fraction ? NAN : sign * INFINITY;
    return sign * ldexp(exponent ? 1 + ldexp(fraction, -mantissa) : ldexp(fraction, 1 - mantissa),
                        (exponent ? exponent : 0) - bias);
}

/* Numbers of magnitude 2^-6 to 2: no product of them is subnormal in any dtype's arithmetic. */
static void draw_element(uint32_t dtype, void *data, int64_t index)
{
    const float x = uniform(2.0f);
    if (dtype == ATTN_F32)
        ((float *)data)[index] = fabsf(x) < 0x1p-6f ? 0x1p-6f : x;
    else if (dtype == ATTN_BF16)
        ((uint16_t *)data)[index] = (uint16_t)(one_in(2) << 15 | (121 + below(7)) << 7 | below(1 << 7));
    else
        ((uint16_t *)data)[index] = (uint16_t)(one_in(2) << 15 | (9 + below(7)) << 10 | below(1 << 10));
}

static void set_nan(uint32_t dtype, void *data, int64_t index)
{
    if (dtype == ATTN_F32)
        ((float *)data)[index] = NAN;
    else
        ((uint16_t *)data)[index] = 0x7fff;
}

static int64_t place_in(const struct attn_tensor *t, int64_t b, int64_t h, int64_t row, int64_t column)
{
    return b * t->stride[0] + h * t->stride[1] + row * t->stride[2] + column;
}

/* Fills a tensor's elements, or its bias; everything between them becomes NaN. */
static void fill_tensor(uint32_t dtype, struct attn_tensor *t, struct guarded *block, int64_t elements)
{
    *block = guarded_allocate((size_t)elements * (dtype == ATTN_F32 ? 4 : 2));
    t->data = block->data;
    for (int64_t i = 0; i < elements; i++)
        set_nan(dtype, t->data, i);
    for (int64_t b = 0; b < t->size[0]; b++)
        for (int64_t h = 0; h < t->size[1]; h++)
            for (int64_t row = 0; row < t->size[2]; row++)
                for (int64_t column = 0; column < t->size[3]; column++)
                    draw_element(dtype, t->data, place_in(t, b, h, row, column));
}

/* [b][h][rows][columns] in some order, perhaps broadcast over b, h or both. */
static void draw_operand(uint32_t dtype, struct attn_tensor *t, struct guarded *block, const struct attn_problem *p,
                         int64_t rows, int64_t columns)
{
    const int64_t B = one_in(4) && p->B > 0 ? 1 : p->B, H = one_in(4) && p->H > 0 ? 1 : p->H;
    const int64_t elements = lay_out(t, B, H, rows, columns, (int)below(3), one_in(2) ? 0 : 1 + below(9));
    fill_tensor(dtype, t, block, elements);
    if (B != p->B)
        t->stride[0] = 0;
    if (H != p->H)
        t->stride[1] = 0;
    t->size[0] = p->B;
    t->size[1] = p->H;
    if (elements > 0 && one_in(6))
        set_nan(dtype, t->data, place_in(t, below(p->B), below(p->H), below(rows), below(columns)));
    guarded_read_only(block);
}

/* One row of N for all, or a row for each row of the output. */
static void draw_bias(struct product_case *x)
{
    const struct attn_problem *p = &x->problem;
    const bool full = one_in(4);
    struct attn_tensor *t = &x->args.bias;
    fill_tensor(ATTN_F32, t, &x->bias,
                full ? lay_out(t, p->B, p->H, p->S_q, p->S_kv, 0, 3) : lay_out(t, 1, 1, 1, p->S_kv, 0, 0));
    if (!full)
        t->stride[0] = t->stride[1] = t->stride[2] = 0;
    guarded_read_only(&x->bias);
}

static void draw_output(struct product_case *x)
{
    const struct attn_problem *p = &x->problem;
    struct attn_tensor *t = &x->args.out;
    const int64_t elements = lay_out(t, p->B, p->H, p->S_q, p->S_kv, (int)below(3), one_in(2) ? 0 : 1 + below(9));
    fill_tensor(p->dtype, t, &x->out, elements);
    x->out_bytes = (size_t)elements * x->element;
    if (!(p->flags & ATTN_FLAG_ACCUMULATE))
        for (int64_t i = 0; i < elements; i++)
            set_nan(p->dtype, t->data, i);
    x->before = malloc(x->out_bytes + 1);
    assert_non_null(x->before);
    memcpy(x->before, t->data, x->out_bytes);
}

static void draw_shape(struct attn_problem *p)
{
    static const int64_t rows[] = {0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 31, 32, 33, 97, 191, 193, 389};
    static const int64_t columns[] = {0,  1,  2,  3,  5,  7,   8,   9,   15,  16,  17,  31,  33,  47,
                                      63, 64, 65, 79, 97, 127, 129, 193, 255, 256, 257, 263, 321, 577};
    static const int64_t depths[] = {0,  1,  2,   3,   4,   5,   7,   8,   15,  16,  17,  31,   32,   33,  63,
                                     64, 65, 100, 127, 255, 256, 257, 511, 512, 513, 515, 1023, 1025, 1100};
    do {
        p->S_q = pick(rows, sizeof rows / sizeof *rows);
        p->S_kv = p->D_v = pick(columns, sizeof columns / sizeof *columns);
        p->D = pick(depths, sizeof depths / sizeof *depths);
        p->B = one_in(20) ? 0 : one_in(2) ? 1 : 1 + below(4);
        p->H = p->H_kv = one_in(2) ? 1 : 1 + below(3);
    } while (p->B * p->H * p->S_q * p->S_kv * p->D > 4000000);
}

static void draw_case(struct product_case *x, uint64_t seed)
{
    random_state = seed;
    memset(x, 0, sizeof *x);
    struct attn_problem *p = &x->problem;
    p->struct_size = sizeof *p;
    p->rule = ATTN_MATMUL;
    p->dtype = (uint32_t)below(3);
    x->element = p->dtype == ATTN_F32 ? 4 : 2;
    p->flags = (one_in(2) ? ATTN_FLAG_TRANSPOSED : 0) | (one_in(3) ? ATTN_FLAG_ACCUMULATE : 0);
    draw_shape(p);
    const bool transposed = p->flags & ATTN_FLAG_TRANSPOSED;
    draw_operand(p->dtype, &x->args.q, &x->a, p, p->S_q, p->D);
    draw_operand(p->dtype, &x->args.k, &x->b, p, transposed ? p->S_kv : p->D, transposed ? p->D : p->S_kv);
    if (one_in(2))
        draw_bias(x);
    draw_output(x);
    snprintf(x->text, sizeof x->text, "seed %llu: dtype %u flags %u B %d H %d M %d N %d K %d bias %d",
             (unsigned long long)seed, p->dtype, p->flags, (int)p->B, (int)p->H, (int)p->S_q, (int)p->S_kv, (int)p->D,
             x->args.bias.data != NULL);
}

static void release_case(struct product_case *x)
{
    guarded_release(&x->a);
    guarded_release(&x->b);
    guarded_release(&x->bias);
    guarded_release(&x->out);
    free(x->before);
    free(x->value);
    free(x->bound);
}

/* One element in float64, and the sum of absolute values. */
static double exact(const struct product_case *x, int64_t b, int64_t h, int64_t m, int64_t n, double *size)
{
    const struct attn_problem *p = &x->problem;
    const struct attn_args *args = &x->args;
    const bool transposed = p->flags & ATTN_FLAG_TRANSPOSED;
    double sum = 0;
    *size = 0;
    for (int64_t k = 0; k < p->D; k++) {
        const int64_t right = transposed ? place_in(&args->k, b, h, n, k) : place_in(&args->k, b, h, k, n);
        const double term = element_of(p->dtype, args->q.data, place_in(&args->q, b, h, m, k)) *
                            element_of(p->dtype, args->k.data, right);
        sum += term;
        *size += fabs(term);
    }
    double others[2] = {0, 0};
    if (args->bias.data)
        others[0] = ((const float *)args->bias.data)[place_in(&args->bias, b, h, m, n)];
    if (p->flags & ATTN_FLAG_ACCUMULATE)
        others[1] = element_of(p->dtype, x->before, place_in(&args->out, b, h, m, n));
    *size += fabs(others[0]) + fabs(others[1]);
    return sum + others[0] + others[1];
}

/* Off by at most: the sum in f32, then rounding to the dtype (relative, and half of its smallest number). */
static double bound(uint32_t dtype, int64_t depth, double value, double size)
{
    const double u = 0x1p-24, terms = (double)depth + 2;
    const double sum = terms * u / (1 - terms * u) * size;
    const double half_ulp = dtype == ATTN_F32 ? 0 : dtype == ATTN_BF16 ? 0x1p-8 : 0x1p-11;
    return sum + half_ulp * (fabs(value) + sum) + (dtype == ATTN_F16 ? 0x1p-25 : 0) + 0x1p-149;
}

static void draw_answer(struct product_case *x)
{
    const struct attn_problem *p = &x->problem;
    const size_t count = (size_t)(p->B * p->H * p->S_q * p->S_kv) + 1;
    x->value = malloc(count * sizeof(double));
    x->bound = malloc(count * sizeof(double));
    assert_true(x->value && x->bound);
    int64_t at = 0;
    for (int64_t b = 0; b < p->B; b++)
        for (int64_t h = 0; h < p->H; h++)
            for (int64_t m = 0; m < p->S_q; m++)
                for (int64_t n = 0; n < p->S_kv; n++, at++) {
                    double size;
                    x->value[at] = exact(x, b, h, m, n, &size);
                    x->bound[at] = bound(p->dtype, p->D, x->value[at], size);
                }
}

/* Compares and puts out back as it was. */
static void judge(struct product_case *x, const char *who)
{
    const struct attn_problem *p = &x->problem;
    const struct attn_tensor *out = &x->args.out;
    int64_t at = 0;
    for (int64_t b = 0; b < p->B; b++)
        for (int64_t h = 0; h < p->H; h++)
            for (int64_t m = 0; m < p->S_q; m++)
                for (int64_t n = 0; n < p->S_kv; n++, at++) {
                    const int64_t place = place_in(out, b, h, m, n);
                    const double got = element_of(p->dtype, out->data, place), value = x->value[at];
                    if (isnan(value) ? !isnan(got) : !(fabs(got - value) <= x->bound[at]))
                        fail_msg("%s, %s: [%d][%d][%d][%d] is %g, not %g", who, x->text, (int)b, (int)h, (int)m, (int)n,
                                 got, value);
                    memcpy((char *)out->data + place * (int64_t)x->element,
                           (char *)x->before + place * (int64_t)x->element, x->element);
                }
    if (memcmp(out->data, x->before, x->out_bytes) != 0)
        fail_msg("%s, %s: wrote between the rows of the output", who, x->text);
}

static void run_case(struct product_case *x, const struct attn_kernel *kernel, const struct attn_schedule *schedule,
                     int threads)
{
    char who[64];
    snprintf(who, sizeof who, "%s, %s on %d", kernel->name, schedule->name, threads);
    struct attn_plan plan = {.phases = 1, .q_grain = 1, .k_grain = 1, .head_grain = 1};
    if (kernel->plan)
        assert_int_equal(kernel->plan(&x->problem, threads, NULL, &plan), 0);
    const size_t bytes = (plan.thread_bytes + 63) / 64 * 64, shared = (plan.shared_bytes + 63) / 64 * 64;
    struct guarded scratch[MOST_THREADS], common = guarded_allocate(shared);
    void *thread_scratch[MOST_THREADS];
    for (int t = 0; t < threads; t++) {
        scratch[t] = guarded_allocate(bytes);
        thread_scratch[t] = scratch[t].data;
        memset(thread_scratch[t], 0xff, bytes); /* NaN */
    }
    memset(common.data, 0xff, shared);
    x->args.shared = common.data;
    const struct attn_job job = {
        .kernel = kernel,
        .problem = &x->problem,
        .args = &x->args,
        .plan = &plan,
        .scratch = thread_scratch,
        .threads = threads,
    };
    assert_int_equal(schedule->run(&job), 0);
    judge(x, who);
    for (int t = 0; t < threads; t++)
        guarded_release(&scratch[t]);
    guarded_release(&common);
}

static void test_kernels(void **state)
{
    (void)state;
    const struct attn_schedule *const schedules[] = {&attn_schedule_serial, &attn_schedule_bh, &attn_schedule_bhq};
    int done = 0;
    for (uint64_t seed = 1; seed <= CASES; seed++) {
        struct product_case x;
        draw_case(&x, seed);
        draw_answer(&x);
        for (const struct attn_kernel *const *kernel = attn_registry; *kernel; kernel++) {
            if (!((*kernel)->rules & ATTN_BIT(ATTN_MATMUL)) ||
                registry_refusal((*kernel)->name, &x.problem, isa_available()))
                continue;
            const int threads = 1 + (int)below(MOST_THREADS);
            run_case(&x, *kernel, schedules[below(3)], threads);
            if (threads > 1)
                run_case(&x, *kernel, &attn_schedule_bhq, 1);
            done++;
        }
        release_case(&x);
    }
    assert_true(done >= CASES); /* naive alone does every case */
}

/* Every element of every product belongs to one task, cuts lie on grains, and no task is empty. */
static void test_cut_covers_everything(void **state)
{
    (void)state;
    random_state = 1;
    for (int n = 0; n < 2000; n++) {
        const struct attn_problem problem = {
            .rule = ATTN_MATMUL, .B = below(4), .H = 1 + below(4), .S_q = below(40), .S_kv = below(70), .D = 1};
        const struct attn_plan plan = {.q_grain = 1 + below(9), .k_grain = 1 + below(17), .head_grain = 1 + below(2)};
        const struct attn_cut cut = attn_cut_matmul(&problem, &plan, 1 + below(20));
        static uint8_t covered[4][4][40][70];
        memset(covered, 0, sizeof covered);
        for (int64_t task = 0; task < cut.tasks; task++) {
            const struct attn_span span = attn_cut_span(&problem, &cut, task);
            assert_true(span.q0 % plan.q_grain == 0 && span.k0 % plan.k_grain == 0 && span.h0 % plan.head_grain == 0);
            assert_true(span.b0 < span.b1 && span.h0 < span.h1 && span.q0 < span.q1);
            assert_true(span.k0 < span.k1 || problem.S_kv == 0);
            for (int64_t b = span.b0; b < span.b1; b++)
                for (int64_t h = span.h0; h < span.h1; h++)
                    for (int64_t q = span.q0; q < span.q1; q++)
                        for (int64_t k = span.k0; k < span.k1; k++)
                            covered[b][h][q][k]++;
        }
        for (int64_t b = 0; b < problem.B; b++)
            for (int64_t h = 0; h < problem.H; h++)
                for (int64_t q = 0; q < problem.S_q; q++)
                    for (int64_t k = 0; k < problem.S_kv; k++)
                        assert_int_equal(covered[b][h][q][k], 1);
    }
}

/* One long row is cut by columns, one long column by rows, many small matrices not at all. */
static void test_cut_uses_all_threads(void **state)
{
    (void)state;
    const struct attn_plan plan = {.q_grain = 96, .k_grain = 64, .head_grain = 1};
    struct attn_problem problem = {.rule = ATTN_MATMUL, .B = 1, .H = 1, .S_q = 1, .S_kv = 4096, .D = 4096};
    struct attn_cut cut = attn_cut_matmul(&problem, &plan, 32);
    assert_true(cut.tasks == 32 && cut.k_block == 128 && cut.q_blocks == 1);
    problem.S_q = 4096;
    problem.S_kv = 1;
    cut = attn_cut_matmul(&problem, &plan, 32);
    assert_true(cut.k_blocks == 1 && cut.q_block == 192 && cut.tasks == 22);
    problem = (struct attn_problem){.rule = ATTN_MATMUL, .B = 100, .H = 3, .S_q = 3, .S_kv = 4, .D = 5};
    cut = attn_cut_matmul(&problem, &plan, 2);
    assert_true(cut.tasks == 2 && cut.batch_block == 50 && cut.head_groups == 1);
}

static void test_schedules(void **state)
{
    (void)state;
    const struct attn_kernel *kernel = attn_registry[0];
    struct attn_problem problem = {.rule = ATTN_MATMUL, .B = 1, .H = 1, .H_kv = 1, .S_q = 1, .S_kv = 4096, .D = 4096};
    assert_non_null(attn_schedule_splitkv.refuse(kernel, &problem, 2));
    assert_ptr_equal(attn_schedule_choose(kernel, &problem, 1), &attn_schedule_serial);
    assert_ptr_equal(attn_schedule_choose(kernel, &problem, 2), &attn_schedule_bhq);
    problem.B = 64;
    assert_ptr_equal(attn_schedule_choose(kernel, &problem, 2), &attn_schedule_bh);
    problem.B = 65;
    assert_ptr_equal(attn_schedule_choose(kernel, &problem, 2), &attn_schedule_bhq);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut_covers_everything),
        cmocka_unit_test(test_cut_uses_all_threads),
        cmocka_unit_test(test_schedules),
        cmocka_unit_test(test_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
