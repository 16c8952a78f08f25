/* SPDX-License-Identifier: Apache-2.0
 *
 * The reference of multi_head and self_attention: projections, attention of all heads, output projection, one batch
 * entry at a time. See oracle.h for how errors pass from one stage to the next.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "../kernels/layers/layer.h"
#include "oracle_stage.h"

/* Two stages behind each other at most: one of self_attention's matrices, then a projection of multi_head. */
struct projection {
    const struct attn_tensor *tensor; /* q, k or v */
    struct linear linear[2];
    int64_t columns[2];
    double *alike[2];
    int stages;
};

enum { QUERIES, KEYS, VALUES, PROJECTIONS };

struct layer {
    const struct attn_problem *problem, *heads; /* the whole; its attention */
    const struct attn_args *inputs;
    const struct attn_tensor *param; /* of multi_head; NULL: SINGLE */
    struct oracle *oracle;
    int threads;
    struct projection projections[PROJECTIONS];
    bool self, finite;
    double largest_query;
};

static int create_projection(const struct layer *layer, int which, struct projection *projection)
{
    const struct attn_problem *p = layer->problem;
    const struct attn_args *inputs = layer->inputs;
    const struct attn_tensor *tensors[] = {&inputs->q, layer->self ? &inputs->q : &inputs->k,
                                           layer->self ? &inputs->q : &inputs->v};
    const int64_t inner[] = {p->model_dim, p->model_dim, p->model_dim_v};
    const int64_t outer[] = {p->H * p->D, p->H_kv * p->D, p->H_kv * p->D_v};
    *projection = (struct projection){.tensor = tensors[which]};
    if (layer->self) {
        projection->linear[0] =
            (struct linear){.weights = &inputs->param[ATTN_SELF_W_Q + which], .k_by_n = true, .dtype = p->dtype};
        projection->columns[projection->stages++] = inner[which];
    }
    if (layer->param) {
        const struct attn_tensor *weights = &layer->param[ATTN_LAYER_W_Q + 2 * which];
        projection->linear[projection->stages] =
            (struct linear){.weights = weights, .dtype = p->dtype, .bias = weights[1].data};
        projection->columns[projection->stages++] = outer[which];
    }
    for (int s = 0; s < projection->stages; s++) {
        projection->alike[s] = oracle_doubles(projection->columns[s], 1);
        if (!projection->alike[s])
            return -ENOMEM;
        int64_t K = s > 0 ? projection->columns[s - 1] : projection->tensor->size[3];
        linear_alike(&projection->linear[s], K, projection->columns[s], projection->alike[s]);
        projection->linear[s].alike = projection->alike[s];
    }
    return 0;
}

/* Given rows (or count rows from first) of batch entry b, projected and stored. */
static int project(const struct layer *layer, const struct projection *projection, int64_t b, const int64_t *rows,
                   int64_t first, int64_t count, struct estimate *y)
{
    enum attn_dtype dtype = layer->problem->dtype;
    struct estimate x;
    int code = estimate_read(projection->tensor, dtype, b, 0, rows, first, count, &x);
    for (int s = 0; s < projection->stages && code == 0; s++) {
        code = estimate_create(count, projection->columns[s], false, y);
        if (code == 0)
            code = linear_apply(&projection->linear[s], &x, layer->threads, y);
        estimate_destroy(&x);
        if (code < 0)
            break;
        estimate_store(&projection->linear[s], y);
        if (s + 1 < projection->stages) {
            x = *y;
            *y = (struct estimate){0};
        }
    }
    return code;
}

/* What the attention of one batch entry stands on. */
struct entry {
    int64_t b, first, end, lo, hi; /* checked rows, visible keys */
    struct estimate q, k, v, applied;
    double *relative, *v_min, *v_max, *v_tolerance;
    uint8_t *k_tied;
    int64_t *v_twin;
    struct row_group *groups;
};

static void entry_destroy(struct entry *entry)
{
    estimate_destroy(&entry->q);
    estimate_destroy(&entry->k);
    estimate_destroy(&entry->v);
    estimate_destroy(&entry->applied);
    free(entry->relative);
    free(entry->v_min);
    free(entry->v_max);
    free(entry->v_tolerance);
    free(entry->k_tied);
    free(entry->v_twin);
    free(entry->groups);
}

static int entry_create(const struct layer *layer, struct entry *entry)
{
    const struct attn_problem *heads = layer->heads;
    int64_t rows = entry->end - entry->first, keys = entry->hi - entry->lo;
    entry->k_tied = calloc((size_t)keys + 1, sizeof *entry->k_tied);
    entry->v_twin = calloc((size_t)keys + 1, sizeof *entry->v_twin);
    entry->groups = calloc((size_t)heads->H_kv, sizeof *entry->groups);
    if (!entry->k_tied || !entry->v_twin || !entry->groups)
        return -ENOMEM;
    for (int64_t g = 0; g < heads->H_kv; g++)
        entry->groups[g] = (struct row_group){entry->b, g, entry->first, entry->end};
    if (!layer->param)
        return 0;
    entry->relative = oracle_doubles(rows, heads->H);
    entry->v_min = oracle_doubles(heads->H_kv, heads->D_v);
    entry->v_max = oracle_doubles(heads->H_kv, heads->D_v);
    entry->v_tolerance = oracle_doubles(heads->H_kv, heads->D_v);
    if (!entry->relative || !entry->v_min || !entry->v_max || !entry->v_tolerance)
        return -ENOMEM;
    return estimate_create(rows, heads->H * heads->D_v, false, &entry->applied);
}

static int project_entry(const struct layer *layer, struct entry *entry)
{
    enum attn_dtype dtype = layer->problem->dtype;
    const struct projection *q = &layer->projections[QUERIES], *k = &layer->projections[KEYS];
    const struct projection *v = &layer->projections[VALUES];
    int64_t keys = entry->hi - entry->lo;
    int code = find_twins(k->tensor, dtype, entry->b, 0, entry->lo, entry->hi, entry->k_tied, NULL);
    if (code == 0)
        code = find_twins(v->tensor, dtype, entry->b, 0, entry->lo, entry->hi, NULL, entry->v_twin);
    if (code == 0)
        code = project(layer, q, entry->b, layer->oracle->i + entry->first, 0, entry->end - entry->first, &entry->q);
    if (code == 0)
        code = project(layer, k, entry->b, NULL, entry->lo, keys, &entry->k);
    if (code == 0)
        code = project(layer, v, entry->b, NULL, entry->lo, keys, &entry->v);
    return code;
}

static struct linear output_of(const struct layer *layer, const struct entry *entry)
{
    return (struct linear){.weights = &layer->param[ATTN_LAYER_W_O],
                           .dtype = layer->problem->dtype,
                           .bias = layer->param[ATTN_LAYER_W_O_BIAS].data,
                           .part = layer->problem->D_v,
                           .parts = layer->problem->H,
                           .relative = entry->relative};
}

/* Ranges of this batch entry's output, by those of each head's values. */
static int output_ranges(const struct layer *layer, const struct linear *linear, const struct entry *entry)
{
    const struct attn_problem *p = layer->problem;
    int64_t K = p->H * p->D_v, group = p->H / p->H_kv, at = entry->b * p->out_dim;
    double *low = oracle_doubles(K, 1), *high = oracle_doubles(K, 1), *slack = oracle_doubles(K, 1);
    int code = low && high && slack ? 0 : -ENOMEM;
    for (int64_t k = 0; k < K && code == 0; k++) {
        int64_t from = k / p->D_v / group * p->D_v + k % p->D_v;
        low[k] = entry->v_min[from];
        high[k] = entry->v_max[from];
        slack[k] = entry->v_tolerance[from];
    }
    if (code == 0)
        linear_range(linear, K, low, high, slack, p->out_dim, layer->threads, layer->oracle->v_min + at,
                     layer->oracle->v_max + at, layer->oracle->v_tolerance + at);
    free(low);
    free(high);
    free(slack);
    return code;
}

/* Heads and columns of `applied` whose values err alike do so themselves; see estimate_store. */
static void count_alike(const struct layer *layer, struct entry *entry)
{
    const struct attn_problem *p = layer->problem;
    const struct projection *values = &layer->projections[VALUES];
    const double *alike = values->alike[values->stages - 1];
    int64_t group = p->H / p->H_kv, D_v = p->D_v, joined = p->H * D_v;
    for (int64_t r = 0; r < entry->applied.rows; r++)
        for (int64_t h = 0; h < p->H; h++) {
            double most = 1;
            for (int64_t d = 0; d < D_v; d++) {
                double count = alike[h / group * D_v + d];
                if (count > 1)
                    entry->applied.variance[r * joined + h * D_v + d] *= count * (double)group;
                most = fmax(most, count * (double)group / (double)D_v);
            }
            entry->relative[r * p->H + h] *= most;
        }
}

static int put_out(const struct layer *layer, struct entry *entry)
{
    count_alike(layer, entry);
    struct linear linear = output_of(layer, entry);
    struct oracle *oracle = layer->oracle;
    int64_t N = layer->problem->out_dim, at = entry->first * N;
    struct estimate out;
    int code = estimate_create(entry->end - entry->first, N, false, &out);
    if (code == 0)
        code = linear_apply(&linear, &entry->applied, layer->threads, &out);
    if (code == 0) {
        estimate_finish(&out, layer->problem->dtype, oracle->out + at, oracle->bound + at, oracle->sigma + at);
        code = output_ranges(layer, &linear, entry);
    }
    estimate_destroy(&out);
    return code;
}

static int do_entry(struct layer *layer, const struct attention *attention, int64_t b, int64_t first, int64_t end)
{
    const struct attn_problem *heads = layer->heads;
    struct oracle *oracle = layer->oracle;
    struct entry entry = {.b = b, .first = first, .end = end};
    bool ranged = true;
    visible_keys(heads, b, &entry.lo, &entry.hi);
    int code = entry_create(layer, &entry);
    if (code == 0)
        code = project_entry(layer, &entry);
    struct stage stage = {
        .attention = *attention,
        .q = {.estimate = &entry.q, .row0 = first, .head_step = heads->D},
        .k = {.estimate = &entry.k, .row0 = entry.lo, .head_step = heads->D},
        .v = {.estimate = &entry.v, .row0 = entry.lo, .head_step = heads->D_v},
        .projected = true,
        .k_tied = entry.k_tied,
        .v_twin = entry.v_twin,
        .largest_query = layer->largest_query,
        .oracle = oracle,
        .heads = heads->H,
        .v_min = oracle->v_min,
        .v_max = oracle->v_max,
        .v_tolerance = oracle->v_tolerance,
    };
    if (layer->param) {
        stage.applied = &entry.applied;
        stage.relative = entry.relative;
        stage.row0 = first;
        stage.v_min = entry.v_min;
        stage.v_max = entry.v_max;
        stage.v_tolerance = entry.v_tolerance;
        stage.b0 = b;
    }
    if (code == 0)
        code = stage_run(&stage, entry.groups, heads->H_kv, layer->threads, &ranged);
    if (code == 0 && layer->param)
        code = put_out(layer, &entry);
    layer->finite = layer->finite && ranged;
    entry_destroy(&entry);
    return code;
}

/* Inputs that every row depends on; and how large a projected query can be. */
static void look_at_inputs(struct layer *layer, int params)
{
    const struct attn_args *inputs = layer->inputs;
    enum attn_dtype dtype = layer->problem->dtype;
    double largest = 0, ignored = 0;
    layer->finite = tensor_finite(&inputs->q, dtype, false, &largest);
    for (int i = 0; i < params; i++) {
        int place = layer->self ? i - ATTN_SELF_MATRICES : i;
        bool bias = place >= 0 && place % 2 == 1; /* each matrix of multi_head is followed by its bias */
        layer->finite = tensor_finite(&inputs->param[i], bias ? ATTN_F32 : dtype, false, &ignored) && layer->finite;
    }
    const struct projection *q = &layer->projections[QUERIES];
    int64_t width = inputs->q.size[3];
    for (int s = 0; s < q->stages; s++) {
        largest = linear_reach(&q->linear[s], width, q->columns[s], largest);
        width = q->columns[s];
        layer->finite = layer->finite && largest < dtype_model(dtype).largest;
    }
    layer->largest_query = largest;
}

int oracle_layer(const struct attn_problem *problem, const struct attn_args *inputs, int threads, struct oracle *oracle)
{
    bool self = problem->rule == ATTN_SELF_ATTENTION, single = problem->flags & ATTN_FLAG_SINGLE;
    struct attn_problem heads = *problem;
    if (single) {
        heads.H = heads.H_kv = 1;
        heads.D = problem->model_dim;
        heads.D_v = problem->model_dim_v;
    }
    struct layer layer = {.problem = problem,
                          .heads = &heads,
                          .inputs = inputs,
                          .param = single ? NULL : inputs->param + (self ? ATTN_SELF_MATRICES : 0),
                          .oracle = oracle,
                          .threads = threads,
                          .self = self};
    double ignored = 0;
    struct attention attention = {
        .problem = &heads, .inputs = inputs, .bias_finite = tensor_finite(&inputs->bias, ATTN_F32, true, &ignored)};
    int code = 0;
    for (int which = QUERIES; which < PROJECTIONS && code == 0; which++)
        code = create_projection(&layer, which, &layer.projections[which]);
    look_at_inputs(&layer, (self ? ATTN_SELF_MATRICES : 0) + (single ? 0 : ATTN_LAYER_PARAMS));
    oracle_open_ranges(oracle, problem->B);
    for (int64_t first = 0, end; first < oracle->rows && code == 0; first = end) {
        for (end = first; end < oracle->rows && oracle->b[end] == oracle->b[first];)
            end++;
        code = do_entry(&layer, &attention, oracle->b[first], first, end);
    }
    for (int which = QUERIES; which < PROJECTIONS; which++)
        for (int s = 0; s < 2; s++)
            free(layer.projections[which].alike[s]);
    oracle->inputs_finite = layer.finite && attention.bias_finite;
    return code;
}
