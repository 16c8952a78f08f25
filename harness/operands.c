/* SPDX-License-Identifier: Apache-2.0
 *
 * The tensors of one problem: allocation by layout, filling, poisoning, digest. See operands.h.
 */
#include "operands.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fill.h"

void layout_strides(enum layout layout, const int64_t size[4], int64_t stride[4])
{
    int order[3] = {0, 1, 2}; /* outermost first: batch, head, sequence */
    if (layout == LAYOUT_BSHD) {
        order[1] = 2;
        order[2] = 1;
    } else if (layout == LAYOUT_HBSD) {
        order[0] = 1;
        order[1] = 0;
    }
    /* An empty dimension counts as 1: stride 0 must mean broadcast and nothing else. */
    int64_t step = size[3] > 0 ? size[3] : 1;
    stride[3] = 1;
    for (int place = 2; place >= 0; place--) {
        stride[order[place]] = step;
        step *= size[order[place]] > 0 ? size[order[place]] : 1;
    }
}

int operands_allocate_tensor(enum layout layout, const int64_t size[4], const int64_t broadcast[4], size_t element,
                             enum memory_kind kind, struct memory_block *block, struct attn_tensor *tensor,
                             struct error *error)
{
    int64_t bytes = (int64_t)element;
    for (int i = 0; i < 4; i++)
        if (__builtin_mul_overflow(bytes, size[i], &bytes))
            return error_system(error, ENOMEM, "a tensor of more than 2^63 bytes");
    int code = memory_allocate(block, (size_t)bytes, kind, error);
    if (code < 0)
        return code;
    layout_strides(layout, size, tensor->stride);
    for (int i = 0; i < 4; i++) {
        tensor->size[i] = broadcast[i];
        if (i < 3 && size[i] == 1 && broadcast[i] != 1)
            tensor->stride[i] = 0;
    }
    tensor->data = block->data;
    return 0;
}

/* Fields by rule; see kernels/layers/layer.h. */
int operands_params(const struct problem_spec *s, struct operand_param params[ATTN_MOST_PARAMS])
{
    const int64_t joined = s->D + s->key_dim, heads = s->H * s->D_v;
    const bool self = s->rule == ATTN_SELF_ATTENTION, combine = s->combine;
    const struct operand_param additive[ATTN_ADDITIVE_PARAMS] = {
        [ATTN_ADDITIVE_W] = {"w", s->hidden, joined, joined, false, true},
        [ATTN_ADDITIVE_W_BIAS] = {"w_bias", 1, s->hidden, joined, true, true},
        [ATTN_ADDITIVE_U] = {"u", 1, s->hidden, s->hidden, false, !s->plain_sum},
    };
    const struct operand_param concat[ATTN_CONCAT_PARAMS] = {
        [ATTN_CONCAT_W] = {"w", s->S_kv, joined, joined, false, true},
        [ATTN_CONCAT_W_BIAS] = {"w_bias", 1, s->S_kv, joined, true, true},
        [ATTN_CONCAT_W_OUT] = {"w_out", s->out_dim, s->D + s->D_v, s->D + s->D_v, false, combine},
        [ATTN_CONCAT_W_OUT_BIAS] = {"w_out_bias", 1, s->out_dim, s->D + s->D_v, true, combine},
    };
    const struct operand_param matrices[ATTN_SELF_MATRICES] = {
        [ATTN_SELF_W_Q] = {"w_self_q", s->input_dim, s->model_dim, s->input_dim, false, true},
        [ATTN_SELF_W_K] = {"w_self_k", s->input_dim, s->model_dim, s->input_dim, false, true},
        [ATTN_SELF_W_V] = {"w_self_v", s->input_dim, s->model_dim_v, s->input_dim, false, true},
    };
    const struct operand_param heads_of[ATTN_LAYER_PARAMS] = {
        [ATTN_LAYER_W_Q] = {"w_q", s->H * s->D, s->model_dim, s->model_dim, false, true},
        [ATTN_LAYER_W_Q_BIAS] = {"w_q_bias", 1, s->H * s->D, s->model_dim, true, true},
        [ATTN_LAYER_W_K] = {"w_k", s->H_kv * s->D, s->model_dim, s->model_dim, false, true},
        [ATTN_LAYER_W_K_BIAS] = {"w_k_bias", 1, s->H_kv * s->D, s->model_dim, true, true},
        [ATTN_LAYER_W_V] = {"w_v", s->H_kv * s->D_v, s->model_dim_v, s->model_dim_v, false, true},
        [ATTN_LAYER_W_V_BIAS] = {"w_v_bias", 1, s->H_kv * s->D_v, s->model_dim_v, true, true},
        [ATTN_LAYER_W_O] = {"w_o", s->out_dim, heads, heads, false, true},
        [ATTN_LAYER_W_O_BIAS] = {"w_o_bias", 1, s->out_dim, heads, true, true},
    };
    int count = 0;
    if (s->rule == ATTN_ADDITIVE) {
        memcpy(params, additive, sizeof additive);
        count = ATTN_ADDITIVE_PARAMS;
    } else if (s->rule == ATTN_CONCAT) {
        memcpy(params, concat, sizeof concat);
        count = ATTN_CONCAT_PARAMS;
    } else if (self) {
        memcpy(params, matrices, sizeof matrices);
        count = ATTN_SELF_MATRICES;
    }
    if (s->rule == ATTN_MULTI_HEAD || (self && !s->single)) {
        memcpy(params + count, heads_of, sizeof heads_of);
        count += ATTN_LAYER_PARAMS;
    }
    return count;
}

/* The tensors of a spec: stored size, the size that kernels see, and whether it is allocated. */
enum { Q, K, V, OUT, WEIGHTS, BIAS, MASK, TENSORS };

struct plan_entry {
    bool present; /* has memory of its own */
    int64_t size[4], broadcast[4];
    size_t element;
    enum layout layout;
};

/* Features of a row of q, k, v and out. */
struct widths {
    int64_t q, k, v, out;
};

static struct widths widths_of(const struct problem_spec *s)
{
    switch (s->rule) {
    case ATTN_ADDITIVE:
        return (struct widths){s->D, s->key_dim, s->D_v, s->D_v};
    case ATTN_CONCAT:
        return (struct widths){s->D, s->key_dim, s->D_v, s->combine ? s->out_dim : s->D_v};
    case ATTN_MULTI_HEAD:
        return (struct widths){s->model_dim, s->model_dim, s->model_dim_v, s->out_dim};
    case ATTN_SELF_ATTENTION:
        return (struct widths){s->input_dim, 0, 0, s->single ? s->D_v : s->out_dim};
    case ATTN_MATMUL:
        return (struct widths){s->D, s->D_v, 0, s->D_v};
    default:
        return (struct widths){s->D, s->D, s->D_v, s->D_v};
    }
}

/* A matmul's a and b, and out, which numpy.dot orders as [M][batch][N]. */
static void plan_matmul(const struct problem_spec *s, struct plan_entry plan[TENSORS])
{
    const bool dot = s->semantics == SEMANTICS_DOT, a_alone = s->broadcast == BROADCAST_A || dot;
    const bool b_alone = s->broadcast == BROADCAST_B;
    const int64_t B = dot ? 1 : s->B, H = dot ? s->B : s->H, M = dot ? s->B * s->S_q : s->S_q, inner = s->D, N = s->D_v;
    const struct plan_entry entries[] = {
        {true, {a_alone ? 1 : B, a_alone ? 1 : H, M, inner}, {B, H, M, inner}, 0, LAYOUT_BHSD},
        {true, {b_alone ? 1 : B, b_alone ? 1 : H, inner, N}, {B, H, inner, N}, 0, LAYOUT_BHSD},
        {true, {B, H, M, N}, {B, H, M, N}, 0, dot ? LAYOUT_BSHD : LAYOUT_BHSD},
    };
    plan[Q] = entries[0];
    plan[K] = entries[1];
    plan[OUT] = entries[2];
    plan[Q].element = plan[K].element = plan[OUT].element = dtype_bytes(s->dtype);
}

static void plan_tensors(const struct problem_spec *s, struct plan_entry plan[TENSORS])
{
    const bool layer = s->rule == ATTN_MULTI_HEAD || s->rule == ATTN_SELF_ATTENTION;
    const struct widths w = widths_of(s);
    const int64_t H = layer ? 1 : s->H, H_kv = layer ? 1 : s->H_kv;
    const int64_t pairs[4] = {s->B, s->H, s->S_q, s->S_kv};
    const int64_t sizes[TENSORS][4] = {
        [Q] = {s->B, H, s->S_q, w.q},
        [K] = {s->B, H_kv, s->rule == ATTN_CONCAT ? s->S_q : s->S_kv, w.k},
        [V] = {s->B, H_kv, s->S_kv, w.v},
        [OUT] = {s->B, H, s->S_q, w.out},
        [WEIGHTS] = {s->B, s->H, s->S_q, s->S_kv},
        [BIAS] = {1, s->H, s->S_q, s->S_kv},
        [MASK] = {s->B, 1, s->S_q, s->S_kv},
    };
    const bool present[TENSORS] = {
        [Q] = true,
        [K] = s->alias != ALIAS_QKV && s->rule != ATTN_SELF_ATTENTION,
        [V] = s->alias == ALIAS_NONE && s->rule != ATTN_SELF_ATTENTION,
        [OUT] = true,
        [WEIGHTS] = s->weights,
        [BIAS] = s->bias,
        [MASK] = s->mask_share >= 0,
    };
    memset(plan, 0, TENSORS * sizeof *plan);
    if (s->rule == ATTN_MATMUL) {
        plan_matmul(s, plan);
        return;
    }
    for (int t = 0; t < TENSORS; t++) {
        plan[t].present = present[t];
        memcpy(plan[t].size, sizes[t], sizeof plan[t].size);
        memcpy(plan[t].broadcast, t >= WEIGHTS ? pairs : sizes[t], sizeof plan[t].broadcast);
        plan[t].element = t == MASK ? 1 : t >= WEIGHTS ? sizeof(float) : dtype_bytes(s->dtype);
        plan[t].layout = t >= WEIGHTS ? LAYOUT_BHSD : s->layout;
    }
}

void operands_shapes(const struct problem_spec *spec, struct attn_args *shapes)
{
    struct plan_entry plan[TENSORS];
    struct attn_tensor *tensors[] = {[Q] = &shapes->q, [K] = &shapes->k, [V] = &shapes->v, [OUT] = &shapes->out};
    plan_tensors(spec, plan);
    for (int t = Q; t <= OUT; t++)
        memcpy(tensors[t]->size, plan[t].broadcast, sizeof tensors[t]->size);
}

static int create_params(const struct problem_spec *spec, enum memory_kind kind, struct operands *operands,
                         struct error *error)
{
    struct operand_param params[ATTN_MOST_PARAMS];
    operands->params = operands_params(spec, params);
    operands->args.param = operands->params ? operands->param : NULL;
    for (int i = 0; i < operands->params; i++) {
        const int64_t size[4] = {1, 1, params[i].rows, params[i].columns};
        if (!params[i].present)
            continue;
        int code =
            operands_allocate_tensor(LAYOUT_BHSD, size, size, params[i].bias ? sizeof(float) : dtype_bytes(spec->dtype),
                                     kind, &operands->param_block[i], &operands->param[i], error);
        if (code < 0)
            return code;
    }
    return 0;
}

int operands_create(const struct problem_spec *spec, enum memory_kind kind, struct operands *operands,
                    struct error *error)
{
    struct plan_entry plan[TENSORS];
    memset(operands, 0, sizeof *operands);
    operands->spec = *spec;
    size_t entries = spec->B > 0 ? (size_t)spec->B : 1;
    operands->kv_len = calloc(entries, sizeof *operands->kv_len);
    operands->diag = calloc(entries, sizeof *operands->diag);
    operands->param = calloc(ATTN_MOST_PARAMS, sizeof *operands->param);
    if (!operands->kv_len || !operands->diag || !operands->param) {
        operands_destroy(operands);
        return error_system(error, ENOMEM, "cannot allocate operands");
    }
    spec_problem(spec, operands->kv_len, operands->diag, &operands->problem);

    struct memory_block *block[TENSORS] = {&operands->q,       &operands->k,    &operands->v,   &operands->out,
                                           &operands->weights, &operands->bias, &operands->mask};
    struct attn_args *args = &operands->args;
    struct attn_tensor *tensor[TENSORS] = {&args->q,       &args->k,    &args->v,   &args->out,
                                           &args->weights, &args->bias, &args->mask};
    plan_tensors(spec, plan);
    int code = create_params(spec, kind, operands, error);
    for (int t = 0; t < TENSORS && code == 0; t++)
        if (plan[t].present)
            code = operands_allocate_tensor(plan[t].layout, plan[t].size, plan[t].broadcast, plan[t].element, kind,
                                            block[t], tensor[t], error);
    if (code < 0) {
        operands_destroy(operands);
        return code;
    }
    if (spec->alias == ALIAS_QKV)
        args->k = args->q;
    if (spec->alias != ALIAS_NONE)
        args->v = args->k;
    return 0;
}

void operands_release_inputs(struct operands *operands)
{
    memory_release(&operands->q);
    memory_release(&operands->k);
    memory_release(&operands->v);
    memory_release(&operands->bias);
    memory_release(&operands->mask);
    for (int i = 0; i < ATTN_MOST_PARAMS; i++)
        memory_release(&operands->param_block[i]);
}

void operands_destroy(struct operands *operands)
{
    operands_release_inputs(operands);
    memory_release(&operands->out);
    memory_release(&operands->weights);
    free(operands->kv_len);
    free(operands->diag);
    free(operands->param);
    memset(operands, 0, sizeof *operands);
}

/* Bias, mask and the operands of a matmul are stored with size 1 where they broadcast; only that is filled. */
static void fill_stored(const struct problem_spec *spec, uint32_t set, enum fill_tensor which,
                        const struct attn_tensor *tensor, int threads)
{
    struct attn_tensor stored = *tensor;
    for (int i = 0; i < 3; i++)
        if (stored.stride[i] == 0 && stored.size[i] > 1)
            stored.size[i] = 1;
    fill_tensor(spec, set, which, &stored, threads);
}

void operands_fill(struct operands *operands, uint32_t set, int threads)
{
    const struct problem_spec *spec = &operands->spec;
    struct attn_args *args = &operands->args;
    /* A shared buffer holds what the keys would hold: it is the keys that make a fill what it is. */
    if (spec->alias != ALIAS_QKV)
        fill_stored(spec, set, FILL_Q, &args->q, threads);
    fill_stored(spec, set, FILL_K, &args->k, threads);
    if (spec->alias == ALIAS_NONE)
        fill_tensor(spec, set, FILL_V, &args->v, threads);
    fill_stored(spec, set, FILL_BIAS, &args->bias, threads);
    fill_stored(spec, set, FILL_MASK, &args->mask, threads);
    struct operand_param params[ATTN_MOST_PARAMS];
    int count = operands_params(spec, params);
    for (int i = 0; i < count; i++)
        fill_param(spec, set, i, params[i].bias ? ATTN_F32 : spec->dtype, 1 / sqrt((double)params[i].fan_in),
                   &operands->param[i], threads);
}

static void poison16(uint16_t *data, size_t count, uint16_t pattern, int threads)
{
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (size_t i = 0; i < count; i++)
        data[i] = pattern;
}

static void poison32(uint32_t *data, size_t count, int threads)
{
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (size_t i = 0; i < count; i++)
        data[i] = 0x7fa00000u;
}

void operands_poison(struct operands *operands, int threads)
{
    if (operands->spec.dtype == ATTN_F32)
        poison32(operands->out.data, operands->out.bytes / 4, threads);
    else
        poison16(operands->out.data, operands->out.bytes / 2, operands->spec.dtype == ATTN_BF16 ? 0x7fa0 : 0x7d00,
                 threads);
    if (operands->weights.data)
        poison32(operands->weights.data, operands->weights.bytes / 4, threads);
}

/* Four chains of multiply and rotate, so that the digest runs at memory speed rather than at a multiplier's latency. */
static uint64_t digest_block(uint64_t digest, const struct memory_block *block)
{
    static const uint64_t factor = UINT64_C(0x9fb21c651e98df25);
    const unsigned char *data = block->data;
    uint64_t chain[4] = {digest, digest ^ 1, digest ^ 2, digest ^ block->bytes}, word[4];
    size_t at = 0;
    for (; at + sizeof word <= block->bytes; at += sizeof word) {
        memcpy(word, data + at, sizeof word);
        for (int c = 0; c < 4; c++) {
            uint64_t x = (chain[c] ^ word[c]) * factor;
            chain[c] = x << 31 | x >> 33;
        }
    }
    memset(word, 0, sizeof word);
    if (block->bytes > at)
        memcpy(word, data + at, block->bytes - at);
    for (int c = 0; c < 4; c++) {
        uint64_t x = (digest ^ chain[c] ^ word[c]) * factor;
        digest = (x ^ x >> 32) * factor + (uint64_t)c;
    }
    return digest ^ digest >> 29;
}

uint64_t operands_input_digest(const struct operands *operands)
{
    const struct memory_block *inputs[] = {&operands->q, &operands->k, &operands->v, &operands->bias, &operands->mask};
    uint64_t digest = UINT64_C(0x2545f4914f6cdd1d);
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++)
        digest = digest_block(digest, inputs[i]);
    for (int i = 0; i < operands->params; i++)
        digest = digest_block(digest, &operands->param_block[i]);
    return digest;
}

const char *operands_canary_broken(const struct operands *operands)
{
    const struct memory_block *blocks[] = {&operands->out, &operands->weights, &operands->q,   &operands->k,
                                           &operands->v,   &operands->bias,    &operands->mask};
    const char *broken = NULL;
    for (size_t b = 0; b < sizeof blocks / sizeof *blocks && !broken; b++)
        broken = memory_canary_broken(blocks[b]);
    for (int p = 0; p < operands->params && !broken; p++)
        broken = memory_canary_broken(&operands->param_block[p]);
    return broken;
}

double operands_bytes(const struct problem_spec *spec)
{
    struct plan_entry plan[TENSORS];
    struct operand_param params[ATTN_MOST_PARAMS];
    double total = 0;
    plan_tensors(spec, plan);
    for (int t = 0; t < TENSORS; t++) {
        double bytes = (double)plan[t].element;
        for (int i = 0; i < 4; i++)
            bytes *= (double)plan[t].size[i];
        total += plan[t].present ? bytes : 0;
    }
    int count = operands_params(spec, params);
    for (int i = 0; i < count; i++)
        if (params[i].present)
            total += (double)params[i].rows * (double)params[i].columns *
                     (double)(params[i].bias ? sizeof(float) : dtype_bytes(spec->dtype));
    return total;
}
