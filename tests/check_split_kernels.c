/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels' side of splitkv: what a kernel returns for a part of the keys must let the merge come out right.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdint.h>

#include "harness/isa.h"
#include "harness/member.h"
#include "harness/registry.h"

/* Every kernel of the build keeps its side of it: keys of -inf have weight 0 beside finite ones, though a part has no
 * others. */
static void test_kernels_with_minus_infinity(void **state)
{
    (void)state;
    enum { KEYS = 1000, HIDDEN = 600, WIDTH = 40 };
    static float q[WIDTH], k[KEYS * WIDTH], v[KEYS * WIDTH], out[WIDTH];
    const struct attn_problem problem = {.struct_size = sizeof problem,
                                         .B = 1,
                                         .H = 1,
                                         .H_kv = 1,
                                         .S_q = 1,
                                         .S_kv = KEYS,
                                         .D = WIDTH,
                                         .D_v = WIDTH,
                                         .left = INT64_MAX,
                                         .right = INT64_MAX,
                                         .scale = 0.125f};
    const int64_t whole = (int64_t)KEYS * WIDTH;
    const struct attn_args args = {
        .q = {q, {1, 1, 1, WIDTH}, {WIDTH, WIDTH, WIDTH, 1}},
        .k = {k, {1, 1, KEYS, WIDTH}, {whole, whole, WIDTH, 1}},
        .v = {v, {1, 1, KEYS, WIDTH}, {whole, whole, WIDTH, 1}},
        .out = {out, {1, 1, 1, WIDTH}, {WIDTH, WIDTH, WIDTH, 1}},
    };
    for (int d = 0; d < WIDTH; d++)
        q[d] = 1;
    for (int64_t j = 0; j < KEYS; j++)
        for (int d = 0; d < WIDTH; d++) {
            k[j * WIDTH + d] = j < HIDDEN ? -INFINITY : 0;
            v[j * WIDTH + d] = j < HIDDEN ? 7 : (float)(d + 1);
        }
    const struct operands operands = {.spec = spec_default(), .problem = problem, .args = args};
    for (const char *const *kernel = registry_names(); *kernel; kernel++) {
        struct team team;
        struct member member;
        struct error error;
        /* Peers' kernels run in processes of their own. */
        if (registry_origin(*kernel)->command || registry_refusal(*kernel, &problem, isa_available()))
            continue;
        assert_int_equal(team_create(2, NULL, &team, &error), 0);
        assert_int_equal(member_open(*kernel, "splitkv", &operands, &team, MEMORY_PLAIN, &member, &error), 0);
        assert_int_equal(member_call(&member, &args), 0);
        for (int d = 0; d < WIDTH; d++)
            if (!(fabsf(out[d] - (float)(d + 1)) < 1e-3f))
                fail_msg("%s: column %d is %g", *kernel, d, out[d]);
        member_close(&member);
        team_release(&team);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kernels_with_minus_infinity)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
