/* SPDX-License-Identifier: Apache-2.0
 *
 * The SIMD kernels (avx2, avx512, avx512_bf16), in every dtype that they do, against plain float64 loops: seeded shapes
 * around every tile edge, all masks, layouts, extreme values and NaN, key splits merged again. Inputs are read-only and
 * end at an inaccessible page; so does the output. A kernel that this machine cannot run is skipped, visibly.
 */
#include "attention_example.h"

#include "harness/fill.h"
#include "harness/isa.h"

extern const struct attn_kernel attn_kernel_avx2, attn_kernel_avx512, attn_kernel_avx512_bf16;

enum { CASES_PER_TOPIC = 30 };

/*
 * One row in float64, and the largest error that f32 arithmetic in any order can make of it: a score is off by at most
 * (D + 8) eps (sum |q||k||scale| + |bias|), which changes each weight by twice that; exp, its argument's rounding and
 * the two sums add the rest. bf16 and f16: the output is rounded once to 2^-8 or 2^-11, and so may be each weight.
 * score: becomes the weights, 0 where not allowed. Returns the largest relative error of a weight.
 */
static double reference_row(const struct example *x, int64_t b, int64_t h, int64_t i, double *score, double *out,
                            double *bound)
{
    const struct attn_problem *p = &x->problem;
    const struct attn_args *a = &x->args;
    const float *q = row_of(&a->q, b, h, i);
    const int64_t key_head = h / (p->H / p->H_kv);
    const double eps = 0x1p-24;
    double max = -INFINITY, span = 0, largest = 0, sum = 0;
    bool any = false;
    for (int64_t j = 0; j < p->S_kv; j++) {
        const float *bias = a->bias.data ? row_of(&a->bias, b, h, i) : NULL;
        const struct attn_tensor *m = &a->mask;
        const uint8_t *mask =
            m->data ? (const uint8_t *)m->data + b * m->stride[0] + h * m->stride[1] + i * m->stride[2] : NULL;
        score[j] = -INFINITY;
        if (!in_range(p, b, i, j) || (mask && !mask[j]) || (bias && bias[j] == -INFINITY)) {
            score[j] = NAN; /* not allowed: told apart below by its sign bit */
            score[j] = -fabs(score[j]);
            continue;
        }
        const float *k = row_of(&a->k, b, key_head, j);
        double dot = 0, size = 0;
        for (int64_t d = 0; d < p->D; d++) {
            dot += (double)q[d] * k[d];
            size += fabs((double)q[d] * k[d]);
        }
        double s = dot * (double)p->scale;
        if (p->softcap > 0)
            s = (double)p->softcap * tanh(s / (double)p->softcap);
        s += bias ? (double)bias[j] : 0.0;
        score[j] = isnan(s) ? fabs(s) : s;
        any = true;
        max = s > max ? s : max;
        const double error = (double)(p->D + 8) * eps * size * fabs((double)p->scale) +
                             (bias && bias[j] > -1e30f ? 4 * eps * fabs((double)bias[j]) : 0.0);
        largest = error > largest ? error : largest;
    }
    memset(out, 0, sizeof(double) * (size_t)p->D_v);
    memset(bound, 0, sizeof(double) * (size_t)p->D_v);
    for (int64_t j = 0; j < p->S_kv; j++) {
        if (isnan(score[j]) && signbit(score[j])) {
            score[j] = -1; /* no weight is */
            continue;
        }
        const double weight = exp(score[j] - max);
        const double distance = max - score[j];
        score[j] = weight;
        span = distance > span && distance < 200 ? distance : span;
        sum += weight;
        const float *v = row_of(&a->v, b, key_head, j);
        for (int64_t d = 0; d < p->D_v; d++) {
            out[d] += weight * v[d];
            bound[d] += fabs(weight * v[d]);
        }
    }
    for (int64_t j = 0; j < p->S_kv; j++)
        score[j] = score[j] == -1 ? 0 : score[j] / sum;
    if (!any)
        return 0;
    const double rounding = p->dtype == ATTN_BF16 ? 0x1p-8 : p->dtype == ATTN_F16 ? 0x1p-11 : 0;
    const double error = 4 * largest + ((double)p->S_kv * 2 + 16 + 8 * span) * eps + 2 * rounding;
    const double relative = error < 2 ? error : 2;
    for (int64_t d = 0; d < p->D_v; d++) {
        out[d] /= sum;
        bound[d] = bound[d] / sum * relative + (p->dtype == ATTN_F16 ? 0x1p-25 : 1e-37);
    }
    return relative;
}

static float float_of(uint32_t dtype, uint16_t x)
{
    return dtype == ATTN_BF16 ? float_from_bf16(x) : float_from_f16(x);
}

/* A copy of an operand in 16 bits, read-only and up to the last byte before an inaccessible page; the example's own
 * values, which the reference reads, become what the copy holds. */
static struct attn_tensor narrow(const struct attn_tensor *wide, struct guarded *from, uint32_t dtype,
                                 struct guarded *block)
{
    struct attn_tensor tensor = *wide;
    int64_t span = 1;
    for (int i = 0; i < 4; i++) {
        if (wide->size[i] == 0)
            span = 0;
        else if (span)
            span += (wide->size[i] - 1) * wide->stride[i];
    }
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    assert_int_equal(mprotect(from->base + page, from->mapped - 2 * page, PROT_READ | PROT_WRITE), 0);
    *block = guarded_allocate((size_t)span * sizeof(uint16_t));
    tensor.data = block->data;
    for (int64_t e = 0; e < span; e++) {
        float *value = (float *)wide->data + e;
        const uint16_t bits = dtype == ATTN_BF16 ? bf16_from_float(*value) : f16_from_float(*value);
        ((uint16_t *)block->data)[e] = bits;
        *value = float_of(dtype, bits);
    }
    guarded_read_only(from);
    guarded_read_only(block);
    return tensor;
}

/* The example in another dtype: what the kernel is given. The example's own tensors remain the reference's. */
struct given {
    struct attn_args args;
    struct guarded q, k, v, out, weights;
};

static struct given given_of(struct example *x, uint32_t dtype)
{
    struct given given = {.args = x->args};
    x->problem.dtype = dtype;
    if (dtype == ATTN_F32)
        return given;
    given.args.q = narrow(&x->args.q, &x->q, dtype, &given.q);
    given.args.k = narrow(&x->args.k, &x->k, dtype, &given.k);
    given.args.v = x->problem.flags & ATTN_FLAG_ALIASED ? given.args.k : narrow(&x->args.v, &x->v, dtype, &given.v);
    if (!(x->problem.flags & ATTN_FLAG_PARTIAL)) {
        const struct attn_tensor *out = &x->args.out;
        const int64_t span = 1 + (out->size[0] - 1) * out->stride[0] + (out->size[1] - 1) * out->stride[1] +
                             (out->size[2] - 1) * out->stride[2] + (out->size[3] - 1);
        given.out = guarded_allocate((size_t)span * sizeof(uint16_t));
        given.args.out.data = given.out.data;
    }
    return given;
}

static void release_given(struct given *given)
{
    for (struct guarded **block =
             (struct guarded *[]){&given->q, &given->k, &given->v, &given->out, &given->weights, NULL};
         *block; block++)
        guarded_release(*block);
}

/* Asks for the weights: NaN, between gaps of the same. */
static void add_weights(struct example *x, struct given *given)
{
    struct attn_problem *p = &x->problem;
    struct attn_tensor *weights = &given->args.weights;
    p->flags |= ATTN_FLAG_WEIGHTS;
    const int64_t span = lay_out(weights, p->B, p->H, p->S_q, p->S_kv, (int)below(3), one_in(2) ? 0 : below(20));
    given->weights = guarded_allocate((size_t)span * sizeof(float));
    weights->data = given->weights.data;
    memset(weights->data, 0xff, (size_t)span * sizeof(float));
}

static void judge_weights(const struct attn_kernel *kernel, const struct example *x, const struct given *given,
                          int64_t b, int64_t h, int64_t i, const double *expected, double relative)
{
    const float *got = row_of(&given->args.weights, b, h, i);
    for (int64_t j = 0; j < x->problem.S_kv; j++) {
        const double bound = expected[j] > 0 ? relative * expected[j] + 1e-37 : 0;
        if (isfinite(expected[j]) ? !(fabs((double)got[j] - expected[j]) <= bound) : isfinite(got[j]))
            fail_msg("%s: dtype %u %s: weight b=%d h=%d i=%d j=%d: got %.9g, expected %.9g", kernel->name,
                     x->problem.dtype, x->text, (int)b, (int)h, (int)i, (int)j, (double)got[j], expected[j]);
    }
}

/* The gaps between rows still hold what add_weights put there. */
static void judge_gaps(const struct attn_kernel *kernel, const struct example *x, const struct given *given)
{
    const struct attn_tensor *t = &given->args.weights;
    const int64_t span = row_of(t, t->size[0] - 1, t->size[1] - 1, t->size[2] - 1) + t->size[3] - (float *)t->data;
    int64_t written = 0;
    for (int64_t e = 0; e < span; e++)
        written += ((const uint32_t *)t->data)[e] != UINT32_MAX;
    if (written != t->size[0] * t->size[1] * t->size[2] * t->size[3])
        fail_msg("%s: %s: wrote %lld weights", kernel->name, x->text, (long long)written);
}

/* Runs the kernel over spans of its own grain, as a schedule would; splits go to their own outputs. */
static void run_kernel(const struct attn_kernel *kernel, const struct example *x, struct given *given, int split,
                       float *row_max, float *row_sum)
{
    const struct attn_problem *p = &x->problem;
    struct attn_plan plan = {.phases = 1, .q_grain = 1, .k_grain = 1, .head_grain = 1};
    assert_int_equal(kernel->plan(p, 1, NULL, &plan), 0);
    struct guarded scratch = guarded_allocate((plan.thread_bytes + 63) / 64 * 64);
    memset(scratch.data, 0xff, plan.thread_bytes);
    given->args.row_max = row_max;
    given->args.row_sum = row_sum;
    struct attn_span span = {.split = split, .k1 = p->S_kv};
    if (x->splits) {
        span.k0 = x->cut[split];
        span.k1 = x->cut[split + 1];
    }
    const int64_t q_step = one_in(2) ? plan.q_grain : (p->S_q > 0 ? p->S_q : 1);
    const int64_t h_step = one_in(2) ? plan.head_grain : one_in(2) ? 1 : p->H;
    for (span.b0 = 0; span.b0 < p->B; span.b0 = span.b1) {
        span.b1 = span.b0 + 1;
        for (span.h0 = 0; span.h0 < p->H; span.h0 = span.h1) {
            span.h1 = span.h0 + h_step < p->H ? span.h0 + h_step : p->H;
            for (span.q0 = 0; span.q0 < p->S_q; span.q0 = span.q1) {
                span.q1 = span.q0 + q_step < p->S_q ? span.q0 + q_step : p->S_q;
                assert_int_equal(kernel->run(p, &given->args, &span, 0, NULL, scratch.data), 0);
            }
        }
    }
    guarded_release(&scratch);
}

/* [B][H][S_q][D_v] as the caller of the kernel would see it after merging the splits. */
static double *kernel_output(const struct attn_kernel *kernel, struct example *x, struct given *given)
{
    const struct attn_problem *p = &x->problem;
    const int64_t rows = p->B * p->H * p->S_q;
    const int runs = x->splits ? x->splits : 1;
    double *result = calloc((size_t)(rows * p->D_v * runs) + 1, sizeof *result);
    float *row_max = malloc(sizeof(float) * (size_t)(rows * runs + 1));
    float *row_sum = malloc(sizeof(float) * (size_t)(rows * runs + 1));
    assert_true(result && row_max && row_sum);
    const size_t out_bytes =
        x->args.out.size[2]
            ? (size_t)(row_of(&x->args.out, p->B - 1, p->H - 1, p->S_q - 1) - (float *)x->args.out.data + p->D_v) *
                  sizeof(float)
            : 0;
    const bool narrow_out = given->out.data != NULL;
    for (int s = 0; s < runs; s++) {
        memset(x->out.data, 0xff, out_bytes);
        if (narrow_out)
            memset(given->out.data, 0xff, out_bytes / 2);
        run_kernel(kernel, x, given, s, row_max, row_sum);
        for (size_t e = 0; narrow_out && e < out_bytes / sizeof(float); e++) {
            const uint16_t bits = ((const uint16_t *)given->out.data)[e];
            if (bits != UINT16_MAX)
                ((float *)x->out.data)[e] = float_of(p->dtype, bits);
        }
        size_t written = 0;
        for (int64_t row = 0; row < rows; row++)
            for (int64_t d = 0; d < p->D_v; d++)
                result[(s * rows + row) * p->D_v + d] =
                    (double)row_of(&x->args.out, row / (p->H * p->S_q), row / p->S_q % p->H, row % p->S_q)[d];
        /* gaps between rows still hold the poison; a NaN that the kernel computed is another pattern or a row's own */
        for (size_t e = 0; e < out_bytes / sizeof(float); e++)
            written += ((const uint32_t *)x->out.data)[e] != UINT32_MAX;
        if (written > (size_t)(rows * p->D_v))
            fail_msg("%s: %s: wrote %zu elements of %lld", kernel->name, x->text, written, (long long)(rows * p->D_v));
    }
    for (int64_t row = 0; row < rows && x->splits; row++) {
        double max = -INFINITY, sum = 0;
        for (int s = 0; s < runs; s++)
            max = fmax(max, (double)row_max[s * rows + row]);
        for (int64_t d = 0; d < p->D_v; d++) {
            double out = 0;
            sum = 0;
            for (int s = 0; s < runs; s++) {
                if (row_max[s * rows + row] == -INFINITY) {
                    assert_true(row_sum[s * rows + row] == 0.0f);
                    assert_true(result[(s * rows + row) * p->D_v + d] == 0.0);
                    continue;
                }
                const double factor = exp((double)row_max[s * rows + row] - max);
                out += factor * result[(s * rows + row) * p->D_v + d];
                sum += factor * (double)row_sum[s * rows + row];
            }
            result[row * p->D_v + d] = sum == 0 ? 0 : out / sum;
        }
    }
    free(row_max);
    free(row_sum);
    return result;
}

static void judge(const struct attn_kernel *kernel, struct example *x, uint32_t dtype)
{
    const struct attn_problem *p = &x->problem;
    struct given given = given_of(x, dtype);
    if (!x->splits && one_in(2))
        add_weights(x, &given);
    double *got = kernel_output(kernel, x, &given);
    double *score = malloc(sizeof(double) * (size_t)(p->S_kv + 1));
    double *out = malloc(sizeof(double) * (size_t)p->D_v), *bound = malloc(sizeof(double) * (size_t)p->D_v);
    assert_true(score && out && bound);
    for (int64_t row = 0; row < p->B * p->H * p->S_q; row++) {
        const int64_t b = row / (p->H * p->S_q), h = row / p->S_q % p->H, i = row % p->S_q;
        const double relative = reference_row(x, b, h, i, score, out, bound);
        if (p->flags & ATTN_FLAG_WEIGHTS)
            judge_weights(kernel, x, &given, b, h, i, score, relative);
        for (int64_t d = 0; d < p->D_v; d++) {
            const double value = got[row * p->D_v + d];
            if (isfinite(out[d]) ? !(fabs(value - out[d]) <= bound[d]) : isfinite(value))
                fail_msg("%s: dtype %u %s: row b=%d h=%d i=%d column %d: got %.9g, expected %.9g, bound %.3g",
                         kernel->name, dtype, x->text, (int)b, (int)h, (int)i, (int)d, value, out[d], bound[d]);
        }
    }
    if (p->flags & ATTN_FLAG_WEIGHTS)
        judge_gaps(kernel, x, &given);
    release_given(&given);
    free(got);
    free(score);
    free(out);
    free(bound);
}

static bool runs_here(const struct attn_kernel *kernel)
{
    return (kernel->isa & ~isa_available()) == 0;
}

struct topic_test {
    const struct attn_kernel *kernel;
    enum topic topic;
};

static void check_topic(void **state)
{
    const struct topic_test *test = *state;
    if (!runs_here(test->kernel))
        skip();
    for (uint32_t dtype = ATTN_F32; dtype <= ATTN_F16; dtype++) {
        if (!(test->kernel->dtypes & ATTN_BIT(dtype)))
            continue;
        for (int n = 0; n < CASES_PER_TOPIC; n++) {
            struct example x;
            draw_example(&x, test->topic, ((uint64_t)test->topic << 32) + (uint64_t)n);
            judge(test->kernel, &x, dtype);
            release_example(&x);
        }
    }
}

/* Empty queries touch nothing; without keys every row is 0, and (-inf, 0) where partial. */
static void check_empty(void **state)
{
    const struct topic_test *test = *state;
    if (!runs_here(test->kernel))
        skip();
    for (int64_t S_q = 0; S_q < 40; S_q += 13) {
        struct attn_problem problem = {.struct_size = sizeof problem, .B = 1, .H = 2, .H_kv = 1, .S_q = S_q, .D = 5};
        problem.D_v = 3;
        problem.scale = 1.0f;
        problem.left = problem.right = INT64_MAX;
        problem.flags = ATTN_FLAG_PARTIAL;
        problem.dtype = test->kernel->dtypes & ATTN_BIT(ATTN_F32) ? ATTN_F32 : ATTN_BF16;
        float q[2 * 40 * 5] = {0}, out[2 * 40 * 3], row_max[80], row_sum[80];
        memset(out, 0xff, sizeof out);
        struct attn_args args = {.q = {q, {1, 2, S_q, 5}, {0, 200, 5, 1}}, .row_max = row_max, .row_sum = row_sum};
        args.out = (struct attn_tensor){out, {1, 2, S_q, 3}, {0, 120, 3, 1}};
        struct attn_plan plan = {.phases = 1, .q_grain = 1, .k_grain = 1, .head_grain = 1};
        assert_int_equal(test->kernel->plan(&problem, 1, NULL, &plan), 0);
        struct guarded scratch = guarded_allocate((plan.thread_bytes + 63) / 64 * 64);
        const struct attn_span span = {.b1 = 1, .h1 = 2, .q1 = S_q};
        assert_int_equal(test->kernel->run(&problem, &args, &span, 0, NULL, scratch.data), 0);
        for (int64_t row = 0; row < 2 * S_q; row++) {
            assert_true(row_max[row] == -INFINITY && row_sum[row] == 0.0f);
            for (int64_t d = 0; d < 3; d++)
                assert_true(out[row / S_q * 120 + row % S_q * 3 + d] == 0.0f);
        }
        guarded_release(&scratch);
    }
}

static double ulps(double got, double expected)
{
    const float rounded = (float)fabs(expected);
    return fabs(got - expected) / ((double)nextafterf(rounded, INFINITY) - (double)rounded);
}

/* Runs a partial problem of one head whose tensors are dense. */
static void run_dense(const struct attn_kernel *kernel, struct attn_problem *problem, float *q, float *k, float *v,
                      float *out, float *row_max, float *row_sum)
{
    problem->struct_size = sizeof *problem;
    problem->flags = ATTN_FLAG_PARTIAL;
    problem->B = problem->H = problem->H_kv = 1;
    problem->left = problem->right = INT64_MAX;
    struct attn_args args = {.q = {q, {1, 1, problem->S_q, problem->D}, {0, 0, problem->D, 1}},
                             .k = {k, {1, 1, problem->S_kv, problem->D}, {0, 0, problem->D, 1}},
                             .v = {v, {1, 1, problem->S_kv, problem->D_v}, {0, 0, problem->D_v, 1}},
                             .out = {out, {1, 1, problem->S_q, problem->D_v}, {0, 0, problem->D_v, 1}},
                             .row_max = row_max,
                             .row_sum = row_sum};
    struct attn_plan plan = {.phases = 1, .q_grain = 1, .k_grain = 1, .head_grain = 1};
    assert_int_equal(kernel->plan(problem, 1, NULL, &plan), 0);
    struct guarded scratch = guarded_allocate((plan.thread_bytes + 63) / 64 * 64);
    const struct attn_span span = {.b1 = 1, .h1 = 1, .q1 = problem->S_q, .k1 = problem->S_kv};
    assert_int_equal(kernel->run(problem, &args, &span, 0, NULL, scratch.data), 0);
    guarded_release(&scratch);
}

/* Key 0 scores 0, the others below; V is the identity, so that the partial output is the weights: exp itself. */
static void check_exp(void **state)
{
    enum { KEYS = 500 };
    const struct topic_test *test = *state;
    if (!runs_here(test->kernel))
        skip();
    const int64_t queries[2] = {1, 20};
    for (int n = 0; n < 2; n++) {
        struct attn_problem problem = {.S_q = queries[n], .S_kv = KEYS, .D = 1, .D_v = KEYS, .scale = 1.0f};
        static float q[20], k[KEYS], v[KEYS][KEYS], out[20][KEYS], row_max[20], row_sum[20];
        for (int i = 0; i < 20; i++)
            q[i] = 1.0f;
        for (int j = 0; j < KEYS; j++) {
            k[j] = j == KEYS - 1 ? -3e38f : (float)j * -0.1737f;
            v[j][j] = 1.0f;
        }
        run_dense(test->kernel, &problem, q, k, v[0], out[0], row_max, row_sum);
        for (int64_t i = 0; i < problem.S_q; i++)
            for (int j = 0; j < KEYS - 1; j++) {
                /* what the fold of log2(e) into q rounds is not exp's error */
                const float argument = k[j] * 1.44269504f;
                const double expected = exp2((double)argument);
                if (expected >= 0x1p-126 ? ulps((double)out[i][j], expected) > 2.0 : (double)out[i][j] > 0x1p-126)
                    fail_msg("%s: 2^%.9g is %.9g, got %.9g", test->kernel->name, (double)argument, expected,
                             (double)out[i][j]);
            }
        assert_true(out[0][KEYS - 1] == 0.0f && out[0][0] == 1.0f && row_max[0] == 0.0f);
    }
}

/* One key: the row maximum is the capped score, tanh itself. */
static void check_tanh(void **state)
{
    enum { QUERIES = 600 };
    const struct topic_test *test = *state;
    if (!runs_here(test->kernel))
        skip();
    struct attn_problem problem = {.S_q = QUERIES, .S_kv = 1, .D = 1, .D_v = 1, .scale = 1.0f, .softcap = 1.0f};
    static float q[QUERIES], out[QUERIES], row_max[QUERIES], row_sum[QUERIES];
    float k = 1.0f, v = 1.0f;
    for (int i = 0; i < QUERIES; i++)
        q[i] = (i % 2 ? -1.0f : 1.0f) * (i < 40 ? powf(10.0f, (float)i - 39.0f) : (float)(i - 40) * 0.0171f);
    q[0] = FLT_MAX;
    q[1] = -100.0f;
    run_dense(test->kernel, &problem, q, &k, &v, out, row_max, row_sum);
    for (int i = 0; i < QUERIES; i++)
        if (ulps((double)row_max[i], tanh((double)q[i])) > 3.5)
            fail_msg("%s: tanh(%.9g) is %.9g, got %.9g", test->kernel->name, (double)q[i], tanh((double)q[i]),
                     (double)row_max[i]);
}

int main(void)
{
    static const char *const names[] = {"plain",  "causal", "ragged", "masked", "extreme", "poisoned",
                                        "decode", "wide",   "empty",  "exp",    "tanh"};
    enum { TESTS = sizeof names / sizeof *names };
    static const struct attn_kernel *const kernels[] = {&attn_kernel_avx2, &attn_kernel_avx512,
                                                        &attn_kernel_avx512_bf16};
    enum { KERNELS = sizeof kernels / sizeof *kernels };
    static struct topic_test states[KERNELS][TESTS];
    static char titles[KERNELS][TESTS][64];
    struct CMUnitTest tests[KERNELS * TESTS];
    static const CMUnitTestFunction special[TESTS - TOPICS] = {check_empty, check_exp, check_tanh};
    size_t count = 0;
    for (int k = 0; k < KERNELS; k++)
        for (int t = 0; t < TESTS; t++) {
            const CMUnitTestFunction function = t < TOPICS ? check_topic : special[t - TOPICS];
            /* functions of one float are tried in f32 */
            if ((function == check_exp || function == check_tanh) && !(kernels[k]->dtypes & ATTN_BIT(ATTN_F32)))
                continue;
            states[k][t] = (struct topic_test){kernels[k], (enum topic)t};
            snprintf(titles[k][t], sizeof titles[k][t], "%s: %s", kernels[k]->name, names[t]);
            tests[count++] =
                (struct CMUnitTest){.name = titles[k][t], .test_func = function, .initial_state = &states[k][t]};
        }
    return _cmocka_run_group_tests("simd", tests, count, NULL, NULL);
}
