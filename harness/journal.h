/* SPDX-License-Identifier: Apache-2.0
 *
 * Results files: JSON Lines, line 1 the context, then a record a point, each appended by one write so that a killed run
 * loses at most the line under way.
 */
#ifndef HARNESS_JOURNAL_H
#define HARNESS_JOURNAL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "error.h"

struct journal;

/* A new file (fails if it exists and is not empty), locked against a second writer. All journal errors have exit_code
 * EXIT_UNWRITTEN, except a bad or foreign file for resume (EXIT_USAGE). With SIGXFSZ
 * ignored (main does) a file size limit is an error like a full disk. */
int journal_create(const char *path, const json_t *context, struct journal **journal, struct error *error);
/* Opens an interrupted journal to append: cuts off a torn last line, checks that it is ours, appends another context
 * line. An empty file, or one with a torn context alone, begins anew. A file that is not ours is left as it was.
 * *records: array of the records that stand in it (caller decrefs). */
int journal_resume(const char *path, const json_t *context, struct journal **journal, json_t **records,
                   struct error *error);
/* One line, one write, flushed. On failure nothing half-written stays in the file. */
int journal_append(struct journal *journal, const json_t *record, struct error *error);
/* Waits until the lines are on the disk. NULL: nothing. */
void journal_close(struct journal *journal);

#define CONTEXT_SCHEMA "attnbench.context/1"
#define RESULT_SCHEMA "attnbench.result/1"

/* A results file read for show, export and their kin. A torn last line is left out (and *torn set): one without a
 * newline, or that is not JSON. Anything else that is not a context or record line is an error naming file and line; so
 * is a file without a context. A resumed or merged file has several contexts: machines.h tells which is a record's. */
struct results {
    json_t *contexts; /* array */
    json_t *records;  /* array, file order */
    bool torn;
};
int results_read(const char *path, struct results *results, struct error *error);
/* The same from a stream; name stands in errors. *whole_bytes: where the last whole line ends. */
int results_read_stream(FILE *file, const char *name, struct results *results, int64_t *whole_bytes,
                        struct error *error);
void results_release(struct results *results);

/* One line of a results file as it stands there, of a schema that is known. json and text are the reader's own. */
struct results_line {
    json_t *json;
    const char *text;
    size_t length; /* bytes of text, the newline included */
    int64_t number;
    bool is_context;
};
struct results_end {
    bool torn;           /* the last line is, and was left out */
    int64_t whole_bytes; /* where the last whole line ends */
};
/* Gives each line to take, in file order, as strictly as results_read does; ends with the first code that is not 0. */
int results_scan(FILE *file, const char *name,
                 int (*take)(void *user, const struct results_line *line, struct error *error), void *user,
                 struct results_end *end, struct error *error);

#endif
