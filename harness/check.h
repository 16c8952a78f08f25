/* SPDX-License-Identifier: Apache-2.0
 *
 * One correctness check of one kernel: the problem between guard pages, the kernel run on it. Shared by the worker,
 * which checks its own kernels, and by peers, which check those of other libraries and plug-ins.
 */
#ifndef HARNESS_CHECK_H
#define HARNESS_CHECK_H

#include <jansson.h>
#include <stdbool.h>

#include "case_folder.h"
#include "operands.h"
#include "team.h"

struct check {
    struct operands operands;
    struct case_folder folder; /* owns the operands of a case */
    bool from_folder;
    enum memory_kind kind;
    struct memory_block far[2];
};

/* From a request's fields "spec" or "case", "set", "far" (worker.h). Release it on failure too. */
int check_prepare(const json_t *request, int threads, struct check *check, struct error *error);
void check_release(struct check *check);

/* Runs the kernel twice and looks at what it must not touch; its output is left in the operands. NULL, or what it did
 * wrong; interned. */
const char *check_once(struct check *check, const char *kernel, const char *schedule, struct team *team);

#endif
