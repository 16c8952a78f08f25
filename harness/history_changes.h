/* SPDX-License-Identifier: Apache-2.0
 *
 * Where series changed their level, and at which commits.
 */
#ifndef HARNESS_HISTORY_CHANGES_H
#define HARNESS_HISTORY_CHANGES_H

#include <stdbool.h>
#include <stddef.h>

#include "change_points.h"
#include "history_series.h"

/* One change of one series. */
struct history_change {
    json_t *series;    /* object: the row of history_list */
    size_t point;      /* index of the first point of the new level */
    double log_change; /* log(new level / old level): above 0 is slower */
    double p;
    bool newest; /* the last change of its series: what it is now */
    char commit[HISTORY_COMMIT_BYTES], previous[HISTORY_COMMIT_BYTES]; /* of the first new point, the last old one */
    char time_utc[40], run_id[100];                                    /* of the first new point */
};

/* Sorted by time, then commit, so that the changes of one commit are neighbours. */
struct history_changes {
    struct history_change *changes;
    size_t count;
};

/* Adds the changes of one series (its row in `series`) to the collection. */
int history_changes_add(struct history_changes *changes, const struct history_rows *series, size_t row,
                        const struct history_rows *points, struct error *error);
/* Brings them into order, after the last was added. */
void history_changes_sort(struct history_changes *changes);
/* How many of those from `first` on belong to one alert: the same commit, or the same run where a commit does not tell
 * what was built. */
size_t history_changes_alert(const struct history_changes *changes, size_t first);
void history_changes_release(struct history_changes *changes);

/* Whether a change is one of times: launches one after the other, which differ with nothing changed (compare.h). A
 * ratio to an anchor was measured interleaved with it. */
bool history_change_sequential(const struct history_change *change);
/* Whether one commit, known and built without changes of its own, stands on both sides of the change. */
bool history_change_same_commit(const struct history_change *change);

/* How many of the rows of history_list --fail-on judges: those of ratios, with times all. *brief: those of them with
 * fewer than HISTORY_CHANGES_RUNS runs, which can have no change. */
size_t history_changes_judged(const struct history_rows *series, bool times, size_t *brief);
enum { HISTORY_CHANGES_RUNS = 2 * CHANGE_POINTS_SHORTEST };

/* Whether a series' newest change is one that made it slower (or, any: any change at all). Series of times count only
 * if times says so. */
bool history_changes_failing(const struct history_changes *changes, bool any, bool times);

/* For machines. alerts: one row an alert, its changes nested; else one row a change. An alert's time is that of its
 * first change; its run and the commit before are null where its changes have several. */
void history_changes_rows(const struct history_changes *changes, bool alerts, struct history_rows *rows);

#endif
