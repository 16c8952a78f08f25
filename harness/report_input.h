/* SPDX-License-Identifier: Apache-2.0
 *
 * One file given to `attnbench report`: results, or a document of `attnbench peak --json`.
 */
#ifndef HARNESS_REPORT_INPUT_H
#define HARNESS_REPORT_INPUT_H

#include <jansson.h>

#include "error.h"
#include "journal.h"

struct report_input {
    json_t *peak;           /* attnbench.peak/1; NULL: results */
    struct results results; /* all fields checked that the report reads: strings are strings, figures figures */
};

/* path: "-" is standard input. What cannot be read, or breaks the schema, is a usage error naming file and line. */
int report_input_read(const char *path, struct report_input *input, struct error *error);
void report_input_release(struct report_input *input);

#endif
