/* SPDX-License-Identifier: Apache-2.0
 *
 * The reference by rule: scaled dot product, additive, matmul. See oracle_concat.c and oracle_layer.c for the others.
 */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "../kernels/layers/layer.h"
#include "oracle_stage.h"

struct row_group *split_by_key_head(const struct attn_problem *problem, const struct oracle *oracle, int64_t *count)
{
    int64_t heads = problem->H / problem->H_kv;
    struct row_group *groups = malloc((size_t)(problem->B * problem->H_kv + 1) * sizeof *groups);
    *count = 0;
    for (int64_t r = 0; groups && r < oracle->rows; r++) {
        int64_t b = oracle->b[r], kv_head = oracle->h[r] / heads;
        if (*count == 0 || groups[*count - 1].b != b || groups[*count - 1].kv_head != kv_head)
            groups[(*count)++] = (struct row_group){.b = b, .kv_head = kv_head, .first = r};
        groups[*count - 1].end = r + 1;
    }
    return groups;
}

static struct stage direct_stage(const struct attn_problem *problem, const struct attn_args *inputs,
                                 struct oracle *oracle)
{
    double ignored = 0;
    return (struct stage){
        .attention = {.problem = problem,
                      .inputs = inputs,
                      .bias_finite = tensor_finite(&inputs->bias, ATTN_F32, true, &ignored)},
        .oracle = oracle,
        .heads = 1,
        .v_min = oracle->v_min,
        .v_max = oracle->v_max,
        .v_tolerance = oracle->v_tolerance,
    };
}

int oracle_scaled_dot_product(const struct attn_problem *problem, const struct attn_args *inputs, int threads,
                              struct oracle *oracle)
{
    struct stage stage = direct_stage(problem, inputs, oracle);
    stage.q.tensor = &inputs->q;
    stage.k.tensor = &inputs->k;
    stage.v.tensor = &inputs->v;
    bool finite = tensor_finite(&inputs->q, problem->dtype, false, &stage.largest_query), ranged = true;
    int64_t count;
    struct row_group *groups = split_by_key_head(problem, oracle, &count);
    int code = groups ? stage_run(&stage, groups, count, threads, &ranged) : -ENOMEM;
    free(groups);
    oracle->inputs_finite = finite && ranged && stage.attention.bias_finite;
    return code;
}

static struct linear additive_side(const struct attn_problem *problem, const struct attn_tensor *param, bool keys)
{
    return (struct linear){.weights = &param[ATTN_ADDITIVE_W],
                           .dtype = problem->dtype,
                           .first = keys ? problem->D : 0,
                           .bias = keys ? NULL : param[ATTN_ADDITIVE_W_BIAS].data};
}

/* One key head of additive: projects its keys and the checked rows of q, and attends. */
static int additive_group(const struct attn_problem *problem, const struct attn_args *inputs, int threads,
                          const double *alike, const struct row_group *group, struct stage *stage, bool *finite)
{
    const struct attn_tensor *param = inputs->param;
    const struct oracle *oracle = stage->oracle;
    int64_t lo, hi, hidden = problem->hidden, rows = group->end - group->first;
    struct estimate q = {0}, k = {0}, x = {0}, v = {0};
    struct linear key_side = {.weights = &param[ATTN_ADDITIVE_W], .dtype = problem->dtype, .first = problem->D};
    struct linear query_side = {
        .weights = &param[ATTN_ADDITIVE_W], .dtype = problem->dtype, .bias = param[ATTN_ADDITIVE_W_BIAS].data};
    key_side.alike = alike;
    query_side.alike = alike + hidden;
    visible_keys(problem, group->b, &lo, &hi);
    uint8_t *tied = calloc((size_t)(hi - lo) + 1, sizeof *tied);
    int64_t *twin = calloc((size_t)(hi - lo) + 1, sizeof *twin);
    int code =
        tied && twin ? find_twins(&inputs->k, problem->dtype, group->b, group->kv_head, lo, hi, tied, NULL) : -ENOMEM;
    if (code == 0)
        code = estimate_read(&inputs->k, problem->dtype, group->b, group->kv_head, NULL, lo, hi - lo, &x);
    if (code == 0)
        code = estimate_create(hi - lo, hidden, false, &k);
    if (code == 0)
        code = linear_apply(&key_side, &x, threads, &k);
    estimate_destroy(&x);
    if (code == 0)
        code = estimate_create(rows, problem->D, true, &x);
    for (int64_t r = 0; r < rows && code == 0; r++)
        for (int64_t d = 0; d < problem->D; d++)
            x.value[r * problem->D + d] = (double)read_element(
                &inputs->q, problem->dtype, group->b, oracle->h[group->first + r], oracle->i[group->first + r], d);
    if (code == 0)
        code = estimate_create(rows, hidden, false, &q);
    if (code == 0)
        code = linear_apply(&query_side, &x, threads, &q);
    if (code == 0)
        code = estimate_read(&inputs->v, problem->dtype, group->b, group->kv_head, NULL, lo, hi - lo, &v);
    if (code == 0) {
        estimate_store(&key_side, &k);
        estimate_store(&query_side, &q);
        stage->q = (struct source){.estimate = &q, .row0 = group->first};
        stage->k = (struct source){.estimate = &k, .row0 = lo};
        stage->v = (struct source){.estimate = &v, .row0 = lo};
        stage->k_tied = tied;
        stage->v_twin = twin;
        code = stage_run(stage, group, 1, threads, finite);
    }
    estimate_destroy(&x);
    estimate_destroy(&q);
    estimate_destroy(&k);
    estimate_destroy(&v);
    free(tied);
    free(twin);
    return code;
}

int oracle_additive(const struct attn_problem *problem, const struct attn_args *inputs, int threads,
                    struct oracle *oracle)
{
    const struct attn_tensor *param = inputs->param;
    struct attn_problem inner = *problem;
    inner.D = problem->hidden;
    struct stage stage = direct_stage(&inner, inputs, oracle);
    double largest = 0, *u = oracle_doubles(problem->hidden, 1), *alike = oracle_doubles(problem->hidden, 2);
    int64_t count;
    struct row_group *groups = split_by_key_head(problem, oracle, &count);
    bool finite = tensor_finite(&inputs->q, problem->dtype, false, &largest) && stage.attention.bias_finite;
    finite = tensor_finite(&param[ATTN_ADDITIVE_W], problem->dtype, false, &largest) && finite;
    finite = tensor_finite(&param[ATTN_ADDITIVE_W_BIAS], ATTN_F32, false, &largest) && finite;
    finite = tensor_finite(&param[ATTN_ADDITIVE_U], problem->dtype, false, &largest) && finite;
    int code = u && alike && groups ? 0 : -ENOMEM;
    for (int side = 0; side < 2 && code == 0; side++) {
        struct linear linear = additive_side(problem, param, side == 0);
        linear_alike(&linear, side == 0 ? problem->key_dim : problem->D, problem->hidden,
                     alike + side * problem->hidden);
    }
    for (int64_t d = 0; d < problem->hidden && code == 0; d++)
        u[d] =
            param[ATTN_ADDITIVE_U].data ? (double)read_element(&param[ATTN_ADDITIVE_U], problem->dtype, 0, 0, 0, d) : 1;
    stage.attention.additive = true;
    stage.attention.u = u;
    stage.projected = true;
    oracle_open_ranges(oracle, problem->B);
    for (int64_t g = 0; g < count && code == 0; g++) {
        bool ranged = true;
        code = additive_group(problem, inputs, threads, alike, &groups[g], &stage, &ranged);
        finite = finite && ranged;
    }
    free(u);
    free(alike);
    free(groups);
    oracle->inputs_finite = finite;
    return code;
}

/* Where every element of a product can lie, by Cauchy and Schwarz: |a_m . b_n| <= |a_m| |b_n|. */
static int matmul_ranges(const struct attn_problem *problem, const struct attn_args *inputs,
                         const struct linear *linear, struct oracle *oracle)
{
    int64_t K = problem->D, N = problem->D_v, at = (linear->b * problem->H + linear->h) * N;
    struct dtype_model model = dtype_model(problem->dtype);
    double longest = 0, *square = oracle_doubles(N, 1);
    if (!square)
        return -ENOMEM;
    for (int64_t m = 0; m < problem->S_q; m++) {
        double sum = 0;
        for (int64_t k = 0; k < K; k++) {
            double x = (double)read_element(&inputs->q, problem->dtype, linear->b, linear->h, m, k);
            sum += x * x;
        }
        longest = fmax(longest, sqrt(sum));
    }
    int64_t outer = linear->k_by_n ? K : N, inner = linear->k_by_n ? N : K;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            double w = (double)read_element(linear->weights, problem->dtype, linear->b, linear->h, o, i);
            square[linear->k_by_n ? i : o] += w * w;
        }
    for (int64_t n = 0; n < N; n++) {
        double reach = longest * sqrt(square[n]), bias = linear->bias ? (double)linear->bias[n] : 0;
        double size = reach + fabs(bias);
        oracle->v_min[at + n] = bias - reach;
        oracle->v_max[at + n] = bias + reach;
        oracle->v_tolerance[at + n] =
            size * (((double)K + 2) * UNIT + 2 * model.unit) + ((double)K + 2) * model.tiny + 2 * model.tiny_out;
        if (size >= fmin(FLT_MAX / 4, model.largest))
            oracle->v_tolerance[at + n] = INFINITY;
    }
    free(square);
    return 0;
}

static int matmul_group(const struct attn_problem *problem, const struct attn_args *inputs, int threads,
                        const struct row_group *group, struct oracle *oracle)
{
    const struct attn_tensor *bias = &inputs->bias;
    int64_t N = problem->D_v, b = group->b, h = group->kv_head, rows = group->end - group->first;
    struct linear linear = {.weights = &inputs->k,
                            .b = b,
                            .h = h,
                            .k_by_n = !(problem->flags & ATTN_FLAG_TRANSPOSED),
                            .dtype = problem->dtype};
    if (bias->data)
        linear.bias = (const float *)bias->data + b * bias->stride[0] + h * bias->stride[1];
    struct estimate x = {0}, y = {0};
    int code = estimate_read(&inputs->q, problem->dtype, b, h, oracle->i + group->first, 0, rows, &x);
    if (code == 0)
        code = estimate_create(rows, N, false, &y);
    if (code == 0)
        code = linear_apply(&linear, &x, threads, &y);
    if (code == 0) {
        int64_t at = group->first * N;
        estimate_finish(&y, problem->dtype, oracle->out + at, oracle->bound + at, oracle->sigma + at);
        code = matmul_ranges(problem, inputs, &linear, oracle);
    }
    estimate_destroy(&x);
    estimate_destroy(&y);
    return code;
}

int oracle_matmul(const struct attn_problem *problem, const struct attn_args *inputs, int threads,
                  struct oracle *oracle)
{
    double largest = 0;
    struct attn_problem heads = *problem;
    heads.H_kv = problem->H;
    int64_t count;
    struct row_group *groups = split_by_key_head(&heads, oracle, &count);
    bool by_group = threads > 1 && count >= 2 * (int64_t)threads;
    int outer = by_group ? threads : 1, inner = by_group ? 1 : threads, code = groups ? 0 : -ENOMEM;
#pragma omp parallel for schedule(dynamic) num_threads(outer) if (outer > 1) reduction(min : code)
    for (int64_t g = 0; g < (groups ? count : 0); g++) {
        int mine = matmul_group(problem, inputs, inner, &groups[g], oracle);
        code = mine < code ? mine : code;
    }
    free(groups);
    oracle->inputs_finite = tensor_finite(&inputs->q, problem->dtype, false, &largest) &&
                            tensor_finite(&inputs->k, problem->dtype, false, &largest) &&
                            tensor_finite(&inputs->bias, ATTN_F32, false, &largest);
    return code;
}
