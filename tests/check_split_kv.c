/* SPDX-License-Identifier: Apache-2.0
 *
 * splitkv: every allowed pair of query and key is done exactly once whatever lengths, windows, grains and threads; the
 * merged parts equal the whole, in every dtype; rows without a key are 0; what is not finite does not get lost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/schedule/round.h"
#include "kernels/schedule/schedule.h"
#include "kernels/schedule/team.h"

enum { MAX_THREADS = 4, UNTOUCHED = 0x5a };

/* A problem whose scores and values stand in tables, for a kernel that notes what it is asked for. */
struct world {
    struct attn_problem problem;
    struct attn_plan plan;
    int64_t kv_len[4], diag[4];
    float *score;                                 /* [B][H][S_q][S_kv] */
    float *value;                                 /* [B][H_kv][S_kv][D_v] */
    void *out;                                    /* [B][H][S_q][D_v] in the problem's dtype */
    _Atomic int *visits;                          /* [B][H][S_q][S_kv] */
    _Atomic int faults, calls, prepared, longest; /* longest: keys of a part */
    int fail_at;                                  /* the call that returns -EIO; 0: none */
};

static uint64_t random_state;

static uint32_t draw(void)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(random_state >> 33);
}

static float draw_float(float span)
{
    return span * ((float)draw() / 1073741824.0f - 1);
}

static int64_t rows_of(const struct world *world)
{
    return world->problem.B * world->problem.H * world->problem.S_q;
}

static bool allowed(const struct world *world, int64_t b, int64_t i, int64_t j)
{
    const struct attn_problem *p = &world->problem;
    const int64_t distance = j - i - (p->diag ? p->diag[b] : 0);
    return j < (p->kv_len ? p->kv_len[b] : p->S_kv) && distance <= p->right && distance > -p->left;
}

/* One row over keys k0..k1 in double: its output not divided, maximum and sum. */
static void attend(const struct world *world, int64_t row, int64_t k0, int64_t k1, double *out, double *max,
                   double *sum)
{
    const struct attn_problem *p = &world->problem;
    const int64_t i = row % p->S_q, h = row / p->S_q % p->H, b = row / p->S_q / p->H;
    const float *score = world->score + row * p->S_kv;
    const float *value = world->value + (b * p->H_kv + h / (p->H / p->H_kv)) * p->S_kv * p->D_v;
    *max = -INFINITY;
    *sum = 0;
    for (int64_t j = k0; j < k1; j++)
        if (allowed(world, b, i, j) && !(score[j] <= *max) && !isnan(*max))
            *max = score[j];
    for (int64_t d = 0; d < p->D_v; d++)
        out[d] = 0;
    for (int64_t j = k0; j < k1; j++) {
        if (!allowed(world, b, i, j))
            continue;
        const double weight = exp(score[j] - *max);
        *sum += weight;
        for (int64_t d = 0; d < p->D_v; d++)
            out[d] += weight * value[j * p->D_v + d];
    }
}

static void expect(struct world *world, bool condition)
{
    if (!condition)
        atomic_fetch_add(&world->faults, 1);
}

static int table_run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
                     int32_t phase, void *state, void *scratch)
{
    struct world *world = state;
    _Atomic int *in_use = scratch;
    const int call = atomic_fetch_add(&world->calls, 1) + 1;
    expect(world, problem->flags & ATTN_FLAG_PARTIAL);
    if (phase < world->plan.phases - 1) {
        atomic_fetch_add(&world->prepared, (int)(span->q1 - span->q0));
        return call == world->fail_at ? -EIO : 0;
    }
    expect(world, atomic_fetch_add(in_use, 1) == 0);
    expect(world, world->plan.phases == 1 || world->prepared == world->plan.items[0]);
    expect(world, span->b1 == span->b0 + 1 && span->h0 % world->plan.head_grain == 0);
    expect(world, span->q0 % world->plan.q_grain == 0 && span->k0 % world->plan.k_grain == 0);
    expect(world, span->k0 >= 0 && span->k0 < span->k1 && span->k1 <= problem->S_kv);
    expect(world, span->k1 % world->plan.k_grain == 0 || span->k1 == problem->S_kv);
    for (int most = world->longest; span->k1 - span->k0 > most;)
        if (atomic_compare_exchange_weak(&world->longest, &most, (int)(span->k1 - span->k0)))
            break;
    double *wide = malloc((size_t)problem->D_v * sizeof *wide);
    for (int64_t h = span->h0; h < span->h1; h++)
        for (int64_t i = span->q0; i < span->q1; i++) {
            const int64_t row = (span->b0 * problem->H + h) * problem->S_q + i;
            const int64_t place = span->split * rows_of(world) + row;
            double max, sum;
            for (int64_t j = span->k0; j < span->k1; j++)
                atomic_fetch_add(&world->visits[row * problem->S_kv + j], 1);
            attend(world, row, span->k0, span->k1, wide, &max, &sum);
            float *out = (float *)args->out.data + span->b0 * args->out.stride[0] + h * args->out.stride[1] +
                         i * args->out.stride[2];
            for (int64_t d = 0; d < problem->D_v; d++)
                out[d] = (float)wide[d];
            args->row_max[place] = (float)max;
            args->row_sum[place] = (float)sum;
        }
    free(wide);
    atomic_fetch_sub(in_use, 1);
    return call == world->fail_at ? -EIO : 0;
}

static const struct attn_kernel table_kernel = {.abi = ATTN_ABI,
                                                .struct_size = sizeof(struct attn_kernel),
                                                .name = "table",
                                                .caps = ATTN_CAP_PARTIAL | ATTN_CAP_SPLIT_KEYS,
                                                .run = table_run};

struct size {
    int64_t B, H, H_kv, S_q, S_kv, D_v;
};

static void create(struct world *world, const struct size *size, enum attn_dtype dtype)
{
    *world = (struct world){.problem = {.struct_size = sizeof(struct attn_problem),
                                        .dtype = dtype,
                                        .B = size->B,
                                        .H = size->H,
                                        .H_kv = size->H_kv,
                                        .S_q = size->S_q,
                                        .S_kv = size->S_kv,
                                        .D = 1,
                                        .D_v = size->D_v,
                                        .left = INT64_MAX,
                                        .right = INT64_MAX},
                            .plan = {.phases = 1, .q_grain = 1, .k_grain = 1, .head_grain = 1}};
    const int64_t scores = rows_of(world) * size->S_kv, values = size->B * size->H_kv * size->S_kv * size->D_v;
    world->score = malloc((size_t)(scores + 1) * sizeof *world->score);
    world->value = malloc((size_t)(values + 1) * sizeof *world->value);
    world->visits = calloc((size_t)scores + 1, sizeof *world->visits);
    world->out = malloc((size_t)(rows_of(world) * size->D_v + 1) * sizeof(float));
    for (int64_t n = 0; n < scores; n++)
        world->score[n] = draw_float(20);
    for (int64_t n = 0; n < values; n++)
        world->value[n] = draw_float(1);
}

static void destroy(struct world *world)
{
    free(world->score);
    free(world->value);
    free((void *)world->visits);
    free(world->out);
}

/* One call on a workspace of exactly the bytes asked for, full of NaN; what lies behind must stay as it was. */
static int run_splitkv(struct world *world, int threads)
{
    const struct attn_schedule *schedule = &attn_schedule_splitkv;
    static _Alignas(64) _Atomic int in_use[MAX_THREADS];
    void *scratch[MAX_THREADS];
    for (int thread = 0; thread < MAX_THREADS; thread++)
        scratch[thread] = (void *)&in_use[thread];
    memset((void *)in_use, 0, sizeof in_use);
    const struct attn_problem *p = &world->problem;
    const size_t bytes = schedule->workspace(p, &world->plan, threads);
    unsigned char *workspace = aligned_alloc(64, (bytes + 127) / 64 * 64);
    memset(workspace, 0xff, bytes);
    memset(workspace + bytes, UNTOUCHED, 64);
    const struct attn_args args = {.out = {.data = world->out,
                                           .size = {p->B, p->H, p->S_q, p->D_v},
                                           .stride = {p->H * p->S_q * p->D_v, p->S_q * p->D_v, p->D_v, 1}}};
    const struct attn_job job = {.kernel = &table_kernel,
                                 .problem = p,
                                 .args = &args,
                                 .plan = &world->plan,
                                 .state = world,
                                 .scratch = scratch,
                                 .workspace = workspace,
                                 .threads = threads};
    assert_null(schedule->refuse(&table_kernel, p, threads));
    const int rc = schedule->run(&job);
    for (int n = 0; n < 64; n++)
        assert_int_equal(workspace[bytes + (size_t)n], UNTOUCHED);
    free(workspace);
    return rc;
}

static double f16_value(uint16_t half)
{
    const int exponent = half >> 10 & 31, fraction = half & 1023;
    const double magnitude = exponent == 31  ? (fraction ? NAN : INFINITY)
                             : exponent == 0 ? ldexp(fraction, -24)
                                             : ldexp(1024 + fraction, exponent - 25);
    return half & 0x8000 ? -magnitude : magnitude;
}

static double output_of(const struct world *world, int64_t index)
{
    if (world->problem.dtype == ATTN_F32)
        return ((const float *)world->out)[index];
    const uint16_t narrow = ((const uint16_t *)world->out)[index];
    if (world->problem.dtype == ATTN_F16)
        return f16_value(narrow);
    const uint32_t bits = (uint32_t)narrow << 16;
    float wide;
    memcpy(&wide, &bits, sizeof wide);
    return wide;
}

/* Every row against one pass over all of its keys; allowed pairs done once, others at most once. */
static int64_t wrong_rows(struct world *world)
{
    static const double rounding[] = {[ATTN_F32] = 2e-6, [ATTN_BF16] = 0x1p-8, [ATTN_F16] = 0x1p-11};
    const struct attn_problem *p = &world->problem;
    double *whole = malloc((size_t)p->D_v * sizeof *whole), max, sum;
    int64_t wrong = 0;
    for (int64_t row = 0; row < rows_of(world); row++) {
        const int64_t i = row % p->S_q, b = row / p->S_q / p->H;
        bool right = true;
        for (int64_t j = 0; j < p->S_kv; j++) {
            const int visits = world->visits[row * p->S_kv + j];
            right &= allowed(world, b, i, j) ? visits == 1 : visits <= 1;
        }
        attend(world, row, 0, p->S_kv, whole, &max, &sum);
        for (int64_t d = 0; d < p->D_v; d++) {
            const double got = output_of(world, row * p->D_v + d);
            const double wanted = max == -INFINITY && sum == 0 ? 0 : whole[d] / sum;
            right &= isfinite(wanted) ? fabs(got - wanted) <= rounding[p->dtype] * fabs(wanted) + 1e-6 : !isfinite(got);
        }
        wrong += !right;
    }
    free(whole);
    return wrong;
}

static void check(struct world *world, int threads, const char *what)
{
    assert_int_equal(run_splitkv(world, threads), 0);
    const int64_t wrong = wrong_rows(world);
    if (wrong || world->faults)
        print_message("# %s: S_q %d S_kv %d k_grain %d threads %d\n", what, (int)world->problem.S_q,
                      (int)world->problem.S_kv, (int)world->plan.k_grain, threads);
    assert_int_equal(wrong, 0);
    assert_int_equal(world->faults, 0);
}

static const struct size sizes[] = {{1, 1, 1, 1, 1000, 8}, {1, 4, 1, 1, 777, 5},  {2, 2, 2, 3, 513, 16},
                                    {3, 6, 2, 1, 65, 1},   {1, 1, 1, 16, 300, 3}, {1, 2, 1, 130, 200, 4},
                                    {2, 1, 1, 7, 1, 2},    {2, 3, 3, 2, 0, 4},    {1, 2, 2, 0, 64, 4},
                                    {0, 2, 2, 1, 64, 4},   {1, 1, 1, 1, 4096, 2}};
enum { SIZES = sizeof sizes / sizeof *sizes, MASKS = 6 };

static void set_mask(struct world *world, int mask)
{
    struct attn_problem *p = &world->problem;
    for (int b = 0; b < 4; b++) {
        world->kv_len[b] = b == 1 ? 0 : p->S_kv - (int64_t)(draw() % (uint32_t)(p->S_kv + 1));
        world->diag[b] = mask == 5 ? world->kv_len[b] - p->S_q : p->S_kv - p->S_q;
    }
    if (mask == 1 || mask == 5)
        p->kv_len = world->kv_len;
    if (mask >= 2)
        p->diag = world->diag;
    if (mask >= 2)
        p->right = mask == 4 ? 9 : 0;
    if (mask >= 3)
        p->left = 100;
}

static void test_parts_equal_the_whole(void **state)
{
    (void)state;
    static const int64_t grains[][3] = {{1, 1, 1}, {64, 192, 0}, {7, 48, 1}, {16, 1000, 0}, {1, 5, 0}};
    int cases = 0;
    for (int size = 0; size < SIZES; size++)
        for (size_t grain = 0; grain < sizeof grains / sizeof *grains; grain++)
            for (int mask = 0; mask < MASKS; mask++, cases++) {
                struct world world;
                create(&world, &sizes[size], (enum attn_dtype)(cases % 3));
                set_mask(&world, mask);
                world.plan.q_grain = grains[grain][0];
                world.plan.k_grain = grains[grain][1];
                world.plan.head_grain = grains[grain][2] ? 1 : sizes[size].H / sizes[size].H_kv;
                world.plan.phases = 1 + cases % 2;
                world.plan.items[0] = 7;
                check(&world, 1 + cases % MAX_THREADS, "mask");
                destroy(&world);
            }
}

static void test_open_limits_do_not_overflow(void **state)
{
    (void)state;
    static const int64_t limits[] = {INT64_MAX, INT64_MAX - 1, INT64_MAX / 2, 1000000, 1};
    for (size_t left = 0; left < sizeof limits / sizeof *limits; left++)
        for (size_t right = 0; right < sizeof limits / sizeof *limits; right++) {
            struct world world;
            create(&world, &sizes[2], ATTN_F32);
            world.diag[0] = -2;
            world.diag[1] = 510;
            world.problem.diag = world.diag;
            world.problem.left = limits[left];
            world.problem.right = limits[right];
            check(&world, 2, "limit");
            destroy(&world);
        }
}

/* One long head is cut for every thread, and a window's few keys are not. */
static void test_keys_are_cut(void **state)
{
    (void)state;
    for (int threads = 1; threads <= MAX_THREADS; threads++) {
        struct world world;
        create(&world, &sizes[0], ATTN_F32);
        check(&world, threads, "one head");
        assert_true(threads == 1 ? world.calls == 1 : world.calls >= 2 * threads);
        destroy(&world);
        create(&world, &sizes[SIZES - 1], ATTN_F32);
        world.plan.k_grain = 64;
        world.diag[0] = 4095;
        world.problem.diag = world.diag;
        world.problem.left = 64;
        world.problem.right = 0;
        check(&world, threads, "window");
        assert_int_equal(world.calls, 1);
        destroy(&world);
    }
}

/* Two threads share one head's keys: none waits for more than a grain, whatever the number of keys. */
static void test_parts_are_even(void **state)
{
    (void)state;
    const int64_t keys[] = {4096, 4097, 1000, 513};
    for (size_t n = 0; n < sizeof keys / sizeof keys[0]; n++) {
        const struct size size = {1, 8, 1, 1, keys[n], 1};
        struct world world;
        create(&world, &size, ATTN_F32);
        world.plan.k_grain = 16;
        world.plan.head_grain = 8;
        check(&world, 2, "even parts");
        assert_in_range(world.calls, 7, 8);
        assert_true(world.longest < keys[n] / 8 + 1 + 16);
        destroy(&world);
    }
}

static void test_not_finite_stays(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int kind = 0; kind < 6; kind++)
        for (int64_t key = 0; key < 1000; key += 333) {
            struct world world;
            create(&world, &sizes[0], ATTN_F32);
            if (kind < 3)
                world.score[key] = bad[kind];
            else
                world.value[key * 8 + 3] = bad[kind - 3];
            check(&world, 2, "not finite");
            destroy(&world);
        }
    struct world world;
    create(&world, &sizes[0], ATTN_F32);
    for (int64_t key = 0; key < 1000; key++)
        world.score[key] = -INFINITY;
    check(&world, 2, "every score -inf");
    assert_true(isnan(output_of(&world, 0)));
    destroy(&world);
}

static void test_minus_infinity_in_a_part_alone(void **state)
{
    (void)state;
    struct world world;
    create(&world, &sizes[0], ATTN_F32);
    for (int64_t key = 0; key < 600; key++) /* more than the first part of 2 threads' */
        world.score[key] = -INFINITY;
    check(&world, 2, "scores of -inf beside finite ones");
    assert_true(isfinite(output_of(&world, 0)));
    destroy(&world);
}

/* Parts whose maxima lie further apart than exp reaches. */
static void test_far_maxima(void **state)
{
    (void)state;
    for (int sign = -1; sign <= 1; sign += 2) {
        struct world world;
        create(&world, &sizes[0], ATTN_F32);
        for (int64_t key = 0; key < 1000; key++)
            world.score[key] += (float)(sign * key) * 1e4f;
        check(&world, 3, "far maxima");
        destroy(&world);
    }
}

static void test_errors_come_back(void **state)
{
    (void)state;
    for (int fail_at = 1; fail_at <= 4; fail_at++)
        for (int threads = 2; threads <= MAX_THREADS; threads++) {
            struct world world;
            create(&world, &sizes[0], ATTN_F32);
            memset(world.out, UNTOUCHED, 8 * sizeof(float));
            world.fail_at = fail_at;
            assert_int_equal(run_splitkv(&world, threads), -EIO);
            for (int n = 0; n < 8; n++)
                assert_int_equal(((uint32_t *)world.out)[n], 0x5a5a5a5a);
            destroy(&world);
        }
}

static void test_refusals(void **state)
{
    (void)state;
    struct attn_problem problem = {0};
    struct attn_kernel kernel = table_kernel;
    assert_null(attn_schedule_splitkv.refuse(&kernel, &problem, 2));
    problem.flags = ATTN_FLAG_WEIGHTS;
    assert_non_null(attn_schedule_splitkv.refuse(&kernel, &problem, 2));
    problem.flags = 0;
    kernel.caps = ATTN_CAP_PARTIAL;
    assert_non_null(attn_schedule_splitkv.refuse(&kernel, &problem, 2));
    kernel.caps = table_kernel.caps | ATTN_CAP_OWN_THREADS;
    assert_non_null(attn_schedule_splitkv.refuse(&kernel, &problem, 2));
    assert_ptr_equal(attn_schedule_find("splitkv"), &attn_schedule_splitkv);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_equal_the_whole),
        cmocka_unit_test(test_open_limits_do_not_overflow),
        cmocka_unit_test(test_keys_are_cut),
        cmocka_unit_test(test_parts_are_even),
        cmocka_unit_test(test_not_finite_stays),
        cmocka_unit_test(test_minus_infinity_in_a_part_alone),
        cmocka_unit_test(test_far_maxima),
        cmocka_unit_test(test_errors_come_back),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
