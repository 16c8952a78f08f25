/* SPDX-License-Identifier: Apache-2.0
 *
 * The oracle's bounds hold what they promise: plain f32 attention in several summation orders stays below half the
 * bound for every fill and dtype, and each planted fault exceeds four times the bound.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "harness/fill.h"
#include "harness/oracle.h"

enum order { PLAIN, REVERSED, LANES, ONLINE, ORDERS };
static const char *const order_names[] = {"plain", "reversed", "lanes", "online"};

enum fault {
    SOUND,
    COARSE_EXP,
    FINER_EXP,
    BF16_ACCUMULATOR,
    DROPPED_KEY,
    CAUSAL_OFF_BY_ONE,
    NO_RESCALE,
    STALE_MAXIMUM,
    WRONG_KEY_HEAD
};

struct variant {
    enum order order;
    enum fault fault;
};

enum { LANE_COUNT = 8, KEY_BLOCK = 16 };

static float element(const struct attn_tensor *t, enum attn_dtype dtype, int64_t b, int64_t h, int64_t s, int64_t d)
{
    int64_t at = b * t->stride[0] + h * t->stride[1] + s * t->stride[2] + d;
    if (dtype == ATTN_F32)
        return ((const float *)t->data)[at];
    uint16_t stored = ((const uint16_t *)t->data)[at];
    return dtype == ATTN_BF16 ? float_from_bf16(stored) : float_from_f16(stored);
}

static void read_line(const struct attn_tensor *t, enum attn_dtype dtype, int64_t b, int64_t h, int64_t s, float *line)
{
    if (dtype == ATTN_F32)
        memcpy(line, (const float *)t->data + b * t->stride[0] + h * t->stride[1] + s * t->stride[2],
               (size_t)t->size[3] * sizeof *line);
    else
        for (int64_t d = 0; d < t->size[3]; d++)
            line[d] = element(t, dtype, b, h, s, d);
}

static void store(const struct attn_tensor *t, enum attn_dtype dtype, int64_t b, int64_t h, int64_t s, int64_t d,
                  float x)
{
    int64_t at = b * t->stride[0] + h * t->stride[1] + s * t->stride[2] + d;
    if (dtype == ATTN_F32)
        ((float *)t->data)[at] = x;
    else
        ((uint16_t *)t->data)[at] = dtype == ATTN_BF16 ? bf16_from_float(x) : f16_from_float(x);
}

static float round_to(enum attn_dtype dtype, float x)
{
    if (dtype == ATTN_BF16)
        return float_from_bf16(bf16_from_float(x));
    return dtype == ATTN_F16 ? float_from_f16(f16_from_float(x)) : x;
}

static float exponential(const struct variant *variant, float x)
{
    float y = variant->order == ONLINE ? exp2f(x) : expf(x);
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    float noise = (float)(2 * fill_uniform(fill_bits(1, 0, FILL_V, bits)) - 1);
    if (variant->fault == COARSE_EXP)
        y *= 1 + 1e-3f * noise;
    if (variant->fault == FINER_EXP)
        y *= 1 + 1e-4f * noise;
    return y;
}

static float dot(enum order order, const float *q, const float *k, int64_t D)
{
    float lane[LANE_COUNT] = {0}, sum = 0;
    if (order == LANES) {
        for (int64_t d = 0; d < D; d++)
            lane[d % LANE_COUNT] += q[d] * k[d];
        for (int l = 0; l < LANE_COUNT; l++)
            sum += lane[l];
        return sum;
    }
    for (int64_t d = 0; d < D; d++) {
        int64_t at = order == REVERSED ? D - 1 - d : d;
        sum = order == ONLINE ? fmaf(q[at], k[at], sum) : sum + q[at] * k[at];
    }
    return sum;
}

static float accumulate(const struct variant *variant, float sum, float term)
{
    sum += term;
    return variant->fault == BF16_ACCUMULATOR ? float_from_bf16(bf16_from_float(sum)) : sum;
}

/* One row, keys in natural or reverse order, float throughout. Online: blocks of keys, running maximum, base 2. */
static void attend_row(const struct operands *operands, const struct variant *variant, int64_t b, int64_t h, int64_t i)
{
    const struct attn_problem *p = &operands->problem;
    const struct attn_args *args = &operands->args;
    int64_t group = p->H / p->H_kv, kv_head = variant->fault == WRONG_KEY_HEAD ? h % p->H_kv : h / group;
    int64_t position = i + (p->diag ? p->diag[b] : 0), end = p->kv_len ? p->kv_len[b] : p->S_kv;
    if (p->right != INT64_MAX && position + p->right + 1 < end)
        end = position + p->right + 1;
    end += (variant->fault == CAUSAL_OFF_BY_ONE && end < p->S_kv) - (variant->fault == DROPPED_KEY);
    float *q = malloc((size_t)p->D * sizeof *q), *k = calloc((size_t)p->D, sizeof *k),
          *v = calloc((size_t)p->D_v, sizeof *v);
    float *score = malloc((size_t)p->S_kv * sizeof *score), *out = calloc((size_t)p->D_v, sizeof *out);
    bool online = variant->order == ONLINE;
    float fold = online ? p->scale * 1.44269504f : 1.0f, maximum = -INFINITY, sum = 0;
    for (int64_t d = 0; d < p->D; d++)
        q[d] = element(&args->q, p->dtype, b, h, i, d) * fold;
    for (int64_t j = 0; j < end; j++) {
        read_line(&args->k, p->dtype, b, kv_head, j, k);
        score[j] = dot(variant->order, q, k, p->D) * (online ? 1.0f : p->scale);
        if (!online && score[j] > maximum)
            maximum = score[j];
    }
    for (int64_t n = 0; n < end; n++) {
        int64_t j = variant->order == REVERSED ? end - 1 - n : n;
        if (online && j % KEY_BLOCK == 0) {
            float next = variant->fault == STALE_MAXIMUM ? maximum : fmaxf(maximum, score[j]);
            for (int64_t later = j; later < j + KEY_BLOCK && later < end; later++)
                next = variant->fault == STALE_MAXIMUM && j > 0 ? next : fmaxf(next, score[later]);
            float factor = maximum == -INFINITY ? 0 : exponential(variant, maximum - next);
            maximum = next;
            sum *= factor;
            for (int64_t d = 0; d < p->D_v && variant->fault != NO_RESCALE; d++)
                out[d] *= factor;
        }
        float e = exponential(variant, score[j] - maximum);
        sum += e;
        e = round_to(p->dtype, e);
        read_line(&args->v, p->dtype, b, kv_head, j, v);
        for (int64_t d = 0; d < p->D_v; d++)
            out[d] = accumulate(variant, out[d], e * v[d]);
    }
    for (int64_t d = 0; d < p->D_v; d++)
        store(&args->out, p->dtype, b, h, i, d, end > 0 ? out[d] / sum : 0);
    free(q);
    free(k);
    free(v);
    free(score);
    free(out);
}

/* Data that are anything but random: scores climb by key, take two values, or fall; v takes sides with them. */
enum structure { UNSTRUCTURED, CLIMBING, TWO_LEVELS, FALLING, STRUCTURES };

static void structure_data(const struct operands *operands, enum structure structure)
{
    const struct attn_problem *p = &operands->problem;
    for (int64_t h = 0; h < p->H_kv && structure != UNSTRUCTURED; h++)
        for (int64_t j = 0; j < p->S_kv; j++) {
            float place = (float)j / (float)p->S_kv;
            float level = structure == CLIMBING ? place : structure == FALLING ? 1 - place : (float)(j % 3 == 0) * 0.5f;
            for (int64_t d = 0; d < p->D; d++)
                store(&operands->args.k, p->dtype, 0, h, j, d, level * 2.3f);
            for (int64_t d = 0; d < p->D_v; d++)
                store(&operands->args.v, p->dtype, 0, h, j, d,
                      d % 3 == 0   ? (place < 0.5f ? 1.1f : -1.3f)
                      : d % 3 == 1 ? (j % 2 ? 1.1f : -1.1f)
                                   : 7.7f + place);
        }
}

/* A problem with its reference, so that several variants are held against one. */
struct session {
    struct operands operands;
    struct oracle oracle;
};

static void open_session(const struct problem_spec *spec, enum structure structure, struct session *session)
{
    struct error error;
    assert_int_equal(operands_create(spec, MEMORY_PLAIN, &session->operands, &error), 0);
    operands_fill(&session->operands, 1, 1);
    structure_data(&session->operands, structure);
    assert_int_equal(
        oracle_create(&session->operands.problem, &session->operands.args, 1, 1e12, 1, &session->oracle, &error), 0);
}

static void close_session(struct session *session)
{
    oracle_destroy(&session->oracle);
    operands_destroy(&session->operands);
}

static struct judgement judge(struct session *session, enum order order, enum fault fault)
{
    struct operands *operands = &session->operands;
    struct variant variant = {order, fault};
    struct judgement judgement;
    operands_poison(operands, 1);
    for (int64_t b = 0; b < operands->spec.B; b++)
        for (int64_t h = 0; h < operands->spec.H; h++)
            for (int64_t i = 0; i < operands->spec.S_q; i++)
                attend_row(operands, &variant, b, h, i);
    oracle_judge(&session->oracle, &operands->problem, &operands->args.out, NULL, &judgement);
    return judgement;
}

static struct problem_spec small_spec(int64_t S_q, int64_t S_kv, int64_t D)
{
    struct problem_spec spec = spec_default();
    spec.H = 4;
    spec.H_kv = 2;
    spec.S_q = S_q;
    spec.S_kv = S_kv;
    spec.D = D;
    spec.D_v = D < 96 ? D : 96;
    return spec;
}

static double worst_clean;

static void expect_clean(const struct problem_spec *spec, enum structure structure)
{
    struct session session;
    open_session(spec, structure, &session);
    for (int order = 0; order < ORDERS; order++) {
        struct judgement judgement = judge(&session, (enum order)order, SOUND);
        if (judgement.err_over_bound > worst_clean)
            worst_clean = judgement.err_over_bound;
        if (judgement.wrong || !(judgement.err_over_bound < 0.5))
            fail_msg("%s %s %s %d S_kv %d D %d: %.3g x bound %s", order_names[order], dtype_name(spec->dtype),
                     fill_name(spec->fill), (int)structure, (int)spec->S_kv, (int)spec->D, judgement.err_over_bound,
                     judgement.reason);
    }
    close_session(&session);
}

static void clean_kernels_stay_below_half_the_bound(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{3, 1, 1},    {5, 7, 37},    {9, 33, 5},   {26, 64, 64},
                                        {4, 512, 64}, {3, 301, 128}, {2, 700, 512}};
    for (int dtype = ATTN_F32; dtype <= ATTN_F16; dtype++)
        for (int fill = FILL_NORMAL; fill <= FILL_SUBNORMAL; fill++)
            for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
                struct problem_spec spec = small_spec(shapes[s][0], shapes[s][1], shapes[s][2]);
                spec.dtype = (enum attn_dtype)dtype;
                spec.fill = (enum fill)fill;
                spec.causal = s % 2 ? CAUSAL_BOTTOM_RIGHT : CAUSAL_NONE;
                expect_clean(&spec, UNSTRUCTURED);
            }
}

static void long_rows_stay_below_half_the_bound(void **state)
{
    (void)state;
    for (int fill = FILL_NORMAL; fill <= FILL_SUBNORMAL; fill++) {
        struct problem_spec spec = small_spec(2, 4096, 64);
        spec.fill = (enum fill)fill;
        expect_clean(&spec, UNSTRUCTURED);
    }
}

static void structured_data_stay_below_half_the_bound(void **state)
{
    (void)state;
    for (int dtype = ATTN_F32; dtype <= ATTN_F16; dtype++)
        for (int structure = CLIMBING; structure < STRUCTURES; structure++)
            for (int64_t length = 15; length < 3000; length *= 13) {
                struct problem_spec spec = small_spec(2, length, 64);
                spec.dtype = (enum attn_dtype)dtype;
                expect_clean(&spec, (enum structure)structure);
            }
}

static void shared_buffers_stay_below_half_the_bound(void **state)
{
    (void)state;
    for (int alias = ALIAS_KV; alias <= ALIAS_QKV; alias++)
        for (int fill = FILL_NORMAL; fill <= FILL_SUBNORMAL; fill++) {
            struct problem_spec spec = small_spec(32, 32, 64);
            spec.H = spec.H_kv;
            spec.alias = (enum alias)alias;
            spec.fill = (enum fill)fill;
            expect_clean(&spec, UNSTRUCTURED);
        }
}

static void expect_caught(const struct problem_spec *spec, enum order order, enum fault fault, const char *what)
{
    struct session session;
    open_session(spec, UNSTRUCTURED, &session);
    struct judgement judgement = judge(&session, order, fault);
    close_session(&session);
    if (!judgement.wrong || !(judgement.err_over_bound > 4))
        fail_msg("%s, %s S_kv %d: only %.3g x bound", what, dtype_name(spec->dtype), (int)spec->S_kv,
                 judgement.err_over_bound);
}

static void faults_exceed_four_times_the_bound(void **state)
{
    (void)state;
    static const int64_t lengths[] = {33, 512, 4096};
    for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++) {
        struct problem_spec spec = small_spec(lengths[l] > 1000 ? 3 : 8, lengths[l], 64);
        expect_caught(&spec, PLAIN, COARSE_EXP, "exp to 1e-3");
        expect_caught(&spec, ONLINE, COARSE_EXP, "exp2 to 1e-3");
        expect_caught(&spec, PLAIN, FINER_EXP, "exp to 1e-4");
        expect_caught(&spec, PLAIN, BF16_ACCUMULATOR, "bf16 accumulator");
        expect_caught(&spec, LANES, DROPPED_KEY, "last key dropped");
        expect_caught(&spec, PLAIN, WRONG_KEY_HEAD, "wrong key head");
        spec.causal = CAUSAL_TOP_LEFT;
        expect_caught(&spec, PLAIN, CAUSAL_OFF_BY_ONE, "causal off by one");
        spec.causal = CAUSAL_NONE;
        spec.fill = FILL_HUGE;
        expect_caught(&spec, ONLINE, NO_RESCALE, "no rescale, huge");
        expect_caught(&spec, ONLINE, STALE_MAXIMUM, "first block's maximum for all, huge");
        spec.fill = FILL_NORMAL;
        expect_caught(&spec, ONLINE, NO_RESCALE, "no rescale");
        spec.dtype = ATTN_BF16;
        expect_caught(&spec, PLAIN, WRONG_KEY_HEAD, "wrong key head");
        expect_caught(&spec, ONLINE, NO_RESCALE, "no rescale");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clean_kernels_stay_below_half_the_bound),
        cmocka_unit_test(long_rows_stay_below_half_the_bound),
        cmocka_unit_test(structured_data_stay_below_half_the_bound),
        cmocka_unit_test(shared_buffers_stay_below_half_the_bound),
        cmocka_unit_test(faults_exceed_four_times_the_bound),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fprintf(stderr, "# largest clean error: %.3g x bound\n", worst_clean);
    return failed;
}
