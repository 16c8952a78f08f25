/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys against the rules that they are given for: a size or mask that no rule of a sweep knows is a mistake; see
 * request.h.
 */
#include "request.h"
#include "spec.h"

/* Why the scope's rules, of which there is one, do not know the key. */
static int unknown_key(enum key_id id, const struct value *value, const struct key_scope *scope, struct error *error)
{
    const char *where = value->where ? value->where : key_flag(id);
    int rule = 0;
    while (!(scope->rules & ATTN_BIT(rule)))
        rule++;
    if (scope->rules != ATTN_BIT(rule))
        return error_usage(error, "%s: none of the rules has %s", where, keys[id].name);
    const char *because = !(keys[id].rules & ATTN_BIT(rule)) ? ""
                          : rule == ATTN_CONCAT              ? " without combine"
                                                             : " with no-mha";
    return error_usage(error, "%s: rule %s%s has no %s", where, rule_name((enum attn_rule)rule), because,
                       keys[id].name);
}

static int check_layer(const struct key_values *layer, const struct key_scope *scope, struct error *error)
{
    for (int id = 0; id < KEY_AXES; id++) {
        const struct value_list *list = &layer->lists[id];
        if (list->count && !key_rules((enum key_id)id, scope))
            return unknown_key((enum key_id)id, &list->items[0], scope, error);
    }
    return 0;
}

static int check_presets(const struct axes *axes, const struct key_scope *scope, struct error *error)
{
    static const enum key_id presets[] = {KEY_MODEL, KEY_DECODE};
    for (size_t i = 0; i < sizeof presets / sizeof presets[0]; i++) {
        const struct axis *axis = &axes->axis[presets[i]];
        if (axis->count && (scope->rules & ~keys[presets[i]].rules))
            return error_usage(error, "%s: %s is for rule %s alone", axis->items[0].where, keys[presets[i]].name,
                               rule_name(ATTN_SCALED_DOT_PRODUCT));
    }
    return 0;
}

int request_check_keys(const struct request *request, struct error *error)
{
    struct key_scope all = {0};
    int code = 0;
    for (size_t s = 0; s < request_sweeps(request) && !code; s++) {
        struct axes axes;
        axes_merge(request, s, &axes);
        struct key_scope scope = axes_scope(&axes);
        all.rules |= scope.rules;
        all.combine |= scope.combine;
        all.heads |= scope.heads;
        code = check_presets(&axes, &scope, error);
        if (!code && request->has_config)
            code = check_layer(&request->config.sweeps[s].values, &scope, error);
    }
    if (!code && request->has_config)
        code = check_layer(&request->config.defaults, &all, error);
    return code ? code : check_layer(&request->flags, &all, error);
}
