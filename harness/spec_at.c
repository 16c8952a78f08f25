/* SPDX-License-Identifier: Apache-2.0
 *
 * One problem of a sweep: what its rule makes of the values at one place of every axis, and the sizes that follow from
 * others where they were not given; see request.h.
 */
#include <math.h>

#include "intern.h"
#include "request.h"

/* Of queries and keys, in every rule. */
enum { USUAL_DIM = 64 };

static int64_t or_follow(int64_t value, int64_t followed)
{
    return value == FOLLOW ? followed : value;
}

static void follow_layer_sizes(const struct value *const *at, struct problem_spec *spec)
{
    if (spec->single)
        spec->model_dim = or_follow(at[KEY_MODEL_DIM]->integer, USUAL_DIM);
    else
        spec->model_dim = or_follow(at[KEY_MODEL_DIM]->integer, spec->H * spec->D);
    spec->model_dim_v = or_follow(at[KEY_MODEL_DIM_V]->integer, spec->model_dim);
    if (spec->rule == ATTN_SELF_ATTENTION)
        spec->input_dim = or_follow(at[KEY_INPUT_DIM]->integer, spec->model_dim);
    if (spec->single) {
        spec->D = spec->model_dim;
        spec->D_v = spec->model_dim_v;
    } else {
        spec->out_dim = or_follow(at[KEY_OUT_DIM]->integer, spec->model_dim);
    }
    /* Heads lie strided in the projected rows whether that is called BHSD or BSHD: one problem. */
    if (spec->layout == LAYOUT_BSHD)
        spec->layout = LAYOUT_BHSD;
}

/* Sizes that only some rules have, and those that a rule calls by another name. */
static void follow_sizes(const struct value *const *at, struct problem_spec *spec)
{
    switch (spec->rule) {
    case ATTN_SCALED_DOT_PRODUCT:
        break;
    case ATTN_ADDITIVE:
    case ATTN_CONCAT:
        spec->key_dim = or_follow(at[KEY_KEY_DIM]->integer, spec->D);
        spec->D = or_follow(at[KEY_QUERY_DIM]->integer, spec->D);
        spec->hidden = spec->rule == ATTN_ADDITIVE ? at[KEY_HIDDEN]->integer : 0;
        spec->out_dim = spec->combine ? or_follow(at[KEY_OUT_DIM]->integer, spec->D_v) : 0;
        break;
    case ATTN_MULTI_HEAD:
    case ATTN_SELF_ATTENTION:
        follow_layer_sizes(at, spec);
        break;
    case ATTN_MATMUL:
        spec->S_q = at[KEY_M]->integer;
        spec->D = at[KEY_K]->integer;
        spec->D_v = spec->S_kv = at[KEY_N]->integer;
        break;
    }
}

/* The value of each axis at its index; what the rule does not know, as if it were not given. */
static void values_at(const struct axes *axes, const size_t *index, const struct value **at)
{
    const enum attn_rule rule = (enum attn_rule)axes->axis[KEY_RULE].items[index[KEY_RULE]].integer;
    const struct key_scope scope = {
        .rules = ATTN_BIT(rule),
        .combine = axes->axis[KEY_COMBINE].items[index[KEY_COMBINE]].integer,
        .heads = !axes->axis[KEY_NO_MHA].items[index[KEY_NO_MHA]].integer,
    };
    for (int id = 0; id < KEY_CACHE; id++)
        at[id] = key_rules((enum key_id)id, &scope) ? &axes->axis[id].items[index[id]] : axes_built_in((enum key_id)id);
}

struct problem_spec spec_at(const struct axes *axes, const size_t *index, uint64_t seed)
{
    const struct value *at[KEY_CACHE];
    values_at(axes, index, at);
    const int64_t D = or_follow(at[KEY_D]->integer, USUAL_DIM);
    struct problem_spec spec = {
        .rule = (enum attn_rule)at[KEY_RULE]->integer,
        .dtype = (enum attn_dtype)at[KEY_DTYPE]->integer,
        .layout = (enum layout)at[KEY_LAYOUT]->integer,
        .causal = (enum causal)at[KEY_CAUSAL]->integer,
        .alias = (enum alias)at[KEY_ALIAS]->integer,
        .fill = (enum fill)at[KEY_FILL]->integer,
        .B = at[KEY_B]->integer,
        .H = at[KEY_H]->integer,
        .H_kv = or_follow(at[KEY_KV_HEADS]->integer, at[KEY_H]->integer),
        .S_q = or_follow(at[KEY_Q_LEN]->integer, at[KEY_S]->integer),
        .S_kv = or_follow(at[KEY_KV_LEN]->integer, at[KEY_S]->integer),
        .D = D,
        .D_v = or_follow(at[KEY_VALUE_DIM]->integer, D),
        .combine = at[KEY_COMBINE]->integer,
        .plain_sum = at[KEY_PLAIN_SUM]->integer,
        .single = at[KEY_NO_MHA]->integer,
        .broadcast = (enum broadcast)at[KEY_BROADCAST]->integer,
        .semantics = (enum semantics)at[KEY_SEMANTICS]->integer,
        .kv_lengths = intern(at[KEY_KV_LENGTHS]->text),
        .mask_share = at[KEY_MASK]->number,
        .bias = at[KEY_BIAS]->integer,
        .weights = at[KEY_WEIGHTS]->integer,
        .window = at[KEY_WINDOW]->number > 0,
        .softcap = at[KEY_SOFTCAP]->number,
        .scale = at[KEY_SCALE]->number,
        .seed = seed,
    };
    if (spec.window) {
        spec.window_left = at[KEY_WINDOW]->integer;
        /* Causal cuts a window's right end to 0, given or not: one problem, one record of it. */
        spec.window_right = spec.causal != CAUSAL_NONE ? 0 : at[KEY_WINDOW]->second;
    }
    follow_sizes(at, &spec);
    return spec;
}
