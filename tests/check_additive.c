/* SPDX-License-Identifier: Apache-2.0
 *
 * Every kernel of the additive rule against a float64 reference, under every schedule that takes it, with one and two
 * threads: sizes around tile edges, masks, windows, ragged lengths, grouped heads, returned weights, absent u, each
 * dtype. Inputs and outputs lie between guard pages; outputs and scratch come poisoned; inputs are compared afterwards.
 *
 * What is allowed. A score's error: the rounded sum q + k moves tanh by at most |x| sech^2(x) e <= 0.45 e; tanh itself
 * by 4 ulp; products and their sum by (hidden + 2) e each in any order. With d the largest of a row, a weight is off by
 * 2 d from the scores; by 6 e times the distance from the row's maximum, its own and the mean one of the sum, from the
 * arguments of exp; by a few ulp for exp, twice, and (S_kv + 40) e in all with sum and division. An output adds
 * (S_kv + 4) e of sum |weight v|, and the rounding to its dtype.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "additive_example.h"
#include "harness/isa.h"
#include "harness/registry.h"
#include "kernels/schedule/schedule.h"

enum { SEEDS = 24, MOST_THREADS = 2 };
static const double epsilon = 0x1p-24;

/* ---- the reference ------------------------------------------------------------------- */

static double element(uint32_t dtype, const void *row, int64_t index)
{
    float x;
    if (dtype == ATTN_F32)
        x = ((const float *)row)[index];
    else if (dtype == ATTN_BF16)
        x = float_of_bits((uint32_t)((const uint16_t *)row)[index] << 16);
    else
        x = float_of_f16(((const uint16_t *)row)[index]);
    return (double)x;
}

static double bias_of(const struct example *x, int64_t b, int64_t h, int64_t i, int64_t j)
{
    return x->args.bias.data ? element(ATTN_F32, row_in(&x->args.bias, ATTN_F32, b, h, i), j) : 0;
}

static bool allowed(const struct example *x, int64_t b, int64_t h, int64_t i, int64_t j)
{
    const struct attn_tensor *mask = &x->args.mask;
    if (mask->data &&
        !((const uint8_t *)mask->data)[b * mask->stride[0] + h * mask->stride[1] + i * mask->stride[2] + j])
        return false;
    return in_range(&x->problem, b, i, j) && bias_of(x, b, h, i, j) != (double)-INFINITY;
}

/* One score, and how far it may be off. */
static double score_of(const struct example *x, int64_t b, int64_t h, int64_t i, int64_t j, double *bound)
{
    const struct attn_problem *p = &x->problem;
    const void *q = row_in(&x->args.q, p->dtype, b, h, i);
    const void *k = row_in(&x->args.k, p->dtype, b, h / (p->H / p->H_kv), j);
    double score = 0;
    *bound = 0;
    for (int64_t d = 0; d < p->D; d++) {
        const double u = x->param.data ? element(p->dtype, x->param.data, d) : 1;
        const double t = tanh(element(p->dtype, q, d) + element(p->dtype, k, d));
        score += u * t;
        *bound += fabs(u) * epsilon * (0.45 + (8 + (double)p->D + 2) * fabs(t));
    }
    score += bias_of(x, b, h, i, j);
    *bound += epsilon * fabs(score);
    return score;
}

static void refer_row(struct example *x, int64_t b, int64_t h, int64_t i)
{
    const struct attn_problem *p = &x->problem;
    const int64_t row = (b * p->H + h) * p->S_q + i;
    double *weight = x->weights + row * p->S_kv, *bound = x->weights_bound + row * p->S_kv;
    double max = -INFINITY, off = 0, sum = 0, mean_distance = 0;
    for (int64_t j = 0; j < p->S_kv; j++) {
        weight[j] = allowed(x, b, h, i, j) ? score_of(x, b, h, i, j, &bound[j]) : (double)-INFINITY;
        max = !(weight[j] <= max) && !isnan(max) ? weight[j] : max;
    }
    for (int64_t j = 0; j < p->S_kv; j++) {
        const double e = allowed(x, b, h, i, j) ? exp(weight[j] - max) : 0, distance = e > 0 ? max - weight[j] : 0;
        off = e > 0 ? fmax(off, bound[j]) : off;
        bound[j] = distance;
        weight[j] = e;
        sum += e;
        mean_distance += e * distance;
    }
    for (int64_t j = 0; j < p->S_kv; j++) {
        const double relative =
            2 * off + 6 * epsilon * (bound[j] + mean_distance / sum) + ((double)p->S_kv + 40) * epsilon;
        weight[j] = weight[j] == 0 ? 0 : weight[j] / sum;
        bound[j] = weight[j] == 0 ? 0x1p-120 : weight[j] * expm1(relative) + 0x1p-120;
    }
    const double last_bit = p->dtype == ATTN_F32 ? 0 : p->dtype == ATTN_BF16 ? 0x1p-8 : 0x1p-11;
    for (int64_t d = 0; d < p->D_v; d++) {
        double out = 0, error = 0x1p-110;
        for (int64_t j = 0; j < p->S_kv; j++) {
            if (!allowed(x, b, h, i, j))
                continue;
            const double v = element(p->dtype, row_in(&x->args.v, p->dtype, b, h / (p->H / p->H_kv), j), d);
            out += weight[j] * v;
            error += fabs(v) * (bound[j] + ((double)p->S_kv + 4) * epsilon * weight[j]);
        }
        x->out[row * p->D_v + d] = out;
        x->out_bound[row * p->D_v + d] =
            error * (1 + last_bit) + fabs(out) * last_bit + (p->dtype == ATTN_F16 ? 0x1p-25 : 0);
    }
}

static double *doubles(int64_t n)
{
    double *x = calloc((size_t)n + 1, sizeof *x);
    assert_non_null(x);
    return x;
}

static void refer(struct example *x)
{
    const struct attn_problem *p = &x->problem;
    const int64_t rows = p->B * p->H * p->S_q;
    x->out = doubles(rows * p->D_v);
    x->out_bound = doubles(rows * p->D_v);
    x->weights = doubles(rows * p->S_kv);
    x->weights_bound = doubles(rows * p->S_kv);
    for (int64_t row = 0; row < rows; row++)
        refer_row(x, row / p->S_q / p->H, row / p->S_q % p->H, row % p->S_q);
}

/* ---- running and judging ------------------------------------------------------------- */

static size_t lines(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static void run_job(const struct attn_kernel *kernel, const struct attn_schedule *schedule, const struct example *x,
                    int threads)
{
    struct attn_problem planned = x->problem;
    planned.flags |= schedule->kernel_flags;
    struct attn_plan plan = {.phases = 1, .q_grain = 1, .k_grain = 1, .head_grain = 1};
    assert_int_equal(kernel->plan(&planned, threads, NULL, &plan), 0);
    struct memory_block block[MOST_THREADS + 1];
    void *scratch[MOST_THREADS];
    struct error error;
    for (int t = 0; t <= threads; t++) {
        const size_t bytes = t < threads           ? plan.thread_bytes
                             : schedule->workspace ? schedule->workspace(&planned, &plan, threads)
                                                   : 0;
        assert_int_equal(memory_allocate(&block[t], lines(bytes), MEMORY_GUARDED, &error), 0);
        memset(block[t].data, 0xff, lines(bytes));
        if (t < threads)
            scratch[t] = block[t].data;
    }
    const struct attn_job job = {.kernel = kernel,
                                 .problem = &x->problem,
                                 .args = &x->args,
                                 .plan = &plan,
                                 .scratch = scratch,
                                 .workspace = block[threads].data,
                                 .threads = threads};
    assert_int_equal(schedule->run(&job), 0);
    for (int t = 0; t <= threads; t++)
        memory_release(&block[t]);
}

/* NaN where it must be NaN; else within the bound, which NaN never is. */
static void judge(const struct attn_kernel *kernel, const struct attn_schedule *schedule, const struct example *x,
                  const char *what, int64_t place, double got, double expected, double bound)
{
    if (isnan(expected) ? !isnan(got) : !(fabs(got - expected) <= bound))
        fail_msg("%s under %s, %s: %s element %lld is %.9g, not %.9g (+- %.3g)", kernel->name, schedule->name, x->text,
                 what, (long long)place, got, expected, bound);
}

static void check_outputs(const struct attn_kernel *kernel, const struct attn_schedule *schedule,
                          const struct example *x)
{
    const struct attn_problem *p = &x->problem;
    for (int64_t row = 0; row < p->B * p->H * p->S_q; row++) {
        const int64_t b = row / p->S_q / p->H, h = row / p->S_q % p->H, i = row % p->S_q;
        const void *out = row_in(&x->args.out, p->dtype, b, h, i);
        for (int64_t d = 0; d < p->D_v; d++)
            judge(kernel, schedule, x, "output", row * p->D_v + d, element(p->dtype, out, d), x->out[row * p->D_v + d],
                  x->out_bound[row * p->D_v + d]);
        for (int64_t j = 0; j < p->S_kv && p->flags & ATTN_FLAG_WEIGHTS; j++)
            judge(kernel, schedule, x, "weight", row * p->S_kv + j,
                  element(ATTN_F32, row_in(&x->args.weights, ATTN_F32, b, h, i), j), x->weights[row * p->S_kv + j],
                  x->weights_bound[row * p->S_kv + j]);
    }
    for (int n = 0; n < INPUTS; n++)
        if (x->block[n].base && memcmp(x->copy[n], x->block[n].data, x->block[n].bytes) != 0)
            fail_msg("%s under %s, %s: input %d was written to", kernel->name, schedule->name, x->text, n);
}

static void check_example(const struct attn_kernel *kernel, const struct example *x, int *runs)
{
    for (const struct attn_schedule *const *schedule = attn_schedules; *schedule; schedule++)
        for (int threads = 1; threads <= MOST_THREADS; threads++) {
            if ((*schedule)->refuse(kernel, &x->problem, threads))
                continue;
            for (int n = OUT; n < BLOCKS; n++)
                if (x->block[n].base)
                    memset(x->block[n].data, 0xff, x->block[n].bytes);
            run_job(kernel, *schedule, x, threads);
            check_outputs(kernel, *schedule, x);
            ++*runs;
        }
}

static bool runs_here(const struct attn_kernel *kernel)
{
    return !(kernel->isa & ~isa_available());
}

struct topic_test {
    const struct attn_kernel *kernel;
    enum topic topic;
};

static void check_topic(void **state)
{
    const struct topic_test *test = *state;
    int runs = 0;
    if (!runs_here(test->kernel))
        skip();
    for (int seed = 0; seed < SEEDS; seed++) {
        struct example x;
        draw_example(&x, test->topic, seed);
        if (test->kernel->dtypes & ATTN_BIT(x.problem.dtype)) {
            refer(&x);
            check_example(test->kernel, &x, &runs);
        }
        release_example(&x);
    }
    assert_true(runs >= SEEDS);
}

/* One feature and one key: the row maximum of a partial result is tanh(q + k) itself. */
static void check_tanh(void **state)
{
    enum { QUERIES = 6000, SPECIAL = 5 };
    const struct topic_test *test = *state;
    if (!runs_here(test->kernel))
        skip();
    static float q[QUERIES], out[QUERIES], row_max[QUERIES], row_sum[QUERIES];
    static const float special[SPECIAL] = {FLT_MAX, -FLT_MAX, INFINITY, -INFINITY, NAN};
    float k = 0.0f, v = 1.0f;
    for (int i = 0; i < QUERIES; i++)
        q[i] = (i % 2 ? -1.0f : 1.0f) * (i < 100 ? powf(10.0f, (float)i * 0.4f - 38.0f) : (float)(i - 100) * 0.00231f);
    memcpy(q, special, sizeof special);
    const struct attn_problem problem = {.struct_size = sizeof problem,
                                         .rule = ATTN_ADDITIVE,
                                         .flags = ATTN_FLAG_PARTIAL,
                                         .B = 1,
                                         .H = 1,
                                         .H_kv = 1,
                                         .S_q = QUERIES,
                                         .S_kv = 1,
                                         .D = 1,
                                         .D_v = 1,
                                         .hidden = 1,
                                         .left = INT64_MAX,
                                         .right = INT64_MAX,
                                         .scale = 1.0f};
    const struct attn_args args = {.q = {q, {1, 1, QUERIES, 1}, {QUERIES, QUERIES, 1, 1}},
                                   .k = {&k, {1, 1, 1, 1}, {1, 1, 1, 1}},
                                   .v = {&v, {1, 1, 1, 1}, {1, 1, 1, 1}},
                                   .out = {out, {1, 1, QUERIES, 1}, {QUERIES, QUERIES, 1, 1}},
                                   .row_max = row_max,
                                   .row_sum = row_sum};
    struct attn_plan plan = {.phases = 1, .q_grain = 1, .k_grain = 1, .head_grain = 1};
    assert_int_equal(test->kernel->plan(&problem, 1, NULL, &plan), 0);
    void *scratch = aligned_alloc(64, lines(plan.thread_bytes));
    assert_non_null(scratch);
    const struct attn_span span = {.b1 = 1, .h1 = 1, .q1 = QUERIES, .k1 = 1};
    assert_int_equal(test->kernel->run(&problem, &args, &span, 0, NULL, scratch), 0);
    free(scratch);
    for (int i = 0; i < QUERIES; i++) {
        const double exact = tanh((double)q[i]);
        const double ulp = exact == 0 ? 0x1p-149 : ldexp(1, (int)fmax(floor(log2(fabs(exact))), -126) - 23);
        if (isnan(q[i]) ? !isnan(row_max[i]) : !(fabs((double)row_max[i] - exact) <= 3 * ulp))
            fail_msg("%s: tanh(%.9g) is %.9g, got %.9g", test->kernel->name, (double)q[i], exact, (double)row_max[i]);
    }
}

int main(void)
{
    static const char *const names[] = {"plain",  "causal", "ragged", "masked", "poison",
                                        "decode", "steep",  "empty",  "tanh"};
    enum { TESTS = sizeof names / sizeof *names, MOST_KERNELS = 16 };
    static struct topic_test states[MOST_KERNELS * TESTS];
    static char titles[MOST_KERNELS * TESTS][64];
    struct CMUnitTest tests[MOST_KERNELS * TESTS];
    size_t count = 0;
    for (const struct attn_kernel *const *kernel = attn_registry; *kernel; kernel++) {
        if (!((*kernel)->rules & ATTN_BIT(ATTN_ADDITIVE)))
            continue;
        for (int t = 0; t < TESTS && count < MOST_KERNELS * TESTS; t++) {
            states[count] = (struct topic_test){*kernel, (enum topic)t};
            snprintf(titles[count], sizeof titles[count], "%s: %s", (*kernel)->name, names[t]);
            tests[count] = (struct CMUnitTest){.name = titles[count],
                                               .test_func = t < TOPICS ? check_topic : check_tanh,
                                               .initial_state = &states[count]};
            count++;
        }
    }
    if (count == 0) {
        fputs("no kernel does the additive rule\n", stderr);
        return 1;
    }
    return _cmocka_run_group_tests("additive", tests, count, NULL, NULL);
}
