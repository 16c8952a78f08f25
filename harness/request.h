/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of a request, shared by sweep.c (what was asked for), axes.c (what a sweep varies) and plan.c (the
 * points).
 */
#ifndef HARNESS_REQUEST_H
#define HARNESS_REQUEST_H

#include "config.h"
#include "keys.h"
#include "sweep.h"

struct request {
    struct key_values flags;
    struct config config;
    bool has_config;
    const char *kernel_prefix; /* globs of kernels mean the names behind it, and it is put before them; NULL: none */
};

/* The values that a sweep takes for one key. rank: which layer they come from; higher layers override lower ones. */
enum axis_rank { RANK_BUILT_IN, RANK_DEFAULTS, RANK_SWEEP, RANK_FLAGS };
struct axis {
    const struct value *items;
    size_t count;
    enum axis_rank rank;
};
struct axes {
    struct axis axis[KEY_AXES];
    struct value preset[KEY_AXES]; /* values of a model preset, pointed to by the axes */
};

/* A size that was not given and follows from others: kv-heads from H, q-len from S, value-dim from D ... */
#define FOLLOW INT64_C(-1)
/* threads that were not given: all that the placement has. */
#define THREADS_OF_PLACEMENT INT64_C(0)
/* integer of a place that uses all of its threads, whatever the sweep's threads are: a step of the ladder. */
#define PLACE_OWN_THREADS INT64_C(1)

/* The files of --plugin, or the config's. */
const struct value_list *request_plugins(const struct request *request);

size_t request_sweeps(const struct request *request); /* 1 without a config */

/* Flags over the sweep's keys over the config's defaults; keys given nowhere stay empty. */
void axes_merge(const struct request *request, size_t sweep, struct axes *merged);

/* The rules of these axes; the built-in one where none is given. */
struct key_scope axes_scope(const struct axes *axes);

/* What holds where a key is not given. */
const struct value *axes_built_in(enum key_id id);

/* Every key that was given is known to a rule of a sweep that it holds for: its own sweep, or any for flags and a
 * config's defaults. model and decode give sizes of scaled_dot_product, and take no other rule beside it. */
int request_check_keys(const struct request *request, struct error *error);

/* The problem at one index of every axis before KEY_CACHE. Keys that its rule does not know have no say in it. */
struct problem_spec spec_at(const struct axes *axes, const size_t *index, uint64_t seed);

/* The axes of one model (NULL: none) and decode choice (NULL: none), with every key filled but KEY_KERNEL, which stays
 * empty if no kernel was named. Points into merged and variant. */
int axes_variant(const struct axes *merged, const struct value *model, const struct value *decode, struct axes *variant,
                 struct error *error);

/* The names of the registry's kernels that globs match, each once, in the order of the globs, to kernels (room for the
 * registry); an empty axis: all that do the rule. prefix: of the names that are meant, or NULL: those without one. A
 * glob that matches nothing is an error. */
int kernels_match(const struct axis *globs, const char *prefix, enum attn_rule rule, const char **kernels,
                  size_t *count, struct error *error);
size_t registry_count(void);

#endif
