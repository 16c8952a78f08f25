/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening, planning and calling a kernel; see member.h.
 */
#include "member.h"

#include <errno.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "intern.h"
#include "isa.h"
#include "registry.h"

/* A layer's steps, and a part for each. Parts add their busy time to the whole's. */
struct member_layer {
    struct attn_layer steps;
    struct memory_block handed_on; /* what steps hand on to each other */
    struct member parts[ATTN_MOST_STEPS];
    const struct attn_args *bound; /* that the steps point to now */
    bool permute;
};

/* Two cache lines: adjacent-line prefetchers pull neighbours in pairs, and threads must not share one. */
enum { SCRATCH_ALIGNMENT = 128 };

/* First touch by all threads, in contiguous shares; NaN, so that stale zeros can't be relied on. */
static void touch(const struct memory_block *block, size_t lines, const struct team *team)
{
    char *base = block->data;
    if (lines == 0)
        return;
#pragma omp parallel num_threads(team->threads)
    {
        size_t i = (size_t)omp_get_thread_num(), threads = (size_t)omp_get_num_threads();
        size_t begin = lines * i / threads * 64, end = lines * (i + 1) / threads * 64;
        memset(base + begin, 0xff, end - begin);
    }
}

static int plan_workspace(struct member *member, const struct team *team, enum memory_kind kind, struct error *error)
{
    size_t stride = (member->plan.thread_bytes + SCRATCH_ALIGNMENT - 1) / SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT;
    int rc = 0;
    member->thread_scratch = calloc((size_t)member->threads, sizeof *member->thread_scratch);
    if (!member->thread_scratch)
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
    touch(&member->workspace, whole_lines / 64, team);
    return 0;
}

/* A plan that no schedule can follow is the kernel's fault, and is told before one tries. */
static int check_plan(const struct member *member, struct error *error)
{
    const struct attn_plan *plan = &member->plan;
    const char *name = member->kernel->name;
    const int64_t grains[] = {plan->q_grain, plan->k_grain, plan->head_grain};
    const int most = 1 + (int)(sizeof plan->items / sizeof *plan->items);
    if (plan->phases < 1 || plan->phases > most)
        return error_usage(error, "kernel %s plans %d phases; 1 to %d can be", name, plan->phases, most);
    for (size_t g = 0; g < sizeof grains / sizeof *grains; g++)
        if (grains[g] < 1)
            return error_usage(error, "kernel %s plans a grain of %lld; at least 1 can be", name, (long long)grains[g]);
    for (int phase = 0; phase < plan->phases - 1; phase++)
        if (plan->items[phase] < 0)
            return error_usage(error, "kernel %s plans %lld items in phase %d", name, (long long)plan->items[phase],
                               phase);
    return 0;
}

/* A kernel that does its problem whole; kernel, schedule, problem, threads and busy_ns are set. */
static int open_whole(struct member *member, const struct attn_tensor *param, const struct team *team,
                      enum memory_kind kind, struct error *error)
{
    struct attn_problem planned = *member->problem;
    planned.flags |= member->schedule->kernel_flags;
    int rc = 0;
    if (member->kernel->open)
        rc = member->kernel->open(&planned, param, team->cpus, team->threads, &member->state);
    if (rc < 0) {
        rc = error_system(error, -rc, "kernel %s could not be opened", member->kernel->name);
        member->kernel = NULL; /* nothing to close */
        return rc;
    }
    member->plan = (struct attn_plan){.phases = 1, .q_grain = 1, .k_grain = 1, .head_grain = 1};
    if (member->kernel->plan)
        rc = member->kernel->plan(&planned, team->threads, member->state, &member->plan);
    if (rc < 0)
        return error_system(error, -rc, "kernel %s could not plan", member->kernel->name);
    rc = check_plan(member, error);
    return rc < 0 ? rc : plan_workspace(member, team, kind, error);
}

/* Attention runs under the schedule of the point; the steps around it as auto would, or as serially as it. */
static int open_part(struct member *member, struct attn_step *step, struct member *part, const struct team *team,
                     enum memory_kind kind, struct error *error)
{
    const bool attends = step->kind == ATTN_STEP_ATTENTION, serial = member->schedule == &attn_schedule_serial;
    *part = (struct member){
        .kernel = attends ? member->kernel : registry_step(member->kernel->name, step, isa_available()),
        .problem = &step->problem,
        .threads = team->threads,
        .busy_ns = member->busy_ns,
    };
    part->schedule = attends  ? member->schedule
                     : serial ? &attn_schedule_serial
                              : attn_schedule_choose(part->kernel, part->problem, team->threads);
    if (step->kind == ATTN_STEP_MATMUL)
        member->matmul = part->kernel;
    return open_whole(part, step->args.param, team, kind, error);
}

static int open_layer(struct member *member, const struct operands *operands, const struct team *team,
                      enum memory_kind kind, struct error *error)
{
    struct member_layer *layer = calloc(1, sizeof *layer);
    if (!layer)
        return error_system(error, ENOMEM, "a layer of kernel %s", member->kernel->name);
    member->layer = layer;
    layer->permute = operands->spec.layout == LAYOUT_HBSD;
    attn_layer_make(member->problem, &operands->args, layer->permute, NULL, &layer->steps);
    size_t lines = (layer->steps.workspace_bytes + 63) / 64;
    int rc = lines ? memory_allocate(&layer->handed_on, lines * 64, kind, error) : 0;
    if (rc < 0)
        return error_prefix(error, rc, "a layer of kernel %s", member->kernel->name);
    touch(&layer->handed_on, lines, team);
    attn_layer_make(member->problem, &operands->args, layer->permute, layer->handed_on.data, &layer->steps);
    layer->bound = &operands->args;
    for (int s = 0; s < layer->steps.count && rc == 0; s++)
        rc = open_part(member, &layer->steps.steps[s], &layer->parts[s], team, kind, error);
    return rc;
}

int member_open(const char *kernel, const char *schedule_requested, const struct operands *operands,
                const struct team *team, enum memory_kind kind, struct member *member, struct error *error)
{
    const struct attn_problem *problem = &operands->problem;
    *member = (struct member){.problem = problem, .threads = team->threads};
    const char *reason = registry_refusal(kernel, problem, isa_available());
    if (reason)
        return error_machine(error, "%s", reason);
    const struct attn_kernel *attention = registry_attention(kernel, problem->rule);
    if (strcmp(schedule_requested, "auto") == 0)
        member->schedule = attn_schedule_choose(attention, problem, team->threads);
    else
        member->schedule = attn_schedule_find(schedule_requested);
    if (!member->schedule)
        return error_machine(error, "schedule '%s' is not built in", schedule_requested);
    if (member->schedule->refuse)
        reason = member->schedule->refuse(attention, problem, team->threads);
    if (reason)
        return error_machine(error, "%s", reason);
    member->kernel = attention; /* from here on there is something to close */
    member->busy_ns = calloc((size_t)member->threads, sizeof *member->busy_ns);
    if (!member->busy_ns)
        return error_system(error, ENOMEM, "%d threads", member->threads);
    int rc = registry_layers(kernel, problem->rule) ? open_layer(member, operands, team, kind, error)
                                                    : open_whole(member, operands->args.param, team, kind, error);
    if (rc < 0)
        member_close(member);
    return rc;
}

static void close_whole(struct member *member)
{
    if (member->kernel && member->kernel->close)
        member->kernel->close(member->state);
    memory_release(&member->shared);
    memory_release(&member->scratch);
    memory_release(&member->workspace);
    free(member->thread_scratch);
}

void member_close(struct member *member)
{
    struct member_layer *layer = member->layer;
    if (layer) {
        for (int s = 0; s < layer->steps.count; s++)
            close_whole(&layer->parts[s]);
        memory_release(&layer->handed_on);
        free(layer);
    } else {
        close_whole(member);
    }
    free(member->busy_ns);
    *member = (struct member){0};
}

static int call_whole(struct member *member, const struct attn_args *args)
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

int member_call(struct member *member, const struct attn_args *args)
{
    struct member_layer *layer = member->layer;
    if (!layer)
        return call_whole(member, args);
    if (layer->bound != args) {
        attn_layer_make(member->problem, args, layer->permute, layer->handed_on.data, &layer->steps);
        layer->bound = args;
    }
    int rc = 0;
    double began = clock_ns();
    for (int s = 0; s < layer->steps.count && rc == 0; s++) {
        rc = call_whole(&layer->parts[s], &layer->steps.steps[s].args);
        const double now = clock_ns();
        member->phase_ns[layer->steps.steps[s].phase] += now - began;
        began = now;
    }
    return rc;
}

const char *member_describe(const struct member *member)
{
    void *state = member->state;
    for (int s = 0; member->layer && s < member->layer->steps.count; s++)
        if (member->layer->steps.steps[s].kind == ATTN_STEP_ATTENTION)
            state = member->layer->parts[s].state;
    return member->kernel->describe ? member->kernel->describe(state) : NULL;
}

static size_t whole_bytes(const struct member *member)
{
    return member->plan.shared_bytes + member->plan.thread_bytes * (size_t)member->threads + member->workspace_bytes;
}

size_t member_workspace_bytes(const struct member *member)
{
    if (!member->layer)
        return whole_bytes(member);
    size_t bytes = member->layer->steps.workspace_bytes;
    for (int s = 0; s < member->layer->steps.count; s++)
        bytes += whole_bytes(&member->layer->parts[s]);
    return bytes;
}

static const char *whole_broken(const struct member *member)
{
    const struct memory_block *blocks[] = {&member->shared, &member->scratch, &member->workspace};
    const char *broken = NULL;
    for (size_t b = 0; b < sizeof blocks / sizeof *blocks && !broken; b++)
        if (blocks[b]->data)
            broken = memory_canary_broken(blocks[b]);
    return broken;
}

const char *member_canary_broken(const struct member *member)
{
    const struct member_layer *layer = member->layer;
    const char *broken = layer ? NULL : whole_broken(member);
    for (int s = 0; layer && s < layer->steps.count && !broken; s++)
        broken = whole_broken(&layer->parts[s]);
    if (layer && !broken && layer->handed_on.data)
        broken = memory_canary_broken(&layer->handed_on);
    return broken ? intern_format("wrote outside its workspace (%s)", broken) : NULL;
}

static void swap_blocks(struct memory_block *a, struct memory_block *b)
{
    const struct memory_block kept = *a;
    if (a->bytes != b->bytes)
        return;
    *a = *b;
    *b = kept;
}

static void swap_whole(struct member *a, struct member *b)
{
    swap_blocks(&a->shared, &b->shared);
    swap_blocks(&a->workspace, &b->workspace);
    if (a->scratch.bytes == b->scratch.bytes && a->threads == b->threads) {
        void **kept = a->thread_scratch;
        swap_blocks(&a->scratch, &b->scratch);
        a->thread_scratch = b->thread_scratch;
        b->thread_scratch = kept;
    }
}

void member_swap_workspaces(struct member *a, struct member *b)
{
    if (!a->layer && !b->layer)
        swap_whole(a, b);
    for (int s = 0; a->layer && b->layer && s < a->layer->steps.count && s < b->layer->steps.count; s++)
        swap_whole(&a->layer->parts[s], &b->layer->parts[s]);
}
