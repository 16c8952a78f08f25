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

static int validate_sizes(const struct problem_spec *s, bool zero_ok, struct error *error)
{
    const struct {
        const char *name;
        int64_t value;
        bool zero_ok;
    } sizes[] = {
        {"B", s->B, zero_ok},         {"H", s->H, false}, {"kv-heads", s->H_kv, false}, {"q-len", s->S_q, zero_ok},
        {"kv-len", s->S_kv, zero_ok}, {"D", s->D, false}, {"value-dim", s->D_v, false},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        if (sizes[i].value < (sizes[i].zero_ok ? 0 : 1))
            return error_usage(error, "%s %" PRId64 " is less than %d", sizes[i].name, sizes[i].value,
                               sizes[i].zero_ok ? 0 : 1);
        if (sizes[i].value > LARGEST_SIZE)
            return error_usage(error, "%s %" PRId64 " is larger than %" PRId64, sizes[i].name, sizes[i].value,
                               LARGEST_SIZE);
    }
    if (s->B > LARGEST_BATCH)
        return error_usage(error, "B %" PRId64 " is larger than %" PRId64, s->B, LARGEST_BATCH);
    if (s->H % s->H_kv)
        return error_usage(error, "H %" PRId64 " is not a multiple of kv-heads %" PRId64, s->H, s->H_kv);
    double rows = (double)s->B * (double)s->H * (double)s->S_q;
    double keys = (double)s->B * (double)s->H_kv * (double)s->S_kv;
    double largest =
        fmax(rows * (double)(s->D > s->D_v ? s->D : s->D_v), keys * (double)(s->D > s->D_v ? s->D : s->D_v));
    if (s->weights || s->bias || s->mask_share >= 0)
        largest = fmax(largest, rows * (double)s->S_kv);
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

int spec_validate(const struct problem_spec *s, bool zero_ok, struct error *error)
{
    int code = validate_sizes(s, zero_ok, error);
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
    if (s->alias != ALIAS_NONE && s->D != s->D_v)
        return error_usage(error, "alias %s needs value-dim = D, not %" PRId64 " and %" PRId64, alias_name(s->alias),
                           s->D_v, s->D);
    if (s->alias == ALIAS_QKV && s->H != s->H_kv)
        return error_usage(error, "alias qkv needs kv-heads = H, not %" PRId64 " and %" PRId64, s->H_kv, s->H);
    if (s->alias == ALIAS_QKV && s->S_q != s->S_kv)
        return error_usage(error, "alias qkv needs q-len = kv-len, not %" PRId64 " and %" PRId64, s->S_q, s->S_kv);
    return 0;
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
        .flags = (spec->weights ? ATTN_FLAG_WEIGHTS : 0) | (spec->alias != ALIAS_NONE ? ATTN_FLAG_ALIASED : 0),
        .B = spec->B,
        .H = spec->H,
        .H_kv = spec->H_kv,
        .S_q = spec->S_q,
        .S_kv = spec->S_kv,
        .D = spec->D,
        .D_v = spec->D_v,
        .left = left_open ? INT64_MAX : spec->window_left,
        .right = right,
        .scale = (float)spec_scale(spec),
        .softcap = (float)spec->softcap,
        .kv_len = all_full ? NULL : kv_len,
        .diag = all_zero ? NULL : diag,
    };
}
