/* SPDX-License-Identifier: Apache-2.0
 *
 * Problems as asked for: defaults, what is refused, and how they resolve to what kernels see; see spec.h.
 */
#include "spec.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fill.h"
#include "intern.h"
#include "spec_sizes.h"

/* Sizes and element counts stay far enough below 2^63 that byte offsets of any tensor fit into int64_t. */
#define LARGEST_SIZE (INT64_C(1) << 40)
#define LARGEST_BATCH (INT64_C(1) << 24) /* lengths and diagonals are held per entry */
#define LARGEST_TENSOR 0x1p56

struct problem_spec spec_default(void)
{
    return (struct problem_spec){
        .B = 1,
        .H = 1,
        .H_kv = 1,
        .S_q = 512,
        .S_kv = 512,
        .D = 64,
        .D_v = 64,
        .kv_lengths = intern("full"),
        .mask_share = -1,
        .scale = NAN,
        .seed = 1,
    };
}

double spec_scale(const struct problem_spec *spec)
{
    if (!rule_has_scale(spec->rule))
        return 1;
    return isnan(spec->scale) ? 1 / sqrt((double)spec->D) : spec->scale;
}

/* Entry b of a list "N:N:..."; -1 where it has no such entry or it is not a number. */
static int64_t listed_length(const char *list, int64_t b)
{
    for (; b > 0; b--) {
        list = strchr(list, ':');
        if (!list)
            return -1;
        list++;
    }
    if (*list < '0' || *list > '9')
        return -1;
    char *end;
    errno = 0;
    long long length = strtoll(list, &end, 10);
    return errno || (*end && *end != ':') ? -1 : length;
}

static int64_t listed_count(const char *list)
{
    int64_t count = 1;
    for (; *list; list++)
        count += *list == ':';
    return count;
}

static int check_size(const char *name, int64_t value, bool zero_ok, struct error *error)
{
    if (value < (zero_ok ? 0 : 1))
        return error_usage(error, "%s %" PRId64 " is less than %d", name, value, zero_ok ? 0 : 1);
    if (value > LARGEST_SIZE)
        return error_usage(error, "%s %" PRId64 " is larger than %" PRId64, name, value, LARGEST_SIZE);
    return 0;
}

/* Elements of the largest tensor, those between the steps of a layer included. */
static double largest_tensor(const struct problem_spec *s)
{
    double B = (double)s->B, S_q = (double)s->S_q, S_kv = (double)s->S_kv, D = (double)s->D, D_v = (double)s->D_v;
    double heads = (double)s->H, wide = fmax(D, D_v), rows = B * heads * S_q, keys = B * (double)s->H_kv * S_kv;
    double largest = fmax(rows, keys) * wide;
    if (s->weights || s->bias || s->mask_share >= 0)
        largest = fmax(largest, rows * S_kv);
    double model = fmax(fmax((double)s->model_dim, (double)s->model_dim_v), (double)s->input_dim);
    switch (s->rule) {
    case ATTN_SCALED_DOT_PRODUCT:
        return largest;
    case ATTN_ADDITIVE:
        largest = fmax(largest, fmax(rows, keys) * fmax((double)s->hidden, (double)s->key_dim));
        return fmax(largest, (double)s->hidden * (D + (double)s->key_dim));
    case ATTN_CONCAT:
        largest = fmax(largest, fmax(rows, S_kv) * (D + (double)s->key_dim));
        return fmax(largest, fmax(rows, D + D_v) * (double)s->out_dim);
    case ATTN_MULTI_HEAD:
    case ATTN_SELF_ATTENTION:
        largest = fmax(largest, B * fmax(S_q, S_kv) * fmax(model, (double)s->out_dim));
        return fmax(largest, fmax(heads * wide, model) * fmax(model, (double)s->out_dim));
    case ATTN_MATMUL:
        return fmax(largest, s->semantics == SEMANTICS_DOT ? rows * B * D_v : 0);
    }
    return largest;
}

static int validate_sizes(const struct problem_spec *s, bool zero_ok, struct error *error)
{
    const bool matmul = s->rule == ATTN_MATMUL, projected = s->rule == ATTN_ADDITIVE || s->rule == ATTN_CONCAT;
    const struct {
        const char *name;
        int64_t value;
        bool present, zero_ok;
    } sizes[] = {
        {"B", s->B, true, zero_ok},
        {"H", s->H, true, false},
        {"kv-heads", s->H_kv, !matmul, false},
        {"q-len", s->S_q, !matmul, zero_ok},
        {"M", s->S_q, matmul, zero_ok},
        {"kv-len", s->S_kv, !matmul, zero_ok},
        {"D", s->D, !matmul && !projected, false},
        {"value-dim", s->D_v, !matmul, false},
    };
    int code = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] && !code; i++)
        if (sizes[i].present)
            code = check_size(sizes[i].name, sizes[i].value, sizes[i].zero_ok, error);
    for (int i = 0; i < spec_sizes_count && !code; i++)
        if (spec_has_size(s, &spec_sizes[i]) && strcmp(spec_sizes[i].flag, "M") != 0)
            code = check_size(spec_sizes[i].flag, spec_size_value(s, &spec_sizes[i]), false, error);
    if (code)
        return code;
    if (s->B > LARGEST_BATCH)
        return error_usage(error, "B %" PRId64 " is larger than %" PRId64, s->B, LARGEST_BATCH);
    if (!matmul && s->H % s->H_kv)
        return error_usage(error, "H %" PRId64 " is not a multiple of kv-heads %" PRId64, s->H, s->H_kv);
    double largest = largest_tensor(s);
    if (largest > LARGEST_TENSOR)
        return error_usage(error, "a tensor of %.3g elements is more than can be addressed", largest);
    return 0;
}

static int validate_kv_lengths(const struct problem_spec *s, struct error *error)
{
    if (strcmp(s->kv_lengths, "full") == 0 || strcmp(s->kv_lengths, "ragged") == 0)
        return 0;
    int64_t count = listed_count(s->kv_lengths);
    if (count != s->B)
        return error_usage(error, "kv-lengths %s has %" PRId64 " numbers for B %" PRId64, s->kv_lengths, count, s->B);
    for (int64_t b = 0; b < count; b++) {
        int64_t length = listed_length(s->kv_lengths, b);
        if (length < 0)
            return error_usage(error, "kv-lengths %s: entry %" PRId64 " is not a number", s->kv_lengths, b + 1);
        if (length > s->S_kv)
            return error_usage(error, "kv-lengths %s: %" PRId64 " is more than kv-len %" PRId64, s->kv_lengths, length,
                               s->S_kv);
    }
    return 0;
}

static int validate_window(const struct problem_spec *s, struct error *error)
{
    if (!s->window)
        return 0;
    if (s->window_right == WINDOW_NOT_GIVEN && s->causal == CAUSAL_NONE)
        return error_usage(error, "window %" PRId64 " has one number, which needs causal; without it give L:R",
                           s->window_left);
    if (s->window_left < WINDOW_OPEN)
        return error_usage(error, "window: left %" PRId64 " is less than 0 (-1 is open)", s->window_left);
    if (s->window_right < WINDOW_OPEN && s->window_right != WINDOW_NOT_GIVEN)
        return error_usage(error, "window: right %" PRId64 " is less than 0 (-1 is open)", s->window_right);
    return 0;
}

/* What a rule does not have, by the names of the flags. */
static int validate_traits(const struct problem_spec *s, struct error *error)
{
    const bool matmul = s->rule == ATTN_MATMUL, concat = s->rule == ATTN_CONCAT;
    const struct {
        const char *name;
        bool asked, refused;
    } traits[] = {
        {"causal", s->causal != CAUSAL_NONE, matmul},
        {"kv-lengths", strcmp(s->kv_lengths, "full") != 0, matmul},
        {"mask", s->mask_share >= 0, matmul},
        {"window", s->window, matmul},
        {"weights", s->weights, matmul},
        {"bias", s->bias, matmul || concat},
        {"softcap", s->softcap > 0, !rule_has_scale(s->rule)},
        {"scale", !isnan(s->scale), !rule_has_scale(s->rule)},
        {"alias", s->alias != ALIAS_NONE, matmul || concat || s->rule == ATTN_SELF_ATTENTION},
        {"broadcast", s->broadcast != BROADCAST_NONE, !matmul},
        {"semantics dot", s->semantics != SEMANTICS_MATMUL, !matmul},
    };
    for (size_t i = 0; i < sizeof traits / sizeof traits[0]; i++)
        if (traits[i].asked && traits[i].refused)
            return error_usage(error, "rule %s has no %s", rule_name(s->rule), traits[i].name);
    for (int i = 0; i < spec_switches_count; i++)
        if (spec_switch_value(s, &spec_switches[i]) && !spec_has_switch(s, &spec_switches[i]))
            return error_usage(error, "rule %s has no %s", rule_name(s->rule), spec_switches[i].flag);
    return 0;
}

/* What an alias makes one buffer has one shape. */
static int validate_alias(const struct problem_spec *s, struct error *error)
{
    if (s->alias == ALIAS_NONE)
        return 0;
    const bool layer = s->rule == ATTN_MULTI_HEAD, additive = s->rule == ATTN_ADDITIVE, all = s->alias == ALIAS_QKV;
    const char *name = alias_name(s->alias), *const k_name = layer ? "model-dim" : additive ? "key-dim" : "D";
    const char *v_name = layer ? "model-dim-v" : "value-dim";
    int64_t k = layer ? s->model_dim : additive ? s->key_dim : s->D, v = layer ? s->model_dim_v : s->D_v;
    if (k != v)
        return error_usage(error, "alias %s needs %s = %s, not %" PRId64 " and %" PRId64, name, v_name, k_name, v, k);
    if (all && additive && s->D != s->key_dim)
        return error_usage(error, "alias qkv needs query-dim = key-dim, not %" PRId64 " and %" PRId64, s->D,
                           s->key_dim);
    if (all && !layer && s->H != s->H_kv)
        return error_usage(error, "alias qkv needs kv-heads = H, not %" PRId64 " and %" PRId64, s->H_kv, s->H);
    if (all && s->S_q != s->S_kv)
        return error_usage(error, "alias qkv needs q-len = kv-len, not %" PRId64 " and %" PRId64, s->S_q, s->S_kv);
    return 0;
}

static int must_equal(const char *why, const char *name, int64_t value, const char *other, int64_t wanted,
                      struct error *error)
{
    return value == wanted
               ? 0
               : error_usage(error, "%s needs %s = %s, not %" PRId64 " and %" PRId64, why, name, other, value, wanted);
}

/* Sizes that a rule ties to each other. */
static int validate_ties(const struct problem_spec *s, struct error *error)
{
    int code = 0;
    if (s->rule == ATTN_CONCAT)
        return must_equal("concat", "kv-heads", s->H_kv, "H", s->H, error);
    if (s->rule == ATTN_MATMUL && s->semantics == SEMANTICS_DOT) {
        if (s->broadcast != BROADCAST_NONE)
            return error_usage(error, "semantics dot broadcasts nothing: broadcast %s", broadcast_name(s->broadcast));
        return must_equal("semantics dot", "H", s->H, "1", 1, error);
    }
    if (s->rule != ATTN_SELF_ATTENTION)
        return 0;
    if ((code = must_equal("self_attention", "q-len", s->S_q, "kv-len", s->S_kv, error)) || !s->single)
        return code;
    if ((code = must_equal("no-mha", "H", s->H, "1", 1, error)) ||
        (code = must_equal("no-mha", "D", s->D, "model-dim", s->model_dim, error)))
        return code;
    return must_equal("no-mha", "value-dim", s->D_v, "model-dim-v", s->model_dim_v, error);
}

int spec_validate(const struct problem_spec *s, bool zero_ok, struct error *error)
{
    int code = validate_traits(s, error);
    if (!code)
        code = validate_sizes(s, zero_ok, error);
    if (!code)
        code = validate_ties(s, error);
    if (!code)
        code = validate_kv_lengths(s, error);
    if (!code)
        code = validate_window(s, error);
    if (code)
        return code;
    char text[32];
    if (s->mask_share > 1 || isnan(s->mask_share))
        return error_usage(error, "mask random:%s: the share of true is between 0 and 1",
                           number_text(s->mask_share, text));
    /* Kernels see both as float. */
    if (!(s->softcap >= 0) || isinf((float)s->softcap) || (s->softcap > 0 && (float)s->softcap == 0))
        return error_usage(error, "softcap %s is not 0 (none) or a positive float", number_text(s->softcap, text));
    if (isinf((float)s->scale))
        return error_usage(error, "scale %s is not a finite float", number_text(s->scale, text));
    return validate_alias(s, error);
}

static int64_t valid_length(const struct problem_spec *spec, int64_t b)
{
    if (strcmp(spec->kv_lengths, "full") == 0)
        return spec->S_kv;
    if (strcmp(spec->kv_lengths, "ragged") != 0)
        return listed_length(spec->kv_lengths, b);
    if (spec->S_kv == 0)
        return 0;
    return 1 + (int64_t)(fill_bits(spec->seed, 0, FILL_KV_LENGTHS, (uint64_t)b) % (uint64_t)spec->S_kv);
}

/* dot: every row of a meets each of the B matrices of b, which thereby are heads. */
static void matmul_problem(const struct problem_spec *spec, struct attn_problem *problem)
{
    const bool dot = spec->semantics == SEMANTICS_DOT;
    problem->B = dot ? 1 : spec->B;
    problem->H = problem->H_kv = dot ? spec->B : spec->H;
    problem->S_q = dot ? spec->B * spec->S_q : spec->S_q;
    problem->S_kv = spec->D_v;
    problem->left = problem->right = INT64_MAX;
    problem->kv_len = problem->diag = NULL;
}

static uint32_t problem_flags(const struct problem_spec *spec)
{
    return (spec->weights ? ATTN_FLAG_WEIGHTS : 0) | (spec->alias != ALIAS_NONE ? ATTN_FLAG_ALIASED : 0) |
           (spec->combine ? ATTN_FLAG_COMBINE : 0) | (spec->single ? ATTN_FLAG_SINGLE : 0);
}

void spec_problem(const struct problem_spec *spec, int64_t *kv_len, int64_t *diag, struct attn_problem *problem)
{
    bool all_full = true, all_zero = true;
    for (int64_t b = 0; b < spec->B; b++) {
        kv_len[b] = valid_length(spec, b);
        switch (spec->causal) {
        case CAUSAL_NONE:
        case CAUSAL_TOP_LEFT:
            diag[b] = 0;
            break;
        case CAUSAL_BOTTOM_RIGHT:
            diag[b] = spec->S_kv - spec->S_q;
            break;
        case CAUSAL_BOTTOM_RIGHT_VALID:
            diag[b] = kv_len[b] - spec->S_q;
            break;
        }
        all_full = all_full && kv_len[b] == spec->S_kv;
        all_zero = all_zero && diag[b] == 0;
    }
    bool left_open = !spec->window || spec->window_left == WINDOW_OPEN;
    bool right_open = !spec->window || spec->window_right == WINDOW_OPEN;
    /* A window's right end lies at or beyond the diagonal, so causal always cuts it to 0. */
    int64_t right = spec->causal != CAUSAL_NONE ? 0 : right_open ? INT64_MAX : spec->window_right;
    *problem = (struct attn_problem){
        .struct_size = sizeof *problem,
        .rule = spec->rule,
        .dtype = spec->dtype,
        .flags = problem_flags(spec),
        .B = spec->B,
        .H = spec->H,
        .H_kv = spec->H_kv,
        .S_q = spec->S_q,
        .S_kv = spec->S_kv,
        .D = spec->D,
        .D_v = spec->D_v,
        .hidden = spec->hidden,
        .key_dim = spec->key_dim,
        .out_dim = spec->out_dim,
        .model_dim = spec->model_dim,
        .model_dim_v = spec->model_dim_v,
        .input_dim = spec->input_dim,
        .left = left_open ? INT64_MAX : spec->window_left,
        .right = right,
        .scale = (float)spec_scale(spec),
        .softcap = (float)spec->softcap,
        .kv_len = all_full ? NULL : kv_len,
        .diag = all_zero ? NULL : diag,
    };
    if (spec->rule == ATTN_MATMUL)
        matmul_problem(spec, problem);
}
