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

/* Problems of each rule where their number is not asked for: scaled_dot_product has the most traits to meet. */
enum { CASES_DEFAULT = 400, CASES_OTHER_RULES = 100, SUITE_THREADS = 2 };

/* The kernels that the request names for a rule, each once, as members of suite or case. Returns how many. */
static size_t kernels_of(const struct plan *plan, enum attn_rule rule, const char **kernels, size_t most)
{
    size_t count = 0;
    for (size_t i = 0; i < plan->count; i++) {
        bool known = plan->points[i].spec.rule != rule;
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
    enum { SCHEDULES = sizeof schedules / sizeof *schedules, OWN_EACH = 3 };
    const struct attn_problem problem = {
        .struct_size = sizeof problem, .rule = spec->rule, .flags = spec->weights ? ATTN_FLAG_WEIGHTS : 0};
    if (!registry_does(kernel, spec->rule))
        return schedules[turn % SCHEDULES];
    const struct attn_kernel *attention = registry_attention(kernel, spec->rule);
    if ((attention->caps & ATTN_CAP_OWN_THREADS) && turn % OWN_EACH == 0)
        return attn_schedule_own.name;
    for (size_t tried = 0; tried < SCHEDULES; tried++) {
        const struct attn_schedule *schedule = attn_schedule_find(schedules[(turn + tried) % SCHEDULES]);
        if (!schedule->refuse(attention, &problem, SUITE_THREADS))
            return schedule->name;
    }
    if (attention->caps & ATTN_CAP_OWN_THREADS)
        return attn_schedule_own.name;
    return schedules[turn % SCHEDULES];
}

/* Where all rules are gone through, a kernel is held against those that it does. */
static size_t drop_others(const struct plan *plan, enum attn_rule rule, const char **kernels, size_t count)
{
    const bool several = plan->count && plan->points[0].spec.rule != plan->points[plan->count - 1].spec.rule;
    size_t kept = 0;
    for (size_t k = 0; k < count; k++)
        if (!several || registry_does(kernels[k], rule))
            kernels[kept++] = kernels[k];
    return kept;
}

/* One seeded problem of a rule, by all kernels that the plan has for it. */
static int check_seeded(struct verifier *verifier, const struct plan *plan, enum attn_rule rule, int64_t index,
                        struct error *error)
{
    const char *kernels[VERIFIER_MOST_MEMBERS] = {0};
    const char *asked = plan->count ? plan->points[0].schedule_requested : "auto";
    const struct point seat = {.placement = intern("none"), .threads = SUITE_THREADS};
    struct verifier_task task = {.seat = &seat};
    task.count = drop_others(plan, rule, kernels, kernels_of(plan, rule, kernels, VERIFIER_MOST_MEMBERS));
    if (task.count == 0)
        return 0;
    task.spec = verify_suite_problem(plan->seed, rule, index, &task.far);
    for (size_t k = 0; k < task.count; k++) {
        const char *rotated = rotated_schedule(kernels[k], &task.spec, (size_t)index + k);
        task.members[k] = (struct verifier_member){kernels[k], strcmp(asked, "auto") ? asked : rotated};
    }
    int rc = spec_validate(&task.spec, true, error);
    if (rc < 0)
        return error_prefix(error, rc, "problem %lld of the suite of rule %s", (long long)index, rule_name(rule));
    return verifier_check(verifier, &task, error);
}

/* cases: of each rule; negative: as many as usual. */
static int run_suite(struct verifier *verifier, const struct plan *plan, int64_t cases, struct error *error)
{
    int rc = 0;
    for (int rule = 0; rule <= ATTN_MATMUL; rule++) {
        int64_t count = cases >= 0 ? cases : rule == ATTN_SCALED_DOT_PRODUCT ? CASES_DEFAULT : CASES_OTHER_RULES;
        for (int64_t index = 0; index < count && rc == 0; index++)
            rc = check_seeded(verifier, plan, (enum attn_rule)rule, index, error);
    }
    return rc;
}

static int run_case(struct verifier *verifier, const struct plan *plan, const struct case_folder *folder,
                    const char *directory, struct error *error)
{
    const char *kernels[VERIFIER_MOST_MEMBERS];
    const struct problem_spec *spec = &folder->operands.spec;
    const size_t count = kernels_of(plan, spec->rule, kernels, VERIFIER_MOST_MEMBERS);
    const struct point seat = {.placement = intern("none"), .threads = SUITE_THREADS};
    int rc = 0;
    /* Weights are compared for kernels that return them; the others are judged by their output alone. */
    for (int weights = 1; weights >= 0 && rc == 0; weights--) {
        struct verifier_task task = {.seat = &seat, .spec = *spec, .case_dir = directory};
        bool expected = folder->expect_weights != NULL || spec->weights;
        task.spec.weights = weights && expected;
        for (size_t k = 0; k < count; k++) {
            bool returns = registry_does(kernels[k], spec->rule) &&
                           (registry_attention(kernels[k], spec->rule)->caps & ATTN_CAP_WEIGHTS) != 0;
            if ((returns && expected) == (weights == 1))
                task.members[task.count++] = (struct verifier_member){kernels[k], "auto"};
        }
        if (task.count)
            rc = verifier_check(verifier, &task, error);
    }
    return rc;
}

/* A case is for the kernels of its rule; the suite, unless a rule is asked for, for those of every rule. */
static int name_rules(const struct options *options, const struct case_folder *folder, struct error *error)
{
    const char *names = "";
    if (options->case_dir)
        return request_set(options->request, "rule", rule_name(folder->operands.spec.rule), "--case", error);
    if (!options->request_is_default && options->cases < 0)
        return 0;
    if (request_has(options->request, "rule") || options->config_name)
        return 0;
    for (int rule = 0; rule <= ATTN_MATMUL; rule++)
        for (const char *const *kernel = registry_names(); *kernel; kernel++)
            if (registry_does(*kernel, (uint32_t)rule)) {
                names = intern_format("%s%s%s", names, *names ? "," : "", rule_name((enum attn_rule)rule));
                break;
            }
    return request_set(options->request, "rule", names, "--rule", error);
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

static int verify(const struct options *options, const struct topology *topology, struct verifier *verifier,
                  struct plan *plan, struct error *error)
{
    struct case_folder folder = {0};
    int rc = options->case_dir ? case_folder_read(options->case_dir, &folder, error) : 0;
    if (rc == 0)
        rc = name_rules(options, &folder, error);
    if (rc == 0)
        rc = request_plan(options->request, topology, true, plan, error);
    if (rc == 0)
        rc = verifier_create(topology, &plan->effort, options->dump_dir, options->quiet ? stderr : stdout, verifier,
                             error);
    if (rc < 0)
        goto done;
    if (options->case_dir)
        rc = run_case(verifier, plan, &folder, options->case_dir, error);
    else if (options->cases >= 0 || (!options->config_name && !request_names_sizes(options->request)))
        rc = run_suite(verifier, plan, options->cases, error);
    else
        rc = run_points(verifier, plan, error);
    if (rc == 0)
        rc = verifier_report(verifier, options->quiet);
done:
    case_folder_release(&folder);
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
        rc = verify(&options, &topology, &verifier, &plan, error);
cleanup:
    verifier_release(&verifier);
    plan_release(&plan);
    topology_release(&topology);
    options_release(&options);
    return rc;
}
