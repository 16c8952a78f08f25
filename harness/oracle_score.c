/* SPDX-License-Identifier: Apache-2.0
 *
 * Scores of one row of the reference, scaled dot product or additive, and the variances of the errors that kernels make
 * in them. The derivation is in oracle.h.
 */
#include <math.h>
#include <string.h>

#include "fill.h"
#include "oracle_row.h"

#define TANH_UNITS 4.0 /* tanh: an absolute error uniform within 4 units of 1, 4 ulp of results above 1/2 */

int64_t sketch_group(int64_t D)
{
    return (D + SKETCH - 1) / SKETCH;
}

/* What one panel of keys gives. */
struct panel_sums {
    double value[PANEL];   /* the score before scale */
    double partial[PANEL]; /* squared partial sums of it */
    double square[PANEL];  /* squared terms */
    double extra[PANEL];   /* variance by errors of K, and of operations inside terms */
    double shared[PANEL];  /* variance by errors of q */
};

/* q . k for the keys of one panel. */
static void panel_dot(const double *restrict q, const double *restrict panel, int64_t D, struct panel_sums *sums)
{
    double s[PANEL] = {0}, ss[PANEL] = {0}, w[PANEL] = {0};
    for (int64_t d = 0; d < D; d++) {
        for (int l = 0; l < PANEL; l++) {
            double t = q[d] * panel[d * PANEL + l];
            s[l] += t;
            ss[l] += s[l] * s[l];
            w[l] += t * t;
        }
    }
    memcpy(sums->value, s, sizeof s);
    memcpy(sums->partial, ss, sizeof ss);
    memcpy(sums->square, w, sizeof w);
}

/* What errors in q and K add to q . k. lean: [PANEL][SKETCH]. */
static void panel_dot_errors(const struct row_scratch *scratch, const double *restrict panel,
                             const double *restrict variance, int64_t D, struct panel_sums *sums, double *restrict lean)
{
    const double *restrict q_square = scratch->q_square, *restrict q_lean = scratch->q_lean;
    double extra[PANEL] = {0}, shared[PANEL] = {0};
    int64_t size = sketch_group(D);
    for (int64_t d0 = 0, group = 0; d0 < D; d0 += size, group++) {
        double sum[PANEL] = {0};
        for (int64_t d = d0; d < d0 + size && d < D; d++) {
            for (int l = 0; l < PANEL; l++) {
                double t = q_lean[d] * panel[d * PANEL + l];
                sum[l] += t;
                shared[l] += t * t;
                extra[l] += q_square[d] * variance[d * PANEL + l];
            }
        }
        for (int l = 0; l < PANEL; l++)
            lean[l * SKETCH + group] = sum[l];
    }
    memcpy(sums->extra, extra, sizeof extra);
    memcpy(sums->shared, shared, sizeof shared);
}

/* sum_d u_d tanh(q_d + k_d) for the keys of one panel, with all that errors add. */
static void panel_additive(const struct row *row, const struct row_scratch *scratch, const double *panel,
                           const double *variance, struct panel_sums *sums, double *lean)
{
    const double *u = row->attention->u, *q = row->query->value;
    int64_t D = row->problem->D, size = sketch_group(D);
    memset(sums, 0, sizeof *sums);
    for (int l = 0; l < PANEL; l++) {
        double s = 0;
        for (int64_t d0 = 0, group = 0; d0 < D; d0 += size, group++) {
            double sum = 0;
            for (int64_t d = d0; d < d0 + size && d < D; d++) {
                double x = q[d] + panel[d * PANEL + l], t = tanh(x), term = u[d] * t, slope = u[d] * (1 - t * t);
                double leaning = scratch->q_lean[d] * slope;
                s += term;
                sums->partial[l] += s * s;
                sums->square[l] += term * term;
                sums->extra[l] += VARIANCE * TANH_UNITS * TANH_UNITS * u[d] * u[d];
                if (slope != 0) /* an infinite argument has no error that matters */
                    sums->extra[l] += slope * slope * (variance[d * PANEL + l] + VARIANCE * x * x);
                sums->shared[l] += leaning * leaning;
                sum += leaning;
            }
            lean[l * SKETCH + group] = sum;
        }
        sums->value[l] = s;
    }
}

/* Softcap, bias and masks; slot k is key j. dot, units: the score and the variance of its error in roundings. */
static void place_score(struct row *row, struct row_scratch *scratch, int64_t k, int64_t j, double dot, double units)
{
    double scale = row->attention->additive ? 1 : (double)row->problem->scale, x = scale * dot, s = x;
    double cap = row->attention->additive ? 0 : (double)row->problem->softcap;
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
    if (!row->finite && !allowed && !isfinite(dot))
        row->undetermined = true; /* NaN behind an explicit mask may or may not matter */
    if (row->bias && isnan(row->bias[j]))
        row->undetermined = true;
}

/* Coefficients of the errors of q: the sketch takes each standard deviation with a sign of its own. */
static void prepare_errors(const struct row *row, struct row_scratch *scratch)
{
    const struct query *query = row->query;
    double scale = row->attention->additive ? 1 : (double)row->problem->scale;
    for (int64_t d = 0; d < row->problem->D; d++) {
        double sign = fill_bits(0, 0, FILL_Q, (uint64_t)d) >> 63 ? -1 : 1;
        scratch->q_square[d] = scale * scale * (query->value[d] * query->value[d] + query->variance[d]);
        scratch->q_lean[d] = sign * scale * sqrt(query->variance[d]);
    }
}

void score_keys(struct row *row, struct row_scratch *scratch)
{
    const struct key_head *keys = row->keys;
    int64_t D = row->problem->D, first = row->lo - keys->lo, end = row->hi - keys->lo;
    double scale = row->problem->scale, n = (double)D, lean[PANEL * SKETCH] = {0};
    bool projected = keys->panel_variance != NULL, additive = projected && row->attention->additive;
    struct panel_sums sums;
    if (projected)
        prepare_errors(row, scratch);
    for (int64_t at = first / PANEL * PANEL; at < end; at += PANEL) {
        const double *panel = keys->panels + at * D;
        if (additive) {
            panel_additive(row, scratch, panel, keys->panel_variance + at * D, &sums, lean);
        } else {
            panel_dot(row->query->value, panel, D, &sums);
            if (projected)
                panel_dot_errors(scratch, panel, keys->panel_variance + at * D, D, &sums, lean);
        }
        for (int l = 0; l < PANEL; l++) {
            int64_t k = at + l - first, j = keys->lo + at + l;
            if (k < 0 || at + l >= end)
                continue;
            double dot = sums.value[l], x = scale * dot;
            double units = sums.partial[l] + n / 3 * dot * dot + (n / 6 + 2) * sums.square[l];
            place_score(row, scratch, k, j, dot, additive ? units : scale * scale * units + 3 * x * x);
            if (!projected)
                continue;
            bool tied = keys->k_tied[at + l];
            scratch->extra[k] = tied ? 0 : sums.extra[l];
            scratch->tied[k] = tied ? sums.extra[l] : 0;
            scratch->shared[k] = sums.shared[l];
            memcpy(scratch->lean + k * SKETCH, lean + (size_t)l * SKETCH, SKETCH * sizeof *lean);
        }
    }
}
