/* SPDX-License-Identifier: Apache-2.0
 *
 * The reference of concat: attention whose queries are [q; k] and whose keys are the rows of w, and with COMBINE a
 * linear stage behind it.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "../kernels/layers/layer.h"
#include "oracle_stage.h"

/* [q; x] of the checked rows: q and then what a tensor or an estimate says. */
static int join(const struct attn_problem *problem, const struct attn_args *inputs, const struct oracle *oracle,
                const struct attn_tensor *tensor, const struct estimate *applied, struct estimate *joined)
{
    int64_t group = problem->H / problem->H_kv;
    int64_t D = problem->D, more = tensor ? problem->key_dim : applied->columns, width = D + more;
    int code = estimate_create(oracle->rows, width, !applied, joined);
    for (int64_t r = 0; r < oracle->rows && code == 0; r++) {
        int64_t b = oracle->b[r], h = oracle->h[r], i = oracle->i[r];
        for (int64_t d = 0; d < D; d++)
            joined->value[r * width + d] = (double)read_element(&inputs->q, problem->dtype, b, h, i, d);
        for (int64_t d = 0; d < more; d++) {
            joined->value[r * width + D + d] = tensor ? (double)read_element(tensor, problem->dtype, b, h / group, i, d)
                                                      : applied->value[r * more + d];
            if (applied)
                joined->variance[r * width + D + d] = applied->variance[r * more + d];
        }
    }
    return code;
}

/* Ranges of out by those of q's columns and of V's, for every (b, h). */
static int combined_ranges(const struct attn_problem *problem, const struct attn_args *inputs,
                           const struct linear *linear, const struct stage *stage, int threads, struct oracle *oracle)
{
    int64_t D = problem->D, D_v = problem->D_v, width = D + D_v, group = problem->H / problem->H_kv;
    double *low = oracle_doubles(width, 1), *high = oracle_doubles(width, 1), *slack = oracle_doubles(width, 1);
    int code = low && high && slack ? 0 : -ENOMEM;
    for (int64_t b = 0; b < problem->B && code == 0; b++)
        for (int64_t h = 0; h < problem->H; h++) {
            int64_t v = (b * problem->H_kv + h / group) * D_v, out = (b * problem->H + h) * problem->out_dim;
            for (int64_t d = 0; d < D; d++) {
                low[d] = INFINITY;
                high[d] = -INFINITY;
                for (int64_t i = 0; i < problem->S_q; i++) {
                    double x = (double)read_element(&inputs->q, problem->dtype, b, h, i, d);
                    low[d] = fmin(low[d], x);
                    high[d] = fmax(high[d], x);
                }
            }
            for (int64_t d = 0; d < D_v; d++) {
                low[D + d] = stage->v_min[v + d];
                high[D + d] = stage->v_max[v + d];
                slack[D + d] = stage->v_tolerance[v + d];
            }
            linear_range(linear, width, low, high, slack, problem->out_dim, threads, oracle->v_min + out,
                         oracle->v_max + out, oracle->v_tolerance + out);
        }
    free(low);
    free(high);
    free(slack);
    return code;
}

/* out = w_out [q; applied] + w_out_bias behind the attention of a concat. */
static int combine(const struct attn_problem *problem, const struct attn_args *inputs, int threads,
                   const struct stage *stage, struct oracle *oracle)
{
    const struct attn_tensor *param = inputs->param;
    struct linear linear = {.weights = &param[ATTN_CONCAT_W_OUT],
                            .dtype = problem->dtype,
                            .bias = param[ATTN_CONCAT_W_OUT_BIAS].data,
                            .lead = problem->D,
                            .part = problem->D_v,
                            .parts = 1,
                            .relative = stage->relative};
    struct estimate joined, out = {0};
    int code = join(problem, inputs, oracle, NULL, stage->applied, &joined);
    if (code == 0)
        code = estimate_create(oracle->rows, problem->out_dim, false, &out);
    if (code == 0)
        code = linear_apply(&linear, &joined, threads, &out);
    if (code == 0) {
        estimate_finish(&out, problem->dtype, oracle->out, oracle->bound, oracle->sigma);
        code = combined_ranges(problem, inputs, &linear, stage, threads, oracle);
    }
    estimate_destroy(&joined);
    estimate_destroy(&out);
    return code;
}

/* Attention of the joined queries over the rows of w. */
static int attend(const struct attn_problem *problem, const struct attn_args *inputs, int threads,
                  const struct estimate *joined, struct stage *stage, bool *finite)
{
    const struct attn_tensor *param = inputs->param;
    struct attn_problem inner = *problem;
    struct attn_args beside = *inputs;
    struct attn_tensor keys = param[ATTN_CONCAT_W];
    inner.D = problem->D + problem->key_dim;
    inner.scale = 1;
    inner.softcap = 0;
    beside.bias = param[ATTN_CONCAT_W_BIAS];
    for (int i = 0; i < 3; i++)
        beside.bias.stride[i] = 0; /* the same for every b, h and i */
    for (int i = 0; i < 2; i++)
        keys.stride[i] = 0;
    stage->attention.problem = &inner;
    stage->attention.inputs = &beside;
    stage->q = (struct source){.estimate = joined};
    stage->k.tensor = &keys;
    stage->v.tensor = &inputs->v;
    double ignored = 0;
    bool bias_finite = tensor_finite(&param[ATTN_CONCAT_W_BIAS], ATTN_F32, true, &ignored), ranged = true;
    bool q_finite = tensor_finite(&inputs->q, problem->dtype, false, &stage->largest_query);
    bool k_finite = tensor_finite(&inputs->k, problem->dtype, false, &stage->largest_query);
    stage->attention.bias_finite = bias_finite;
    int64_t count;
    struct row_group *groups = split_by_key_head(problem, stage->oracle, &count);
    int code = groups ? stage_run(stage, groups, count, threads, &ranged) : -ENOMEM;
    free(groups);
    *finite = bias_finite && q_finite && k_finite && ranged;
    return code;
}

int oracle_concat(const struct attn_problem *problem, const struct attn_args *inputs, int threads,
                  struct oracle *oracle)
{
    const struct attn_tensor *param = inputs->param;
    bool combined = problem->flags & ATTN_FLAG_COMBINE, finite = false;
    struct estimate joined = {0}, applied = {0};
    struct stage stage = {.oracle = oracle,
                          .heads = 1,
                          .v_min = oracle->v_min,
                          .v_max = oracle->v_max,
                          .v_tolerance = oracle->v_tolerance};
    int code = join(problem, inputs, oracle, &inputs->k, NULL, &joined);
    if (combined) {
        int64_t columns = problem->B * problem->H_kv;
        stage.v_min = oracle_doubles(columns, problem->D_v);
        stage.v_max = oracle_doubles(columns, problem->D_v);
        stage.v_tolerance = oracle_doubles(columns, problem->D_v);
        stage.relative = oracle_doubles(oracle->rows, 1);
        stage.applied = &applied;
        if (code == 0)
            code = estimate_create(oracle->rows, problem->D_v, false, &applied);
        if (!stage.v_min || !stage.v_max || !stage.v_tolerance || !stage.relative)
            code = -ENOMEM;
    }
    if (code == 0)
        code = attend(problem, inputs, threads, &joined, &stage, &finite);
    if (combined) {
        double ignored = 0;
        if (code == 0)
            code = combine(problem, inputs, threads, &stage, oracle);
        finite = tensor_finite(&param[ATTN_CONCAT_W_OUT], problem->dtype, false, &ignored) && finite;
        finite = tensor_finite(&param[ATTN_CONCAT_W_OUT_BIAS], ATTN_F32, false, &ignored) && finite;
        free(stage.v_min);
        free(stage.v_max);
        free(stage.v_tolerance);
        free(stage.relative);
        estimate_destroy(&applied);
    }
    estimate_destroy(&joined);
    oracle->inputs_finite = finite;
    return code;
}
