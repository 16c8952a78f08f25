/* SPDX-License-Identifier: Apache-2.0
 *
 * Scaling: what points are held against, and the machine that they ran on.
 */
#ifndef HARNESS_REPORT_PLOT_SCALING_H
#define HARNESS_REPORT_PLOT_SCALING_H

#include "report_plot.h"

/* For each record what it scales from: the fastest one-thread record of the same problem, memory policy, source and
 * kernel; NULL: there is none, or it was not measured. malloc'd, [report->record_count]. */
const struct report_record **plot_scaling_bases(const struct report *report);
/* Speed over the base's, divided by the record's threads. */
struct plot_value plot_efficiency(const struct report_record *record, const struct report_record *base);

/* Each machine as nested boxes (sockets, NUMA nodes, L3 caches, cores, CPUs) from its context, once whole and once for
 * each placement that was measured, its CPUs marked. */
void report_plot_topology(const struct report *report, FILE *page);

#endif
