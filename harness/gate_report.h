/* SPDX-License-Identifier: Apache-2.0
 *
 * What a gate found, for readers and for CI services.
 */
#ifndef HARNESS_GATE_REPORT_H
#define HARNESS_GATE_REPORT_H

#include "gate.h"
#include "output.h"

struct gate_report {
    const char *base, *fresh; /* the two libraries */
    const json_t *context;
    const json_t *records; /* with outcomes, worst first */
    const json_t *controls;
    const struct gate_result *result;
    double tau_least, tau_most; /* of its points: shares */
    double spent_s, max_time_s; /* max_time_s 0: no limit */
    size_t processes;           /* that ran */
    size_t planned;             /* pairs; more than records where it was interrupted: see gate_met_text */
    bool interrupted;
};

/* "regression", "no regression", "inconclusive" ...: the whole of it in a word or two. */
const char *gate_headline(const struct gate_report *report);
/* "12 same, 1 regression, 2 skipped". malloc'd. */
char *gate_counts_text(const struct gate_result *result);
/* The point in words: "avx512 auto 1 thr  scaled_dot_product f32  B 1 ...". malloc'd. */
char *gate_point_text(const json_t *record);
/* Why it is this outcome: its note, else its reason; NULL: the figures say all. */
const char *gate_why(const json_t *record);
/* "compute (avx512): same -0.1 % [-0.3, +0.2]"; "compute (avx512, by wall time): ...". malloc'd. */
char *gate_control_text(const json_t *control);
/* "a slowdown counts from 2 % on", or "... 1 to 5 % on, as the config says of each point". malloc'd. */
char *gate_tau_text(const struct gate_report *report);
/* "140 processes in 182 s of at most 600 s". malloc'd. */
char *gate_budget_text(const struct gate_report *report);
/* "3 of 14 points were met"; malloc'd. NULL: all were. */
char *gate_met_text(const struct gate_report *report);
/* The flags that make a gate of this point alone: "-B 1 ... --kernel avx512 --threads 1 --tau 2%". malloc'd; NULL:
 * unknown. */
char *gate_flags_text(const json_t *record);
/* Whether a reader wants to see the record itself rather than count it. */
bool gate_is_news(const json_t *record);

/* What changed, worst first, counts, controls, time. */
void gate_table_print(FILE *file, const struct gate_report *report, const struct output_style *style);
/* The same as GitHub Markdown, for a job's summary. */
void gate_markdown_print(FILE *file, const struct gate_report *report);
/* JUnit's XML: a test a point; regressions and wrong results are failures, failed points errors, what has no verdict is
 * skipped. All that were not met are one test. */
void gate_junit_print(FILE *file, const struct gate_report *report);
/* Workflow commands of GitHub Actions: ::error and ::warning. */
void gate_annotations_print(FILE *file, const struct gate_report *report);

#endif
