/* SPDX-License-Identifier: Apache-2.0
 *
 * Schedules: every query row of every head is done exactly once whatever the sizes, grains and threads; earlier phases
 * are complete before the next begins; errors come back; scratch is never shared; and what auto chooses. splitkv has
 * check_split_kv.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/schedule/schedule.h"
#include "kernels/schedule/team.h"

enum { MAX_THREADS = 4, MAX_ROWS = 8192, MAX_ITEMS = 64, LAST_PHASE = 2 };

/* What the counting kernel saw: it has no state but this. */
static struct {
    _Atomic int rows[MAX_ROWS];               /* [B][H][S_q] visits */
    _Atomic int items[LAST_PHASE][MAX_ITEMS]; /* visits of the items of the earlier phases */
    _Atomic int item_count[LAST_PHASE];
    _Atomic int calls, faults, in_use[MAX_THREADS];
    int fail_at; /* the call that returns -EIO; 0: none */
} seen;

static void expect(bool condition)
{
    if (!condition)
        atomic_fetch_add(&seen.faults, 1);
}

static void pause_briefly(void)
{
    for (volatile int n = 0; n < 200; n++)
        ;
}

static int count_items(const struct attn_span *span, int32_t phase, const struct attn_plan *plan)
{
    for (int earlier = 0; earlier < phase; earlier++)
        expect(atomic_load(&seen.item_count[earlier]) == plan->items[earlier]);
    expect(span->q0 >= 0 && span->q1 <= plan->items[phase] && span->q0 < span->q1);
    for (int64_t item = span->q0; item < span->q1; item++) {
        pause_briefly();
        atomic_fetch_add(&seen.items[phase][item], 1);
        atomic_fetch_add(&seen.item_count[phase], 1);
    }
    return 0;
}

static int count_run(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
                     int32_t phase, void *state, void *scratch)
{
    (void)args;
    const struct attn_plan *plan = state;
    _Atomic int *in_use = scratch;
    int error = atomic_fetch_add(&seen.calls, 1) + 1 == seen.fail_at ? -EIO : 0;
    expect(atomic_fetch_add(in_use, 1) == 0);
    if (phase < plan->phases - 1) {
        count_items(span, phase, plan);
    } else {
        for (int earlier = 0; earlier < phase; earlier++)
            expect(atomic_load(&seen.item_count[earlier]) == plan->items[earlier]);
        expect(span->b0 >= 0 && span->b1 <= problem->B && span->h0 >= 0 && span->h1 <= problem->H);
        expect(span->q0 % plan->q_grain == 0 && span->q1 <= problem->S_q && span->q0 < span->q1);
        expect(span->q1 % plan->q_grain == 0 || span->q1 == problem->S_q);
        expect(span->h0 % plan->head_grain == 0);
        expect(span->h1 % plan->head_grain == 0 || span->h1 == problem->H);
        expect(span->k0 == 0 && span->k1 == problem->S_kv && span->split == 0);
        for (int64_t b = span->b0; b < span->b1; b++)
            for (int64_t h = span->h0; h < span->h1; h++)
                for (int64_t i = span->q0; i < span->q1; i++)
                    atomic_fetch_add(&seen.rows[(b * problem->H + h) * problem->S_q + i], 1);
    }
    atomic_fetch_sub(in_use, 1);
    return error;
}

static const struct attn_kernel counting = {
    .abi = ATTN_ABI, .struct_size = sizeof(struct attn_kernel), .name = "counting", .run = count_run};

static int run_schedule(const struct attn_schedule *schedule, const struct attn_problem *problem,
                        struct attn_plan *plan, int threads, double *busy_ns, int fail_at)
{
    static const struct attn_args no_args;
    void *scratch[MAX_THREADS];
    memset(&seen, 0, sizeof seen);
    seen.fail_at = fail_at;
    for (int thread = 0; thread < MAX_THREADS; thread++)
        scratch[thread] = (void *)&seen.in_use[thread];
    const struct attn_job job = {.kernel = &counting,
                                 .problem = problem,
                                 .args = &no_args,
                                 .plan = plan,
                                 .state = plan,
                                 .scratch = scratch,
                                 .busy_ns = busy_ns,
                                 .threads = threads};
    assert_null(schedule->refuse(&counting, problem, threads));
    return schedule->run(&job);
}

static struct attn_problem problem_of(int64_t B, int64_t H, int64_t S_q, bool causal)
{
    return (struct attn_problem){.struct_size = sizeof(struct attn_problem),
                                 .B = B,
                                 .H = H,
                                 .H_kv = H,
                                 .S_q = S_q,
                                 .S_kv = 33,
                                 .D = 8,
                                 .D_v = 8,
                                 .left = INT64_MAX,
                                 .right = causal ? 0 : INT64_MAX};
}

static const struct attn_schedule *const with_whole_keys[] = {&attn_schedule_serial, &attn_schedule_bh,
                                                              &attn_schedule_bhq, NULL};

static void check_covered(const struct attn_schedule *schedule, const int64_t size[3], const int64_t grain[2],
                          int threads, bool causal, int phases)
{
    struct attn_problem problem = problem_of(size[0], size[1], size[2], causal);
    struct attn_plan plan = {.phases = phases, .items = {7, 3}, .q_grain = grain[0], .k_grain = 1};
    plan.head_grain = grain[1];
    double busy[MAX_THREADS] = {0};
    assert_int_equal(run_schedule(schedule, &problem, &plan, threads, busy, 0), 0);
    int64_t rows = problem.B * problem.H * problem.S_q, wrong = 0;
    assert_true(rows <= MAX_ROWS);
    for (int64_t row = 0; row < rows; row++)
        wrong += seen.rows[row] != 1;
    for (int phase = 0; phase < phases - 1; phase++)
        for (int64_t item = 0; item < plan.items[phase]; item++)
            wrong += seen.items[phase][item] != 1;
    if (wrong || seen.faults)
        print_message("# %s B %d H %d S_q %d grains %d,%d threads %d phases %d\n", schedule->name, (int)size[0],
                      (int)size[1], (int)size[2], (int)grain[0], (int)grain[1], threads, phases);
    assert_int_equal(wrong, 0);
    assert_int_equal(seen.faults, 0);
    assert_true(busy[0] > 0);
}

static void test_every_row_once(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{1, 1, 1}, {1, 1, 7}, {2, 3, 64}, {3, 5, 101}, {1, 8, 257},
                                       {2, 7, 1}, {4, 2, 0}, {0, 3, 9},  {1, 1, 4099}};
    static const int64_t grains[][2] = {{1, 1}, {16, 1}, {64, 2}, {7, 3}, {1000, 8}};
    int cases = 0;
    for (const struct attn_schedule *const *schedule = with_whole_keys; *schedule; schedule++)
        for (size_t size = 0; size < sizeof sizes / sizeof *sizes; size++)
            for (size_t grain = 0; grain < sizeof grains / sizeof *grains; grain++)
                for (int threads = 1; threads <= MAX_THREADS; threads++, cases++)
                    check_covered(*schedule, sizes[size], grains[grain], threads, cases % 2, 1 + cases % 3);
    assert_true(cases >= 3 * 9 * 5 * MAX_THREADS);
}

static void test_phases_in_order(void **state)
{
    (void)state;
    static const int64_t size[3] = {2, 3, 65}, grain[2] = {8, 1};
    for (const struct attn_schedule *const *schedule = with_whole_keys; *schedule; schedule++)
        for (int round = 0; round < 100; round++)
            check_covered(*schedule, size, grain, 1 + round % MAX_THREADS, round % 2, 1 + LAST_PHASE);
}

static void test_errors_come_back(void **state)
{
    (void)state;
    for (const struct attn_schedule *const *schedule = with_whole_keys; *schedule; schedule++)
        for (int threads = 1; threads <= MAX_THREADS; threads++)
            for (int phases = 1; phases <= 1 + LAST_PHASE; phases++) {
                struct attn_problem problem = problem_of(3, 40, 16, true);
                struct attn_plan plan = {.phases = phases, .items = {7, 3}, .q_grain = 1, .k_grain = 1};
                plan.head_grain = 1;
                assert_int_equal(run_schedule(*schedule, &problem, &plan, threads, NULL, 1), -EIO);
                /* Nobody begins anything new: each of the others may have been in a call, and in one more. */
                assert_true(seen.calls <= 2 * MAX_THREADS);
                assert_int_equal(run_schedule(*schedule, &problem, &plan, threads, NULL, 2), -EIO);
            }
}

static void test_late_blocks_first(void **state)
{
    (void)state;
    struct attn_problem problem = problem_of(2, 6, 100, true);
    struct attn_plan plan = {.phases = 1, .q_grain = 8, .k_grain = 1, .head_grain = 4};
    struct attn_cut cut = attn_cut_make(&problem, &plan, 10, true);
    assert_int_equal(cut.q_block, 16);
    assert_int_equal(cut.tasks, 2 * 2 * 7);
    int64_t before = INT64_MAX;
    for (int64_t task = 0; task < cut.tasks; task++) {
        struct attn_span span = attn_cut_span(&problem, &cut, task);
        assert_true(span.q0 <= before);
        before = span.q0;
    }
    assert_int_equal(before, 0);
}

/* One head must keep every thread of the team busy under bhq, and only one under bh. */
static void test_bhq_cuts_one_head(void **state)
{
    (void)state;
    struct attn_problem problem = problem_of(1, 1, 1024, false);
    struct attn_plan plan = {.phases = 1, .q_grain = 16, .k_grain = 1, .head_grain = 1};
    assert_int_equal(run_schedule(&attn_schedule_bh, &problem, &plan, 2, NULL, 0), 0);
    assert_int_equal(seen.calls, 1);
    assert_int_equal(run_schedule(&attn_schedule_bhq, &problem, &plan, 2, NULL, 0), 0);
    assert_true(seen.calls >= 16);
}

/* A kernel on its own threads is for schedule own alone, unless it does spans too; others are never for it. */
static void test_own_threads(void **state)
{
    (void)state;
    struct attn_problem problem = problem_of(1, 1, 1, false);
    struct attn_kernel kernel = counting;
    for (const struct attn_schedule *const *schedule = attn_schedules; *schedule; schedule++) {
        const bool own = *schedule == &attn_schedule_own;
        kernel.caps = ATTN_CAP_OWN_THREADS;
        assert_int_equal((*schedule)->refuse(&kernel, &problem, 2) == NULL, own);
        kernel.caps = ATTN_CAP_OWN_THREADS | ATTN_CAP_SPANS | ATTN_CAP_PARTIAL | ATTN_CAP_SPLIT_KEYS;
        assert_null((*schedule)->refuse(&kernel, &problem, 2));
        kernel.caps = 0;
        if (own)
            assert_non_null((*schedule)->refuse(&kernel, &problem, 2));
    }
    kernel.caps = ATTN_CAP_OWN_THREADS;
    assert_ptr_equal(attn_schedule_choose(&kernel, &problem, 1), &attn_schedule_own);
    assert_ptr_equal(attn_schedule_choose(&kernel, &problem, 2), &attn_schedule_own);
}

static int32_t phase_of_own = -1;
static bool own_was_asked;

static int note_own(const struct attn_problem *problem, const struct attn_args *args, const struct attn_span *span,
                    int32_t phase, void *state, void *scratch)
{
    (void)args, (void)state, (void)scratch;
    own_was_asked = problem->flags & ATTN_FLAG_OWN;
    phase_of_own = phase;
    return span->b1 == problem->B && span->h1 == problem->H && span->q1 == problem->S_q && span->k1 == problem->S_kv
               ? 0
               : -1;
}

/* One call over everything, told that it may use its own threads. */
static void test_own_runs_once(void **state)
{
    (void)state;
    struct attn_problem problem = problem_of(2, 3, 5, false);
    struct attn_plan plan = {.phases = 1, .q_grain = 1, .k_grain = 1, .head_grain = 1};
    struct attn_kernel kernel = counting;
    void *scratch[2] = {NULL, NULL};
    double busy[2] = {0, 0};
    kernel.run = note_own;
    const struct attn_job job = {
        .kernel = &kernel, .problem = &problem, .plan = &plan, .scratch = scratch, .busy_ns = busy, .threads = 2};
    assert_int_equal(attn_schedule_own.run(&job), 0);
    assert_true(own_was_asked);
    assert_int_equal(phase_of_own, 0);
    assert_true(busy[0] > 0 && busy[1] == busy[0]);
}

static void test_find(void **state)
{
    (void)state;
    assert_ptr_equal(attn_schedule_find("serial"), &attn_schedule_serial);
    assert_ptr_equal(attn_schedule_find("bh"), &attn_schedule_bh);
    assert_ptr_equal(attn_schedule_find("bhq"), &attn_schedule_bhq);
    assert_null(attn_schedule_find("bhqx"));
    assert_null(attn_schedule_find(""));
}

static void test_auto(void **state)
{
    (void)state;
    struct attn_kernel splittable = counting;
    splittable.caps = ATTN_CAP_PARTIAL | ATTN_CAP_SPLIT_KEYS;
    static const struct {
        int64_t B, H, H_kv, S_q, S_kv;
        int threads;
        const struct attn_schedule *chosen;
    } cases[] = {
        {1, 8, 1, 1, 8192, 1, &attn_schedule_serial},    {1, 8, 1, 1, 8192, 2, &attn_schedule_splitkv},
        {1, 8, 1, 1, 128, 2, &attn_schedule_bhq},        {1, 32, 8, 1, 8192, 2, &attn_schedule_bh},
        {1, 32, 8, 1, 8192, 64, &attn_schedule_splitkv}, {1, 3, 3, 4, 8192, 2, &attn_schedule_splitkv},
        {1, 12, 12, 512, 512, 2, &attn_schedule_bhq},    {1, 1, 1, 4096, 4096, 4, &attn_schedule_bhq},
        {8, 12, 12, 128, 128, 2, &attn_schedule_bhq},
    };
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        struct attn_problem problem = {.B = cases[n].B, .H = cases[n].H, .H_kv = cases[n].H_kv, .S_q = cases[n].S_q};
        problem.S_kv = cases[n].S_kv;
        problem.left = problem.right = INT64_MAX;
        const struct attn_schedule *chosen = attn_schedule_choose(&splittable, &problem, cases[n].threads);
        assert_string_equal(chosen->name, cases[n].chosen->name);
        problem.flags = ATTN_FLAG_WEIGHTS;
        chosen = attn_schedule_choose(&splittable, &problem, cases[n].threads);
        assert_ptr_not_equal(chosen, &attn_schedule_splitkv);
    }
    /* A window's few keys are not worth a split, ragged lengths not fixed shares. */
    struct attn_problem problem = {.B = 1, .H = 8, .H_kv = 1, .S_q = 1, .S_kv = 8192, .left = 128, .right = 0};
    assert_ptr_equal(attn_schedule_choose(&splittable, &problem, 2), &attn_schedule_bhq);
    const int64_t lengths[2] = {1, 8192};
    problem = (struct attn_problem){.B = 2, .H = 8, .H_kv = 8, .S_q = 1, .S_kv = 8192, .left = INT64_MAX};
    problem.kv_len = lengths;
    assert_ptr_equal(attn_schedule_choose(&splittable, &problem, 2), &attn_schedule_bhq);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_row_once),
        cmocka_unit_test(test_phases_in_order),
        cmocka_unit_test(test_errors_come_back),
        cmocka_unit_test(test_late_blocks_first),
        cmocka_unit_test(test_bhq_cuts_one_head),
        cmocka_unit_test(test_own_threads),
        cmocka_unit_test(test_own_runs_once),
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_auto),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
