/* SPDX-License-Identifier: Apache-2.0
 *
 * FLOPs and bytes of every rule in closed form, from the problem that kernels see; see work.h.
 */
#include "work.h"

#include <stdlib.h>
#include <string.h>

#include "operands.h"

/* Sums over 2^40 rows of 2^40 keys, and window ends near INT64_MAX, need more than 64 bits. */
typedef __int128 wide;

static wide clamp(wide x, wide low, wide high)
{
    return x < low ? low : x > high ? high : x;
}

/* Sum over i = 0 .. rows-1 of clamp(i + start, 0, keys): zeros, then a ramp, then keys. */
static wide sum_clamped(wide start, wide rows, wide keys)
{
    wide ramp = clamp(-start, 0, rows), flat = clamp(keys - start, 0, rows);
    return (flat - ramp) * start + (ramp + flat - 1) * (flat - ramp) / 2 + (rows - flat) * keys;
}

/* Pairs of one head of batch entry b: row i at p = i + diag sees keys [p - left + 1, p + right] of those below its
 * length, which is a difference of two clamped ends. */
static wide entry_pairs(const struct attn_problem *p, wide length, wide diag)
{
    wide end = p->right == INT64_MAX ? p->S_q * length : sum_clamped(diag + p->right + 1, p->S_q, length);
    wide begin = p->left == INT64_MAX ? 0 : sum_clamped(diag - p->left + 1, p->S_q, length);
    return end - begin;
}

/* Keys of entry b that some query sees: neighbouring rows' intervals touch, so their union is one interval. */
static wide entry_keys(const struct attn_problem *p, wide length, wide diag)
{
    if (p->S_q == 0 || (p->left == 0 && p->right == 0))
        return 0;
    wide end = p->right == INT64_MAX ? length : clamp(diag + p->S_q + p->right, 0, length);
    wide begin = p->left == INT64_MAX ? 0 : clamp(diag - p->left + 1, 0, length);
    return end > begin ? end - begin : 0;
}

/* What masks leave, over all batch entries. */
struct visible {
    double pairs, keys; /* of one head */
};

static struct visible count_visible(const struct problem_spec *spec)
{
    /* Entries of equal length are alike: one stands for all. */
    struct problem_spec distinct = *spec;
    bool alike = strcmp(spec->kv_lengths, "full") == 0 && spec->B > 1;
    if (alike)
        distinct.B = 1;
    int64_t *lengths = malloc(((size_t)distinct.B + 1) * 2 * sizeof *lengths);
    if (!lengths)
        abort();
    struct attn_problem problem;
    spec_problem(&distinct, lengths, lengths + distinct.B, &problem);
    wide pairs = 0, keys = 0;
    for (int64_t b = 0; b < distinct.B; b++) {
        wide length = lengths[b], diag = lengths[distinct.B + b];
        pairs += entry_pairs(&problem, length, diag);
        keys += entry_keys(&problem, length, diag);
    }
    free(lengths);
    double entries = alike ? (double)spec->B : 1;
    return (struct visible){entries * (double)pairs, entries * (double)keys};
}

/* Sizes as floating point, so that products can't overflow. */
struct sizes {
    double B, H, H_kv, S_q, S_kv, D, D_v, hidden, key_dim, out_dim, model_dim, model_dim_v, input_dim;
    double element; /* bytes */
};

/* Bytes of the parameters first..last-1 that the spec has. */
static double param_bytes(const struct problem_spec *spec, int first, int last)
{
    struct operand_param params[ATTN_MOST_PARAMS];
    int count = operands_params(spec, params);
    double bytes = 0;
    for (int i = first; i < last && i < count; i++)
        if (params[i].present)
            bytes += (double)params[i].rows * (double)params[i].columns *
                     (double)(params[i].bias ? sizeof(float) : dtype_bytes(spec->dtype));
    return bytes;
}

/* FLOPs a (query, key) pair. */
static double pair_flops(const struct problem_spec *spec, const struct sizes *s)
{
    switch (spec->rule) {
    case ATTN_ADDITIVE:
        return 3 * s->hidden + 2 * s->D_v;
    case ATTN_CONCAT:
        return 2 * (s->D + s->key_dim + s->D_v);
    case ATTN_MATMUL:
        return 0;
    default:
        return 2 * (s->D + s->D_v);
    }
}

/* Bytes that the attention phase of every rule reads and writes beside queries, keys, values and out. */
static void count_masks(const struct problem_spec *spec, const struct sizes *s, struct work_phase *attention)
{
    const double scores = s->S_q * s->S_kv;
    attention->bytes_read += (spec->mask_share >= 0 ? s->B * scores : 0) + (spec->bias ? 4 * s->H * scores : 0);
    attention->bytes_written += spec->weights ? 4 * s->B * s->H * scores : 0;
}

static void count_dot_product(const struct problem_spec *spec, const struct sizes *s, double keys,
                              struct work_phase *attention)
{
    /* Elements of a key row and its value row that are not somewhere else already. */
    const double row = spec->alias == ALIAS_QKV ? 0 : spec->alias == ALIAS_KV ? s->D : s->D + s->D_v;
    attention->bytes_read += s->element * (s->B * s->H * s->S_q * s->D + keys * s->H_kv * row);
    attention->bytes_written += s->element * s->B * s->H * s->S_q * s->D_v;
}

static void count_additive(const struct problem_spec *spec, const struct sizes *s, double keys, struct work *work)
{
    struct work_phase *projections = &work->phase[ATTN_PHASE_PROJECTIONS];
    struct work_phase *attention = &work->phase[ATTN_PHASE_ATTENTION];
    const double queries = s->B * s->H * s->S_q, key_rows = s->B * s->H_kv * s->S_kv;
    projections->flops = 2 * s->hidden * (queries * s->D + key_rows * s->key_dim);
    projections->bytes_read =
        s->element * (queries * s->D + keys * s->H_kv * s->key_dim) + param_bytes(spec, 0, ATTN_ADDITIVE_U);
    attention->tanh_count = work->pairs_useful * s->hidden;
    attention->bytes_read +=
        s->element * keys * s->H_kv * s->D_v + param_bytes(spec, ATTN_ADDITIVE_U, ATTN_ADDITIVE_PARAMS);
    attention->bytes_written += s->element * queries * s->D_v;
}

static void count_concat(const struct problem_spec *spec, const struct sizes *s, double values, struct work *work)
{
    struct work_phase *attention = &work->phase[ATTN_PHASE_ATTENTION], *output = &work->phase[ATTN_PHASE_OUTPUT];
    const double rows = s->B * s->H * s->S_q;
    attention->bytes_read +=
        s->element * (rows * (s->D + s->key_dim) + values * s->H_kv * s->D_v) + param_bytes(spec, 0, ATTN_CONCAT_W_OUT);
    if (!spec->combine) {
        attention->bytes_written += s->element * rows * s->D_v;
        return;
    }
    output->flops = 2 * rows * (s->D + s->D_v) * s->out_dim;
    output->bytes_read = param_bytes(spec, ATTN_CONCAT_W_OUT, ATTN_CONCAT_PARAMS);
    output->bytes_written = s->element * rows * s->out_dim;
}

/* multi_head, and self_attention with its three matrices in front. */
static void count_layer(const struct problem_spec *spec, const struct sizes *s, struct work *work)
{
    struct work_phase *projections = &work->phase[ATTN_PHASE_PROJECTIONS], *output = &work->phase[ATTN_PHASE_OUTPUT];
    const double queries = s->B * s->S_q, keys = s->B * s->S_kv;
    const int first = spec->rule == ATTN_SELF_ATTENTION ? ATTN_SELF_MATRICES : 0;
    if (first) {
        projections->flops = 2 * queries * s->input_dim * (2 * s->model_dim + s->model_dim_v);
        projections->bytes_read = s->element * queries * s->input_dim + param_bytes(spec, 0, first);
    } else {
        const double row = spec->alias == ALIAS_QKV  ? 0
                           : spec->alias == ALIAS_KV ? s->model_dim
                                                     : s->model_dim + s->model_dim_v;
        projections->bytes_read = s->element * (queries * s->model_dim + keys * row);
    }
    if (spec->single) {
        work->phase[ATTN_PHASE_ATTENTION].bytes_written += s->element * queries * s->D_v;
        return;
    }
    projections->flops += 2 * (queries * s->model_dim * s->H * s->D + keys * s->model_dim * s->H_kv * s->D +
                               keys * s->model_dim_v * s->H_kv * s->D_v);
    projections->bytes_read += param_bytes(spec, first, first + ATTN_LAYER_W_O);
    output->flops = 2 * queries * s->H * s->D_v * s->out_dim;
    output->bytes_read = param_bytes(spec, first + ATTN_LAYER_W_O, first + ATTN_LAYER_PARAMS);
    output->bytes_written = s->element * queries * s->out_dim;
}

static void count_matmul(const struct problem_spec *spec, const struct sizes *s, struct work_phase *product)
{
    const bool dot = spec->semantics == SEMANTICS_DOT;
    const double batch = s->B * s->H, M = dot ? s->B * s->S_q : s->S_q, K = s->D, N = s->D_v;
    const double a = (spec->broadcast == BROADCAST_A || dot ? 1 : batch) * M * K;
    const double b = (spec->broadcast == BROADCAST_B ? 1 : batch) * K * N;
    product->flops = 2 * batch * M * K * N;
    product->bytes_read = s->element * (a + b);
    product->bytes_written = s->element * batch * M * N;
}

static void count_rule(const struct problem_spec *spec, const struct sizes *s, double keys, struct work *work)
{
    struct work_phase *attention = &work->phase[ATTN_PHASE_ATTENTION];
    if (spec->rule == ATTN_MATMUL) {
        count_matmul(spec, s, attention);
        return;
    }
    attention->flops = pair_flops(spec, s) * work->pairs_useful;
    count_masks(spec, s, attention);
    if (spec->rule == ATTN_SCALED_DOT_PRODUCT)
        count_dot_product(spec, s, keys, attention);
    else if (spec->rule == ATTN_ADDITIVE)
        count_additive(spec, s, keys, work);
    else if (spec->rule == ATTN_CONCAT)
        count_concat(spec, s, keys, work);
    else
        count_layer(spec, s, work);
}

void work_count(const struct problem_spec *spec, struct work *work)
{
    const struct sizes s = {
        .B = (double)spec->B,
        .H = (double)spec->H,
        .H_kv = (double)spec->H_kv,
        .S_q = (double)spec->S_q,
        .S_kv = (double)spec->S_kv,
        .D = (double)spec->D,
        .D_v = (double)spec->D_v,
        .hidden = (double)spec->hidden,
        .key_dim = (double)spec->key_dim,
        .out_dim = (double)spec->out_dim,
        .model_dim = (double)spec->model_dim,
        .model_dim_v = (double)spec->model_dim_v,
        .input_dim = (double)spec->input_dim,
        .element = (double)dtype_bytes(spec->dtype),
    };
    *work = (struct work){.working_set = operands_bytes(spec)};
    struct visible visible = {0};
    if (spec->rule != ATTN_MATMUL) {
        visible = count_visible(spec);
        work->pairs_useful = visible.pairs * s.H;
        work->pairs_dense = s.B * s.H * s.S_q * s.S_kv;
    }
    count_rule(spec, &s, visible.keys, work);
    for (int p = 0; p < ATTN_PHASES; p++) {
        work->flops_useful += work->phase[p].flops;
        work->tanh_count += work->phase[p].tanh_count;
        work->bytes_read += work->phase[p].bytes_read;
        work->bytes_written += work->phase[p].bytes_written;
    }
    work->flops_dense = work->flops_useful + pair_flops(spec, &s) * (work->pairs_dense - work->pairs_useful);
    work->bytes_min = work->bytes_read + work->bytes_written;
}
