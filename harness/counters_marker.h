/* SPDX-License-Identifier: Apache-2.0
 *
 * What others must know of likwid's Marker API: that it is wanted, so that workers may end in peace; the merging of its
 * files.
 */
#ifndef HARNESS_COUNTERS_MARKER_H
#define HARNESS_COUNTERS_MARKER_H

#include <stdbool.h>

/* Whether likwid-perfctr -m waits for regions of this program. */
bool marker_wanted(void);

/* Puts the regions of the marker file `more` behind those of the file at path, and removes `more`. Where path is no
 * marker file, more becomes it. 0 or -errno. */
int marker_merge(const char *path, const char *more);

#endif
