/* SPDX-License-Identifier: Apache-2.0
 *
 * The float64 reference: which rows are checked, and the work on them, key head by key head. See oracle.h for the error
 * model and oracle_row.c for one row.
 */
#include "oracle.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "fill.h"
#include "oracle_row.h"

/* Row number (b*H + h)*S_q + i of the t-th additional row: block edges by turns, and any row every fourth time. */
static int64_t additional_row(const struct attn_problem *problem, uint64_t seed, int64_t t)
{
    uint64_t bits = fill_bits(seed, UINT32_MAX, FILL_Q, (uint64_t)t);
    int64_t heads = problem->B * problem->H, S_q = problem->S_q;
    int64_t start = (int64_t)(fill_bits(seed, UINT32_MAX, FILL_K, 0) % (uint64_t)heads);
    int64_t i = (int64_t)(bits % (uint64_t)S_q);
    if (t % 4 != 3) {
        int64_t block = t % 2 ? 16 : 64;
        i = i / block * block + (int64_t)(bits >> 40) % 3 - 1;
    }
    i = i < 0 ? 0 : i >= S_q ? S_q - 1 : i;
    return (start + t) % heads * S_q + i;
}

static int compare_rows(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int64_t sort_unique(int64_t *row, int64_t count)
{
    int64_t kept = 0;
    qsort(row, (size_t)count, sizeof *row, compare_rows);
    for (int64_t r = 0; r < count; r++)
        if (kept == 0 || row[kept - 1] != row[r])
            row[kept++] = row[r];
    return kept;
}

/* Fills oracle->rows, full, b, h, i. */
static int choose_rows(const struct attn_problem *problem, uint64_t seed, double budget_flops, struct oracle *oracle)
{
    int64_t heads = problem->B * problem->H, S_q = problem->S_q, all = heads * S_q, count = all;
    double row_cost = (double)problem->S_kv * (double)(problem->D + problem->D_v);
    bool full = (double)all * row_cost <= budget_flops || S_q <= 2;
    int64_t ends = 2 * heads;
    if (!full) {
        double extra = budget_flops / row_cost - (double)ends;
        count = ends + (extra > 0 ? (int64_t)fmin(extra, (double)all) : 0);
    }
    int64_t *row = malloc((size_t)(count + 1) * sizeof *row);
    if (!row)
        return -ENOMEM;
    if (full) {
        for (int64_t r = 0; r < all; r++)
            row[r] = r;
    } else {
        for (int64_t head = 0; head < heads; head++) {
            row[2 * head] = head * S_q;
            row[2 * head + 1] = head * S_q + S_q - 1;
        }
        for (int64_t r = ends; r < count; r++)
            row[r] = additional_row(problem, seed, r - ends);
        count = sort_unique(row, count);
    }
    oracle->rows = count;
    oracle->full = count == all;
    oracle->b = malloc((size_t)(count + 1) * sizeof *oracle->b);
    oracle->h = malloc((size_t)(count + 1) * sizeof *oracle->h);
    oracle->i = malloc((size_t)(count + 1) * sizeof *oracle->i);
    if (!oracle->b || !oracle->h || !oracle->i) {
        free(row);
        return -ENOMEM;
    }
    for (int64_t r = 0; r < count; r++) {
        oracle->b[r] = row[r] / S_q / problem->H;
        oracle->h[r] = row[r] / S_q % problem->H;
        oracle->i[r] = row[r] % S_q;
    }
    free(row);
    return 0;
}

static double *doubles(int64_t count, int64_t width)
{
    int64_t elements;
    if (__builtin_mul_overflow(count, width, &elements) || elements > INT64_MAX / 16)
        return NULL;
    return calloc((size_t)elements + 1, sizeof(double));
}

static int allocate_results(const struct attn_problem *problem, struct oracle *oracle)
{
    int64_t rows = oracle->rows, columns = problem->B * problem->H_kv;
    oracle->out = doubles(rows, problem->D_v);
    oracle->bound = doubles(rows, problem->D_v);
    oracle->sigma = doubles(rows, problem->D_v);
    oracle->v_min = doubles(columns, problem->D_v);
    oracle->v_max = doubles(columns, problem->D_v);
    oracle->v_tolerance = doubles(columns, problem->D_v);
    bool enough =
        oracle->out && oracle->bound && oracle->sigma && oracle->v_min && oracle->v_max && oracle->v_tolerance;
    if (problem->flags & ATTN_FLAG_WEIGHTS) {
        oracle->weights = doubles(rows, problem->S_kv);
        oracle->weight_bound = doubles(rows, problem->S_kv);
        enough = enough && oracle->weights && oracle->weight_bound;
    }
    return enough ? 0 : -ENOMEM;
}

/* Everything that the work on one key head needs. */
struct task {
    const struct attn_problem *problem;
    const struct attn_args *inputs;
    struct oracle *oracle;
    bool others_finite; /* q and bias */
    double largest_query;
};

/* Keys that some query of batch entry b may see, and whether some query sees none. */
static bool visible_keys(const struct attn_problem *problem, int64_t b, int64_t *lo, int64_t *hi)
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

/* Range and tolerance of V's columns. A weighted mean errs by the errors of two sums of n positive weights. */
static void set_ranges(const struct task *task, const struct key_head *keys, bool zero_too, double *v_min,
                       double *v_max, double *tolerance)
{
    struct dtype_model model = dtype_model(task->problem->dtype);
    int64_t D_v = task->problem->D_v, n = keys->hi - keys->lo;
    for (int64_t d = 0; d < D_v; d++) {
        double least = zero_too ? 0 : INFINITY, largest = zero_too ? 0 : -INFINITY;
        for (int64_t k = 0; k < n; k++) {
            double v = keys->values[k * D_v + d];
            least = v < least && v > -INFINITY ? v : least;
            largest = v > largest && v < INFINITY ? v : largest;
        }
        if (least > largest)
            least = largest = 0;
        v_min[d] = least;
        v_max[d] = largest;
        double relative = 0x1p-24 * (ORACLE_LAMBDA * sqrt((double)n) + 64) + 2 * model.unit + 2 * model.unit_p +
                          fmin(1, (double)n * model.tiny_p);
        tolerance[d] = fmax(fabs(least), fabs(largest)) * relative + ((double)n + 2) * model.tiny + 2 * model.tiny_out;
    }
}

/* K as panels, V as rows, both as floats. */
static int load_key_head(const struct task *task, struct key_head *keys, int threads)
{
    const struct attn_problem *problem = task->problem;
    int64_t D = problem->D, D_v = problem->D_v, n = keys->hi - keys->lo, panels = (n + PANEL - 1) / PANEL;
    keys->panels = calloc((size_t)(panels * PANEL * D) + 1, sizeof *keys->panels);
    keys->values = malloc((size_t)(n * D_v + 1) * sizeof *keys->values);
    float *lines = malloc((size_t)threads * (size_t)D * sizeof *lines);
    if (!keys->panels || !keys->values || !lines) {
        free(lines);
        return -ENOMEM;
    }
    double largest = 0;
    int finite = 1;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1) reduction(max : largest)               \
    reduction(&& : finite)
    for (int64_t panel = 0; panel < panels; panel++) {
        float *line = lines + omp_get_thread_num() * D;
        for (int64_t k = panel * PANEL; k < (panel + 1) * PANEL && k < n; k++) {
            float *to = keys->panels + panel * PANEL * D + k % PANEL, *value = keys->values + k * D_v;
            read_row(&task->inputs->k, problem->dtype, keys->b, keys->kv_head, keys->lo + k, line);
            read_row(&task->inputs->v, problem->dtype, keys->b, keys->kv_head, keys->lo + k, value);
            for (int64_t d = 0; d < D; d++) {
                to[d * PANEL] = line[d];
                if (isfinite(line[d]))
                    largest = fmax(largest, fabs((double)line[d]));
                else
                    finite = 0;
            }
            for (int64_t d = 0; d < D_v; d++)
                finite = finite && isfinite(value[d]);
        }
    }
    free(lines);
    keys->largest_key = largest;
    keys->finite = finite;
    return 0;
}

static int do_rows(const struct task *task, const struct key_head *keys, int64_t first, int64_t end, int threads)
{
    const struct attn_problem *problem = task->problem;
    struct oracle *oracle = task->oracle;
    bool finite = keys->finite && task->others_finite;
    int code = 0;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        struct row_scratch scratch;
        int mine = row_scratch_create(&scratch, problem, keys->hi - keys->lo);
        if (mine < 0) {
#pragma omp atomic write
            code = mine;
        }
#pragma omp for schedule(dynamic, 4)
        for (int64_t r = first; r < end; r++) {
            struct row_result result = {
                .out = oracle->out + r * problem->D_v,
                .bound = oracle->bound + r * problem->D_v,
                .sigma = oracle->sigma + r * problem->D_v,
                .weights = oracle->weights ? oracle->weights + r * problem->S_kv : NULL,
                .weight_bound = oracle->weights ? oracle->weight_bound + r * problem->S_kv : NULL,
            };
            if (mine == 0)
                oracle_row(problem, task->inputs, keys, oracle->h[r], oracle->i[r], finite, &scratch, &result);
        }
        if (mine == 0)
            row_scratch_destroy(&scratch);
    }
    return code;
}

/* Scores, or sums before the division, so large that f32 may overflow on the way: no range to hold outputs against. */
static bool may_overflow(const struct task *task, const struct key_head *keys)
{
    double magnitude = 0, scale = fmax(1, 1.5 * fabs((double)task->problem->scale));
    for (int64_t d = 0; d < task->problem->D_v; d++)
        magnitude = fmax(magnitude, fmax(fabs(keys->v_min[d]), fabs(keys->v_max[d])));
    double score = task->largest_query * keys->largest_key * (double)task->problem->D * scale;
    return fmax(score, magnitude * (double)(keys->hi - keys->lo)) >= FLT_MAX / 4;
}

/* All checked rows first .. end, which read one key head. */
static int do_key_head(const struct task *task, int64_t first, int64_t end, int threads, bool *finite)
{
    const struct attn_problem *problem = task->problem;
    int64_t group = problem->H / problem->H_kv;
    struct key_head keys = {.b = task->oracle->b[first], .kv_head = task->oracle->h[first] / group};
    bool empty_rows = visible_keys(problem, keys.b, &keys.lo, &keys.hi);
    bool zero_too = empty_rows || task->inputs->mask.data || task->inputs->bias.data;
    int64_t columns = (keys.b * problem->H_kv + keys.kv_head) * problem->D_v;
    keys.v_min = task->oracle->v_min + columns;
    keys.v_max = task->oracle->v_max + columns;
    int code = load_key_head(task, &keys, threads);
    if (code == 0) {
        set_ranges(task, &keys, zero_too, task->oracle->v_min + columns, task->oracle->v_max + columns,
                   task->oracle->v_tolerance + columns);
        code = do_rows(task, &keys, first, end, threads);
    }
    *finite = keys.finite && !may_overflow(task, &keys);
    free(keys.panels);
    free(keys.values);
    return code;
}

/* q and bias hold no NaN and no infinity, but for the bias's -inf, which masks. *largest: of the finite |q|. */
static bool queries_finite(const struct attn_problem *problem, const struct attn_args *inputs, double *largest)
{
    const struct attn_tensor *bias = &inputs->bias;
    bool finite = true;
    float *line = malloc((size_t)problem->D * sizeof *line);
    if (!line)
        return false; /* the careful path is right for finite inputs too */
    for (int64_t b = 0; b < problem->B; b++)
        for (int64_t h = 0; h < problem->H; h++)
            for (int64_t i = 0; i < problem->S_q; i++) {
                read_row(&inputs->q, problem->dtype, b, h, i, line);
                for (int64_t d = 0; d < problem->D; d++) {
                    finite = finite && isfinite(line[d]);
                    if (isfinite(line[d]) && fabs((double)line[d]) > *largest)
                        *largest = fabs((double)line[d]);
                }
            }
    free(line);
    if (!bias->data)
        return finite;
    for (int64_t b = 0; b < (bias->stride[0] ? problem->B : 1); b++)
        for (int64_t h = 0; h < (bias->stride[1] ? problem->H : 1); h++)
            for (int64_t i = 0; i < (bias->stride[2] ? problem->S_q : 1); i++) {
                const float *row =
                    (const float *)bias->data + b * bias->stride[0] + h * bias->stride[1] + i * bias->stride[2];
                for (int64_t j = 0; j < problem->S_kv; j++)
                    finite = finite && (isfinite(row[j]) || row[j] == -INFINITY);
            }
    return finite;
}

/* Rows are sorted, so those of one key head are adjacent: *start[g] .. *start[g+1]. */
static int64_t *split_by_key_head(const struct attn_problem *problem, const struct oracle *oracle, int64_t *groups)
{
    int64_t heads = problem->H / problem->H_kv, count = 0;
    int64_t *start = malloc((size_t)(problem->B * problem->H_kv + 2) * sizeof *start);
    if (!start)
        return NULL;
    for (int64_t r = 0; r < oracle->rows; r++)
        if (r == 0 || oracle->b[r] != oracle->b[r - 1] || oracle->h[r] / heads != oracle->h[r - 1] / heads)
            start[count++] = r;
    start[count] = oracle->rows;
    *groups = count;
    return start;
}

static int do_all(struct task *task, int threads)
{
    struct oracle *oracle = task->oracle;
    int64_t groups;
    int64_t *start = split_by_key_head(task->problem, oracle, &groups);
    if (!start)
        return -ENOMEM;
    /* Decode has a row or a few per key head, and many key heads: then each thread takes key heads of its own. */
    bool by_head = threads > 1 && groups >= 2 * threads;
    int outer = by_head ? threads : 1, inner = by_head ? 1 : threads, code = 0, finite = 1;
#pragma omp parallel for schedule(dynamic) num_threads(outer) if (outer > 1) reduction(min : code)                     \
    reduction(&& : finite)
    for (int64_t g = 0; g < groups; g++) {
        bool head_finite = true;
        int mine = do_key_head(task, start[g], start[g + 1], inner, &head_finite);
        code = mine < code ? mine : code;
        finite = finite && head_finite;
    }
    free(start);
    oracle->inputs_finite = finite && task->others_finite;
    return code;
}

int oracle_create(const struct attn_problem *problem, const struct attn_args *inputs, uint64_t seed,
                  double budget_flops, int threads, struct oracle *oracle, struct error *error)
{
    memset(oracle, 0, sizeof *oracle);
    oracle->D_v = problem->D_v;
    oracle->S_kv = problem->S_kv;
    oracle->inputs_finite = true;
    threads = threads > 1 ? threads : 1;
    int code = choose_rows(problem, seed, budget_flops, oracle);
    if (code == 0)
        code = allocate_results(problem, oracle);
    if (code == 0 && oracle->rows > 0) {
        struct task task = {.problem = problem, .inputs = inputs, .oracle = oracle};
        task.others_finite = queries_finite(problem, inputs, &task.largest_query);
        code = do_all(&task, threads);
    }
    if (code < 0) {
        oracle_destroy(oracle);
        return error_system(error, -code, "cannot allocate the reference");
    }
    return 0;
}

void oracle_destroy(struct oracle *oracle)
{
    free(oracle->b);
    free(oracle->h);
    free(oracle->i);
    free(oracle->out);
    free(oracle->bound);
    free(oracle->sigma);
    free(oracle->weights);
    free(oracle->weight_bound);
    free(oracle->v_min);
    free(oracle->v_max);
    free(oracle->v_tolerance);
    memset(oracle, 0, sizeof *oracle);
}
