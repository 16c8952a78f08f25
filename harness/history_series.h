/* SPDX-License-Identifier: Apache-2.0
 *
 * Series of a history and their points, read as rows.
 */
#ifndef HARNESS_HISTORY_SERIES_H
#define HARNESS_HISTORY_SERIES_H

#include <stddef.h>
#include <stdint.h>

#include "history_rows.h"

struct history_filter {
    const char *kernel;  /* GLOB; NULL: all */
    const char *machine; /* machine_key or how it begins; NULL: all */
    int64_t limit;       /* that many of the series with the newest points; -1: all */
};

/* One row a series, those of one machine, compiler and problem together; columns from "series" (its key) over what the
 * key is made of to "points" and the newest point's "last_utc", "build_commit", "median_ns", "roof_fraction" and
 * "log_ratio". A filter that leaves none of what there is is a usage error naming the flag. */
int history_list(const struct history *history, const struct history_filter *filter, struct history_rows *rows,
                 struct error *error);

/* The row of one series by its key, or by how that begins where no other does. */
int history_find(const struct history *history, const char *key, struct history_rows *rows, struct error *error);

/* The points of a series in the order of time, the columns of the view `point` from "time_utc" on. */
int history_points(const struct history *history, const char *key, struct history_rows *rows, struct error *error);

/* The last `columns` values of points as blocks, or characters of ASCII, from the lowest to the highest of them; higher
 * is slower. out: 3 bytes a column and a zero. */
enum { HISTORY_SPARK = 60, HISTORY_SPARK_BYTES = 3 * HISTORY_SPARK + 1 };
void history_spark(const struct history_rows *points, size_t columns, bool ascii, char out[HISTORY_SPARK_BYTES]);

/* The commit of a point; with "+" where it was built with changes that were not committed, "?" where it is unknown. */
enum { HISTORY_COMMIT_BYTES = 72 };
void history_commit_text(const struct history_rows *points, size_t row, char out[HISTORY_COMMIT_BYTES]);
/* The same with no more than 12 digits, for people. */
void history_commit_shorten(char commit[HISTORY_COMMIT_BYTES]);

/* log(ratio) as "+2.3%": how much slower (or, with a minus, faster); "-" for NaN. */
enum { HISTORY_PERCENT_BYTES = 16 };
void history_percent(double log_ratio, char out[HISTORY_PERCENT_BYTES]);

#endif
