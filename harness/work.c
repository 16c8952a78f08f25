/* SPDX-License-Identifier: Apache-2.0
 *
 * FLOPs and bytes of scaled dot-product attention in closed form, from the problem that kernels see; see work.h.
 */
#include "work.h"

#include <stdlib.h>
#include <string.h>

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

void work_count(const struct problem_spec *spec, struct work *work)
{
    /* Entries of equal length are alike: one stands for all. */
    struct problem_spec distinct = *spec;
    bool alike = strcmp(spec->kv_lengths, "full") == 0;
    if (alike && spec->B > 1)
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
    double B = (double)spec->B, H = (double)spec->H, H_kv = (double)spec->H_kv, S_q = (double)spec->S_q;
    double S_kv = (double)spec->S_kv, D = (double)spec->D, D_v = (double)spec->D_v;
    double element = (double)dtype_bytes(spec->dtype), entries = alike && spec->B > 1 ? B : 1;
    bool kv_shared = spec->alias != ALIAS_NONE, all_shared = spec->alias == ALIAS_QKV;
    /* Elements of a key row and its value row that are not somewhere else already. */
    double row = all_shared ? 0 : kv_shared ? D : D + D_v;
    double mask = spec->mask_share >= 0 ? B * S_q * S_kv : 0, bias = spec->bias ? 4 * H * S_q * S_kv : 0;
    double q = B * H * S_q * D * element;
    *work = (struct work){
        .pairs_useful = entries * (double)pairs * H,
        .pairs_dense = B * H * S_q * S_kv,
        .bytes_read = q + entries * (double)keys * H_kv * row * element + mask + bias,
        .bytes_written = B * H * S_q * D_v * element + (spec->weights ? 4 * B * H * S_q * S_kv : 0),
    };
    work->flops_useful = 2 * (D + D_v) * work->pairs_useful;
    work->flops_dense = 2 * (D + D_v) * work->pairs_dense;
    work->bytes_min = work->bytes_read + work->bytes_written;
    work->working_set = q + B * H_kv * S_kv * row * element + mask + bias + work->bytes_written;
}
