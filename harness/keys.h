/* SPDX-License-Identifier: Apache-2.0
 *
 * The one table of sweep keys: what each flag and config key is called, what values it takes and how they read. The
 * command line, configs and the sweep all follow from it.
 */
#ifndef HARNESS_KEYS_H
#define HARNESS_KEYS_H

#include <stdbool.h>

#include "error.h"
#include "values.h"

/* Sweep axes first, in the order in which a sweep nests them (outermost first); then what holds for a whole run. */
enum key_id {
    KEY_RULE,
    KEY_MODEL,
    KEY_DECODE,
    KEY_B,
    KEY_H,
    KEY_KV_HEADS,
    KEY_S,
    KEY_Q_LEN,
    KEY_KV_LEN,
    KEY_D,
    KEY_VALUE_DIM,
    KEY_QUERY_DIM,
    KEY_KEY_DIM,
    KEY_HIDDEN,
    KEY_PLAIN_SUM,
    KEY_COMBINE,
    KEY_NO_MHA,
    KEY_INPUT_DIM,
    KEY_MODEL_DIM,
    KEY_MODEL_DIM_V,
    KEY_OUT_DIM,
    KEY_M,
    KEY_N,
    KEY_K,
    KEY_BROADCAST,
    KEY_SEMANTICS,
    KEY_DTYPE,
    KEY_CAUSAL,
    KEY_KV_LENGTHS,
    KEY_MASK,
    KEY_BIAS,
    KEY_WINDOW,
    KEY_SOFTCAP,
    KEY_SCALE,
    KEY_LAYOUT,
    KEY_ALIAS,
    KEY_WEIGHTS,
    KEY_FILL,
    KEY_CACHE,
    KEY_THREADS,
    KEY_PLACE,
    KEY_MEM,
    KEY_SCHEDULE,
    KEY_KERNEL,
    KEY_AXES, /* how many axes */
    KEY_SEED = KEY_AXES,
    KEY_MIN_TIME,
    KEY_SAMPLES,
    KEY_MAX_TIME,
    KEY_LAUNCHES,
    KEY_QUICK_CHECK,
    KEY_POINT_TIMEOUT,
    KEY_MEMORY_LIMIT,
    KEY_COUNTERS,
    KEY_PLUGIN,
    KEY_COUNT
};

/* Headings of --help; what belongs to KEY_GROUP_PROBLEM makes a sweep of its own. */
enum key_group { KEY_GROUP_PROBLEM = 1, KEY_GROUP_SEMANTICS, KEY_GROUP_DATA, KEY_GROUP_RUN, KEY_GROUP_EFFORT };

struct key {
    const char *name; /* flag --name and config key; one letter: flag -B */
    enum key_group group;
    const char *argument; /* as --help shows it; NULL: a switch, whose value is true or false */
    const char *help;
    uint64_t rules; /* ATTN_BIT of the rules that know it */
    /* Reads one item of a list (whole value where it takes only one) into the list. */
    int (*read)(const struct key *key, const char *item, const char *where, struct value_list *list,
                struct error *error);
    int (*from_name)(const char *); /* for enumerations */
};

extern const struct key keys[KEY_COUNT];

/* All values given, by key; an empty list: not given. */
struct key_values {
    struct value_list lists[KEY_COUNT];
};
void key_values_release(struct key_values *values);

/* The key of this name, or KEY_COUNT. */
enum key_id key_find(const char *name);

/* One letter: given as -B. Else as --name. Interned. */
const char *key_flag(enum key_id id);

/* Which rules a sweep has, each as it may stand with its switches. */
struct key_scope {
    uint64_t rules;      /* ATTN_BIT */
    bool combine, heads; /* concat with combine, self_attention without no-mha are among them */
};

/* Those of the scope's rules that know the key: no-mha has neither heads nor an output layer, concat has an output
 * layer only with combine. */
uint64_t key_rules(enum key_id id, const struct key_scope *scope);

/* Only one value can hold for a run: seed, effort, counters. Plug-ins can be several. */
bool key_is_single(enum key_id id);

/* Reads text ("1,8,32", "128-4096x2") and appends its values to the key's list. Errors begin with where. */
int key_read(enum key_id id, const char *text, const char *where, struct value_list *list, struct error *error);

#endif
