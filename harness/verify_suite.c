/* SPDX-License-Identifier: Apache-2.0
 *
 * Drawing the suite's problems; see verify_suite.h.
 *
 * Every trait is drawn by itself, so that each meets each other in a few hundred problems. Sizes stand where kernels
 * break: 1, powers of two and their neighbours, primes, multiples of 6, 16 and 64 and what is one off.
 */
#include "verify_suite.h"

#include <math.h>

#include "fill.h"
#include "intern.h"

/* Multiply-adds of one problem: naive does a problem in milliseconds, all of them in a minute. */
static const double work_most = 4e6;

struct draw {
    uint64_t seed, index, counter;
};

static uint64_t below(struct draw *draw, uint64_t limit)
{
    return fill_bits(draw->seed, 2, FILL_Q, draw->index << 16 | draw->counter++) % limit;
}

static bool chance(struct draw *draw, unsigned percent)
{
    return below(draw, 100) < percent;
}

#define PICK(draw, list) ((list)[below(draw, sizeof(list) / sizeof *(list))])

static void draw_sizes(struct draw *draw, struct problem_spec *spec)
{
    static const int64_t lengths[] = {1,   2,   3,   5,   7,   8,   12,  15,  16,  17,  31,  33,
                                      37,  48,  63,  64,  65,  66,  67,  95,  96,  97,  127, 128,
                                      129, 131, 191, 193, 197, 255, 256, 257, 320, 383, 385, 521};
    static const int64_t dims[] = {1,  2,  3,  5,  8,  15, 16,  17,  24,  32,  33,  40,  64,
                                   64, 64, 65, 72, 80, 96, 127, 128, 160, 192, 256, 257, 512};
    static const int64_t batches[] = {1, 1, 2, 3};
    static const int64_t key_heads[] = {1, 1, 2, 3, 4};
    static const int64_t groups[] = {1, 1, 1, 2, 3, 4, 8};
    do {
        spec->B = PICK(draw, batches);
        spec->H_kv = PICK(draw, key_heads);
        spec->H = spec->H_kv * PICK(draw, groups);
        spec->S_kv = PICK(draw, lengths);
        spec->S_q = chance(draw, 40) ? spec->S_kv : chance(draw, 30) ? 1 : PICK(draw, lengths);
        spec->D = PICK(draw, dims);
        spec->D_v = chance(draw, 75) ? spec->D : PICK(draw, dims);
    } while ((double)(spec->B * spec->H) * (double)(spec->S_q * spec->S_kv) * (double)(spec->D + spec->D_v) >
             work_most);
    if (chance(draw, 2))
        *(chance(draw, 50) ? &spec->S_q : &spec->S_kv) = 0;
}

static const char *draw_kv_lengths(struct draw *draw, const struct problem_spec *spec)
{
    if (chance(draw, 65))
        return intern("full");
    if (chance(draw, 50))
        return intern("ragged");
    const char *text = ""; /* zero, one and full lengths among them */
    for (int64_t b = 0; b < spec->B; b++) {
        uint64_t length = chance(draw, 25) ? below(draw, 2) : below(draw, (uint64_t)spec->S_kv + 1);
        if (length > (uint64_t)spec->S_kv)
            length = (uint64_t)spec->S_kv;
        text = intern_format("%s%s%llu", text, b ? ":" : "", (unsigned long long)length);
    }
    return text;
}

static void draw_masks(struct draw *draw, struct problem_spec *spec)
{
    static const enum causal alignments[] = {CAUSAL_TOP_LEFT, CAUSAL_BOTTOM_RIGHT, CAUSAL_BOTTOM_RIGHT_VALID};
    static const double shares[] = {0, 0.02, 0.3, 0.5, 0.9, 1};
    static const int64_t reaches[] = {1, 2, 5, 16, 31, 64, 100, WINDOW_OPEN};
    spec->causal = chance(draw, 50) ? CAUSAL_NONE : PICK(draw, alignments);
    spec->kv_lengths = draw_kv_lengths(draw, spec);
    if (chance(draw, 20))
        spec->mask_share = PICK(draw, shares);
    spec->bias = chance(draw, 20);
    if (chance(draw, 25)) {
        spec->window = true;
        spec->window_left = PICK(draw, reaches);
        spec->window_right = spec->causal == CAUSAL_NONE ? PICK(draw, reaches) : 0;
    }
    if (chance(draw, 15))
        spec->softcap = chance(draw, 50) ? 50 : 2.5;
    if (chance(draw, 15))
        spec->scale = chance(draw, 30) ? -0.25 : chance(draw, 20) ? 0 : sqrt((double)spec->D);
}

struct problem_spec verify_suite_problem(uint64_t seed, int64_t index, bool *far)
{
    static const enum fill fills[] = {FILL_NORMAL, FILL_NORMAL,   FILL_NORMAL,   FILL_HUGE,
                                      FILL_EQUAL,  FILL_DOMINANT, FILL_SUBNORMAL};
    struct draw draw = {.seed = seed, .index = (uint64_t)index};
    struct problem_spec spec = spec_default();
    spec.seed = seed + (uint64_t)index;
    *far = index < 2; /* first, so that the shortest run has them */
    if (*far) {
        spec.B = 2;
        spec.H = 4;
        spec.H_kv = 2;
        spec.S_q = index == 0 ? 70 : 1;
        spec.S_kv = 70;
        spec.D = spec.D_v = 64;
        return spec;
    }
    draw_sizes(&draw, &spec);
    draw_masks(&draw, &spec);
    const uint64_t kind = below(&draw, 100);
    spec.dtype = kind < 25 ? ATTN_BF16 : kind < 40 ? ATTN_F16 : ATTN_F32;
    spec.layout = (enum layout)below(&draw, 3);
    spec.fill = PICK(&draw, fills);
    spec.weights = chance(&draw, 15);
    if (spec.scale * spec.scale > 1) /* scores of a huge fill would leave f32 */
        spec.fill = FILL_NORMAL;
    if (spec.D == spec.D_v && chance(&draw, 10))
        spec.alias = spec.S_q == spec.S_kv && spec.H == spec.H_kv && chance(&draw, 50) ? ALIAS_QKV : ALIAS_KV;
    return spec;
}
