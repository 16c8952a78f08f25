/* SPDX-License-Identifier: Apache-2.0
 *
 * The float64 reference: which rows are checked, and where what is known of them is kept. See oracle.h for the error
 * model, oracle_rules.c, oracle_concat.c and oracle_layer.c for the work.
 */
#include "oracle.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fill.h"
#include "oracle_stage.h"

/* The shape of what is judged. */
struct shape {
    int64_t heads;               /* of out */
    int64_t width;               /* columns of out */
    int64_t weight_heads;        /* rows of weights to a row of out */
    int64_t range_heads;         /* how many heads of a batch entry have ranges of their own */
    double row_cost, entry_cost; /* multiplications of one checked row; once a batch entry with checked rows */
};

/* What an attention row of projected operands costs beside a pair's D + D_v: errors of q, K and V, the sketch. */
static double projected_pair(double D, double D_v)
{
    return 2 * D + 2 * D_v + SKETCH * D_v / 4;
}

static struct shape shape_of(const struct attn_problem *p)
{
    enum { TANH_COST = 16 };
    double keys = (double)p->S_kv, D = (double)p->D, D_v = (double)p->D_v, hidden = (double)p->hidden;
    double H = (double)p->H, H_kv = (double)p->H_kv, model = (double)p->model_dim, model_v = (double)p->model_dim_v;
    double out = (double)p->out_dim, input = (double)p->input_dim, key_dim = (double)p->key_dim;
    bool single = p->flags & ATTN_FLAG_SINGLE;
    switch (p->rule) {
    case ATTN_MATMUL:
        return (struct shape){p->H, p->D_v, 1, p->H, D * D_v, 0};
    case ATTN_ADDITIVE:
        return (struct shape){p->H,
                              p->D_v,
                              1,
                              p->H_kv,
                              hidden * D + keys * (TANH_COST * hidden + projected_pair(hidden, D_v)),
                              H_kv * keys * key_dim * hidden};
    case ATTN_CONCAT:
        if (p->flags & ATTN_FLAG_COMBINE)
            return (struct shape){p->H, p->out_dim, 1, p->H, keys * (D + key_dim + D_v) + out * (D + D_v), 0};
        return (struct shape){p->H, p->D_v, 1, p->H_kv, keys * (D + key_dim + D_v), 0};
    case ATTN_SELF_ATTENTION:
        if (single)
            return (struct shape){1,
                                  p->model_dim_v,
                                  1,
                                  1,
                                  input * model + keys * projected_pair(model, model_v),
                                  keys * input * (model + model_v)};
        return (struct shape){1,
                              p->out_dim,
                              p->H,
                              1,
                              input * model + H * (model * D + keys * projected_pair(D, D_v) + D_v * out),
                              keys * (input * (model + model_v) + H_kv * (model * D + model_v * D_v))};
    case ATTN_MULTI_HEAD:
        return (struct shape){1,
                              p->out_dim,
                              p->H,
                              1,
                              H * (model * D + keys * projected_pair(D, D_v) + D_v * out),
                              keys * H_kv * (model * D + model_v * D_v)};
    default:
        return (struct shape){p->H, p->D_v, 1, p->H_kv, keys * (D + D_v), 0};
    }
}

/* Row number head*S_q + i of the t-th additional row: block edges by turns, and any row every fourth time. */
static int64_t additional_row(int64_t heads, int64_t S_q, uint64_t seed, int64_t t)
{
    uint64_t bits = fill_bits(seed, UINT32_MAX, FILL_Q, (uint64_t)t);
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

/* Batch entries with checked rows: all, or as many as half the budget pays for, first and last among them. */
static int64_t entries_within(const struct shape *shape, int64_t B, double budget_flops)
{
    double affordable = shape->entry_cost > 0 ? budget_flops / 2 / shape->entry_cost : INFINITY;
    if (affordable >= (double)B || B <= 2)
        return B;
    return affordable > 2 ? (int64_t)affordable : 2;
}

/* Fills oracle->rows, full, b, h, i. */
static int choose_rows(const struct attn_problem *problem, const struct shape *shape, uint64_t seed,
                       double budget_flops, struct oracle *oracle)
{
    int64_t B = problem->B, S_q = problem->S_q, all = B * shape->heads * S_q, count = all;
    bool full = (double)all * shape->row_cost + (double)B * shape->entry_cost <= budget_flops;
    int64_t entries = full ? B : entries_within(shape, B, budget_flops), heads = entries * shape->heads;
    full = full || (S_q <= 2 && entries == B);
    int64_t ends = 2 * heads;
    if (!full) {
        double left = fmax(budget_flops - (double)entries * shape->entry_cost, budget_flops / 2);
        double extra = left / shape->row_cost - (double)ends;
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
            row[r] = additional_row(heads, S_q, seed, r - ends);
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
        int64_t entry = row[r] / S_q / shape->heads;
        oracle->b[r] = entries < B ? entry * (B - 1) / (entries - 1) : entry;
        oracle->h[r] = row[r] / S_q % shape->heads;
        oracle->i[r] = row[r] % S_q;
    }
    free(row);
    return 0;
}

static int allocate_results(const struct attn_problem *problem, const struct shape *shape, struct oracle *oracle)
{
    int64_t rows = oracle->rows, columns = problem->B * shape->range_heads;
    oracle->out = oracle_doubles(rows, shape->width);
    oracle->bound = oracle_doubles(rows, shape->width);
    oracle->sigma = oracle_doubles(rows, shape->width);
    oracle->v_min = oracle_doubles(columns, shape->width);
    oracle->v_max = oracle_doubles(columns, shape->width);
    oracle->v_tolerance = oracle_doubles(columns, shape->width);
    bool enough =
        oracle->out && oracle->bound && oracle->sigma && oracle->v_min && oracle->v_max && oracle->v_tolerance;
    if (problem->flags & ATTN_FLAG_WEIGHTS) {
        oracle->weights = oracle_doubles(rows * shape->weight_heads, problem->S_kv);
        oracle->weight_bound = oracle_doubles(rows * shape->weight_heads, problem->S_kv);
        enough = enough && oracle->weights && oracle->weight_bound;
    }
    return enough ? 0 : -ENOMEM;
}

static int follow_rule(const struct attn_problem *problem, const struct attn_args *inputs, int threads,
                       struct oracle *oracle)
{
    switch (problem->rule) {
    case ATTN_ADDITIVE:
        return oracle_additive(problem, inputs, threads, oracle);
    case ATTN_CONCAT:
        return oracle_concat(problem, inputs, threads, oracle);
    case ATTN_MULTI_HEAD:
    case ATTN_SELF_ATTENTION:
        return oracle_layer(problem, inputs, threads, oracle);
    case ATTN_MATMUL:
        return oracle_matmul(problem, inputs, threads, oracle);
    default:
        return oracle_scaled_dot_product(problem, inputs, threads, oracle);
    }
}

int oracle_create(const struct attn_problem *problem, const struct attn_args *inputs, uint64_t seed,
                  double budget_flops, int threads, struct oracle *oracle, struct error *error)
{
    const struct shape shape = shape_of(problem);
    memset(oracle, 0, sizeof *oracle);
    oracle->D_v = shape.width;
    oracle->S_kv = problem->S_kv;
    oracle->out_heads = shape.heads;
    oracle->weight_heads = shape.weight_heads;
    oracle->range_heads = shape.range_heads;
    oracle->inputs_finite = true;
    int code = choose_rows(problem, &shape, seed, budget_flops, oracle);
    if (code == 0)
        code = allocate_results(problem, &shape, oracle);
    if (code == 0 && oracle->rows > 0)
        code = follow_rule(problem, inputs, threads > 1 ? threads : 1, oracle);
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
