/* SPDX-License-Identifier: Apache-2.0
 *
 * Holds a result against the reference: every element of the checked rows against its bound, their root mean square
 * against sigma, and every element of the output against the range of V. See oracle.h.
 */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "fill.h"
#include "oracle.h"
#include "oracle_row.h"

/* Keeps the largest ratio, and where that is above 1, why. */
__attribute__((format(printf, 3, 4))) static void note(struct judgement *judgement, double ratio, const char *format,
                                                       ...)
{
    if (ratio <= judgement->err_over_bound)
        return;
    judgement->err_over_bound = ratio;
    if (ratio <= 1)
        return;
    judgement->wrong = true;
    va_list list;
    va_start(list, format);
    vsnprintf(judgement->reason, sizeof judgement->reason, format, list);
    va_end(list);
}

/* Error over bound of one element; infinite where no error would be small enough. */
static double element_ratio(double got, double expected, double bound, double largest)
{
    if (bound == INFINITY)
        return 0;
    if (!isfinite(expected))
        return isfinite(got) ? INFINITY : 0;
    if (isinf(got))
        return fabs(expected) + bound >= largest && (got > 0) == (expected > 0) ? 0 : INFINITY;
    double error = fabs(got - expected);
    if (error == 0)
        return 0;
    double ratio = error / bound;
    return isnan(ratio) ? INFINITY : ratio;
}

/* Sums over the judged elements. */
struct errors {
    double square, relative_square; /* of error, of error / sigma */
    int64_t elements, rows;
};

static void judge_row(const struct oracle *oracle, const struct attn_problem *problem, const struct attn_tensor *out,
                      int64_t r, float *line, struct errors *errors, struct judgement *judgement)
{
    double largest = dtype_model(problem->dtype).largest;
    int64_t before = errors->elements;
    read_row(out, problem->dtype, oracle->b[r], oracle->h[r], oracle->i[r], line);
    for (int64_t d = 0; d < oracle->D_v; d++) {
        int64_t at = r * oracle->D_v + d;
        double got = line[d], expected = oracle->out[at], bound = oracle->bound[at];
        double ratio = element_ratio(got, expected, bound, largest);
        if (ratio > judgement->err_over_bound)
            note(judgement, ratio,
                 "row b=%" PRId64 " h=%" PRId64 " i=%" PRId64 " column %" PRId64
                 ": got %.9g, expected %.9g, error %.2g x bound",
                 oracle->b[r], oracle->h[r], oracle->i[r], d, got, expected, ratio);
        if (!isfinite(got) || !isfinite(expected) || bound == INFINITY)
            continue;
        double error = got - expected;
        judgement->max_abs_err = fmax(judgement->max_abs_err, fabs(error));
        errors->square += error * error;
        errors->elements++;
        if (oracle->sigma[at] > 0)
            errors->relative_square += error / oracle->sigma[at] * (error / oracle->sigma[at]);
    }
    errors->rows += errors->elements > before;
}

static void judge_weights(const struct oracle *oracle, const struct attn_tensor *weights, int64_t r,
                          struct judgement *judgement)
{
    for (int64_t w = 0; w < oracle->weight_heads; w++) {
        int64_t h = oracle->h[r] * oracle->weight_heads + w, line = (r * oracle->weight_heads + w) * oracle->S_kv;
        const float *row = (const float *)weights->data + oracle->b[r] * weights->stride[0] + h * weights->stride[1] +
                           oracle->i[r] * weights->stride[2];
        for (int64_t j = 0; j < oracle->S_kv; j++) {
            double expected = oracle->weights[line + j];
            double ratio = element_ratio(row[j], expected, oracle->weight_bound[line + j], INFINITY);
            if (ratio > judgement->err_over_bound)
                note(judgement, ratio,
                     "weight b=%" PRId64 " h=%" PRId64 " i=%" PRId64 " key %" PRId64
                     ": got %.9g, expected %.9g, error %.2g x bound",
                     oracle->b[r], h, oracle->i[r], j, (double)row[j], expected, ratio);
        }
    }
}

static void judge_rms(const struct errors *errors, struct judgement *judgement)
{
    if (errors->elements == 0)
        return;
    judgement->rms_err = sqrt(errors->square / (double)errors->elements);
    double rms = sqrt(errors->relative_square / (double)errors->elements);
    double limit = ORACLE_RMS_LIMIT + ORACLE_LAMBDA / sqrt((double)errors->rows);
    note(judgement, rms / limit,
         "root mean square of error/sigma over %" PRId64 " elements is %.3g, at most %.3g is sound", errors->elements,
         rms, limit);
}

/* Every element lies in its column's range. */
static void judge_range(const struct oracle *oracle, const struct attn_problem *problem, const struct attn_tensor *out,
                        float *line, struct judgement *judgement)
{
    int64_t group = oracle->out_heads / oracle->range_heads, D_v = oracle->D_v;
    for (int64_t b = 0; b < problem->B; b++)
        for (int64_t h = 0; h < oracle->out_heads; h++) {
            int64_t column = (b * oracle->range_heads + h / group) * D_v;
            const double *least = oracle->v_min + column, *most = oracle->v_max + column;
            const double *tolerance = oracle->v_tolerance + column;
            for (int64_t i = 0; i < problem->S_q; i++) {
                read_row(out, problem->dtype, b, h, i, line);
                for (int64_t d = 0; d < D_v; d++) {
                    double got = line[d], way = fmax(got - most[d], least[d] - got);
                    if ((way <= 0 && isfinite(got)) || tolerance[d] == INFINITY)
                        continue;
                    double ratio = isfinite(got) ? way / tolerance[d] : INFINITY;
                    if (ratio > judgement->err_over_bound)
                        note(judgement, ratio,
                             "element b=%" PRId64 " h=%" PRId64 " i=%" PRId64 " column %" PRId64
                             ": %.9g is outside its range %.9g .. %.9g",
                             b, h, i, d, got, least[d], most[d]);
                }
            }
        }
}

void oracle_judge(const struct oracle *oracle, const struct attn_problem *problem, const struct attn_tensor *out,
                  const struct attn_tensor *weights, struct judgement *judgement)
{
    struct errors errors = {0};
    *judgement = (struct judgement){.rows_checked = oracle->rows};
    float *line = malloc((size_t)oracle->D_v * sizeof *line);
    if (!line) {
        note(judgement, INFINITY, "out of memory while judging");
        return;
    }
    for (int64_t r = 0; r < oracle->rows; r++) {
        judge_row(oracle, problem, out, r, line, &errors, judgement);
        if (weights && weights->data && oracle->weights)
            judge_weights(oracle, weights, r, judgement);
    }
    judge_rms(&errors, judgement);
    if (oracle->inputs_finite && problem->S_q > 0)
        judge_range(oracle, problem, out, line, judgement);
    free(line);
}
