/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening, planning and calling a kernel; see member.h.
 */
#include "member.h"

#include <errno.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "intern.h"
#include "isa.h"
#include "registry.h"

/* Two cache lines: adjacent-line prefetchers pull neighbours in pairs, and threads must not share one. */
enum { SCRATCH_ALIGNMENT = 128 };

static int plan_workspace(struct member *member, const struct team *team, enum memory_kind kind, struct error *error)
{
    size_t stride = (member->plan.thread_bytes + SCRATCH_ALIGNMENT - 1) / SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT;
    int rc = 0;
    member->thread_scratch = calloc((size_t)member->threads, sizeof *member->thread_scratch);
    member->busy_ns = calloc((size_t)member->threads, sizeof *member->busy_ns);
    if (!member->thread_scratch || !member->busy_ns)
        return error_system(error, ENOMEM, "workspace of %d threads", member->threads);
    if (member->plan.shared_bytes)
        rc = memory_allocate(&member->shared, (member->plan.shared_bytes + 63) / 64 * 64, kind, error);
    if (rc == 0 && stride)
        rc = memory_allocate(&member->scratch, stride * (size_t)member->threads, kind, error);
    if (member->schedule->workspace)
        member->workspace_bytes = member->schedule->workspace(member->problem, &member->plan, member->threads);
    size_t whole_lines = (member->workspace_bytes + 63) / 64 * 64;
    if (rc == 0 && whole_lines)
        rc = memory_allocate(&member->workspace, whole_lines, kind, error);
    if (rc < 0)
        return error_prefix(error, rc, "workspace of kernel %s", member->kernel->name);
    if (stride) {
        /* Scratch ends where the block ends, so that an overrun of the last thread meets the guard behind it. */
        char *base = member->scratch.data;
#pragma omp parallel num_threads(team->threads)
        {
            int i = omp_get_thread_num();
            member->thread_scratch[i] = base + (size_t)i * stride;
            memset(member->thread_scratch[i], 0xff,
                   stride); /* first touch; NaN, so that stale zeros can't be relied on */
        }
    }
    if (whole_lines) {
        char *base = member->workspace.data;
#pragma omp parallel num_threads(team->threads)
        {
            size_t i = (size_t)omp_get_thread_num(), threads = (size_t)omp_get_num_threads();
            size_t begin = whole_lines / 64 * i / threads * 64, end = whole_lines / 64 * (i + 1) / threads * 64;
            memset(base + begin, 0xff, end - begin);
        }
    }
    return 0;
}

int member_open(const char *kernel, const char *schedule_requested, const struct attn_problem *problem,
                const struct team *team, enum memory_kind kind, struct member *member, struct error *error)
{
    *member = (struct member){.kernel = registry_find(kernel), .problem = problem, .threads = team->threads};
    if (!member->kernel)
        return error_usage(error, "no kernel is named '%s'", kernel);
    if (strcmp(schedule_requested, "auto") == 0)
        member->schedule = attn_schedule_choose(member->kernel, problem, team->threads);
    else
        member->schedule = attn_schedule_find(schedule_requested);
    if (!member->schedule)
        return error_machine(error, "schedule '%s' is not built in", schedule_requested);
    const char *reason = registry_refusal(member->kernel, problem, isa_available());
    if (!reason && member->schedule->refuse)
        reason = member->schedule->refuse(member->kernel, problem, team->threads);
    if (reason)
        return error_machine(error, "%s", reason);
    struct attn_problem planned = *problem;
    planned.flags |= member->schedule->kernel_flags;
    int rc = 0;
    if (member->kernel->open)
        rc = member->kernel->open(&planned, NULL, team->cpus, team->threads, &member->state);
    if (rc < 0)
        return error_system(error, -rc, "kernel %s could not be opened", kernel);
    member->plan = (struct attn_plan){.phases = 1, .q_grain = 1, .k_grain = 1, .head_grain = 1};
    if (member->kernel->plan)
        rc = member->kernel->plan(&planned, team->threads, member->state, &member->plan);
    if (rc < 0)
        rc = error_system(error, -rc, "kernel %s could not plan", kernel);
    else
        rc = plan_workspace(member, team, kind, error);
    if (rc < 0)
        member_close(member);
    return rc;
}

void member_close(struct member *member)
{
    if (member->kernel && member->kernel->close)
        member->kernel->close(member->state);
    memory_release(&member->shared);
    memory_release(&member->scratch);
    memory_release(&member->workspace);
    free(member->thread_scratch);
    free(member->busy_ns);
    *member = (struct member){0};
}

int member_call(struct member *member, const struct attn_args *args)
{
    struct attn_args whole = *args;
    whole.shared = member->shared.data;
    struct attn_job job = {
        .kernel = member->kernel,
        .problem = member->problem,
        .args = &whole,
        .plan = &member->plan,
        .state = member->state,
        .scratch = member->thread_scratch,
        .workspace = member->workspace.data,
        .busy_ns = member->busy_ns,
        .threads = member->threads,
    };
    return member->schedule->run(&job);
}

size_t member_workspace_bytes(const struct member *member)
{
    return member->plan.shared_bytes + member->plan.thread_bytes * (size_t)member->threads + member->workspace_bytes;
}

const char *member_canary_broken(const struct member *member)
{
    const char *broken = member->shared.data ? memory_canary_broken(&member->shared) : NULL;
    if (!broken && member->scratch.data)
        broken = memory_canary_broken(&member->scratch);
    if (!broken && member->workspace.data)
        broken = memory_canary_broken(&member->workspace);
    return broken ? intern_format("wrote outside its workspace (%s)", broken) : NULL;
}
