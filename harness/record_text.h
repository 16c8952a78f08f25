/* SPDX-License-Identifier: Apache-2.0
 *
 * Records in words and figures: what a reader of the table, the summary and the exports needs to know about one record,
 * whatever it lacks. Records come from files: every field may be missing or of another type.
 */
#ifndef HARNESS_RECORD_TEXT_H
#define HARNESS_RECORD_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum record_status { RECORD_OK, RECORD_SKIPPED, RECORD_WRONG, RECORD_FAILED, RECORD_STATUS_COUNT };

/* An unknown status counts as failed. */
enum record_status record_status(const json_t *record);
const char *record_status_name(enum record_status status);
bool record_noisy(const json_t *record);

/* "B 8  H 12  S 128  D 64  causal": sizes, and of the rest only what is not the default. malloc'd. */
char *record_sizes(const json_t *record);
/* The same after rule and dtype: the heading of a problem. malloc'd. */
char *record_problem(const json_t *record);

/* Half the width of the 95 % interval over the median; NaN where either is unknown. */
double record_ci_half(const json_t *record);

/* Records of one problem and cache state, in file order. */
struct record_group {
    char *problem;
    json_t *records; /* array */
};
/* Groups in the order in which their first record stands. A failed record that a later record of the same point
 * supersedes (--resume --retry-failed) is left out. *count groups; release with record_groups_release. */
struct record_group *record_groups(const json_t *records, size_t *count);
void record_groups_release(struct record_group *groups, size_t count);

/* One column of the table of records. */
struct record_column {
    const char *title, *full; /* full: where there is room for it; NULL: as title */
    bool wide_only;
    bool is_text; /* to the left, and may be cut down to `least` columns */
    size_t least;
    void (*cell)(const json_t *record, char *out, size_t size);
};
/* The first RECORD_WHO_COLUMNS tell which point it is, the others what was measured. */
enum { RECORD_WHO_COLUMNS = 4 };
extern const struct record_column record_columns[];
extern const size_t record_column_count;

#endif
