/* SPDX-License-Identifier: Apache-2.0
 *
 * Hardware and kernel counters around the clocked samples of a contestant: what --counters may say, and the providers
 * behind it (perf, likwid, energy, and likwid's Marker API under likwid-perfctr -m).
 *
 * A provider counts between start and stop, which stand outside the clock, and adds up what it counted since the last
 * take. What can't be counted has a reason and becomes null, never 0.
 */
#ifndef HARNESS_COUNTERS_H
#define HARNESS_COUNTERS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "error.h"
#include "team.h"

/* One figure that a provider counts. */
struct counter_column {
    const char *name;   /* interned */
    const char *reason; /* why it can't be counted, interned; NULL: it can */
    bool joules;        /* energy of packages; the first provider that has it makes joules_per_call */
    bool flag;          /* a yes or no: true where the sum isn't 0 */
};

/* A provider at work. open fills in the columns, or leaves a reason. */
struct counter_meter {
    const struct counter_provider *provider;
    struct counter_column *columns; /* [count] */
    size_t count;
    const char *reason; /* why the whole provider can't count; interned */
    const char *remark; /* what a reader of the figures must know; interned; NULL: nothing */
    void *state;        /* the provider's own */
};

struct counter_provider {
    const char *name, *argument; /* as in --counters name:argument; argument NULL: it takes none */
    const char *summary;
    bool selectable;   /* false: never asked for by --counters */
    bool may_be_quiet; /* why it can't count matters only to those who asked for it */
    /* Grammar of its argument, without a look at the machine; NULL: takes none. */
    int (*check)(const char *argument, struct error *error);
    /* Whether it counts though it was not asked for. counting: another one was. */
    bool (*implied)(bool counting);
    void (*open)(struct counter_meter *meter, const char *argument, const struct team *team);
    void (*close)(struct counter_meter *meter);
    void (*turn)(struct counter_meter *meter, const char *region); /* a turn begins; NULL: nothing to do */
    void (*start)(struct counter_meter *meter);
    void (*stop)(struct counter_meter *meter);
    /* Adds what was counted since the last take to sums [count]; NaN where it failed. NULL: nothing to take. */
    void (*take)(struct counter_meter *meter, double *sums);
    /* Entries {name, summary, reason} for `list counters`, probed here and now. NULL: not listed. */
    void (*list)(json_t *entries);
};

/* The providers, NULL at the end; tests put their own in place. They start in this order and stop in the reverse one,
 * so that the last is the closest to the clock. */
extern const struct counter_provider *const *counter_providers;

extern const struct counter_provider counters_energy, counters_likwid, counters_marker, counters_perf;

/* Whether text is "none" or a list "perf:EVENT+EVENT,likwid:GROUP,energy". A usage error that names what is wrong. */
int counters_check(const char *text, struct error *error);

/* All that count for one team. */
struct counters;

/* text: has passed counters_check. NULL: nothing is to be counted. What can't be counted is told by counters_note. */
struct counters *counters_open(const char *text, const struct team *team);
void counters_close(struct counters *counters);

/* Number of sums that counters_take fills. */
size_t counters_columns(const struct counters *counters);

/* The turn of a contestant begins; region: its point's id, interned. */
void counters_turn(struct counters *counters, const char *region);
void counters_start(struct counters *counters);
void counters_stop(struct counters *counters);
/* Adds to sums [counters_columns()] what was counted since the last take. */
void counters_take(struct counters *counters, double *sums);

/* {"perf":{"task-clock":per call, ...}, ...}: sums of `calls` calls divided by them, null where not counted. JSON null
 * where no provider has columns. */
json_t *counters_to_json(const struct counters *counters, const double *sums, double calls);
/* Joules of a call; NaN: unknown. */
double counters_joules(const struct counters *counters, const double *sums, double calls);
/* One line with the reasons why something is null and what else a reader must know; NULL: there is none. Interned. */
const char *counters_note(const struct counters *counters);

/* What `list counters` shows. */
json_t *counters_list(void);

/* For providers: room for `count` columns more, zeroed (aborts when memory is exhausted); the first of them. */
struct counter_column *counters_add_columns(struct counter_meter *meter, size_t count);

#endif
