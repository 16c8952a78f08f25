/* SPDX-License-Identifier: Apache-2.0
 *
 * `attnbench verify`: every kernel against the oracle, between guard pages, nothing timed: over a seeded suite of
 * problems, over a sweep of one's own, or over a case folder.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../kernels/schedule/schedule.h"
#include "case_folder.h"
#include "clock.h"
#include "commands.h"
#include "intern.h"
#include "isa.h"
#include "json_util.h"
#include "options.h"
#include "registry.h"
#include "verifier.h"
#include "verify_suite.h"

enum { CASES_DEFAULT = 400, SUITE_THREADS = 2 };

/* The kernels that the request names, each once, as members of suite or case. Returns how many. */
static size_t kernels_of(const struct plan *plan, const char **kernels, size_t most)
{
    size_t count = 0;
    for (size_t i = 0; i < plan->count; i++) {
        bool known = false;
        for (size_t k = 0; k < count; k++)
            known |= kernels[k] == plan->points[i].kernel;
        if (!known && count < most)
            kernels[count++] = plan->points[i].kernel;
    }
    return count;
}

/* Unless one is asked for, schedules rotate, and differently for each kernel; where one refuses, the next is taken. */
static const char *rotated_schedule(const char *kernel, const struct problem_spec *spec, size_t turn)
{
    static const char *const schedules[] = {"bhq", "splitkv", "bh", "serial"};
    enum { SCHEDULES = sizeof schedules / sizeof *schedules };
    const struct attn_problem problem = {
        .struct_size = sizeof problem, .rule = spec->rule, .flags = spec->weights ? ATTN_FLAG_WEIGHTS : 0};
    for (size_t tried = 0; tried < SCHEDULES && registry_does(kernel, spec->rule); tried++) {
        const struct attn_schedule *schedule = attn_schedule_find(schedules[(turn + tried) % SCHEDULES]);
        if (!schedule->refuse(registry_attention(kernel, spec->rule), &problem, SUITE_THREADS))
            return schedule->name;
    }
    return schedules[turn % SCHEDULES];
}

static int run_suite(struct verifier *verifier, const struct plan *plan, int64_t cases, struct error *error)
{
    const char *kernels[VERIFIER_MOST_MEMBERS];
    size_t count = kernels_of(plan, kernels, VERIFIER_MOST_MEMBERS);
    const char *asked = plan->count ? plan->points[0].schedule_requested : "auto";
    struct point seat = {.placement = intern("none"), .threads = SUITE_THREADS};
    int rc = 0;
    for (int64_t index = 0; index < cases && rc == 0; index++) {
        struct verifier_task task = {.seat = &seat, .count = count};
        task.spec = verify_suite_problem(plan->seed, index, &task.far);
        for (size_t k = 0; k < count; k++) {
            const char *rotated = rotated_schedule(kernels[k], &task.spec, (size_t)index + k);
            task.members[k] = (struct verifier_member){kernels[k], strcmp(asked, "auto") ? asked : rotated};
        }
        rc = spec_validate(&task.spec, true, error);
        if (rc == 0)
            rc = verifier_check(verifier, &task, error);
        else
            error_prefix(error, rc, "problem %lld of the suite", (long long)index);
    }
    return rc;
}

static int run_case(struct verifier *verifier, const struct plan *plan, const char *directory, struct error *error)
{
    const char *kernels[VERIFIER_MOST_MEMBERS];
    size_t count = kernels_of(plan, kernels, VERIFIER_MOST_MEMBERS);
    struct case_folder folder = {0};
    int rc = case_folder_read(directory, &folder, error);
    if (rc < 0)
        return rc;
    struct point seat = {.placement = intern("none"), .threads = SUITE_THREADS};
    /* Weights are compared for kernels that return them; the others are judged by their output alone. */
    for (int weights = 1; weights >= 0 && rc == 0; weights--) {
        struct verifier_task task = {.seat = &seat, .spec = folder.operands.spec, .case_dir = directory};
        bool expected = folder.expect_weights != NULL || folder.operands.spec.weights;
        task.spec.weights = weights && expected;
        for (size_t k = 0; k < count; k++) {
            bool returns = registry_does(kernels[k], task.spec.rule) &&
                           (registry_attention(kernels[k], task.spec.rule)->caps & ATTN_CAP_WEIGHTS) != 0;
            if ((returns && expected) == (weights == 1))
                task.members[task.count++] = (struct verifier_member){kernels[k], "auto"};
        }
        if (task.count)
            rc = verifier_check(verifier, &task, error);
    }
    case_folder_release(&folder);
    return rc;
}

static bool same_task(const struct point *a, const struct point *b)
{
    return a->threads == b->threads && a->placement == b->placement && a->mem == b->mem &&
           spec_digest(&a->spec) == spec_digest(&b->spec);
}

/* A sweep of the user's own: every planned point once. */
static int run_points(struct verifier *verifier, const struct plan *plan, struct error *error)
{
    int rc = 0;
    for (size_t first = 0, next; first < plan->count && rc == 0; first = next) {
        struct verifier_task task = {.seat = &plan->points[first], .spec = plan->points[first].spec};
        for (next = first; next < plan->count && same_task(&plan->points[first], &plan->points[next]) &&
                           task.count < VERIFIER_MOST_MEMBERS;
             next++)
            task.members[task.count++] =
                (struct verifier_member){plan->points[next].kernel, plan->points[next].schedule_requested};
        rc = verifier_check(verifier, &task, error);
    }
    return rc;
}

int command_verify(int argc, char **argv, struct error *error)
{
    struct options options = {0};
    struct topology topology = {0};
    struct plan plan = {0};
    struct verifier verifier = {0};
    bool done = false;
    int rc = options_parse("verify", argc, argv, &options, &done, error);
    if (rc < 0 || done)
        goto cleanup;
    rc = topology_load(options.topology, options.restrict_list, &topology, error);
    if (rc == 0 && !topology.this_system)
        rc = error_usage(error, "--topology: kernels can't run on another machine's topology");
    if (rc == 0)
        rc = request_plan(options.request, &topology, true, &plan, error);
    if (rc == 0)
        rc = verifier_create(&topology, plan.effort.point_timeout_s, options.dump_dir, options.quiet ? stderr : stdout,
                             &verifier, error);
    if (rc < 0)
        goto cleanup;
    if (options.case_dir)
        rc = run_case(&verifier, &plan, options.case_dir, error);
    else if (options.request_is_default || options.cases >= 0)
        rc = run_suite(&verifier, &plan, options.cases >= 0 ? options.cases : CASES_DEFAULT, error);
    else
        rc = run_points(&verifier, &plan, error);
    if (rc == 0)
        rc = verifier_report(&verifier, options.quiet);
cleanup:
    verifier_release(&verifier);
    plan_release(&plan);
    topology_release(&topology);
    options_release(&options);
    return rc;
}
