/* SPDX-License-Identifier: Apache-2.0
 *
 * The attention stage of the float64 reference, key head by key head. See oracle.h for the error model and oracle_row.c
 * for one row.
 */
#include "oracle_stage.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

bool visible_keys(const struct attn_problem *problem, int64_t b, int64_t *lo, int64_t *hi)
{
    bool empty_rows = false;
    *lo = problem->S_kv;
    *hi = 0;
    for (int64_t i = 0; i < problem->S_q; i++) {
        int64_t first, end;
        row_key_range(problem, b, i, &first, &end);
        if (first >= end) {
            empty_rows = true;
            continue;
        }
        *lo = first < *lo ? first : *lo;
        *hi = end > *hi ? end : *hi;
    }
    if (*lo > *hi)
        *lo = *hi = 0;
    return empty_rows;
}

/* One row of a source. narrow: work space of `width` floats. variance may be NULL. */
static void fetch(const struct source *source, enum attn_dtype dtype, int64_t b, int64_t h, int64_t s, int64_t width,
                  float *narrow, double *value, double *variance)
{
    if (source->tensor) {
        read_row(source->tensor, dtype, b, h, s, narrow);
        for (int64_t d = 0; d < width; d++)
            value[d] = (double)narrow[d];
        return;
    }
    const struct estimate *estimate = source->estimate;
    int64_t at = (s - source->row0) * estimate->columns + source->head_step * h;
    memcpy(value, estimate->value + at, (size_t)width * sizeof *value);
    if (variance && estimate->variance)
        memcpy(variance, estimate->variance + at, (size_t)width * sizeof *variance);
}

/* Range and tolerance of V's columns. A weighted mean errs by the errors of two sums of n positive weights. */
static void set_ranges(const struct stage *stage, const struct key_head *keys, bool zero_too, double *v_min,
                       double *v_max, double *tolerance)
{
    const struct attn_problem *problem = stage->attention.problem;
    struct dtype_model model = dtype_model(problem->dtype);
    int64_t D_v = problem->D_v, n = keys->hi - keys->lo;
    for (int64_t d = 0; d < D_v; d++) {
        double least = zero_too ? 0 : INFINITY, largest = zero_too ? 0 : -INFINITY, variance = 0;
        for (int64_t k = 0; k < n; k++) {
            double v = keys->values[k * D_v + d];
            least = v < least && v > -INFINITY ? v : least;
            largest = v > largest && v < INFINITY ? v : largest;
            if (keys->value_variance)
                variance = fmax(variance, keys->value_variance[k * D_v + d]);
        }
        if (least > largest)
            least = largest = 0;
        v_min[d] = least;
        v_max[d] = largest;
        double relative = 0x1p-24 * (ORACLE_LAMBDA * sqrt((double)n) + 64) + 2 * model.unit + 2 * model.unit_p +
                          fmin(1, (double)n * model.tiny_p);
        tolerance[d] = fmax(fabs(least), fabs(largest)) * relative + ((double)n + 2) * model.tiny + 2 * model.tiny_out +
                       ORACLE_LAMBDA * sqrt(variance);
    }
}

static int key_head_create(const struct stage *stage, struct key_head *keys)
{
    int64_t D = stage->attention.problem->D, D_v = stage->attention.problem->D_v, n = keys->hi - keys->lo;
    int64_t padded = (n + PANEL - 1) / PANEL * PANEL;
    keys->panels = oracle_doubles(padded, D);
    keys->values = oracle_doubles(n, D_v);
    if (!keys->panels || !keys->values)
        return -ENOMEM;
    if (!stage->projected)
        return 0;
    keys->panel_variance = oracle_doubles(padded, D);
    keys->value_variance = oracle_doubles(n, D_v);
    return keys->panel_variance && keys->value_variance ? 0 : -ENOMEM;
}

static void key_head_destroy(struct key_head *keys)
{
    free(keys->panels);
    free(keys->values);
    free(keys->panel_variance);
    free(keys->value_variance);
}

/* What one key adds to the properties of its head. */
struct key_properties {
    double largest;
    bool finite, undetermined;
};

/* Key k of the head, as a column of its panel and a row of values. line: 2 D doubles; narrow: as many floats. */
static void load_key(const struct stage *stage, const struct key_head *keys, int64_t k, double *line, float *narrow,
                     struct key_properties *properties)
{
    const struct attn_problem *problem = stage->attention.problem;
    int64_t D = problem->D, D_v = problem->D_v, at = k / PANEL * PANEL * D + k % PANEL;
    double *value = keys->values + k * D_v, *variance = keys->value_variance ? keys->value_variance + k * D_v : NULL;
    fetch(&stage->k, problem->dtype, keys->b, keys->kv_head, keys->lo + k, D, narrow, line, line + D);
    fetch(&stage->v, problem->dtype, keys->b, keys->kv_head, keys->lo + k, D_v, narrow, value, variance);
    for (int64_t d = 0; d < D; d++) {
        keys->panels[at + d * PANEL] = line[d];
        if (isfinite(line[d]))
            properties->largest = fmax(properties->largest, fabs(line[d]));
        else
            properties->finite = false;
        if (!stage->projected)
            continue;
        keys->panel_variance[at + d * PANEL] = line[D + d];
        properties->undetermined = properties->undetermined || line[D + d] == INFINITY;
    }
    for (int64_t d = 0; d < D_v; d++) {
        properties->finite = properties->finite && isfinite(value[d]);
        properties->undetermined = properties->undetermined || (variance && variance[d] == INFINITY);
    }
}

/* K as panels, V as rows. */
static int load_key_head(const struct stage *stage, struct key_head *keys, int threads)
{
    const struct attn_problem *problem = stage->attention.problem;
    int64_t D = problem->D, D_v = problem->D_v, width = D > D_v ? D : D_v, n = keys->hi - keys->lo;
    double *lines = oracle_doubles(threads, 2 * D);
    float *narrow = calloc((size_t)(threads * width) + 1, sizeof *narrow);
    int code = key_head_create(stage, keys);
    if (code < 0 || !lines || !narrow) {
        free(lines);
        free(narrow);
        return -ENOMEM;
    }
    double largest = 0;
    int finite = 1, undetermined = 0;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1) reduction(max : largest)               \
    reduction(&& : finite) reduction(|| : undetermined)
    for (int64_t panel = 0; panel < (n + PANEL - 1) / PANEL; panel++) {
        int thread = omp_get_thread_num();
        struct key_properties properties = {.finite = true};
        for (int64_t k = panel * PANEL; k < (panel + 1) * PANEL && k < n; k++)
            load_key(stage, keys, k, lines + thread * 2 * D, narrow + thread * width, &properties);
        largest = fmax(largest, properties.largest);
        finite = finite && properties.finite;
        undetermined = undetermined || properties.undetermined;
    }
    free(lines);
    free(narrow);
    keys->largest_key = largest;
    keys->finite = finite;
    keys->undetermined = undetermined;
    keys->k_tied = stage->k_tied;
    keys->v_twin = stage->v_twin;
    return 0;
}

/* Work space of one thread. */
struct seat {
    struct row_scratch scratch;
    double *query, *bound; /* [2][D]; [2][D_v], where nobody asks for bound and sigma */
    float *narrow;         /* [D] */
};

static int seat_create(const struct stage *stage, const struct key_head *keys, struct seat *seat)
{
    const struct attn_problem *problem = stage->attention.problem;
    seat->query = oracle_doubles(2, problem->D);
    seat->bound = oracle_doubles(2, problem->D_v);
    seat->narrow = calloc((size_t)problem->D + 1, sizeof *seat->narrow);
    int code = row_scratch_create(&seat->scratch, problem, keys->hi - keys->lo, stage->projected);
    return code < 0 || !seat->query || !seat->bound || !seat->narrow ? -ENOMEM : 0;
}

static void seat_destroy(struct seat *seat)
{
    row_scratch_destroy(&seat->scratch);
    free(seat->query);
    free(seat->bound);
    free(seat->narrow);
}

static void do_row(const struct stage *stage, const struct key_head *keys, int64_t r, int64_t h, struct seat *seat)
{
    const struct attn_problem *problem = stage->attention.problem;
    struct oracle *oracle = stage->oracle;
    int64_t D = problem->D, D_v = problem->D_v, line = r * stage->heads + (stage->heads > 1 ? h : 0), at = line * D_v;
    struct query query = {.value = seat->query, .variance = stage->projected ? seat->query + D : NULL};
    struct row_result result = {.bound = seat->bound, .sigma = seat->bound + D_v};
    if (stage->applied) {
        int64_t before = stage->row0 * stage->heads;
        at -= before * D_v;
        result.out = stage->applied->value + at;
        result.variance = stage->applied->variance + at;
        result.relative = stage->relative + line - before;
    } else {
        result.out = oracle->out + at;
        result.bound = oracle->bound + at;
        result.sigma = oracle->sigma + at;
    }
    if (oracle->weights) {
        result.weights = oracle->weights + line * problem->S_kv;
        result.weight_bound = oracle->weight_bound + line * problem->S_kv;
    }
    fetch(&stage->q, problem->dtype, keys->b, h, stage->q.tensor ? oracle->i[r] : r, D, seat->narrow, seat->query,
          seat->query + D);
    oracle_row(&stage->attention, keys, &query, h, oracle->i[r], &seat->scratch, &result);
}

static int do_rows(const struct stage *stage, const struct key_head *keys, const struct row_group *group, int threads)
{
    const struct attn_problem *problem = stage->attention.problem;
    int64_t heads = stage->heads > 1 ? problem->H / problem->H_kv : 1;
    int code = 0;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        struct seat seat;
        int mine = seat_create(stage, keys, &seat);
        if (mine < 0) {
#pragma omp atomic write
            code = mine;
        }
#pragma omp for schedule(dynamic, 4)
        for (int64_t t = 0; t < (group->end - group->first) * heads; t++) {
            int64_t r = group->first + t / heads;
            int64_t h = stage->heads > 1 ? keys->kv_head * heads + t % heads : stage->oracle->h[r];
            if (mine == 0)
                do_row(stage, keys, r, h, &seat);
        }
        seat_destroy(&seat);
    }
    return code;
}

/* Scores, or sums before the division, so large that f32 may overflow on the way: no range to hold outputs against. */
static bool may_overflow(const struct stage *stage, const struct key_head *keys)
{
    const struct attn_problem *problem = stage->attention.problem;
    double magnitude = 0, scale = fmax(1, 1.5 * fabs((double)problem->scale));
    for (int64_t d = 0; d < problem->D_v; d++)
        magnitude = fmax(magnitude, fmax(fabs(keys->v_min[d]), fabs(keys->v_max[d])));
    double score =
        stage->attention.additive ? 0 : stage->largest_query * keys->largest_key * (double)problem->D * scale;
    return fmax(score, magnitude * (double)(keys->hi - keys->lo)) >= FLT_MAX / 4;
}

static int do_group(const struct stage *stage, const struct row_group *group, int threads, bool *finite)
{
    const struct attn_problem *problem = stage->attention.problem;
    const struct attn_args *inputs = stage->attention.inputs;
    struct key_head keys = {.b = group->b, .kv_head = group->kv_head};
    bool empty_rows = visible_keys(problem, keys.b, &keys.lo, &keys.hi);
    bool zero_too = empty_rows || inputs->mask.data || inputs->bias.data;
    int64_t columns = ((keys.b - stage->b0) * problem->H_kv + keys.kv_head) * problem->D_v;
    keys.v_min = stage->v_min + columns;
    keys.v_max = stage->v_max + columns;
    int code = load_key_head(stage, &keys, threads);
    if (code == 0) {
        set_ranges(stage, &keys, zero_too, stage->v_min + columns, stage->v_max + columns,
                   stage->v_tolerance + columns);
        code = do_rows(stage, &keys, group, threads);
    }
    *finite = keys.finite && !keys.undetermined && !may_overflow(stage, &keys);
    key_head_destroy(&keys);
    return code;
}

int stage_run(const struct stage *stage, const struct row_group *groups, int64_t count, int threads, bool *finite)
{
    /* Decode has a row or a few per key head, and many key heads: then each thread takes key heads of its own. */
    bool by_head = threads > 1 && count >= 2 * (int64_t)threads;
    int outer = by_head ? threads : 1, inner = by_head ? 1 : threads, code = 0, all_finite = 1;
#pragma omp parallel for schedule(dynamic) num_threads(outer) if (outer > 1) reduction(min : code)                     \
    reduction(&& : all_finite)
    for (int64_t g = 0; g < count; g++) {
        bool head_finite = true;
        int mine = do_group(stage, &groups[g], inner, &head_finite);
        code = mine < code ? mine : code;
        all_finite = all_finite && head_finite;
    }
    *finite = all_finite;
    return code;
}
