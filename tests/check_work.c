/* SPDX-License-Identifier: Apache-2.0
 *
 * FLOPs and bytes in closed form against loops over all pairs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "harness/fill.h"
#include "harness/intern.h"
#include "harness/work.h"

static bool allowed(const struct problem_spec *s, int64_t length, int64_t i, int64_t j)
{
    int64_t offset = s->causal == CAUSAL_BOTTOM_RIGHT         ? s->S_kv - s->S_q
                     : s->causal == CAUSAL_BOTTOM_RIGHT_VALID ? length - s->S_q
                                                              : 0;
    int64_t p = i + offset;
    if (j >= length || (s->causal != CAUSAL_NONE && j > p))
        return false;
    if (s->window && s->window_left != WINDOW_OPEN && !(p - s->window_left < j))
        return false;
    return !(s->window && s->window_right >= 0 && j > p + s->window_right);
}

/* The contract's words as loops. lengths: of each batch entry. */
static void count_by_loops(const struct problem_spec *s, const int64_t *lengths, double *pairs, double *keys)
{
    *pairs = *keys = 0;
    for (int64_t b = 0; b < s->B; b++)
        for (int64_t j = 0; j < s->S_kv; j++) {
            int64_t seen = 0;
            for (int64_t i = 0; i < s->S_q; i++)
                seen += allowed(s, lengths[b], i, j);
            *pairs += (double)(seen * s->H);
            *keys += (double)(seen > 0) * (double)s->H_kv;
        }
}

static void check(const struct problem_spec *s)
{
    int64_t *lengths = malloc(((size_t)s->B + 1) * 2 * sizeof *lengths);
    struct attn_problem problem;
    struct work work;
    double pairs, keys;
    spec_problem(s, lengths, lengths + s->B, &problem);
    count_by_loops(s, lengths, &pairs, &keys);
    free(lengths);
    work_count(s, &work);
    double size = (double)dtype_bytes(s->dtype), rows = (double)(s->B * s->H * s->S_q);
    double row = s->alias == ALIAS_QKV ? 0 : s->alias == ALIAS_KV ? (double)s->D : (double)(s->D + s->D_v);
    double extra = (s->mask_share >= 0 ? (double)(s->B * s->S_q * s->S_kv) : 0) +
                   (s->bias ? 4 * (double)(s->H * s->S_q * s->S_kv) : 0);
    double q = rows * (double)s->D * size;
    double written = rows * (double)s->D_v * size + (s->weights ? 4 * rows * (double)s->S_kv : 0);
    json_t *shown = spec_to_json(s);
    char *text = json_dumps(shown, JSON_COMPACT);
    if (work.pairs_useful != pairs || work.flops_useful != 2 * (double)(s->D + s->D_v) * pairs ||
        work.pairs_dense != rows * (double)s->S_kv ||
        work.flops_dense != 2 * (double)(s->D + s->D_v) * rows * (double)s->S_kv || work.tanh_count != 0 ||
        work.bytes_read != q + keys * row * size + extra || work.bytes_written != written ||
        work.bytes_min != work.bytes_read + work.bytes_written ||
        work.working_set != q + (double)(s->B * s->H_kv * s->S_kv) * row * size + extra + written)
        fail_msg("%s: pairs %g, loops %g; bytes read %g, loops %g; working set %g", text, work.pairs_useful, pairs,
                 work.bytes_read, q + keys * row * size + extra, work.working_set);
    free(text);
    json_decref(shown);
}

static int64_t draw(uint64_t *counter, int64_t below)
{
    return (int64_t)(fill_bits(20240607, 0, FILL_Q, (*counter)++) % (uint64_t)below);
}

static const char *draw_lengths(uint64_t *counter, int64_t B, int64_t S_kv)
{
    if (B == 0 || draw(counter, 3) == 0)
        return intern("full");
    if (draw(counter, 2) == 0)
        return intern("ragged");
    const char *text = intern_format("%d", (int)draw(counter, S_kv + 1));
    for (int64_t b = 1; b < B; b++)
        text = intern_format("%s:%d", text, (int)draw(counter, S_kv + 1));
    return text;
}

static struct problem_spec draw_spec(uint64_t *counter)
{
    struct problem_spec s = spec_default();
    s.B = draw(counter, 4);
    s.H_kv = 1 + draw(counter, 3);
    s.H = s.H_kv * (1 + draw(counter, 3));
    s.S_q = draw(counter, 3) ? draw(counter, 40) : 1;
    s.S_kv = draw(counter, 40);
    s.D = 1 + draw(counter, 9);
    s.D_v = 1 + draw(counter, 9);
    s.dtype = (enum attn_dtype)draw(counter, 3);
    s.causal = (enum causal)draw(counter, 4);
    s.kv_lengths = draw_lengths(counter, s.B, s.S_kv);
    s.window = draw(counter, 2);
    s.window_left = draw(counter, 44) - 1;
    s.window_right = draw(counter, 44) - 1;
    s.mask_share = draw(counter, 3) ? -1 : 0.5;
    s.bias = draw(counter, 3) == 0;
    s.weights = draw(counter, 3) == 0;
    s.softcap = draw(counter, 2) ? 0 : 30;
    s.alias = (enum alias)draw(counter, 3);
    if (s.alias != ALIAS_NONE)
        s.D_v = s.D;
    if (s.alias == ALIAS_QKV) {
        s.H = s.H_kv;
        s.S_q = s.S_kv;
    }
    return s;
}

static void agrees_with_loops(void **state)
{
    (void)state;
    uint64_t counter = 0;
    struct error error;
    for (int n = 0; n < 1500; n++) {
        struct problem_spec spec = draw_spec(&counter);
        if (spec_validate(&spec, true, &error))
            fail_msg("%s", error.text);
        check(&spec);
    }
}

/* Textbook figures: causal 4 D L (L + 1) / 2, dense 4 D L^2. */
static void causal_square(void **state)
{
    (void)state;
    struct problem_spec spec = spec_default();
    struct work work;
    spec.S_q = spec.S_kv = 1024;
    spec.causal = CAUSAL_TOP_LEFT;
    work_count(&spec, &work);
    assert_true(work.flops_useful == 134348800);
    assert_true(work.flops_dense == 268435456);
    spec.causal = CAUSAL_NONE;
    work_count(&spec, &work);
    assert_true(work.flops_useful == 268435456);
}

/* No loop over pairs or rows, no overflow. */
static void huge_problems_are_counted(void **state)
{
    (void)state;
    struct problem_spec spec = spec_default();
    struct work work;
    spec.B = INT64_C(1) << 24;
    spec.S_q = spec.S_kv = INT64_C(1) << 30;
    spec.causal = CAUSAL_BOTTOM_RIGHT;
    work_count(&spec, &work);
    assert_true(work.pairs_useful == 0x1p24 * (0x1p29 * (0x1p30 + 1)));
    spec.B = 1;
    spec.window = true;
    spec.window_left = INT64_MAX - 1;
    spec.window_right = 0;
    work_count(&spec, &work);
    assert_true(work.pairs_useful == 0x1p29 * (0x1p30 + 1));
    spec.causal = CAUSAL_NONE;
    spec.window_right = INT64_MAX - 1;
    work_count(&spec, &work);
    assert_true(work.pairs_useful == 0x1p60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_loops),
        cmocka_unit_test(causal_square),
        cmocka_unit_test(huge_problems_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
