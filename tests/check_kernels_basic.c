/* SPDX-License-Identifier: Apache-2.0
 *
 * naive and tiled against a double loop in float64 that shares nothing with them: masks, lengths, layouts, garbage
 * where nobody may look, fully masked rows, returned weights, partial results merged over key splits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kernels/attn.h"

extern const struct attn_kernel attn_kernel_naive, attn_kernel_tiled;
static const struct attn_kernel *const kernels[] = {&attn_kernel_naive, &attn_kernel_tiled};
enum { KERNELS = sizeof kernels / sizeof *kernels, MAX_B = 3 };

struct trial {
    struct attn_problem problem;
    struct attn_args args;
    int64_t kv_len[MAX_B], diag[MAX_B];
};

static uint64_t random_state;

static uint64_t random_bits(void)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return random_state >> 33;
}

static int64_t random_below(int64_t n)
{
    return (int64_t)(random_bits() % (uint64_t)n);
}

static float random_float(void) /* about N(0, 1) */
{
    float sum = -6;
    for (int n = 0; n < 12; n++)
        sum += (float)random_bits() * 0x1p-31f;
    return sum;
}

/* Exactly as many elements as the view reaches, so that a sanitizer sees every step beyond. gap: elements between rows.
 */
static struct attn_tensor tensor_of(int64_t b, int64_t h, int64_t s, int64_t d, bool sequence_first, int64_t gap,
                                    size_t element)
{
    struct attn_tensor t = {.size = {b, h, s, d}, .stride = {h * s * (d + gap), s * (d + gap), d + gap, 1}};
    if (sequence_first) {
        t.stride[1] = d + gap;
        t.stride[2] = h * (d + gap);
    }
    int64_t count = b * h * s * (d + gap) - gap;
    t.data = malloc(count > 0 ? (size_t)count * element : 1);
    assert_non_null(t.data);
    return t;
}

static float *at(const struct attn_tensor *t, int64_t b, int64_t h, int64_t row, int64_t column)
{
    return (float *)t->data + b * t->stride[0] + h * t->stride[1] + row * t->stride[2] + column * t->stride[3];
}

static void fill(struct attn_tensor *t, float factor)
{
    for (int64_t b = 0; b < t->size[0]; b++)
        for (int64_t h = 0; h < t->size[1]; h++)
            for (int64_t s = 0; s < t->size[2]; s++)
                for (int64_t d = 0; d < t->size[3]; d++)
                    *at(t, b, h, s, d) = factor * random_float();
}

static void fill_row(struct attn_tensor *t, int64_t b, int64_t row, float value)
{
    for (int64_t h = 0; h < t->size[1]; h++)
        for (int64_t d = 0; d < t->size[3]; d++)
            *at(t, b, h, row, d) = value;
}

enum feature {
    WITH_MASK = 1,
    WITH_BIAS = 2,
    WITH_CAP = 4,
    WITH_LENGTHS = 8,
    WITH_DIAGONAL = 16,
    SEQUENCE_FIRST = 32,
    WITH_GAP = 64,
    LARGE_SCORES = 128
};

/* size: B, H, H_kv, S_q, S_kv, D, D_v. */
static void trial_create(struct trial *trial, const int64_t size[7], int64_t left, int64_t right, int features)
{
    *trial = (struct trial){0};
    struct attn_problem *problem = &trial->problem;
    *problem = (struct attn_problem){
        .struct_size = sizeof *problem,
        .flags = ATTN_FLAG_WEIGHTS,
        .B = size[0],
        .H = size[1],
        .H_kv = size[2],
        .S_q = size[3],
        .S_kv = size[4],
        .D = size[5],
        .D_v = size[6],
        .left = left,
        .right = right,
        .scale = 1 / sqrtf((float)size[5]),
        .softcap = features & WITH_CAP ? 1.5f : 0,
    };
    bool first = features & SEQUENCE_FIRST;
    int64_t gap = features & WITH_GAP ? 3 : 0;
    struct attn_args *args = &trial->args;
    args->q = tensor_of(size[0], size[1], size[3], size[5], first, gap, sizeof(float));
    args->k = tensor_of(size[0], size[2], size[4], size[5], first, gap, sizeof(float));
    args->v = tensor_of(size[0], size[2], size[4], size[6], first, gap, sizeof(float));
    args->out = tensor_of(size[0], size[1], size[3], size[6], first, gap, sizeof(float));
    args->weights = tensor_of(size[0], size[1], size[3], size[4], false, gap, sizeof(float));
    fill(&args->q, features & LARGE_SCORES ? 30 : 1);
    fill(&args->k, 1);
    fill(&args->v, 1);
    for (int64_t b = 0; b < size[0]; b++) {
        trial->kv_len[b] = features & WITH_LENGTHS ? random_below(size[4] + 1) : size[4];
        trial->diag[b] = features & WITH_DIAGONAL ? size[4] - size[3] : random_below(5) - 2;
    }
    problem->kv_len = features & WITH_LENGTHS ? trial->kv_len : NULL;
    problem->diag = trial->diag;
    if (features & WITH_BIAS) { /* one for all batch entries */
        args->bias = tensor_of(1, size[1], size[3], size[4], false, 0, sizeof(float));
        fill(&args->bias, 1);
        for (int64_t n = 0; n < size[1] * size[3] * size[4]; n += 7)
            ((float *)args->bias.data)[n] = -INFINITY;
        args->bias.stride[0] = 0;
    }
    if (features & WITH_MASK) { /* one for all heads; query row 0 sees nothing */
        args->mask = tensor_of(size[0], 1, size[3], size[4], false, 0, 1);
        for (int64_t n = 0; n < size[0] * size[3] * size[4]; n++)
            ((uint8_t *)args->mask.data)[n] = n % (size[3] * size[4]) >= size[4] && random_below(3) != 0;
        args->mask.stride[1] = 0;
    }
}

static void trial_destroy(struct trial *trial)
{
    struct attn_args *args = &trial->args;
    void *const blocks[] = {args->q.data,       args->k.data,    args->v.data,   args->out.data,
                            args->weights.data, args->bias.data, args->mask.data};
    for (size_t n = 0; n < sizeof blocks / sizeof *blocks; n++)
        free(blocks[n]);
}

/* ---- the reference ------------------------------------------------------------------- */

static bool may_see(const struct trial *trial, int64_t b, int64_t h, int64_t i, int64_t j)
{
    const struct attn_problem *problem = &trial->problem;
    double position = (double)(i + trial->diag[b]);
    if (j >= trial->kv_len[b])
        return false;
    if (problem->right != INT64_MAX && (double)j > position + (double)problem->right)
        return false;
    if (problem->left != INT64_MAX && (double)j <= position - (double)problem->left)
        return false;
    const struct attn_tensor *mask = &trial->args.mask, *bias = &trial->args.bias;
    if (mask->data && !((uint8_t *)mask->data)[b * mask->stride[0] + i * mask->stride[2] + j])
        return false;
    return !bias->data || *at(bias, b, h, i, j) > -INFINITY;
}

/* One row: out[D_v], weights[S_kv], and an error bound a unit of sum(p |v|). */
static void reference_row(const struct trial *trial, int64_t b, int64_t h, int64_t i, double *out, double *size,
                          double *weights, double *relative)
{
    const struct attn_problem *problem = &trial->problem;
    const struct attn_args *args = &trial->args;
    int64_t g = h * problem->H_kv / problem->H;
    double max = -INFINITY, sum = 0, largest = 0;
    for (int64_t j = 0; j < problem->S_kv; j++) {
        weights[j] = -INFINITY;
        if (!may_see(trial, b, h, i, j))
            continue;
        double score = 0, magnitude = 0;
        for (int64_t d = 0; d < problem->D; d++) {
            score += (double)*at(&args->q, b, h, i, d) * *at(&args->k, b, g, j, d);
            magnitude += fabs((double)*at(&args->q, b, h, i, d) * *at(&args->k, b, g, j, d));
        }
        score *= problem->scale;
        if (problem->softcap > 0)
            score = problem->softcap * tanh(score / problem->softcap);
        if (args->bias.data)
            score += *at(&args->bias, b, h, i, j);
        weights[j] = score;
        max = score > max || isnan(score) ? score : max;
        if (isfinite(magnitude))
            largest = fmax(largest, magnitude * fabs((double)problem->scale));
    }
    for (int64_t j = 0; j < problem->S_kv; j++)
        sum += weights[j] = may_see(trial, b, h, i, j) ? exp(weights[j] - max) : 0;
    for (int64_t d = 0; d < problem->D_v; d++)
        out[d] = size[d] = 0;
    for (int64_t j = 0; j < problem->S_kv; j++) {
        if (!may_see(trial, b, h, i, j))
            continue;
        weights[j] /= sum;
        for (int64_t d = 0; d < problem->D_v; d++) {
            out[d] += weights[j] * *at(&args->v, b, g, j, d);
            size[d] += weights[j] * fabs((double)*at(&args->v, b, g, j, d));
        }
    }
    *relative = 0x1p-24 * (8 + 4 * sqrt((double)problem->S_kv) + 4 * largest);
}

static bool close_to(double got, double expected, double bound)
{
    return isfinite(expected) ? fabs(got - expected) <= bound + 0x1p-126 : !isfinite(got); /* float may underflow */
}

/* Number of elements that are wrong. */
static int64_t compare(const struct trial *trial, bool with_weights)
{
    const struct attn_problem *problem = &trial->problem;
    double *out = calloc((size_t)(2 * problem->D_v + problem->S_kv), sizeof *out);
    assert_non_null(out);
    double *size = out + problem->D_v, *weights = size + problem->D_v, relative;
    int64_t wrong = 0;
    for (int64_t b = 0; b < problem->B; b++)
        for (int64_t h = 0; h < problem->H; h++)
            for (int64_t i = 0; i < problem->S_q; i++) {
                reference_row(trial, b, h, i, out, size, weights, &relative);
                for (int64_t d = 0; d < problem->D_v; d++)
                    wrong += !close_to(*at(&trial->args.out, b, h, i, d), out[d], relative * size[d]);
                for (int64_t j = 0; with_weights && j < problem->S_kv; j++)
                    wrong += !close_to(*at(&trial->args.weights, b, h, i, j), weights[j], relative * weights[j]);
            }
    free(out);
    return wrong;
}

static struct attn_plan plan_of(const struct attn_kernel *kernel, const struct attn_problem *problem)
{
    struct attn_plan plan = {.phases = 1, .q_grain = 1, .k_grain = 1, .head_grain = 1};
    assert_int_equal(kernel->plan(problem, 1, NULL, &plan), 0);
    return plan;
}

/* Poisons output, weights and scratch before. */
static void run_span(const struct attn_kernel *kernel, struct trial *trial, int64_t k0, int64_t k1, int64_t split)
{
    const struct attn_problem *problem = &trial->problem;
    struct attn_plan plan = plan_of(kernel, problem);
    size_t bytes = (plan.thread_bytes + 63) / 64 * 64;
    float *scratch = aligned_alloc(64, bytes ? bytes : 64);
    assert_non_null(scratch);
    memset(scratch, 0xff, bytes);
    struct attn_tensor *const outputs[] = {&trial->args.out, &trial->args.weights};
    for (int n = 0; n < 2; n++)
        for (int64_t b = 0; b < problem->B; b++)
            for (int64_t i = 0; i < problem->S_q; i++)
                fill_row(outputs[n], b, i, NAN);
    /* Cut at multiples of q_grain, so that spans other than the whole problem are seen too. */
    for (int64_t q0 = 0; q0 < problem->S_q; q0 += plan.q_grain) {
        int64_t q1 = q0 + plan.q_grain < problem->S_q ? q0 + plan.q_grain : problem->S_q;
        struct attn_span span = {0, problem->B, 0, problem->H, q0, q1, k0, k1, split};
        assert_int_equal(kernel->run(problem, &trial->args, &span, 0, NULL, scratch), 0);
    }
    free(scratch);
}

static void check_trial(struct trial *trial)
{
    for (int n = 0; n < KERNELS; n++) {
        run_span(kernels[n], trial, 0, trial->problem.S_kv, 0);
        int64_t wrong = compare(trial, true);
        if (wrong)
            print_message("# %s: B %d H %d H_kv %d S_q %d S_kv %d D %d D_v %d\n", kernels[n]->name,
                          (int)trial->problem.B, (int)trial->problem.H, (int)trial->problem.H_kv,
                          (int)trial->problem.S_q, (int)trial->problem.S_kv, (int)trial->problem.D,
                          (int)trial->problem.D_v);
        assert_int_equal(wrong, 0);
    }
}

/* ---- tests --------------------------------------------------------------------------- */

static void test_sizes(void **state)
{
    (void)state;
    static const int64_t sizes[][7] = {
        {1, 1, 1, 1, 1, 1, 1},     {1, 1, 1, 4, 8, 4, 4},     {2, 3, 3, 5, 7, 3, 2},       {1, 4, 2, 17, 33, 16, 16},
        {2, 6, 2, 16, 128, 8, 12}, {1, 2, 1, 65, 129, 31, 9}, {1, 1, 1, 64, 256, 64, 64},  {1, 1, 1, 130, 130, 5, 67},
        {1, 4, 1, 1, 300, 64, 64}, {3, 2, 2, 9, 257, 80, 40}, {1, 1, 1, 12, 40, 513, 515}, {1, 2, 2, 3, 127, 128, 128},
    };
    static const int64_t window[][2] = {{INT64_MAX, INT64_MAX}, {INT64_MAX, 0}, {5, 0}, {20, 11}, {INT64_MAX, 3}};
    int count = 0;
    for (size_t size = 0; size < sizeof sizes / sizeof *sizes; size++)
        for (size_t n = 0; n < sizeof window / sizeof *window; n++, count++) {
            struct trial trial;
            random_state = (uint64_t)count;
            /* Every feature alone and in changing company. */
            trial_create(&trial, sizes[size], window[n][0], window[n][1], (int)random_below(256));
            check_trial(&trial);
            trial_destroy(&trial);
        }
    assert_int_equal(count, 60);
}

static void test_each_feature(void **state)
{
    (void)state;
    static const int64_t size[7] = {2, 4, 2, 37, 150, 24, 20};
    for (int feature = 1; feature <= LARGE_SCORES; feature *= 2)
        for (int causal = 0; causal < 2; causal++) {
            struct trial trial;
            random_state = 99;
            trial_create(&trial, size, INT64_MAX, causal ? 0 : INT64_MAX, feature);
            check_trial(&trial);
            trial_destroy(&trial);
        }
}

static void test_zero_sizes(void **state)
{
    (void)state;
    static const int64_t sizes[][7] = {{1, 2, 2, 0, 4, 8, 8}, {0, 2, 2, 4, 4, 8, 8}, {1, 2, 2, 4, 0, 8, 8}};
    for (int n = 0; n < 3; n++) {
        struct trial trial;
        trial_create(&trial, sizes[n], INT64_MAX, 0, 0);
        check_trial(&trial);
        for (int64_t i = 0; n == 2 && i < 4; i++)
            assert_true(*at(&trial.args.out, 0, 1, i, 7) == 0);
        trial_destroy(&trial);
    }
}

/* Garbage that no row may see, and some on the diagonal's edge: rows that see it, and no others, are not finite. */
static void test_garbage(void **state)
{
    (void)state;
    static const int64_t size[7] = {2, 2, 1, 70, 200, 16, 12};
    static const float garbage[] = {NAN, INFINITY, -INFINITY};
    for (int n = 0; n < 3; n++)
        for (int left = 0; left < 2; left++) {
            struct trial trial;
            random_state = 5;
            trial_create(&trial, size, left ? 40 : INT64_MAX, 0, 0);
            trial.problem.kv_len = trial.kv_len;
            trial.kv_len[1] = 61;
            for (int64_t j = 61; j < 200; j++) {
                fill_row(&trial.args.k, 1, j, garbage[n]);
                fill_row(&trial.args.v, 1, j, garbage[n]);
            }
            fill_row(&trial.args.v, 0, 45, garbage[n]);
            fill_row(&trial.args.v, 0, 47, garbage[(n + 1) % 3]);
            fill_row(&trial.args.k, 0, 50, garbage[n]);
            for (int64_t j = 73; j < 200; j++) {
                fill_row(&trial.args.k, 0, j, garbage[n]);
                fill_row(&trial.args.v, 0, j, garbage[n]);
            }
            check_trial(&trial);
            assert_true(isfinite(*at(&trial.args.out, 0, 1, 10, 0)));
            assert_false(isfinite(*at(&trial.args.out, 0, 1, 60, 0)));
            assert_true(isfinite(*at(&trial.args.out, 1, 1, 69, 0)));
            trial_destroy(&trial);
        }
}

/* A NaN in q or k that matters must come out, not vanish in a maximum; the least float is no NaN's cause. */
static void test_nan_comes_out(void **state)
{
    (void)state;
    static const int64_t size[7] = {1, 1, 1, 20, 30, 8, 8};
    struct trial trial;
    trial_create(&trial, size, INT64_MAX, INT64_MAX, 0);
    fill_row(&trial.args.q, 0, 3, NAN);
    check_trial(&trial);
    assert_true(isnan(*at(&trial.args.out, 0, 0, 3, 0)));
    fill_row(&trial.args.k, 0, 29, NAN);
    check_trial(&trial);
    assert_true(isnan(*at(&trial.args.out, 0, 0, 19, 7)));
    trial_destroy(&trial);
    trial_create(&trial, size, INT64_MAX, INT64_MAX, WITH_BIAS);
    fill_row(&trial.args.bias, 0, 5, -0x1.fffffep127f); /* "masked" to some, but no -infinity: the row has its keys */
    check_trial(&trial);
    trial_destroy(&trial);
}

static void test_masked_rows_are_zero(void **state)
{
    (void)state;
    static const int64_t size[7] = {1, 2, 2, 40, 16, 8, 8};
    struct trial trial;
    trial_create(&trial, size, INT64_MAX, 0, WITH_DIAGONAL); /* S_q > S_kv: rows 0..23 see nothing */
    check_trial(&trial);
    for (int64_t i = 0; i < 24; i++)
        for (int64_t d = 0; d < 8; d++)
            assert_true(*at(&trial.args.out, 0, 1, i, d) == 0 && *at(&trial.args.weights, 0, 1, i, d) == 0);
    assert_true(*at(&trial.args.out, 0, 1, 24, 0) == *at(&trial.args.v, 0, 1, 0, 0));
    trial_destroy(&trial);
}

/* Three partial results over thirds of the keys, merged by maxima and sums, equal the whole. */
static void check_merge(const struct attn_kernel *kernel, struct trial *trial)
{
    struct attn_problem *problem = &trial->problem;
    const int64_t grain = plan_of(kernel, problem).k_grain, rows = problem->B * problem->H * problem->S_q;
    const int64_t third = (problem->S_kv / 3 + grain - 1) / grain * grain, cut[] = {0, third, 2 * third, problem->S_kv};
    float *state = malloc((size_t)(6 * rows) * sizeof *state);
    double *merged = calloc((size_t)(rows * (problem->D_v + 2)), sizeof *merged);
    assert_non_null(state);
    assert_non_null(merged);
    problem->flags = ATTN_FLAG_PARTIAL;
    trial->args.row_max = state;
    trial->args.row_sum = state + 3 * rows;
    for (int64_t row = 0; row < rows; row++)
        merged[row * (problem->D_v + 2)] = -INFINITY;
    for (int split = 0; split < 3; split++) {
        run_span(kernel, trial, cut[split], cut[split + 1], split);
        for (int64_t row = 0; row < rows; row++) {
            int64_t i = row % problem->S_q, h = row / problem->S_q % problem->H, b = row / problem->S_q / problem->H;
            double *into = merged + row * (problem->D_v + 2);
            double max = state[split * rows + row], sum = state[(3 + split) * rows + row];
            assert_true(max > -INFINITY ? sum > 0 : sum == 0);
            double above = fmax(max, into[0]);
            double old = into[0] > -INFINITY ? exp(into[0] - above) : 0, new = max > -INFINITY ? exp(max - above) : 0;
            into[0] = above;
            into[1] = into[1] * old + sum * new;
            for (int64_t d = 0; d < problem->D_v; d++)
                into[2 + d] = into[2 + d] * old + *at(&trial->args.out, b, h, i, d) * new;
        }
    }
    for (int64_t row = 0; row < rows; row++) {
        int64_t i = row % problem->S_q, h = row / problem->S_q % problem->H, b = row / problem->S_q / problem->H;
        const double *from = merged + row * (problem->D_v + 2);
        for (int64_t d = 0; d < problem->D_v; d++)
            *at(&trial->args.out, b, h, i, d) = (float)(from[1] > 0 ? from[2 + d] / from[1] : 0);
    }
    assert_int_equal(compare(trial, false), 0);
    free(state);
    free(merged);
}

static void test_partial_results_merge(void **state)
{
    (void)state;
    static const int64_t size[7] = {2, 4, 2, 33, 390, 20, 12};
    for (int n = 0; n < KERNELS; n++)
        for (int features = 0; features < 256; features += 37) {
            struct trial trial;
            random_state = (uint64_t)features;
            trial_create(&trial, size, INT64_MAX, features % 2 ? 0 : INT64_MAX, features);
            check_merge(kernels[n], &trial);
            trial_destroy(&trial);
        }
}

/* Rows of k 2^32 elements apart, in untouched address space: an offset of 32 bits would read row 0 again. */
static void test_offsets_are_64_bit(void **state)
{
    (void)state;
    static const int64_t size[7] = {1, 1, 1, 3, 3, 8, 8};
    const int64_t apart = INT64_C(1) << 32;
    const size_t bytes = (size_t)(2 * apart + 8) * sizeof(float);
    float *space = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED)
        skip(); /* a limit on address space, or a sanitizer */
    struct trial trial;
    trial_create(&trial, size, INT64_MAX, INT64_MAX, 0);
    free(trial.args.k.data);
    trial.args.k.data = space;
    trial.args.k.stride[2] = apart;
    fill(&trial.args.k, 3);
    check_trial(&trial);
    trial.args.k.data = NULL;
    trial_destroy(&trial);
    munmap(space, bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_each_feature),
        cmocka_unit_test(test_zero_sizes),
        cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_nan_comes_out),
        cmocka_unit_test(test_masked_rows_are_zero),
        cmocka_unit_test(test_partial_results_merge),
        cmocka_unit_test(test_offsets_are_64_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
