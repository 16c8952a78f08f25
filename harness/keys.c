/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of sweep keys, and how lists split into values; see keys.h. How each kind of value reads: key_readers.c.
 */
#include "keys.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "../kernels/attn.h"
#include "intern.h"
#include "key_readers.h"
#include "spec.h"

#define SDP ATTN_BIT(ATTN_SCALED_DOT_PRODUCT)
#define ADDITIVE ATTN_BIT(ATTN_ADDITIVE)
#define CONCAT ATTN_BIT(ATTN_CONCAT)
#define MULTI_HEAD ATTN_BIT(ATTN_MULTI_HEAD)
#define SELF ATTN_BIT(ATTN_SELF_ATTENTION)
#define MATMUL ATTN_BIT(ATTN_MATMUL)
#define LAYERS (MULTI_HEAD | SELF)
#define ATTENTION (SDP | ADDITIVE | CONCAT | LAYERS)
#define ALL (ATTENTION | MATMUL)

const struct key keys[KEY_COUNT] = {
    [KEY_RULE] = {"rule", KEY_GROUP_PROBLEM, "NAME", "How scores are made (list rules)", ALL, read_rule,
                  rule_from_name},
    [KEY_MODEL] = {"model", KEY_GROUP_PROBLEM, "NAME", "Sizes of a published model (list models)", SDP, read_model,
                   NULL},
    [KEY_DECODE] = {"decode", KEY_GROUP_PROBLEM, NULL,
                    "One new query against the cached keys: q-len 1, causal bottom_right", SDP, read_boolean, NULL},
    [KEY_B] = {"B", KEY_GROUP_PROBLEM, "N", "Batch entries (1)", ALL, read_size, NULL},
    [KEY_H] = {"H", KEY_GROUP_PROBLEM, "N", "Query heads; matmul: a second batch dimension (1)", ALL, read_positive,
               NULL},
    [KEY_KV_HEADS] = {"kv-heads", KEY_GROUP_PROBLEM, "N", "Key heads, a divisor of H (H)", SDP | ADDITIVE | LAYERS,
                      read_positive, NULL},
    [KEY_S] = {"S", KEY_GROUP_PROBLEM, "N", "Sequence length, of queries and keys (512)", ATTENTION, read_size, NULL},
    [KEY_Q_LEN] = {"q-len", KEY_GROUP_PROBLEM, "N", "Number of queries (S)", ATTENTION & ~SELF, read_size, NULL},
    [KEY_KV_LEN] = {"kv-len", KEY_GROUP_PROBLEM, "N", "Number of keys; concat: of value positions (S)",
                    ATTENTION & ~SELF, read_size, NULL},
    [KEY_D] = {"D", KEY_GROUP_PROBLEM, "N", "Query and key dimension, of one head (64)", ATTENTION, read_positive,
               NULL},
    [KEY_VALUE_DIM] = {"value-dim", KEY_GROUP_PROBLEM, "N", "Value dimension, of one head (D)", ATTENTION,
                       read_positive, NULL},
    [KEY_QUERY_DIM] = {"query-dim", KEY_GROUP_PROBLEM, "N", "additive, concat: query dimension (D)", ADDITIVE | CONCAT,
                       read_positive, NULL},
    [KEY_KEY_DIM] = {"key-dim", KEY_GROUP_PROBLEM, "N", "additive, concat: key dimension (D)", ADDITIVE | CONCAT,
                     read_positive, NULL},
    [KEY_HIDDEN] = {"hidden", KEY_GROUP_PROBLEM, "N", "additive: hidden units of the score network (64)", ADDITIVE,
                    read_positive, NULL},
    [KEY_PLAIN_SUM] = {"plain-sum", KEY_GROUP_PROBLEM, NULL, "additive: hidden units are added up without weights u",
                       ADDITIVE, read_boolean, NULL},
    [KEY_COMBINE] = {"combine", KEY_GROUP_PROBLEM, NULL, "concat: query and result go through a layer", CONCAT,
                     read_boolean, NULL},
    [KEY_NO_MHA] = {"no-mha", KEY_GROUP_PROBLEM, NULL,
                    "self_attention: one head of model-dim and model-dim-v, no further projections", SELF, read_boolean,
                    NULL},
    [KEY_INPUT_DIM] = {"input-dim", KEY_GROUP_PROBLEM, "N", "self_attention: width of x (model-dim)", SELF,
                       read_positive, NULL},
    [KEY_MODEL_DIM] = {"model-dim", KEY_GROUP_PROBLEM, "N",
                       "Layers: width of queries and keys before the heads (H*D; no-mha: 64)", LAYERS, read_positive,
                       NULL},
    [KEY_MODEL_DIM_V] = {"model-dim-v", KEY_GROUP_PROBLEM, "N", "Layers: width of values before the heads (model-dim)",
                         LAYERS, read_positive, NULL},
    [KEY_OUT_DIM] = {"out-dim", KEY_GROUP_PROBLEM, "N",
                     "Width of the output: layers (model-dim), concat with combine (value-dim)", LAYERS | CONCAT,
                     read_positive, NULL},
    [KEY_M] = {"M", KEY_GROUP_PROBLEM, "N", "matmul: rows of a and of the product (512)", MATMUL, read_positive, NULL},
    [KEY_N] = {"N", KEY_GROUP_PROBLEM, "N", "matmul: columns of b and of the product (512)", MATMUL, read_positive,
               NULL},
    [KEY_K] = {"K", KEY_GROUP_PROBLEM, "N", "matmul: columns of a, rows of b (512)", MATMUL, read_positive, NULL},
    [KEY_BROADCAST] = {"broadcast", KEY_GROUP_PROBLEM, "none,a,b",
                       "matmul: the operand that all of the batch shares (none)", MATMUL, read_name,
                       broadcast_from_name},
    [KEY_SEMANTICS] = {"semantics", KEY_GROUP_PROBLEM, "matmul,dot",
                       "matmul; dot: as numpy.dot, each matrix of a by each of b (matmul)", MATMUL, read_name,
                       semantics_from_name},
    [KEY_DTYPE] = {"dtype", KEY_GROUP_SEMANTICS, "f32,bf16,f16", "Element type of q, k, v and out (f32)", ALL,
                   read_name, dtype_from_name},
    [KEY_CAUSAL] = {"causal", KEY_GROUP_SEMANTICS, "none,top_left,bottom_right,bottom_right_valid",
                    "Future mask, and where its diagonal stands (none)", ATTENTION, read_name, causal_from_name},
    [KEY_KV_LENGTHS] = {"kv-lengths", KEY_GROUP_SEMANTICS, "full,ragged,N:N:...",
                        "Valid keys of each batch entry; ragged: drawn from the seed (full)", ATTENTION,
                        read_kv_lengths, NULL},
    [KEY_MASK] = {"mask", KEY_GROUP_SEMANTICS, "none,random:P",
                  "Boolean mask [B,1,S_q,S_kv], share P may attend (none)", ATTENTION, read_mask, NULL},
    [KEY_BIAS] = {"bias", KEY_GROUP_SEMANTICS, NULL, "Additive f32 bias [1,H,S_q,S_kv] from N(0,1)",
                  ATTENTION & ~CONCAT, read_boolean, NULL},
    [KEY_WINDOW] = {"window", KEY_GROUP_SEMANTICS, "none,L[:R]",
                    "Sliding window: L keys up to the diagonal's, R beyond; -1: open (none)", ATTENTION, read_window,
                    NULL},
    [KEY_SOFTCAP] = {"softcap", KEY_GROUP_SEMANTICS, "none,X", "Scores become X tanh(score / X) (none)", SDP | LAYERS,
                     read_softcap, NULL},
    [KEY_SCALE] = {"scale", KEY_GROUP_SEMANTICS, "default,X", "Factor of q.k (1/sqrt(D))", SDP | LAYERS, read_scale,
                   NULL},
    [KEY_LAYOUT] = {"layout", KEY_GROUP_DATA, "BHSD,BSHD,HBSD",
                    "Memory order; layers: HBSD copies heads together, the others leave them strided (BHSD)", ATTENTION,
                    read_name, layout_from_name},
    [KEY_ALIAS] = {"alias", KEY_GROUP_DATA, "none,kv,qkv", "k and v, or all three, are one buffer (none)",
                   SDP | ADDITIVE | MULTI_HEAD, read_name, alias_from_name},
    [KEY_WEIGHTS] = {"weights", KEY_GROUP_SEMANTICS, NULL, "Attention weights are returned and verified too", ATTENTION,
                     read_boolean, NULL},
    [KEY_FILL] = {"fill", KEY_GROUP_DATA, "normal,huge,equal,dominant,subnormal", "Input data (normal)", ALL, read_name,
                  fill_from_name},
    [KEY_CACHE] = {"cache", KEY_GROUP_DATA, "warm,cold", "cold: no call meets its inputs in a cache (warm)", ALL,
                   read_name, cache_from_name},
    [KEY_THREADS] = {"threads", KEY_GROUP_RUN, "N,max", "Threads (max)", ALL, read_threads, NULL},
    [KEY_PLACE] = {"place", KEY_GROUP_RUN, "PLACE",
                   "Where threads are bound: a name, ladder, or 0,2-5 (compact; list placements)", ALL, read_text,
                   NULL},
    [KEY_MEM] = {"mem", KEY_GROUP_RUN, "local,interleave,node:I",
                 "NUMA nodes of the memory: the toucher's own, all in turn, or one (local)", ALL, read_mem, NULL},
    [KEY_SCHEDULE] = {"schedule", KEY_GROUP_RUN, "NAME", "How work is spread over threads (auto; list schedules)", ALL,
                      read_schedule, NULL},
    [KEY_KERNEL] = {"kernel", KEY_GROUP_RUN, "GLOB", "Kernels, by name or pattern (every one; list kernels)", ALL,
                    read_text, NULL},
    [KEY_SEED] = {"seed", KEY_GROUP_DATA, "N", "Every random choice follows from it (1)", ALL, read_seed, NULL},
    [KEY_MIN_TIME] = {"min-time", KEY_GROUP_EFFORT, "TIME", "Clocked time a point (0.5s)", ALL, read_duration, NULL},
    [KEY_SAMPLES] = {"samples", KEY_GROUP_EFFORT, "N", "Exact number of samples a point (as the interval needs)", ALL,
                     read_count, NULL},
    [KEY_MAX_TIME] = {"max-time", KEY_GROUP_EFFORT, "TIME", "Time of the whole run (no limit)", ALL, read_duration,
                      NULL},
    [KEY_LAUNCHES] = {"launches", KEY_GROUP_EFFORT, "N", "Fresh worker processes a point (1)", ALL, read_count, NULL},
    [KEY_QUICK_CHECK] = {"quick-check", KEY_GROUP_EFFORT, NULL, "Everything in under 10 s, marked as rough", ALL,
                         read_boolean, NULL},
    [KEY_POINT_TIMEOUT] = {"point-timeout", KEY_GROUP_RUN, "TIME", "A point that takes longer ends as failed (60s)",
                           ALL, read_duration, NULL},
    [KEY_MEMORY_LIMIT] = {"memory-limit", KEY_GROUP_RUN, "BYTES",
                          "Memory that a point may take, 500m, 4g (what is available)", ALL, read_bytes, NULL},
    [KEY_COUNTERS] = {"counters", KEY_GROUP_EFFORT, "none,perf:EVENT+EVENT,likwid:GROUP,energy",
                      "What is counted while a point is clocked (none; list counters)", ALL, read_counters, NULL},
    [KEY_PLUGIN] = {"plugin", KEY_GROUP_RUN, "FILE",
                    "Adds the kernels of a shared object, or of a program that speaks the peer protocol", ALL,
                    read_text, NULL},
};

void key_values_release(struct key_values *values)
{
    for (int id = 0; id < KEY_COUNT; id++)
        value_list_release(&values->lists[id]);
}

enum key_id key_find(const char *name)
{
    int id = 0;
    while (id < KEY_COUNT && strcmp(keys[id].name, name) != 0)
        id++;
    return (enum key_id)id;
}

const char *key_flag(enum key_id id)
{
    return intern_format("%s%s", keys[id].name[1] ? "--" : "-", keys[id].name);
}

bool key_is_single(enum key_id id)
{
    return id >= KEY_SEED && id != KEY_PLUGIN;
}

uint64_t key_rules(enum key_id id, const struct key_scope *scope)
{
    static const enum key_id of_heads[] = {KEY_H, KEY_KV_HEADS, KEY_D, KEY_VALUE_DIM, KEY_OUT_DIM, KEY_LAYOUT};
    uint64_t rules = keys[id].rules & scope->rules;
    for (size_t i = 0; i < sizeof of_heads / sizeof of_heads[0] && !scope->heads; i++)
        if (id == of_heads[i])
            rules &= ~SELF;
    return id == KEY_OUT_DIM && !scope->combine ? rules & ~CONCAT : rules;
}

/* Is this, up to end, a list of CPUs that may go on behind a comma: 0,2-5 or LIKWID's S0:0-3, L:N:0? Only the part
 * behind the last @ counts. */
static bool is_cpu_list(const char *item, const char *end)
{
    const char *part = item;
    for (const char *at = item; at < end; at++)
        if (*at == '@')
            part = at + 1;
    if (part[0] == 'L' && part[1] == ':')
        part += 2;
    if (*part && strchr("NSMCD", *part)) {
        part++;
        part += strspn(part, "0123456789");
        if (*part++ != ':')
            return false;
    }
    return part < end && strspn(part, "0123456789-,") >= (size_t)(end - part);
}

/* Whether the comma before next belongs to a list of CPUs rather than to the list of values. */
static bool joins(enum key_id id, const char *item, const char *next)
{
    return id == KEY_PLACE && isdigit((unsigned char)*next) && is_cpu_list(item, next - 1);
}

static int read_items(enum key_id id, char *text, const char *where, struct value_list *list, struct error *error)
{
    for (char *item = text, *next; item; item = next) {
        next = key_is_single(id) ? NULL : strchr(item, ',');
        while (next && joins(id, item, next + 1))
            next = strchr(next + 1, ',');
        if (next)
            *next++ = 0;
        if (!*item)
            return error_usage(error, "an empty value");
        int code = keys[id].read(&keys[id], item, where, list, error);
        if (code)
            return code;
    }
    return 0;
}

int key_read(enum key_id id, const char *text, const char *where, struct value_list *list, struct error *error)
{
    char *copy = strdup(text);
    if (!copy)
        abort();
    int code = read_items(id, copy, intern(where), list, error);
    free(copy);
    return code ? error_prefix(error, code, "%s", where) : 0;
}
