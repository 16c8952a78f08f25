/* SPDX-License-Identifier: Apache-2.0
 *
 * The report: what all sections of the page share, made once from the files (report_model.c), and the sections
 * themselves. A section appends HTML to `page`, a stream in memory that report_write turns into the file.
 *
 * Everything that comes from a file is escaped (report_html.h). Plots are inline SVG that take their colours from the
 * page's style (report/page.css), so that one drawing serves light, dark and print:
 *
 *   --paper --ink --faint --line    background, text, secondary text, grid and frame
 *   --s0 .. --s7                    colours of series (Okabe and Ito's, darker or lighter by theme)
 *   --good --bad --warn             states
 *
 * Every mark of a plot that can be pointed at is an element with a <title> child that names it. Where a plot would have
 * more than REPORT_TITLES marks each has data-r="INDEX" (of report.records) instead: the script makes the text from the
 * table of records and, on a click, shows that row. A figure is <figure class="plot">, its svg has role="img",
 * aria-labelledby with <title> and <desc>, a viewBox and no fixed width. All of a page with 10,000 records must stay
 * below 5 MB: the plots together below 2.
 */
#ifndef HARNESS_REPORT_H
#define HARNESS_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "error.h"
#include "record_text.h"

enum { REPORT_TITLES = 1500, REPORT_COLORS = 8 };

/* Where records come from: the runs of one build on one machine in one file. A merged file has several sources, an
 * interrupted run that was gone on with has one. */
struct report_source {
    const char *path;      /* of the file, as the user named it */
    const json_t *context; /* of the source's first run */
    char *label;           /* short, and no other source has it: machine, build, file, whatever tells them apart */
    char *machine, *build; /* machine_key and commit ("?": unknown; "+" at its end: modified) */
    size_t records;
};

/* What a problem asks of a machine, for the headline. */
enum report_class {
    REPORT_PREFILL,        /* many queries, no causal line */
    REPORT_CAUSAL_PREFILL, /* many queries below a causal line */
    REPORT_DECODE,         /* at most 16 queries against at least four times as many keys */
    REPORT_SMALL_BATCHED,  /* at most 128 queries and keys, at least 8 batch entries */
    REPORT_BUILDING_BLOCK, /* matmul */
    REPORT_CLASSES
};
const char *report_class_name(enum report_class class);

struct report_record {
    const json_t *json; /* the record as it stands in the file */
    size_t source;      /* index of sources */
    size_t problem;     /* index of problems */
    size_t rule;        /* index of rules */
    size_t kernel;      /* index of kernels; its colour is --s(kernel % REPORT_COLORS) in every plot */
    enum report_class class;
    enum record_status status;
    bool noisy;
};

/* A document of `attnbench peak --json` that was given among the files: measured ceilings. */
struct report_peak {
    const char *path;
    const json_t *document; /* attnbench.peak/1 */
    const char *machine;    /* machine_key, that of a source's where both are of one machine */
};

struct report {
    struct report_source *sources;
    size_t source_count;
    struct report_record *records; /* file order; failures that a later try of the point made good are left out */
    size_t record_count;
    char **problems; /* as record_problem tells them: rule, dtype, sizes, masks, cache; first seen first */
    size_t problem_count;
    const char **rules; /* names, first seen first */
    size_t rule_count;
    const char **kernels; /* names, first seen first */
    size_t kernel_count;
    bool uniform; /* one rule and dtype in all records: they need not be told with each */
    struct report_peak *peaks;
    size_t peak_count;
    char *gnuplot;     /* its path, malloc'd; NULL: not here, then sections give their data without a plot */
    json_t *documents; /* array: owner of all of the above that is json */
};

/* Reads results files (and attnbench.peak/1 documents) and puts their records in order. Messages of one line about what
 * is odd but no error (a torn last line) go to stderr. */
int report_read(char *const *paths, size_t count, struct report *report, struct error *error);
void report_release(struct report *report);

/* The whole page. */
void report_write(const struct report *report, FILE *file);

/* ---- sections: each writes what stands below its heading, which report_write has written ---- */

/* report_headline.c, report_heat.c, report_phases.c, report_checks.c, report_table.c, report_method.c,
 * report_compare.c */
void report_headline(const struct report *report, FILE *page);
void report_heat_map(const struct report *report, FILE *page);
void report_phases(const struct report *report, FILE *page); /* nothing where no record tells phases */
void report_correctness(const struct report *report, FILE *page);
void report_records(const struct report *report, FILE *page);
void report_method(const struct report *report, FILE *page);
void report_comparison(const struct report *report, FILE *page); /* more than one source */

/* report_plot_*.c. Each says so where there is nothing to draw, and gives the data behind each plot. */
void report_plot_roofline(const struct report *report, FILE *page);
void report_plot_throughput(const struct report *report, FILE *page); /* against S, D, B, H, with intervals */
void report_plot_scaling(const struct report *report, FILE *page);    /* and the topology, placements marked */
void report_plot_rivals(const struct report *report, FILE *page);     /* ratio to the fastest, best first */

#endif
