/* SPDX-License-Identifier: Apache-2.0
 *
 * Ceilings of a roofline, only such as were measured: by the probes that ran beside the points of a results file, and
 * by `attnbench peak` on the same machine, placement and thread count.
 */
#ifndef HARNESS_REPORT_PLOT_CEILINGS_H
#define HARNESS_REPORT_PLOT_CEILINGS_H

#include "report.h"

enum ceiling_kind {
    CEILING_COMPUTE, /* the roof of points that computing bounds, GFLOP/s */
    CEILING_ISA,     /* the FMA peak of kernels' own instructions, GFLOP/s */
    CEILING_MEMORY   /* GB/s of a level */
};

struct plot_ceiling {
    enum ceiling_kind kind;
    size_t source;
    char name[96];             /* "compute", "dram", "peak of tiled's instructions" */
    double value, least, most; /* median and extremes of count measurements */
    size_t count;
    bool from_peak; /* by attnbench peak */
};

/* Ceilings for records of one dtype, thread count and placement, by source; within one compute, ISA peaks and levels
 * (l1 .. dram). malloc'd array of *count. */
struct plot_ceiling *plot_ceilings(const struct report *report, const size_t *records, size_t record_count,
                                   size_t *count);

/* FLOPs per byte of a record's least traffic; NaN: unknown. */
double plot_intensity(const json_t *record);

#endif
