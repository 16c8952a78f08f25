/* SPDX-License-Identifier: Apache-2.0
 *
 * From flags and config files to a plan: lists of values per key, every combination a point.
 */
#ifndef HARNESS_SWEEP_H
#define HARNESS_SWEEP_H

#include "error.h"
#include "placement.h"
#include "spec.h"

/* The most points a plan may have; more is a usage error that names the count. */
#define SWEEP_MAX_POINTS 1000000

struct effort {
    double min_time_s;      /* clocked time a point, default 0.5 */
    int64_t samples;        /* exact number of samples wanted; 0: decided by the interval */
    double max_time_s;      /* of the whole run; 0: none */
    double point_timeout_s; /* default 60 */
    double memory_limit;    /* bytes that a point may take; 0: what is available */
    int launches;           /* worker processes a point, default 1 */
    bool quick_check;
    const char *counters; /* as --counters says it, checked and interned; default "none" */
};

struct plan {
    char *name, *description; /* of the config; NULL for a sweep from flags */
    struct point *points;     /* grouped: all points of one problem adjacent, sweep order */
    size_t count;
    struct effort effort;
    uint64_t seed;
    const char **warnings; /* [warning_count] what is odd about what was asked, one line each; interned */
    size_t warning_count;
};
void plan_release(struct plan *plan);

/* What `run` and its kin were asked for, from the command line. */
struct request; /* sweep lists by key, opaque; see sweep.c */

struct request *request_create(void);
void request_destroy(struct request *request);
/* Sets a key as in a flag or config value: request_set(r, "kv-heads", "8,16", "--kv-heads", e). where: how to name the
 * place in errors ("--kv-heads" or "configs/x.yaml:12:7"). -ENOENT: no such key (message set). */
int request_set(struct request *request, const char *key, const char *value, const char *where, struct error *error);

/* Measuring effort by flags, the config, or the defaults. */
struct effort request_effort(const struct request *request);

/* Reads a config (NAME or FILE) under the flags: they override its keys. At most once. */
int request_load_config(struct request *request, const char *name, struct error *error);
/* A size, rule, model or decode was set: what makes a sweep of its own. */
bool request_names_problem(const struct request *request);

/* A size, model or decode was set: a problem of its own, whatever the rule. */
bool request_names_sizes(const struct request *request);
/* A flag set this key. */
bool request_has(const struct request *request, const char *key);

/* Kernels are those whose names begin with prefix (interned), as foreign_add_library names them; globs mean what stands
 * behind it. */
void request_set_kernel_prefix(struct request *request, const char *prefix);

/* --seed, the config's seed, or 1. */
uint64_t request_seed(const struct request *request);

/* Expands to points: resolves kernel globs against the registry, placements against the topology, checks what each
 * kernel refuses (skip_reason), counts before expanding. zero_ok as in spec_validate. */
int request_plan(const struct request *request, const struct topology *topology, bool zero_ok, struct plan *plan,
                 struct error *error);

#endif
