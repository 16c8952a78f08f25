/* SPDX-License-Identifier: Apache-2.0
 *
 * A kernel made ready to run one problem under one schedule: opened, planned, its workspace allocated and touched. For
 * a layer it is made of parts, one a step, each with workspace and schedule of its own.
 */
#ifndef HARNESS_MEMBER_H
#define HARNESS_MEMBER_H

#include "../kernels/layers/layer.h"
#include "../kernels/schedule/schedule.h"
#include "error.h"
#include "operands.h"
#include "team.h"

struct member_layer; /* the parts */

struct member {
    const struct attn_kernel *kernel;     /* of a layer: the one that does its attention */
    const struct attn_kernel *matmul;     /* of a layer: the one that does its projections; else NULL */
    const struct attn_schedule *schedule; /* what runs, never auto; of a layer: its attention's */
    const struct attn_problem *problem;
    struct attn_plan plan;
    void *state;
    struct memory_block shared, scratch, workspace; /* the kernel's, its threads', the schedule's */
    size_t workspace_bytes;                         /* that the schedule wants */
    void **thread_scratch;                          /* [threads] into scratch */
    double *busy_ns;                                /* [threads], added up over calls */
    struct member_layer *layer;                     /* NULL: no layer, the kernel does the problem whole */
    double phase_ns[ATTN_PHASES];                   /* of a layer: time in each phase, added up over calls */
    int threads;
};

/* schedule_requested "auto": as attn_schedule_choose. Fails with a reason (-ENOTSUP) where kernel or schedule
 * can't do the problem. kind: where the workspace lives. operands: outlive the member. */
int member_open(const char *kernel, const char *schedule_requested, const struct operands *operands,
                const struct team *team, enum memory_kind kind, struct member *member, struct error *error);
void member_close(struct member *member);

/* One call over the whole problem. 0 or -errno from the kernel. */
int member_call(struct member *member, const struct attn_args *args);

/* What its kernel says of what runs (of a layer: of the attention); NULL: nothing. Valid until it is closed. */
const char *member_describe(const struct member *member);

/* plan.shared_bytes plus every thread's scratch plus the schedule's; of a layer: of all parts, and what the steps hand
 * on to each other. */
size_t member_workspace_bytes(const struct member *member);

/* The two change workspaces, where they have equally much: an address must not be one kernel's luck. */
void member_swap_workspaces(struct member *a, struct member *b);

/* NULL, or what of its workspace's surroundings the kernel overwrote. */
const char *member_canary_broken(const struct member *member);

#endif
