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
#include "spec_sizes.h"

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

/* What multiplies in a problem of the other rules, projections included. */
static double work_of(const struct problem_spec *s)
{
    const double B = (double)s->B, H = (double)s->H, H_kv = (double)s->H_kv, S_q = (double)s->S_q;
    const double S_kv = (double)s->S_kv, D = (double)s->D, D_v = (double)s->D_v, pairs = B * H * S_q * S_kv;
    const double hidden = (double)s->hidden, key_dim = (double)s->key_dim, out_dim = (double)s->out_dim;
    const double model = (double)s->model_dim, model_v = (double)s->model_dim_v, input = (double)s->input_dim;
    switch (s->rule) {
    case ATTN_ADDITIVE: /* a tanh takes as long as some ten of them */
        return B * hidden * (H * S_q * D + H_kv * S_kv * key_dim) + pairs * (10 * hidden + D_v);
    case ATTN_CONCAT:
        return pairs * (D + key_dim + D_v) + B * H * S_q * (D + D_v) * out_dim;
    case ATTN_MATMUL:
        return (s->semantics == SEMANTICS_DOT ? B * B : B * H) * S_q * D * D_v;
    default:
        return pairs * (D + D_v) + B * S_q * (input * (2 * model + model_v) + H * (model * D + D_v * out_dim)) +
               B * S_kv * H_kv * (model * D + model_v * D_v);
    }
}

static void draw_additive(struct draw *draw, struct problem_spec *spec)
{
    static const int64_t widths[] = {1, 2, 3, 5, 8, 15, 16, 17, 24, 31, 32, 33, 40, 63, 64, 65, 96, 100, 128, 130, 257};
    spec->D = PICK(draw, widths);
    spec->key_dim = chance(draw, 30) ? spec->D : PICK(draw, widths);
    spec->D_v = chance(draw, 40) ? spec->key_dim : PICK(draw, widths);
    spec->hidden = PICK(draw, widths);
    spec->plain_sum = chance(draw, 30);
}

static void draw_concat(struct draw *draw, struct problem_spec *spec)
{
    static const int64_t widths[] = {1, 2, 3, 5, 8, 15, 16, 17, 24, 31, 32, 33, 40, 63, 64, 65, 96, 128, 130};
    spec->H_kv = spec->H;
    spec->D = PICK(draw, widths);
    spec->key_dim = PICK(draw, widths);
    spec->D_v = PICK(draw, widths);
    spec->combine = chance(draw, 60);
    spec->out_dim = spec->combine ? PICK(draw, widths) : 0;
}

static void draw_layer(struct draw *draw, struct problem_spec *spec)
{
    static const int64_t widths[] = {1, 3, 7, 8, 16, 17, 24, 32, 33, 48, 64, 65, 80, 96, 100, 128, 160};
    static const int64_t dims[] = {1, 2, 4, 5, 8, 12, 16, 17, 20, 24, 32, 33, 40, 64, 65, 80, 96, 128};
    spec->single = spec->rule == ATTN_SELF_ATTENTION && chance(draw, 30);
    spec->model_dim = PICK(draw, widths);
    spec->model_dim_v = chance(draw, 60) ? spec->model_dim : PICK(draw, widths);
    spec->out_dim = spec->single ? 0 : PICK(draw, widths);
    if (spec->rule == ATTN_SELF_ATTENTION) {
        spec->input_dim = PICK(draw, widths);
        spec->S_kv = spec->S_q;
    }
    if (spec->single) {
        spec->H = spec->H_kv = 1;
        spec->D = spec->model_dim;
        spec->D_v = spec->model_dim_v;
    } else {
        spec->D = PICK(draw, dims);
        spec->D_v = chance(draw, 70) ? spec->D : PICK(draw, dims);
    }
}

static void draw_matmul(struct draw *draw, struct problem_spec *spec)
{
    static const int64_t sizes[] = {1,  2,  3,  4,  5,  6,  7,  8,  12, 13,  15,  16,  17,  24,  31,  32,
                                    33, 47, 48, 49, 63, 64, 65, 96, 97, 127, 128, 129, 192, 255, 257, 384};
    static const int64_t batches[] = {1, 1, 2, 3, 5};
    spec->semantics = chance(draw, 20) ? SEMANTICS_DOT : SEMANTICS_MATMUL;
    spec->B = PICK(draw, batches);
    spec->H = spec->H_kv = spec->semantics == SEMANTICS_DOT ? 1 : PICK(draw, batches);
    spec->broadcast = spec->semantics == SEMANTICS_DOT ? BROADCAST_NONE : (enum broadcast)below(draw, 3);
    spec->S_q = chance(draw, 2) ? 0 : PICK(draw, sizes);
    spec->D = PICK(draw, sizes);
    spec->D_v = spec->S_kv = PICK(draw, sizes);
}

static void draw_alias(struct draw *draw, struct problem_spec *spec)
{
    const bool layer = spec->rule == ATTN_MULTI_HEAD, additive = spec->rule == ATTN_ADDITIVE;
    const bool kv = layer      ? spec->model_dim == spec->model_dim_v
                    : additive ? spec->key_dim == spec->D_v
                               : spec->rule == ATTN_SCALED_DOT_PRODUCT && spec->D == spec->D_v;
    const bool all =
        kv && spec->S_q == spec->S_kv && (layer || spec->H == spec->H_kv) && (!additive || spec->D == spec->key_dim);
    if (kv && chance(draw, 10))
        spec->alias = all && chance(draw, 50) ? ALIAS_QKV : ALIAS_KV;
}

/* The rule's own sizes, drawn anew until the work is that of a suite. */
static void draw_rule(struct draw *draw, struct problem_spec *spec)
{
    do {
        if (spec->rule != ATTN_MATMUL)
            draw_sizes(draw, spec);
        if (spec->rule == ATTN_ADDITIVE)
            draw_additive(draw, spec);
        else if (spec->rule == ATTN_CONCAT)
            draw_concat(draw, spec);
        else if (spec->rule == ATTN_MATMUL)
            draw_matmul(draw, spec);
        else if (spec->rule != ATTN_SCALED_DOT_PRODUCT)
            draw_layer(draw, spec);
    } while (spec->rule != ATTN_SCALED_DOT_PRODUCT && work_of(spec) > work_most);
}

/* Traits that the rule does not have are drawn all the same, so that the others stay where they are. */
static void drop_unknown(struct problem_spec *spec)
{
    if (!rule_has_scale(spec->rule)) {
        spec->scale = NAN;
        spec->softcap = 0;
    }
    if (spec->rule == ATTN_CONCAT)
        spec->bias = false;
    if (spec->rule == ATTN_MULTI_HEAD || spec->rule == ATTN_SELF_ATTENTION)
        spec->layout = spec->layout == LAYOUT_HBSD && !spec->single ? LAYOUT_HBSD : LAYOUT_BHSD;
    if (spec->rule == ATTN_MATMUL) {
        spec->layout = LAYOUT_BHSD;
        spec->weights = false;
    }
}

struct problem_spec verify_suite_problem(uint64_t seed, enum attn_rule rule, int64_t index, bool *far)
{
    static const enum fill fills[] = {FILL_NORMAL, FILL_NORMAL,   FILL_NORMAL,   FILL_HUGE,
                                      FILL_EQUAL,  FILL_DOMINANT, FILL_SUBNORMAL};
    struct draw draw = {.seed = seed, .index = (uint64_t)rule << 40 | (uint64_t)index};
    struct problem_spec spec = spec_default();
    spec.rule = rule;
    spec.seed = seed + (uint64_t)index;
    *far = rule == ATTN_SCALED_DOT_PRODUCT && index < 2; /* first, so that the shortest run has them */
    if (*far) {
        spec.B = 2;
        spec.H = 4;
        spec.H_kv = 2;
        spec.S_q = index == 0 ? 70 : 1;
        spec.S_kv = 70;
        spec.D = spec.D_v = 64;
        return spec;
    }
    draw_rule(&draw, &spec);
    if (rule != ATTN_MATMUL)
        draw_masks(&draw, &spec);
    const uint64_t kind = below(&draw, 100);
    spec.dtype = kind < 25 ? ATTN_BF16 : kind < 40 ? ATTN_F16 : ATTN_F32;
    spec.layout = (enum layout)below(&draw, 3);
    spec.fill = PICK(&draw, fills);
    spec.weights = chance(&draw, 15);
    drop_unknown(&spec);
    if (spec.scale * spec.scale > 1) /* scores of a huge fill would leave f32 */
        spec.fill = FILL_NORMAL;
    draw_alias(&draw, &spec);
    return spec;
}
