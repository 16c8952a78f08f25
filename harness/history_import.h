/* SPDX-License-Identifier: Apache-2.0
 *
 * Result files into a history.
 */
#ifndef HARNESS_HISTORY_IMPORT_H
#define HARNESS_HISTORY_IMPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "history.h"

#define DUET_SCHEMA "attnbench.duet/1"

struct history_imported {
    size_t added, present; /* points that are new, and that stood there already (same run, same point) */
    size_t different;      /* of the present, those with another figure: the first one is kept */
    size_t untimed;        /* of the added, those that were skipped, wrong or failed */
    bool torn;             /* the last line was, and is left out */
};

/* Adds a results file or a file of duets ("-": standard input), all of it or nothing. Bad files are usage errors that
 * name file and line. */
int history_import(struct history *history, const char *path, struct history_imported *imported, struct error *error);

/* The two kinds of file: each is read and checked whole, then written within one transaction, so that the write lock is
 * held for no longer than that takes. name stands in errors. Several verdicts of a run on one thing (duet --repeat) are
 * one point: history_repeats.h. */
int history_import_journal(struct history *history, FILE *file, const char *name, struct history_imported *imported,
                           struct error *error);
int history_import_duets(struct history *history, const json_t *duets, const char *name,
                         struct history_imported *imported, struct error *error);

/* Files of duets as an array of documents {"context", "points"}; a document may have the context's fields in itself
 * instead. Of lines each has a schema, and a context stands above all records. *duets NULL: text is none, and the
 * journal's reader tells what is wrong if it is none either. */
int history_read_duets(const char *text, size_t size, const char *name, json_t **duets, bool *torn,
                       struct error *error);
/* Where a line stood in its file: our own field of what was read from lines. */
#define HISTORY_LINE "@line"

/* Standard error of log(median) of a record, as far as it tells: half of the 95 % interval over 1.96 and over the
 * median; without an interval 1.2533 * 1.4826 * MAD / sqrt(samples) / median, as for a normal distribution (its MAD is
 * sigma / 1.4826; the median of n has the standard error sqrt(pi / 2) * sigma / sqrt(n)). NaN: unknown, which is also
 * what a spread of 0 means: a clock too coarse to see it; and that of 2 to 5 launches, whose samples are not
 * independent while they are too few themselves. */
double history_standard_error(const json_t *record, size_t samples);

#endif
