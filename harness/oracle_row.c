/* SPDX-License-Identifier: Apache-2.0
 *
 * One row of the float64 reference and the model of the error that a sound kernel makes in it. The derivation is in
 * oracle.h; the names of its terms are used here.
 */
#include "oracle_row.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define EXP_UNITS 4.0         /* exp: an error uniform within 4 units = 2 ulp */
#define EXP_UNDERFLOW (-85.0) /* below this natural-log score an f32 exp may be subnormal or flushed */

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
    bool projected = row->keys->panel_variance != NULL;
    double absolute = VARIANCE * EXP_UNITS * EXP_UNITS + row->absolute * row->absolute;
    for (int64_t k = 0; k < keys; k++) {
        if (!scratch->allowed[k])
            continue;
        double below = scratch->score[k] - row->maximum, p = scratch->weight[k] * scale;
        double variance = VARIANCE * (scratch->variance[k] + 3 * below * below) + absolute, shared = 0;
        if (projected) {
            variance += scratch->extra[k];
            shared = scratch->shared[k] + scratch->tied[k];
            row->shared_mean += p * sqrt(shared);
        }
        scratch->weight[k] = p;
        scratch->variance[k] = variance;
        worst = below > -120 && variance + shared > worst ? variance + shared : worst;
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
    const double *value;
    double p, first, spread, scaled;
};

enum { TERMS = 4 }; /* keys added in one pass over the columns, to save loads and stores of the sums */

/* Sums over keys, all columns: [0] p v, [1] squared partial sums of it, [2] (c + g) v^2, [3] c v, [4] p (s - max) v.
 * (Two more are rare: [5] squared partial sums at rescales, [6] |partial sum| at repeated scores; sum_errors has two
 * of its own.) */
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
    const double *values = row->keys->values + (row->lo - row->keys->lo) * D_v;
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

enum { TILE = 4 };

/* acc[g][d] += lean[k][g] value[k][d] over all keys, one tile. */
static inline void lean_tile(const double *restrict lean, const double *restrict values, int64_t keys, int64_t D_v,
                             int width, double acc[TILE][TILE])
{
    for (int64_t k = 0; k < keys; k++)
        for (int g = 0; g < TILE; g++)
            for (int d = 0; d < width; d++)
                acc[g][d] += lean[k * SKETCH + g] * values[k * D_v + d];
}

/* Errors of q: those of each group of features move all scores together. Adds (sum_k p_k lean_kg (v_k - o))^2. */
static void sum_sketch(const struct row *row, struct row_scratch *scratch, const double *values, double *by_score)
{
    int64_t D = row->problem->D, D_v = row->problem->D_v, keys = row->hi - row->lo;
    int64_t size = sketch_group(D), groups = (D + size - 1) / size;
    double mean[SKETCH] = {0};
    for (int64_t k = 0; k < keys; k++)
        for (int64_t g = 0; g < SKETCH; g++) {
            double *lean = &scratch->lean[k * SKETCH + g];
            *lean = scratch->allowed[k] && g < groups ? *lean * scratch->weight[k] : 0;
            mean[g] += *lean;
        }
    for (int64_t d = 0; d < D_v; d += TILE) {
        int width = D_v - d < TILE ? (int)(D_v - d) : TILE;
        for (int64_t g = 0; g < groups; g += TILE) {
            double acc[TILE][TILE] = {{0}};
            if (width == TILE)
                lean_tile(scratch->lean + g, values + d, keys, D_v, TILE, acc);
            else
                lean_tile(scratch->lean + g, values + d, keys, D_v, width, acc);
            for (int i = 0; i < TILE; i++)
                for (int c = 0; c < width; c++) {
                    double moved = acc[i][c] - mean[g + i] * scratch->sums[d + c];
                    by_score[d + c] += moved * moved;
                }
        }
    }
}

/* What the errors of projected operands bring along, as variances: [7] by those of V, in which keys that share a value
 * err alike, [8] by those of scores that many keys have in common. */
static void sum_errors(const struct row *row, struct row_scratch *scratch)
{
    const struct key_head *keys = row->keys;
    int64_t D_v = row->problem->D_v, first = row->lo - keys->lo, count = row->hi - row->lo, all = keys->hi - keys->lo;
    double *by_value = scratch->sums + 7 * D_v, *by_score = scratch->sums + 8 * D_v;
    const double *values = keys->values + first * D_v;
    memset(scratch->twins, 0, (size_t)all * sizeof *scratch->twins);
    for (int64_t k = 0; k < count; k++) {
        if (!scratch->allowed[k])
            continue;
        scratch->twins[keys->v_twin[first + k]] += scratch->weight[k];
        double alike = scratch->weight[k] * sqrt(scratch->tied[k]);
        for (int64_t d = 0; d < D_v && alike > 0; d++)
            by_score[d] += alike * fabs(values[k * D_v + d] - scratch->sums[d]);
    }
    for (int64_t d = 0; d < D_v; d++)
        by_score[d] *= by_score[d];
    for (int64_t k = 0; k < all; k++) {
        double square = scratch->twins[k] * scratch->twins[k];
        for (int64_t d = 0; d < D_v && square > 0; d++)
            by_value[d] += square * keys->value_variance[k * D_v + d];
    }
    sum_sketch(row, scratch, values, by_score);
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
        double spread = sqrt(fmax(0, sums[2 * D_v + d] - 2 * o * a + o * o * row->variance_sum) + sums[8 * D_v + d]);
        double centered = fmin(growth * spread, range);
        double own = centered * centered + VARIANCE * (2 * sums[D_v + d] + n / 3 * o * o) +
                     2 * exp_variance * sums[5 * D_v + d] + sums[7 * D_v + d];
        double coherent = 4 * UNIT * fmin(fabs(sums[4 * D_v + d] - o * row->mean), range / (4 * UNIT)) +
                          UNIT * sums[6 * D_v + d] + (n + 2) * model->tiny + 2.5 * model->tiny_out +
                          (double)row->underflows * 0x1p-125 * magnitude;
        bool open = row->sum * magnitude >= FLT_MAX / 4; /* the sum before the division may overflow in f32 */
        result->out[d] = o;
        if (result->variance)
            result->variance[d] = open ? INFINITY : own + coherent * coherent + model->unit * model->unit / 3 * o * o;
        double variance = own + o * o * sum_variance;
        coherent += UNIT * row->repeated_prefix * fabs(o) + 1.5 * (model->unit + model->unit_p) * fabs(o);
        result->sigma[d] = sqrt(variance + coherent * coherent);
        result->bound[d] = open ? INFINITY : ORACLE_LAMBDA * sqrt(variance) + coherent;
    }
    if (result->relative)
        *result->relative = sum_variance + model->unit_p * model->unit_p / 3 +
                            UNIT * row->repeated_prefix * (UNIT * row->repeated_prefix);
}

static void finish_weights(const struct row *row, const struct row_scratch *scratch, const struct dtype_model *model,
                           const struct row_result *result)
{
    double n = (double)row->count, reach = ORACLE_LAMBDA * row->worst;
    double growth = reach <= 1 ? exp(4 * reach) : INFINITY;
    bool projected = row->keys->panel_variance != NULL;
    double sum_variance = VARIANCE * (2 * row->prefix_square + n / 3 + n / 6 * row->weight_square + 8) +
                          2 * VARIANCE * EXP_UNITS * EXP_UNITS * row->rescale_square;
    for (int64_t k = 0; k < row->hi - row->lo; k++) {
        if (!scratch->allowed[k])
            continue;
        int64_t j = row->lo + k;
        double p = scratch->weight[k], below = scratch->score[k] - row->maximum;
        double shared = projected ? sqrt(scratch->shared[k] + scratch->tied[k]) + row->shared_mean : 0;
        double relative = growth * (scratch->variance[k] + row->variance_sum + shared * shared) + sum_variance;
        double coherent = UNIT * (4 * fabs(below - row->mean) + row->repeated_prefix) + model->unit_p;
        result->weights[j] = p;
        result->weight_bound[j] =
            p > 0 ? fmin(p * (ORACLE_LAMBDA * sqrt(relative) + coherent) + 0x1p-125, 1.0) : 0x1p-125;
    }
}

/* Anything is right in this column. */
static void leave_open(const struct row_result *result, int64_t d)
{
    result->bound[d] = INFINITY;
    if (result->variance)
        result->variance[d] = INFINITY;
}

/* NaN or infinite inputs: columns that a masked value may or may not reach are undetermined. */
static void taint_columns(const struct row *row, const struct row_scratch *scratch, const struct row_result *result)
{
    int64_t D_v = row->problem->D_v;
    for (int64_t k = 0; k < row->hi - row->lo; k++) {
        if (scratch->allowed[k])
            continue;
        const double *value = row->keys->values + (row->lo - row->keys->lo + k) * D_v;
        for (int64_t d = 0; d < D_v; d++)
            if (!isfinite(value[d]))
                leave_open(result, d);
    }
}

static void fill_doubles(double *array, int64_t count, double value)
{
    for (int64_t i = 0; array && i < count; i++)
        array[i] = value;
}

static void prepare_query(struct row *row, int64_t h, int64_t i, const struct dtype_model *model)
{
    const struct attn_problem *problem = row->problem;
    const struct attn_tensor *bias = &row->attention->inputs->bias, *mask = &row->attention->inputs->mask;
    int64_t b = row->keys->b, D = problem->D;
    double largest = 0, square = 0;
    for (int64_t d = 0; d < D; d++) {
        double x = row->query->value[d];
        largest = fmax(largest, fabs(x));
        square += x * x;
        row->finite = row->finite && isfinite(x);
        if (row->query->variance && row->query->variance[d] == INFINITY)
            row->undetermined = true;
    }
    if (bias->data)
        row->bias = (const float *)bias->data + b * bias->stride[0] + h * bias->stride[1] + i * bias->stride[2];
    if (mask->data)
        row->mask = (const uint8_t *)mask->data + b * mask->stride[0] + h * mask->stride[1] + i * mask->stride[2];
    double scale = row->attention->additive ? 1 : fabs((double)problem->scale);
    row->absolute =
        scale * (double)D * model->tiny * (model->tiny >= 0x1p-126 ? 1 + largest + row->keys->largest_key : 1);
    /* Where f32 may overflow on the way to a finite score, nothing can be said. */
    double reach = sqrt(square) * row->keys->largest_key * sqrt((double)D) * fmax(1, 1.5 * scale);
    if (!row->attention->additive && reach >= FLT_MAX / 4 && isfinite(reach))
        row->undetermined = true;
}

void oracle_row(const struct attention *attention, const struct key_head *keys, const struct query *query, int64_t h,
                int64_t i, struct row_scratch *scratch, const struct row_result *result)
{
    const struct attn_problem *problem = attention->problem;
    struct row row = {.attention = attention,
                      .problem = problem,
                      .keys = keys,
                      .query = query,
                      .finite = keys->finite && attention->bias_finite,
                      .undetermined = keys->undetermined};
    struct dtype_model model = dtype_model(problem->dtype);
    int64_t D_v = problem->D_v;
    fill_doubles(result->out, D_v, 0);
    fill_doubles(result->bound, D_v, 0);
    fill_doubles(result->sigma, D_v, 0);
    fill_doubles(result->weights, problem->S_kv, 0);
    fill_doubles(result->weight_bound, problem->S_kv, 0);
    fill_doubles(result->variance, D_v, 0);
    fill_doubles(result->relative, 1, 0);
    row_key_range(problem, keys->b, i, &row.lo, &row.hi);
    if (row.lo >= row.hi)
        return;
    prepare_query(&row, h, i, &model);
    score_keys(&row, scratch);
    weigh_keys(&row, scratch);
    if (row.count > 0 && !row.not_a_number && !row.undetermined) {
        memset(scratch->sums, 0, (size_t)D_v * ROW_SUMS * sizeof *scratch->sums);
        sum_values(&row, scratch, &model);
        if (keys->panel_variance)
            sum_errors(&row, scratch);
        finish_columns(&row, scratch, &model, result);
        if (result->weights)
            finish_weights(&row, scratch, &model, result);
    }
    if (row.not_a_number) {
        fill_doubles(result->out, D_v, NAN);
        fill_doubles(result->weight_bound, problem->S_kv, INFINITY);
    }
    if (row.undetermined) {
        for (int64_t d = 0; d < D_v; d++)
            leave_open(result, d);
        fill_doubles(result->weight_bound, problem->S_kv, INFINITY);
    }
    if (!row.finite)
        taint_columns(&row, scratch, result);
}
