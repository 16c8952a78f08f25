/* SPDX-License-Identifier: Apache-2.0
 *
 * Scaling: what points are held against, and the machine that they ran on.
 */
#ifndef HARNESS_REPORT_PLOT_SCALING_H
#define HARNESS_REPORT_PLOT_SCALING_H

#include "report_plot.h"

/* The fastest one-thread record among `problem` of the same source and kernel as record, NULL: there is none. */
const struct report_record *plot_scaling_base(const struct report *report, const struct plot_group *problem,
                                              const struct report_record *record);
/* Speed over the base's, divided by the record's threads. */
struct plot_value plot_efficiency(const struct report_record *record, const struct report_record *base);

/* Each machine as nested boxes (sockets, NUMA nodes, L3 caches, cores, CPUs) from its context, once whole and once for
 * each placement that was measured, its CPUs marked. */
void report_plot_topology(const struct report *report, FILE *page);

#endif
