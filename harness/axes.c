/* SPDX-License-Identifier: Apache-2.0
 *
 * What a sweep varies: flags over the sweep's keys over the config's defaults over the built-in ones, and what a model
 * preset or --decode puts in their place.
 */
#include <math.h>
#include <string.h>

#include "models.h"
#include "request.h"

/* Contract's defaults. KEY_RULE ... KEY_KERNEL; a kernel that is not named has none. */
static const struct value built_in[KEY_AXES] = {
    [KEY_RULE] = {.integer = ATTN_SCALED_DOT_PRODUCT},
    [KEY_B] = {.integer = 1},
    [KEY_H] = {.integer = 1},
    [KEY_KV_HEADS] = {.integer = FOLLOW},
    [KEY_S] = {.integer = 512},
    [KEY_Q_LEN] = {.integer = FOLLOW},
    [KEY_KV_LEN] = {.integer = FOLLOW},
    [KEY_D] = {.integer = FOLLOW},
    [KEY_VALUE_DIM] = {.integer = FOLLOW},
    [KEY_QUERY_DIM] = {.integer = FOLLOW},
    [KEY_KEY_DIM] = {.integer = FOLLOW},
    [KEY_HIDDEN] = {.integer = 64},
    [KEY_INPUT_DIM] = {.integer = FOLLOW},
    [KEY_MODEL_DIM] = {.integer = FOLLOW},
    [KEY_MODEL_DIM_V] = {.integer = FOLLOW},
    [KEY_OUT_DIM] = {.integer = FOLLOW},
    [KEY_M] = {.integer = 512},
    [KEY_N] = {.integer = 512},
    [KEY_K] = {.integer = 512},
    [KEY_BROADCAST] = {.integer = BROADCAST_NONE},
    [KEY_SEMANTICS] = {.integer = SEMANTICS_MATMUL},
    [KEY_DTYPE] = {.integer = ATTN_F32},
    [KEY_CAUSAL] = {.integer = CAUSAL_NONE},
    [KEY_KV_LENGTHS] = {.text = "full"},
    [KEY_MASK] = {.number = -1},
    [KEY_SOFTCAP] = {.number = 0},
    [KEY_SCALE] = {.number = NAN},
    [KEY_LAYOUT] = {.integer = LAYOUT_BHSD},
    [KEY_ALIAS] = {.integer = ALIAS_NONE},
    [KEY_FILL] = {.integer = FILL_NORMAL},
    [KEY_CACHE] = {.integer = CACHE_WARM},
    [KEY_THREADS] = {.integer = THREADS_OF_PLACEMENT},
    [KEY_PLACE] = {.text = "compact"},
    [KEY_MEM] = {.text = "local"},
    [KEY_SCHEDULE] = {.text = "auto"},
};

const struct value *axes_built_in(enum key_id id)
{
    return &built_in[id];
}

size_t request_sweeps(const struct request *request)
{
    return request->has_config ? request->config.sweep_count : 1;
}

void axes_merge(const struct request *request, size_t sweep, struct axes *merged)
{
    const struct key_values *layers[RANK_FLAGS + 1] = {[RANK_FLAGS] = &request->flags};
    if (request->has_config) {
        layers[RANK_DEFAULTS] = &request->config.defaults;
        layers[RANK_SWEEP] = &request->config.sweeps[sweep].values;
    }
    *merged = (struct axes){0};
    for (int id = 0; id < KEY_AXES; id++)
        for (int rank = RANK_DEFAULTS; rank <= RANK_FLAGS; rank++)
            if (layers[rank] && layers[rank]->lists[id].count)
                merged->axis[id] =
                    (struct axis){layers[rank]->lists[id].items, layers[rank]->lists[id].count, (enum axis_rank)rank};
}

struct key_scope axes_scope(const struct axes *axes)
{
    const struct axis *rules = &axes->axis[KEY_RULE], *combine = &axes->axis[KEY_COMBINE];
    const struct axis *single = &axes->axis[KEY_NO_MHA];
    struct key_scope scope = {.heads = single->count == 0};
    for (size_t i = 0; i < rules->count; i++)
        scope.rules |= ATTN_BIT(rules->items[i].integer);
    if (rules->count == 0)
        scope.rules = ATTN_BIT(built_in[KEY_RULE].integer);
    for (size_t i = 0; i < combine->count; i++)
        scope.combine |= combine->items[i].integer != 0;
    for (size_t i = 0; i < single->count; i++)
        scope.heads |= single->items[i].integer == 0;
    return scope;
}

/* Puts one value in the place of an axis, unless that was given in the same layer as the preset or above. */
static void preset(struct axes *axes, enum key_id id, enum axis_rank rank, struct value value)
{
    if (axes->axis[id].count && axes->axis[id].rank >= rank)
        return;
    axes->preset[id] = value;
    axes->axis[id] = (struct axis){&axes->preset[id], 1, rank};
}

static void preset_model(struct axes *axes, const struct model *model, enum axis_rank rank)
{
    preset(axes, KEY_H, rank, (struct value){.integer = model->H});
    preset(axes, KEY_KV_HEADS, rank, (struct value){.integer = model->H_kv == model->H ? FOLLOW : model->H_kv});
    preset(axes, KEY_D, rank, (struct value){.integer = model->D});
    preset(axes, KEY_VALUE_DIM, rank, (struct value){.integer = model->D_v == model->D ? FOLLOW : model->D_v});
    preset(axes, KEY_S, rank, (struct value){.integer = model->S});
    preset(axes, KEY_CAUSAL, rank, (struct value){.integer = model->causal});
    preset(axes, KEY_WINDOW, rank,
           (struct value){.number = model->window > 0, .integer = model->window, .second = WINDOW_NOT_GIVEN});
    preset(axes, KEY_SOFTCAP, rank, (struct value){.number = model->softcap});
    preset(axes, KEY_SCALE, rank, (struct value){.number = model->scale > 0 ? model->scale : NAN});
    preset(axes, KEY_BIAS, rank, (struct value){.integer = model->bias});
}

int axes_variant(const struct axes *merged, const struct value *model, const struct value *decode, struct axes *variant,
                 struct error *error)
{
    *variant = *merged;
    const struct model *sizes = model ? model_find(model->text) : NULL;
    if (sizes)
        preset_model(variant, sizes, merged->axis[KEY_MODEL].rank);
    struct axis *axis = variant->axis;
    /* -S sets both lengths, -D both dimensions: those of a layer below it no longer hold. */
    for (int id = KEY_Q_LEN; id <= KEY_KV_LEN; id++)
        if (axis[id].rank < axis[KEY_S].rank)
            axis[id].count = 0;
    for (int id = KEY_QUERY_DIM; id <= KEY_KEY_DIM; id++)
        if (axis[id].rank < axis[KEY_D].rank)
            axis[id].count = 0;
    if (decode && decode->integer) {
        if (sizes && !sizes->decodes)
            return error_usage(error, "%s: %s has no decode phase", decode->where, sizes->name);
        enum axis_rank rank = merged->axis[KEY_DECODE].rank;
        preset(variant, KEY_Q_LEN, rank, (struct value){.integer = 1});
        preset(variant, KEY_CAUSAL, rank, (struct value){.integer = CAUSAL_BOTTOM_RIGHT});
    }
    if (axis[KEY_Q_LEN].count && axis[KEY_KV_LEN].count && !(axes_scope(variant).rules & ATTN_BIT(ATTN_SELF_ATTENTION)))
        axis[KEY_S].count = 0;
    for (int id = 0; id < KEY_KERNEL; id++)
        if (!axis[id].count)
            axis[id] = (struct axis){&built_in[id], 1, RANK_BUILT_IN};
    return 0;
}
