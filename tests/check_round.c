/* SPDX-License-Identifier: Apache-2.0
 *
 * The schedules' narrowing to bf16 and f16 is to nearest even.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "harness/fill.h"
#include "kernels/schedule/round.h"

/* Every f16 is itself; halfway between two neighbours the even one wins, and either side of it the nearer. */
static void test_round_f16(void **state)
{
    (void)state;
    for (uint32_t half = 0; half < 0x7c00; half++) {
        const double value = (double)float_from_f16((uint16_t)half),
                     next = half == 0x7bff ? 65536 : (double)float_from_f16((uint16_t)(half + 1));
        const float middle = (float)((value + next) / 2);
        const uint32_t even = half % 2 ? half + 1 : half;
        for (uint32_t sign = 0; sign <= 0x8000; sign += 0x8000) {
            const float s = sign ? -1 : 1;
            assert_int_equal(attn_round_f16(s * (float)value), half | sign);
            assert_int_equal(attn_round_f16(s * middle), even | sign);
            assert_int_equal(attn_round_f16(s * nextafterf(middle, 0)), half | sign);
            assert_int_equal(attn_round_f16(s * nextafterf(middle, INFINITY)), (half + 1) | sign);
        }
    }
    assert_int_equal(attn_round_f16(INFINITY), 0x7c00);
    assert_int_equal(attn_round_f16(-1e30f), 0xfc00);
    assert_true(isnan((double)float_from_f16(attn_round_f16(NAN))));
}

static void test_round_bf16(void **state)
{
    (void)state;
    for (uint32_t narrow = 0; narrow < 0x7f80; narrow++) {
        const uint32_t bits[] = {narrow << 16, narrow << 16 | 0x7fff, narrow << 16 | 0x8000, narrow << 16 | 0x8001};
        const uint32_t wanted[] = {narrow, narrow, narrow + narrow % 2, narrow + 1};
        for (int n = 0; n < 4; n++) {
            float value;
            memcpy(&value, &bits[n], sizeof value);
            assert_int_equal(attn_round_bf16(value), wanted[n]);
            assert_int_equal(attn_round_bf16(-value), wanted[n] | 0x8000);
        }
    }
    assert_int_equal(attn_round_bf16(INFINITY), 0x7f80);
    const uint32_t low_payload = 0x7f800001; /* a NaN whose upper half alone would be infinite */
    float nan;
    memcpy(&nan, &low_payload, sizeof nan);
    assert_true((attn_round_bf16(nan) & 0x7fff) > 0x7f80);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_f16), cmocka_unit_test(test_round_bf16)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
