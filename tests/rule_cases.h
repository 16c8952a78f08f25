/* SPDX-License-Identifier: Apache-2.0
 *
 * Random problems of every rule with their reference, for the tests of the oracle. Include cmocka first.
 */
#ifndef RULE_CASES_H
#define RULE_CASES_H

#include <stdio.h>

#include "harness/intern.h"
#include "harness/oracle.h"
#include "rule_machine.h"

/* The rules that this is about, with the variants that compute something else. */
enum variant { MATMUL, ADDITIVE, ADDITIVE_SUM, CONCAT, CONCAT_COMBINE, MULTI_HEAD, SELF_HEADS, SELF_SINGLE, VARIANTS };
static const char *const variant_names[VARIANTS] = {"matmul",         "additive",   "additive sum",   "concat",
                                                    "concat combine", "multi_head", "self_attention", "self single"};

static inline bool is_layer(enum variant variant)
{
    return variant == MULTI_HEAD || variant == SELF_HEADS || variant == SELF_SINGLE;
}

/* A variant with all sizes given at once: S queries and keys, width features of everything. */
static inline struct problem_spec variant_spec(enum variant variant, int64_t H, int64_t S, int64_t width)
{
    static const enum attn_rule rules[VARIANTS] = {ATTN_MATMUL,         ATTN_ADDITIVE,      ATTN_ADDITIVE,
                                                   ATTN_CONCAT,         ATTN_CONCAT,        ATTN_MULTI_HEAD,
                                                   ATTN_SELF_ATTENTION, ATTN_SELF_ATTENTION};
    struct problem_spec spec = spec_default();
    spec.rule = rules[variant];
    spec.B = 2;
    spec.H = spec.H_kv = variant == SELF_SINGLE ? 1 : H;
    spec.S_q = spec.S_kv = S;
    spec.D = spec.D_v = width;
    if (variant == MATMUL)
        spec.S_kv = spec.D_v;
    if (variant == ADDITIVE || variant == ADDITIVE_SUM)
        spec.hidden = spec.key_dim = width;
    spec.plain_sum = variant == ADDITIVE_SUM;
    if (variant == CONCAT || variant == CONCAT_COMBINE)
        spec.key_dim = width;
    spec.combine = variant == CONCAT_COMBINE;
    if (variant == CONCAT_COMBINE)
        spec.out_dim = width;
    if (is_layer(variant))
        spec.model_dim = spec.model_dim_v = variant == SELF_SINGLE ? width : H * width;
    if (variant == MULTI_HEAD || variant == SELF_HEADS)
        spec.out_dim = H * width;
    if (variant == SELF_HEADS || variant == SELF_SINGLE)
        spec.input_dim = H * width;
    spec.single = variant == SELF_SINGLE;
    spec.weights = variant != MATMUL;
    return spec;
}

static uint64_t draws;
static inline int64_t draw(int64_t below)
{
    return (int64_t)(fill_bits(7, 0, FILL_Q, draws++) % (uint64_t)below);
}

/* Odd sizes, masks, layouts; limit: of sizes. */
static inline struct problem_spec draw_spec(enum variant variant, uint64_t seed, int64_t limit)
{
    draws = seed << 20;
    struct problem_spec spec = variant_spec(variant, 1 + draw(4), 1 + draw(limit), 1 + draw(limit));
    spec.B = 1 + draw(3);
    spec.seed = seed;
    spec.S_q = 1 + draw(limit);
    spec.D_v = 1 + draw(limit);
    if (variant == MATMUL) {
        spec.S_kv = spec.D_v;
        spec.bias = false;
        spec.broadcast = (enum broadcast)draw(3);
        spec.semantics = spec.broadcast == BROADCAST_NONE && spec.H == 1 ? (enum semantics)draw(2) : SEMANTICS_MATMUL;
        return spec;
    }
    int64_t *sizes[] = {&spec.hidden,    &spec.key_dim,     &spec.out_dim,
                        &spec.model_dim, &spec.model_dim_v, &spec.input_dim};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        if (*sizes[s] > 0)
            *sizes[s] = 1 + draw(limit);
    if (variant == SELF_SINGLE) {
        spec.D = spec.model_dim;
        spec.D_v = spec.model_dim_v;
    }
    if (variant == SELF_HEADS || variant == SELF_SINGLE)
        spec.S_kv = spec.S_q;
    spec.layout = (enum layout)draw(3);
    if (variant == CONCAT || variant == CONCAT_COMBINE)
        return spec;
    if (variant != SELF_SINGLE && spec.H % 2 == 0 && draw(2))
        spec.H_kv = spec.H / 2;
    spec.causal = (enum causal)draw(4);
    spec.kv_lengths = intern(draw(2) ? "ragged" : "full");
    spec.window = draw(3) == 0;
    spec.window_left = 1 + draw(limit);
    spec.window_right = spec.causal == CAUSAL_NONE ? draw(limit) : WINDOW_NOT_GIVEN;
    spec.mask_share = draw(3) == 0 ? 0.7 : -1;
    spec.bias = draw(3) == 0;
    spec.softcap = draw(3) == 0 && is_layer(variant) ? 0.5 : 0;
    return spec;
}

/* A problem with its reference, so that several machines are held against one. */
struct session {
    struct operands operands;
    struct oracle oracle;
};

static inline void consult(struct session *session, double budget, int threads)
{
    struct error error;
    assert_int_equal(oracle_create(&session->operands.problem, &session->operands.args, 1, budget, threads,
                                   &session->oracle, &error),
                     0);
}

static inline void open_operands(const struct problem_spec *spec, struct session *session)
{
    struct error error;
    assert_int_equal(operands_create(spec, MEMORY_PLAIN, &session->operands, &error), 0);
    operands_fill(&session->operands, 1, 1);
}

static inline void open_session(const struct problem_spec *spec, struct session *session)
{
    open_operands(spec, session);
    consult(session, 1e12, 1);
}

static inline void close_session(struct session *session)
{
    oracle_destroy(&session->oracle);
    operands_destroy(&session->operands);
}

/* Writes an answer where a kernel would. */
static inline void give(const struct operands *o, const struct answer *answer)
{
    const struct attn_problem *p = &o->problem;
    const struct attn_tensor *out = &o->args.out, *weights = &o->args.weights;
    int64_t heads = out->size[1], width = out->size[3];
    for (int64_t r = 0; r < p->B * heads * p->S_q; r++)
        for (int64_t d = 0; d < width; d++)
            put_element(out, p->dtype, r / p->S_q / heads, r / p->S_q % heads, r % p->S_q, d,
                        answer->out[r * width + d]);
    for (int64_t r = 0; weights->data && r < p->B * p->H * p->S_q; r++)
        for (int64_t j = 0; j < p->S_kv; j++)
            put_element(weights, ATTN_F32, r / p->S_q / p->H, r / p->S_q % p->H, r % p->S_q, j,
                        answer->weights[r * p->S_kv + j]);
}

static inline struct judgement judge(const struct session *session)
{
    const struct operands *o = &session->operands;
    struct judgement judgement;
    oracle_judge(&session->oracle, &o->problem, &o->args.out, &o->args.weights, &judgement);
    return judgement;
}

static inline struct judgement judge_machine(const struct session *session, const struct machine *machine)
{
    struct answer answer = run_rule(machine, &session->operands);
    give(&session->operands, &answer);
    free(answer.out);
    free(answer.weights);
    return judge(session);
}

#endif
