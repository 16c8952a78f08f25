/* SPDX-License-Identifier: Apache-2.0
 *
 * A problem as the user asks for it (spec) and a point of the sweep (spec x kernel x schedule x placement x cache
 * state), with their JSON forms: the field names are those of the results file.
 */
#ifndef HARNESS_SPEC_H
#define HARNESS_SPEC_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "../kernels/attn.h"
#include "error.h"

enum causal { CAUSAL_NONE, CAUSAL_TOP_LEFT, CAUSAL_BOTTOM_RIGHT, CAUSAL_BOTTOM_RIGHT_VALID };
enum layout { LAYOUT_BHSD, LAYOUT_BSHD, LAYOUT_HBSD };
enum alias { ALIAS_NONE, ALIAS_KV, ALIAS_QKV };
enum fill { FILL_NORMAL, FILL_HUGE, FILL_EQUAL, FILL_DOMINANT, FILL_SUBNORMAL };
enum cache_state { CACHE_WARM, CACHE_COLD };
enum broadcast { BROADCAST_NONE, BROADCAST_A, BROADCAST_B };
enum semantics { SEMANTICS_MATMUL, SEMANTICS_DOT };

/* Open end of a window; and a right end that was not given ("--window L": 0 with causal, a usage error without). */
#define WINDOW_OPEN INT64_C(-1)
#define WINDOW_NOT_GIVEN INT64_C(-2)

struct problem_spec {
    enum attn_rule rule;
    enum attn_dtype dtype;
    enum layout layout;
    enum causal causal;
    enum alias alias;
    enum fill fill;
    int64_t B, H, H_kv, S_q, S_kv, D, D_v;
    /* Sizes of the other rules, as in kernels/layers/layer.h; 0 where the rule has none. concat and additive: D is the
     * query dimension. matmul: M is S_q, K is D, N is D_v, and S_kv = D_v. */
    int64_t hidden, key_dim, out_dim, model_dim, model_dim_v, input_dim;
    bool combine;             /* concat: [q; applied] goes through a linear layer */
    bool plain_sum;           /* additive: no u, the tanh are added up */
    bool single;              /* self_attention without multi_head behind it */
    enum broadcast broadcast; /* matmul: the operand that all of the batch shares */
    enum semantics semantics; /* matmul; dot: numpy.dot of a [B][M][K] and b [B][K][N], out [B][M][B][N] */
    const char *kv_lengths;   /* interned: "full", "ragged" or "N:N:..." (B numbers) */
    double mask_share;        /* share of true in the random mask; < 0: no mask */
    bool bias;                /* N(0,1), [1,H,S_q,S_kv] */
    bool weights;             /* weights are returned too */
    bool window;              /* left and right below apply */
    int64_t window_left;      /* counts the diagonal key; WINDOW_OPEN: no limit */
    int64_t window_right;     /* WINDOW_OPEN: no limit; WINDOW_NOT_GIVEN */
    double softcap;           /* 0: none */
    double scale;             /* NaN: the default 1/sqrt(D) */
    uint64_t seed;            /* every random choice of this problem's data */
};

/* A spec with every default of the contract: B 1, H 1, H_kv 1, S 512, D 64, f32, BHSD, no masks, seed 1. */
struct problem_spec spec_default(void);

/* Refuses what no kernel could mean: H not a multiple of H_kv, D = 0, kv-lengths of the wrong count, one-sided window
 * without causal, aliases of different shapes, what the rule does not have ... zero_ok: zero B, S_q, S_kv are legal
 * (verify, cases). */
int spec_validate(const struct problem_spec *spec, bool zero_ok, struct error *error);

double spec_scale(const struct problem_spec *spec); /* the scale in force; 1 for rules that have none */

/* The JSON object of a spec: rule, dtype, layout, B, H, H_kv, S_q, S_kv, D, D_v, scale, causal, kv_lengths, mask, bias,
 * window, softcap, weights, alias, fill, seed, sizes (what the rule has by spec_sizes.h, broadcast and semantics of
 * matmul; null for scaled_dot_product). mask is null or "random:P", window null or "L:R"; layout is "none" for matmul,
 * scale null for rules that have none. */
json_t *spec_to_json(const struct problem_spec *spec);
int spec_from_json(const json_t *object, struct problem_spec *spec, struct error *error);

/* Resolves to what kernels see. kv_len and diag: arrays of B owned by the caller; the problem points to them (or holds
 * NULL where it is full length, zero diagonal). Draws ragged lengths (1..S_kv, from the seed). */
void spec_problem(const struct problem_spec *spec, int64_t *kv_len, int64_t *diag, struct attn_problem *problem);

/* Names as users type them; *_from_name return -1 for an unknown one. */
const char *rule_name(enum attn_rule rule);
const char *dtype_name(enum attn_dtype dtype);
const char *layout_name(enum layout layout);
const char *causal_name(enum causal causal);
const char *alias_name(enum alias alias);
const char *fill_name(enum fill fill);
const char *cache_name(enum cache_state cache);
const char *broadcast_name(enum broadcast broadcast);
const char *semantics_name(enum semantics semantics);
int rule_from_name(const char *name);
int dtype_from_name(const char *name);
int layout_from_name(const char *name);
int causal_from_name(const char *name);
int alias_from_name(const char *name);
int fill_from_name(const char *name);
int cache_from_name(const char *name);
int broadcast_from_name(const char *name);
int semantics_from_name(const char *name);
size_t dtype_bytes(enum attn_dtype dtype);

/* One record of the results: everything that the user asked for. Strings are interned. */
struct point {
    struct problem_spec spec;
    const char *kernel;
    const char *source;             /* "builtin", "plugin:FILE" */
    const char *schedule_requested; /* "serial", "bh", "bhq", "auto" ... */
    const char *placement;          /* as asked: "compact", "core:3", "0,2-5" */
    const char *mem;                /* "interleave", "node:1"; NULL: local, by first touch */
    int threads;                    /* resolved: max has become a number */
    enum cache_state cache;
    const char *skip_reason; /* NULL: can run */
    double tau;              /* the config's: what slowdown matters here, a share; 0: no word of it. Not in point_id */
    int32_t *cpus;           /* [threads] planned OS indices, thread order; NULL for placement none */
};

/* A digest of the problem alone: equal for the points that share one. */
uint64_t spec_digest(const struct problem_spec *spec);
/* A digest of every requested field, stable over runs and builds: what makes two points the same one. */
uint64_t point_digest(const struct point *point);
/* It as 16 hex digits, interned. */
const char *point_id(const struct point *point);

/* The number as short as it can be written so that it reads back the same. buffer: at least 32 bytes; returned. */
char *number_text(double number, char *buffer);

/* The flags that reproduce the point: "attnbench run -B 1 -H 12 ... --kernel avx512 --threads 2". malloc'd. */
char *point_repro(const struct point *point);

#endif
