/* SPDX-License-Identifier: Apache-2.0
 *
 * What is a suspect, and how far it and its confirmation run on, on records made up for it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/gate.h"
#include "harness/json_util.h"

static void what_is_no_change_is_no_suspect(void **state)
{
    (void)state;
    static const char *const known[][3] = {{"ok", "same", NULL},
                                           {"ok", "inconclusive", NULL},
                                           {"failed", "slower", NULL},
                                           {"ok", "slower", "slower"},
                                           {"ok", "faster", "faster"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        json_t *record = json_pack("{s:s,s:s}", "status", known[i][0], "verdict", known[i][1]);
        const char *suspected = gate_suspect(record);
        assert_true(!suspected == !known[i][2]);
        if (suspected)
            assert_string_equal(suspected, known[i][2]);
        json_decref(record);
    }
}

static double spent(const json_t *seen)
{
    return json_get_number(seen, "p_spent", -1);
}

static size_t next_look(enum gate_stage_name stage, json_t *seen, int processes, double p)
{
    json_object_set_new(seen, "processes", json_integer(processes));
    json_object_set_new(seen, "p_slower", json_real(p));
    return gate_stage_next(stage, seen, "slower", 0.01);
}

/* Where to look next, and the least of p / share over the looks: 0.2, 0.3, 0.5. */
static void a_stage_ends_when_it_is_clear(void **state)
{
    (void)state;
    json_t *seen = json_object(), *clear = json_object(), *fresh = json_object(), *broken_off = json_object();
    assert_int_equal(next_look(GATE_SUSPECTED, seen, 8, 1e-9), 24); /* a stop that the data chose tells no p */
    assert_int_equal(next_look(GATE_SUSPECTED, seen, 16, 1e-9), 24);
    assert_true(spent(seen) < 0);
    assert_int_equal(next_look(GATE_SUSPECTED, seen, 24, 0.01), 36);
    assert_float_equal(spent(seen), 0.05, 1e-15);
    assert_int_equal(next_look(GATE_SUSPECTED, seen, 36, 0.3), 48);
    assert_float_equal(spent(seen), 0.05, 1e-15);
    assert_int_equal(next_look(GATE_SUSPECTED, seen, 48, 0.02), 0);
    assert_float_equal(spent(seen), 0.04, 1e-15);
    assert_int_equal(next_look(GATE_SUSPECTED, clear, 24, 0.00199), 0);
    assert_float_equal(spent(clear), 0.00995, 1e-15);
    assert_int_equal(next_look(GATE_CONFIRMING, fresh, 12, 0.5), 24);
    assert_float_equal(spent(fresh), 1, 0);
    assert_int_equal(next_look(GATE_CONFIRMING, fresh, 24, 0.004), 36);
    assert_int_equal(next_look(GATE_CONFIRMING, fresh, 36, 0.004), 0);
    assert_float_equal(spent(fresh), 0.008, 1e-15);
    json_object_set_new(broken_off, "processes", json_integer(12)); /* without a p-value */
    assert_int_equal(gate_stage_next(GATE_CONFIRMING, broken_off, "slower", 0.01), 0);
    assert_true(spent(broken_off) < 0);
    json_decref(seen);
    json_decref(clear);
    json_decref(fresh);
    json_decref(broken_off);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_change_is_no_suspect),
        cmocka_unit_test(a_stage_ends_when_it_is_clear),
    };
    return cmocka_run_group_tests_name("gate_stage", tests, NULL, NULL);
}
