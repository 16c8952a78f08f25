/* SPDX-License-Identifier: Apache-2.0
 *
 * One row of the float64 reference and the model of the error that a sound kernel makes in it. The derivation is in
 * oracle.h; the names of its terms are used here.
 */
#include "oracle_row.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fill.h"

#define UNIT 0x1p-24               /* f32 unit roundoff */
#define VARIANCE (UNIT * UNIT / 3) /* of one rounding error, relative */
#define EXP_UNITS 4.0              /* exp: an error uniform within 4 units = 2 ulp */
#define TANH_UNITS 4.0             /* tanh: absolute error in units of 1, cancellation included */
#define EXP_UNDERFLOW (-85.0)      /* below this natural-log score an f32 exp may be subnormal or flushed */

struct dtype_model dtype_model(enum attn_dtype dtype)
{
    if (dtype == ATTN_BF16) /* vdpbf16ps flushes subnormals of inputs and sums */
        return (struct dtype_model){0x1p-8, 0x1p-8, 0x1p-126, 0x1p-126, 0x1p-126, 0x1.ffp127};
    if (dtype == ATTN_F16)
        return (struct dtype_model){0x1p-11, 0x1p-11, 0x1p-25, 0x1p-149, 0x1p-25, 65520.0};
    return (struct dtype_model){UNIT, 0, 0, 0x1p-149, 0x1p-149, FLT_MAX};
}

int row_scratch_create(struct row_scratch *scratch, const struct attn_problem *problem, int64_t keys)
{
    size_t padded = (size_t)keys + 2 * PANEL;
    scratch->q = calloc((size_t)problem->D, sizeof *scratch->q);
    scratch->narrow = calloc((size_t)problem->D, sizeof *scratch->narrow);
    scratch->score = calloc(padded, sizeof *scratch->score);
    scratch->variance = calloc(padded, sizeof *scratch->variance);
    scratch->weight = calloc(padded, sizeof *scratch->weight);
    scratch->allowed = calloc(padded, sizeof *scratch->allowed);
    scratch->repeated = calloc(padded, sizeof *scratch->repeated);
    scratch->seen_size = 16;
    while (scratch->seen_size < 2 * padded)
        scratch->seen_size *= 2;
    scratch->seen = calloc(scratch->seen_size, sizeof *scratch->seen);
    scratch->sums = calloc((size_t)problem->D_v, ROW_SUMS * sizeof *scratch->sums);
    if (scratch->q && scratch->narrow && scratch->score && scratch->variance && scratch->weight && scratch->allowed &&
        scratch->sums)
        return 0;
    row_scratch_destroy(scratch);
    return -ENOMEM;
}

void row_scratch_destroy(struct row_scratch *scratch)
{
    free(scratch->q);
    free(scratch->narrow);
    free(scratch->score);
    free(scratch->variance);
    free(scratch->weight);
    free(scratch->allowed);
    free(scratch->repeated);
    free(scratch->seen);
    free(scratch->sums);
    memset(scratch, 0, sizeof *scratch);
}

void read_row(const struct attn_tensor *tensor, enum attn_dtype dtype, int64_t b, int64_t h, int64_t s, float *row)
{
    int64_t offset = b * tensor->stride[0] + h * tensor->stride[1] + s * tensor->stride[2], size = tensor->size[3];
    if (dtype == ATTN_F32) {
        memcpy(row, (const float *)tensor->data + offset, (size_t)size * sizeof *row);
        return;
    }
    const uint16_t *from = (const uint16_t *)tensor->data + offset;
    for (int64_t d = 0; d < size; d++)
        row[d] = dtype == ATTN_BF16 ? float_from_bf16(from[d]) : float_from_f16(from[d]);
}

void row_key_range(const struct attn_problem *problem, int64_t b, int64_t i, int64_t *lo, int64_t *hi)
{
    int64_t position = i + (problem->diag ? problem->diag[b] : 0);
    int64_t length = problem->kv_len ? problem->kv_len[b] : problem->S_kv, end;
    *lo = 0;
    *hi = length;
    if (problem->left != INT64_MAX && position - problem->left + 1 > 0)
        *lo = position - problem->left + 1;
    if (!__builtin_add_overflow(position, problem->right, &end) && end < length - 1)
        *hi = end < -1 ? 0 : end + 1;
}

/* q . k for the keys of one panel: value, sum of the squared partial sums, sum of the squared products. */
static void panel_dot(const double *restrict q, const float *restrict panel, int64_t D, double *restrict dot,
                      double *restrict partial, double *restrict square)
{
    double s[PANEL] = {0}, ss[PANEL] = {0}, w[PANEL] = {0};
    for (int64_t d = 0; d < D; d++) {
        for (int l = 0; l < PANEL; l++) {
            double t = q[d] * (double)panel[d * PANEL + l];
            s[l] += t;
            ss[l] += s[l] * s[l];
            w[l] += t * t;
        }
    }
    memcpy(dot, s, sizeof s);
    memcpy(partial, ss, sizeof ss);
    memcpy(square, w, sizeof w);
}

/* What the scores of one row have in common, and what came of them. */
struct row {
    const struct attn_problem *problem;
    const struct key_head *keys;
    const float *bias;   /* of this row, or NULL */
    const uint8_t *mask; /* likewise */
    int64_t lo, hi;      /* by causal line, window and kv-length */
    int64_t count;       /* allowed keys */
    double maximum, sum; /* of the allowed scores; of exp(score - maximum) */
    double worst;        /* largest standard deviation of a score that matters */
    double mean;         /* weighted mean of score - maximum */
    double weight_square, prefix_square, variance_sum, rescale_square,
        repeated_prefix; /* sums over keys, see finish_columns */
    int64_t underflows;
    bool undetermined; /* anything is right */
    bool not_a_number; /* the result is not finite */
    bool finite;
    double absolute; /* absolute error of a score */
};

/* Scores and the variances of their errors but for the parts that need the maximum. Slot k is key lo + k. */
static void score_keys(struct row *row, struct row_scratch *scratch)
{
    const struct attn_problem *problem = row->problem;
    int64_t D = problem->D, first = row->lo - row->keys->lo, end = row->hi - row->keys->lo;
    double scale = problem->scale, cap = problem->softcap, n = (double)D;
    double dot[PANEL], partial[PANEL], square[PANEL];
    for (int64_t at = first / PANEL * PANEL; at < end; at += PANEL) {
        panel_dot(scratch->q, row->keys->panels + at * D, D, dot, partial, square);
        for (int l = 0; l < PANEL; l++) {
            int64_t k = at + l - first, j = row->keys->lo + at + l;
            if (k < 0 || at + l >= end)
                continue;
            double x = scale * dot[l], s = x;
            double units = scale * scale * (partial[l] + n / 3 * dot[l] * dot[l] + (n / 6 + 2) * square[l]) + 3 * x * x;
            if (cap > 0) {
                s = cap * tanh(x / cap);
                units += TANH_UNITS * TANH_UNITS * cap * cap + 3 * s * s;
            }
            bool allowed = !row->mask || row->mask[j];
            if (row->bias) {
                allowed = allowed && row->bias[j] != -INFINITY;
                s += row->bias[j];
            }
            scratch->allowed[k] = allowed;
            scratch->score[k] = s;
            scratch->variance[k] = units + 3 * s * s;
            if (!row->finite && allowed && (isnan(s) || s == INFINITY))
                row->not_a_number = true;
            if (!row->finite && !allowed && !isfinite(dot[l]))
                row->undetermined = true; /* NaN behind an explicit mask may or may not matter */
            if (row->bias && isnan(row->bias[j]))
                row->undetermined = true;
        }
    }
}

/* Marks the keys whose score, as a float, an earlier allowed key has too. */
static void mark_repeated(int64_t keys, struct row_scratch *scratch)
{
    size_t mask = scratch->seen_size - 1;
    memset(scratch->seen, 0xff, scratch->seen_size * sizeof *scratch->seen); /* no finite float's pattern */
    for (int64_t k = 0; k < keys; k++) {
        float score = (float)scratch->score[k];
        uint32_t bits;
        memcpy(&bits, &score, sizeof bits);
        scratch->repeated[k] = 0;
        if (!scratch->allowed[k])
            continue;
        size_t slot = (bits * 0x9e3779b1u >> 7) & mask;
        while (scratch->seen[slot] != UINT32_MAX && scratch->seen[slot] != bits)
            slot = (slot + 1) & mask;
        scratch->repeated[k] = scratch->seen[slot] == bits;
        scratch->seen[slot] = bits;
    }
}

/* Softmax over the allowed keys; completes the variances and gathers the sums that the bounds need. */
static void weigh_keys(struct row *row, struct row_scratch *scratch)
{
    int64_t keys = row->hi - row->lo;
    row->maximum = -INFINITY;
    for (int64_t k = 0; k < keys; k++) {
        if (!scratch->allowed[k])
            continue;
        row->count++;
        if (scratch->score[k] > row->maximum)
            row->maximum = scratch->score[k];
    }
    if (row->count > 0 && row->maximum == -INFINITY)
        row->undetermined = true; /* (-inf) - (-inf): NaN by the formula, "no key" to an online softmax */
    row->sum = 0;
    for (int64_t k = 0; k < keys; k++) {
        double below = scratch->score[k] - row->maximum;
        scratch->weight[k] = scratch->allowed[k] ? exp(below) : 0;
        row->sum += scratch->weight[k];
    }
    mark_repeated(keys, scratch);
    double prefix = 0, running = -INFINITY, worst = 0, mean = 0, scale = 1 / row->sum;
    double absolute = VARIANCE * EXP_UNITS * EXP_UNITS + row->absolute * row->absolute;
    for (int64_t k = 0; k < keys; k++) {
        if (!scratch->allowed[k])
            continue;
        double below = scratch->score[k] - row->maximum, p = scratch->weight[k] * scale;
        double variance = VARIANCE * (scratch->variance[k] + 3 * below * below) + absolute;
        scratch->weight[k] = p;
        scratch->variance[k] = variance;
        worst = below > -120 && variance > worst ? variance : worst;
        row->underflows += below < EXP_UNDERFLOW;
        if (scratch->score[k] > running) {
            running = scratch->score[k];
            row->rescale_square += prefix * prefix;
        }
        prefix += p;
        row->prefix_square += prefix * prefix;
        row->repeated_prefix += scratch->repeated[k] ? prefix : 0;
        row->weight_square += p * p;
        row->variance_sum += p * p * variance;
        mean += p > 0 ? p * below : 0;
    }
    row->mean = mean;
    row->worst = sqrt(worst);
}

/* One key's part in the sums over keys. */
struct term {
    const float *value;
    double p, first, spread, scaled;
};

enum { TERMS = 4 }; /* keys added in one pass over the columns, to save loads and stores of the sums */

/* Sums over keys, all columns: [0] p v, [1] squared partial sums of it, [2] (c + g) v^2, [3] c v, [4] p (s - max) v.
 * (Two more are rare: [5] squared partial sums at rescales, [6] |partial sum| at repeated scores.) */
static inline void add_terms(const struct term *term, int terms, int64_t D_v, double *restrict sums)
{
    double *restrict out = sums, *restrict prefix = sums + D_v, *restrict spread = sums + 2 * D_v;
    double *restrict first = sums + 3 * D_v, *restrict scaled = sums + 4 * D_v;
    for (int64_t d = 0; d < D_v; d++) {
        double o = out[d], oo = prefix[d], vv = spread[d], cv = first[d], sv = scaled[d];
        for (int t = 0; t < terms; t++) {
            double v = term[t].value[d];
            o += term[t].p * v;
            oo += o * o;
            vv += term[t].spread * (v * v);
            cv += term[t].first * v;
            sv += term[t].scaled * v;
        }
        out[d] = o;
        prefix[d] = oo;
        spread[d] = vv;
        first[d] = cv;
        scaled[d] = sv;
    }
}

static void add_all(const struct term *term, int terms, int64_t D_v, double *sums)
{
    if (terms == TERMS) {
        const struct term four[TERMS] = {term[0], term[1], term[2], term[3]};
        add_terms(four, TERMS, D_v, sums);
    } else {
        for (int t = 0; t < terms; t++)
            add_terms(term + t, 1, D_v, sums);
    }
}

/* A rescale at each new maximum multiplies what was summed so far by an inexact exp; a repeated score adds a term whose
 * rounding error is not independent of the earlier one's. Both look at the partial sums, so what is pending goes first.
 */
static void sum_values(const struct row *row, struct row_scratch *scratch, const struct dtype_model *model)
{
    double *rescale = scratch->sums + 5 * row->problem->D_v, *repeated = scratch->sums + 6 * row->problem->D_v;
    int64_t D_v = row->problem->D_v, keys = row->hi - row->lo;
    double running = -INFINITY, roundings = VARIANCE * (2 + (double)row->count / 6);
    const float *values = row->keys->values + (row->lo - row->keys->lo) * D_v;
    struct term term[TERMS];
    int pending = 0;
    for (int64_t k = 0; k < keys; k++) {
        double p = scratch->weight[k], s = scratch->score[k];
        if (!scratch->allowed[k])
            continue;
        if (s > running && running > -INFINITY) {
            add_all(term, pending, D_v, scratch->sums);
            pending = 0;
            for (int64_t d = 0; d < D_v; d++)
                rescale[d] += scratch->sums[d] * scratch->sums[d];
        }
        running = s > running ? s : running;
        if (p == 0 && row->finite)
            continue;
        double tiny = p < model->tiny_p ? p : model->tiny_p, rounding = p * model->unit_p;
        rounding = rounding > tiny ? rounding : tiny;
        double c = p * p * scratch->variance[k];
        term[pending++] = (struct term){
            .value = values + k * D_v,
            .p = p,
            .first = c,
            .spread = c + p * p * roundings + 4 * rounding * rounding / 3,
            .scaled = p > 0 ? p * (s - row->maximum) : 0,
        };
        if (pending == TERMS || scratch->repeated[k]) {
            add_all(term, pending, D_v, scratch->sums);
            pending = 0;
        }
        for (int64_t d = 0; d < D_v && scratch->repeated[k]; d++)
            repeated[d] += fabs(scratch->sums[d]);
    }
    add_all(term, pending, D_v, scratch->sums);
}

static void finish_columns(const struct row *row, const struct row_scratch *scratch, const struct dtype_model *model,
                           const struct row_result *result)
{
    int64_t D_v = row->problem->D_v;
    const double *sums = scratch->sums;
    double n = (double)row->count, exp_variance = VARIANCE * EXP_UNITS * EXP_UNITS;
    double reach = ORACLE_LAMBDA * row->worst, growth = reach <= 1 ? exp(2 * reach) : INFINITY;
    /* Relative variance of the row sum: plain and exchanged order, and a few more operations. */
    double sum_variance = VARIANCE * (2 * row->prefix_square + n / 3 + n / 6 * row->weight_square + 8) +
                          2 * exp_variance * row->rescale_square;
    for (int64_t d = 0; d < D_v; d++) {
        double o = sums[d], a = sums[3 * D_v + d];
        double range = row->keys->v_max[d] - row->keys->v_min[d];
        double magnitude = fmax(fabs(row->keys->v_max[d]), fabs(row->keys->v_min[d]));
        double spread = sqrt(fmax(0, sums[2 * D_v + d] - 2 * o * a + o * o * row->variance_sum));
        double centered = fmin(growth * spread, range);
        double variance = centered * centered + VARIANCE * (2 * sums[D_v + d] + n / 3 * o * o) + o * o * sum_variance +
                          2 * exp_variance * sums[5 * D_v + d];
        double coherent = 4 * UNIT * fmin(fabs(sums[4 * D_v + d] - o * row->mean), range / (4 * UNIT)) +
                          UNIT * (sums[6 * D_v + d] + row->repeated_prefix * fabs(o)) +
                          1.5 * (model->unit + model->unit_p) * fabs(o) + (n + 2) * model->tiny +
                          2.5 * model->tiny_out + (double)row->underflows * 0x1p-125 * magnitude;
        result->out[d] = o;
        result->sigma[d] = sqrt(variance + coherent * coherent);
        result->bound[d] = ORACLE_LAMBDA * sqrt(variance) + coherent;
        if (row->sum * magnitude >= FLT_MAX / 4)
            result->bound[d] = INFINITY; /* the sum before the division may overflow in f32 */
    }
}

static void finish_weights(const struct row *row, const struct row_scratch *scratch, const struct dtype_model *model,
                           const struct row_result *result)
{
    double n = (double)row->count, reach = ORACLE_LAMBDA * row->worst;
    double growth = reach <= 1 ? exp(4 * reach) : INFINITY;
    double sum_variance = VARIANCE * (2 * row->prefix_square + n / 3 + n / 6 * row->weight_square + 8) +
                          2 * VARIANCE * EXP_UNITS * EXP_UNITS * row->rescale_square;
    for (int64_t k = 0; k < row->hi - row->lo; k++) {
        if (!scratch->allowed[k])
            continue;
        int64_t j = row->lo + k;
        double p = scratch->weight[k], below = scratch->score[k] - row->maximum;
        double relative = growth * (scratch->variance[k] + row->variance_sum) + sum_variance;
        double coherent = UNIT * (4 * fabs(below - row->mean) + row->repeated_prefix) + model->unit_p;
        result->weights[j] = p;
        result->weight_bound[j] =
            p > 0 ? fmin(p * (ORACLE_LAMBDA * sqrt(relative) + coherent) + 0x1p-125, 1.0) : 0x1p-125;
    }
}

/* NaN or infinite inputs: columns that a masked value may or may not reach are undetermined. */
static void taint_columns(const struct row *row, const struct row_scratch *scratch, const struct row_result *result)
{
    int64_t D_v = row->problem->D_v;
    for (int64_t k = 0; k < row->hi - row->lo; k++) {
        if (scratch->allowed[k])
            continue;
        const float *value = row->keys->values + (row->lo - row->keys->lo + k) * D_v;
        for (int64_t d = 0; d < D_v; d++)
            if (!isfinite(value[d]))
                result->bound[d] = INFINITY;
    }
}

static void fill_doubles(double *array, int64_t count, double value)
{
    for (int64_t i = 0; array && i < count; i++)
        array[i] = value;
}

static void prepare_query(struct row *row, const struct attn_args *inputs, int64_t h, int64_t i,
                          struct row_scratch *scratch, const struct dtype_model *model)
{
    const struct attn_problem *problem = row->problem;
    int64_t b = row->keys->b, D = problem->D;
    read_row(&inputs->q, problem->dtype, b, h, i, scratch->narrow);
    double largest = 0, square = 0;
    for (int64_t d = 0; d < D; d++) {
        double x = scratch->narrow[d];
        scratch->q[d] = x;
        largest = fmax(largest, fabs(x));
        square += x * x;
    }
    const struct attn_tensor *bias = &inputs->bias, *mask = &inputs->mask;
    if (bias->data)
        row->bias = (const float *)bias->data + b * bias->stride[0] + h * bias->stride[1] + i * bias->stride[2];
    if (mask->data)
        row->mask = (const uint8_t *)mask->data + b * mask->stride[0] + h * mask->stride[1] + i * mask->stride[2];
    double scale = fabs((double)problem->scale);
    row->absolute =
        scale * (double)D * model->tiny * (model->tiny >= 0x1p-126 ? 1 + largest + row->keys->largest_key : 1);
    /* Where f32 may overflow on the way to a finite score, nothing can be said. */
    double reach = sqrt(square) * row->keys->largest_key * sqrt((double)D) * fmax(1, 1.5 * scale);
    if (reach >= FLT_MAX / 4 && isfinite(reach))
        row->undetermined = true;
}

void oracle_row(const struct attn_problem *problem, const struct attn_args *inputs, const struct key_head *keys,
                int64_t h, int64_t i, bool all_finite, struct row_scratch *scratch, const struct row_result *result)
{
    struct row row = {.problem = problem, .keys = keys, .finite = all_finite};
    struct dtype_model model = dtype_model(problem->dtype);
    int64_t D_v = problem->D_v;
    fill_doubles(result->out, D_v, 0);
    fill_doubles(result->bound, D_v, 0);
    fill_doubles(result->sigma, D_v, 0);
    fill_doubles(result->weights, problem->S_kv, 0);
    fill_doubles(result->weight_bound, problem->S_kv, 0);
    row_key_range(problem, keys->b, i, &row.lo, &row.hi);
    if (row.lo >= row.hi)
        return;
    prepare_query(&row, inputs, h, i, scratch, &model);
    score_keys(&row, scratch);
    weigh_keys(&row, scratch);
    if (row.count > 0 && !row.not_a_number && !row.undetermined) {
        memset(scratch->sums, 0, (size_t)D_v * ROW_SUMS * sizeof *scratch->sums);
        sum_values(&row, scratch, &model);
        finish_columns(&row, scratch, &model, result);
        if (result->weights)
            finish_weights(&row, scratch, &model, result);
    }
    if (row.not_a_number) {
        fill_doubles(result->out, D_v, NAN);
        fill_doubles(result->weight_bound, problem->S_kv, INFINITY);
    }
    if (row.undetermined) {
        fill_doubles(result->bound, D_v, INFINITY);
        fill_doubles(result->weight_bound, problem->S_kv, INFINITY);
    }
    if (!row.finite)
        taint_columns(&row, scratch, result);
}
