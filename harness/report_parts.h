/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tables and sentences of the report share among themselves; see report.h for the sections.
 */
#ifndef HARNESS_REPORT_PARTS_H
#define HARNESS_REPORT_PARTS_H

#include "report.h"

/* report/page.css and report/page.js (report_assets.c). */
extern const char report_css[], report_js[];

enum { REPORT_NONE = -1 };

/* Indices of all records by source, problem, kernel; those of one kernel with the fastest first and those without a
 * time last. malloc'd. */
size_t *report_order(const struct report *report);

/* Who is fastest on a problem at one source, over all schedules, thread counts and placements. */
struct report_contest {
    size_t source, problem;
    size_t first;  /* index of the fastest record */
    long second;   /* of the fastest one of another kernel, or REPORT_NONE */
    size_t rivals; /* kernels with a time */
};
/* One entry a source and problem with a time, ordered by both. *count entries, malloc'd. */
struct report_contest *report_contests(const struct report *report, size_t *count);

/* Median time of an ok record; NaN where there is none. */
double report_median(const struct report_record *record);

/* "S 128  D 64 ...", the problem without rule and dtype where all records have the same. Borrowed from the report. */
const char *report_short_problem(const struct report *report, size_t problem);
/* The same, escaped; lines break between sizes, not between a size and its figure. */
void report_problem(const struct report *report, size_t problem, FILE *page);

/* Parts of the headline. */
void report_portrait(const struct report *report, FILE *page); /* the machines, what was run on them */
void report_warnings(const struct report *report, FILE *page); /* noise, wrong and failed points, rough runs */

/* "tiled serial, 1 thread, compact", escaped. */
void report_who(const struct report_record *record, FILE *page);
/* "12 points", "1 point". */
void report_count(size_t count, const char *singular, FILE *page);
/* A median with its unit, a fraction as percent, a ratio as "1.25 x". */
void report_time(double ns, FILE *page);
void report_percent(double fraction, FILE *page);
void report_ratio(double ratio, FILE *page);

#endif
