/* SPDX-License-Identifier: Apache-2.0
 *
 * From a request to points: every combination of a sweep's axes, each distinct point once, the points of one problem
 * side by side; see sweep.h.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../kernels/schedule/schedule.h"
#include "digest_set.h"
#include "foreign.h"
#include "intern.h"
#include "isa.h"
#include "key_readers.h"
#include "memory_policy.h"
#include "registry.h"
#include "request.h"

/* A placement once resolved: what it gave, or why threads don't fit. */
struct resolved {
    const char *expression;
    int asked; /* threads; 0: all that it has */
    struct placement placement;
    const char *reason; /* NULL: fits */
};

struct planner {
    const struct request *request;
    const struct topology *topology;
    bool zero_ok;
    struct plan *plan;
    struct error *error;
    struct {
        const char **names;
        size_t count;
    } kernels[ATTN_MATMUL + 1]; /* of the sweep under way, by rule */
    struct resolved *resolved;
    size_t resolved_count;
    struct digest_set points, problems;
    double tau;               /* of the sweep under way */
    struct value_list places; /* of the sweep under way, the ladder written out */
    size_t *problem_numbers;  /* of each point */
    size_t room;              /* of points and problem_numbers */
};

/* One problem under expansion, and what kernels see of it. */
struct subject {
    struct problem_spec spec;
    struct attn_problem problem;
    size_t number;
};

static int no_memory(struct planner *planner)
{
    return error_system(planner->error, ENOMEM, "a plan of %zu points", planner->plan->count);
}

/* Each warning once; NULL: none. */
static int plan_warn(struct plan *plan, const char *warning, struct error *error)
{
    if (!warning)
        return 0;
    for (size_t i = 0; i < plan->warning_count; i++)
        if (plan->warnings[i] == warning)
            return 0;
    const char **grown = realloc(plan->warnings, (plan->warning_count + 1) * sizeof *grown);
    if (!grown)
        return error_system(error, ENOMEM, "warnings");
    plan->warnings = grown;
    plan->warnings[plan->warning_count++] = warning;
    return 0;
}

static int resolve(struct planner *planner, const struct value *place, int asked, const struct resolved **found)
{
    for (size_t i = 0; i < planner->resolved_count; i++) {
        *found = &planner->resolved[i];
        if ((*found)->expression == place->text && (*found)->asked == asked)
            return 0;
    }
    struct resolved *grown = realloc(planner->resolved, (planner->resolved_count + 1) * sizeof *grown);
    if (!grown)
        return no_memory(planner);
    planner->resolved = grown;
    struct resolved *entry = &grown[planner->resolved_count];
    *entry = (struct resolved){.expression = place->text, .asked = asked};
    struct error error = {0};
    int code = placement_resolve(planner->topology, place->text, asked, &entry->placement, &error);
    if (code == -ERANGE) {
        entry->placement = (struct placement){0};
        entry->reason = intern(error.text);
    } else if (code) {
        *planner->error = error;
        return error_prefix(planner->error, code, "%s", place->where ? place->where : "--place");
    }
    planner->resolved_count++;
    *found = entry;
    return plan_warn(planner->plan, entry->placement.warning, planner->error);
}

static const char *schedule_refusal(const char *name, const char *kernel, const struct attn_problem *problem,
                                    int threads)
{
    if (strcmp(name, "serial") == 0 && threads > 1)
        return intern("serial uses one thread");
    const struct attn_schedule *schedule = attn_schedule_find(name);
    const struct attn_kernel *attention = registry_attention(kernel, problem->rule);
    return schedule && schedule->refuse ? intern(schedule->refuse(attention, problem, threads)) : NULL;
}

static int grow(struct planner *planner)
{
    size_t room = planner->room ? 2 * planner->room : 256;
    struct point *points = realloc(planner->plan->points, room * sizeof *points);
    if (points)
        planner->plan->points = points;
    size_t *numbers = points ? realloc(planner->problem_numbers, room * sizeof *numbers) : NULL;
    if (!numbers)
        return no_memory(planner);
    planner->problem_numbers = numbers;
    planner->room = room;
    return 0;
}

static int add_point(struct planner *planner, const struct subject *subject, struct point *point,
                     const struct placement *placement)
{
    size_t number;
    bool added;
    if (digest_set_add(&planner->points, point_digest(point), &number, &added))
        return no_memory(planner);
    if (!added) { /* asked for twice: the stricter one is meant */
        double *tau = &planner->plan->points[number].tau;
        if (point->tau > 0 && (*tau <= 0 || point->tau < *tau))
            *tau = point->tau;
        return 0;
    }
    if (planner->plan->count == planner->room && grow(planner))
        return -ENOMEM;
    if (placement->cpus) {
        size_t bytes = (size_t)point->threads * sizeof *point->cpus;
        point->cpus = malloc(bytes);
        if (!point->cpus)
            return no_memory(planner);
        memcpy(point->cpus, placement->cpus, bytes);
    }
    planner->problem_numbers[planner->plan->count] = subject->number;
    planner->plan->points[planner->plan->count++] = *point;
    return 0;
}

/* All schedules and kernels of one problem at one cache state, width and placement. */
static int expand_kernels(struct planner *planner, const struct axes *axes, const struct subject *subject,
                          struct point point, const struct value *place)
{
    const struct axis *schedules = &axes->axis[KEY_SCHEDULE];
    const struct resolved *resolved = NULL;
    const char *unbindable;
    int code = resolve(planner, place, point.threads, &resolved);
    if (!code)
        code = memory_policy_check(planner->topology, point.mem, &unbindable, planner->error);
    if (code)
        return code;
    assert(resolved);
    point.placement = resolved->expression;
    if (!resolved->reason)
        point.threads = resolved->placement.threads;
    for (size_t s = 0; s < schedules->count; s++) {
        point.schedule_requested = intern(schedules->items[s].text);
        for (size_t k = 0; k < planner->kernels[point.spec.rule].count && !code; k++) {
            const char *kernel = planner->kernels[point.spec.rule].names[k];
            point.kernel = intern(kernel);
            point.source = registry_origin(kernel)->source;
            point.skip_reason = registry_refusal(kernel, &subject->problem, isa_available());
            if (!point.skip_reason)
                point.skip_reason = resolved->reason ? resolved->reason : unbindable;
            if (!point.skip_reason)
                point.skip_reason =
                    schedule_refusal(point.schedule_requested, kernel, &subject->problem, point.threads);
            code = add_point(planner, subject, &point, &resolved->placement);
        }
    }
    return code;
}

static int expand_runs(struct planner *planner, const struct axes *axes, const struct subject *subject)
{
    const struct axis *caches = &axes->axis[KEY_CACHE], *threads = &axes->axis[KEY_THREADS];
    const struct axis *places = &axes->axis[KEY_PLACE], *mems = &axes->axis[KEY_MEM];
    struct point point = {.spec = subject->spec, .tau = planner->tau};
    int code = 0;
    for (size_t c = 0; c < caches->count; c++) {
        point.cache = (enum cache_state)caches->items[c].integer;
        for (size_t t = 0; t < threads->count; t++) {
            for (size_t p = 0; p < places->count && !code; p++) {
                struct value place = places->items[p];
                int64_t asked = place.integer == PLACE_OWN_THREADS ? THREADS_OF_PLACEMENT : threads->items[t].integer;
                point.threads = asked == THREADS_MAX ? topology_max_threads(planner->topology) : (int)asked;
                place.text = intern(place.text);
                for (size_t m = 0; m < mems->count && !code; m++) {
                    const char *mem = intern(mems->items[m].text);
                    point.mem = mem == intern("local") ? NULL : mem;
                    code = expand_kernels(planner, axes, subject, point, &place);
                }
            }
        }
    }
    return code;
}

static int expand_problem(struct planner *planner, const struct axes *axes, const size_t *index)
{
    struct subject subject = {.spec = spec_at(axes, index, planner->plan->seed)};
    int code = spec_validate(&subject.spec, planner->zero_ok, planner->error);
    bool added;
    if (code)
        return code;
    if (digest_set_add(&planner->problems, spec_digest(&subject.spec), &subject.number, &added))
        return no_memory(planner);
    int64_t *lengths = malloc(((size_t)subject.spec.B + 1) * 2 * sizeof *lengths);
    if (!lengths)
        return no_memory(planner);
    spec_problem(&subject.spec, lengths, lengths + subject.spec.B, &subject.problem);
    code = expand_runs(planner, axes, &subject);
    free(lengths);
    return code;
}

static int expand(struct planner *planner, const struct axes *axes)
{
    size_t index[KEY_CACHE] = {0};
    for (;;) {
        int code = expand_problem(planner, axes, index);
        if (code)
            return code;
        int id = KEY_CACHE - 1;
        while (id >= 0 && ++index[id] == axes->axis[id].count)
            index[id--] = 0;
        if (id < 0)
            return 0;
    }
}

/* Zeros that only verify takes, named where they stand. */
static int check_zeros(const struct planner *planner, const struct axes *merged)
{
    static const enum key_id may_be_zero[] = {KEY_B, KEY_S, KEY_Q_LEN, KEY_KV_LEN};
    for (size_t k = 0; k < sizeof may_be_zero / sizeof may_be_zero[0] && !planner->zero_ok; k++) {
        const struct axis *axis = &merged->axis[may_be_zero[k]];
        for (size_t i = 0; i < axis->count; i++)
            if (axis->items[i].integer == 0)
                return error_usage(planner->error, "%s: '0' is less than 1", axis->items[i].where);
    }
    return 0;
}

/* Writes out what `ladder` stands for. Its entries use all of their threads, unless threads were given where the ladder
 * was, or in a layer above it. */
static int expand_places(struct planner *planner, struct axes *merged)
{
    struct axis *places = &merged->axis[KEY_PLACE];
    const struct axis *threads = &merged->axis[KEY_THREADS];
    const bool own = threads->count == 0 || threads->rank < places->rank;
    const char *names[LADDER_MAX];
    int code = 0;
    planner->places.count = 0;
    for (size_t p = 0; p < places->count && !code; p++) {
        struct value place = places->items[p];
        const bool series = strcmp(place.text, LADDER) == 0;
        const int steps = series ? placement_ladder(planner->topology, names, planner->error) : 1;
        place.integer = series && own ? PLACE_OWN_THREADS : 0;
        code = steps < 0 ? steps : 0;
        for (int s = 0; s < steps && !code; s++) {
            place.text = series ? names[s] : place.text;
            code = value_list_add(&planner->places, place, planner->error);
        }
    }
    places->items = planner->places.items;
    places->count = planner->places.count;
    return code;
}

static double combinations(const struct planner *planner, const struct axes *axes)
{
    const struct axis *rules = &axes->axis[KEY_RULE];
    double product = 0;
    for (size_t r = 0; r < rules->count; r++)
        product += (double)planner->kernels[rules->items[r].integer].count;
    for (int id = 0; id < KEY_KERNEL; id++)
        if (id != KEY_RULE && id != KEY_MODEL && id != KEY_DECODE)
            product *= (double)axes->axis[id].count;
    return product;
}

/* The kernels of every rule that the sweep has. */
static int find_kernels(struct planner *planner, const struct axes *merged)
{
    const uint64_t rules = axes_scope(merged).rules;
    int code = 0;
    for (int rule = 0; rule <= ATTN_MATMUL && !code; rule++)
        if (rules & ATTN_BIT(rule))
            code = kernels_match(&merged->axis[KEY_KERNEL], planner->request->kernel_prefix, (enum attn_rule)rule,
                                 planner->kernels[rule].names, &planner->kernels[rule].count, planner->error);
    return code;
}

/* Goes through the models and decode choices of one sweep: counts its points, or expands them if count is NULL. */
static int plan_sweep(struct planner *planner, size_t sweep, double *count)
{
    const struct config *config = &planner->request->config;
    struct axes merged, variant;
    axes_merge(planner->request, sweep, &merged);
    planner->tau = config->sweep_count && config->sweeps[sweep].tau > 0 ? config->sweeps[sweep].tau : config->tau;
    const struct axis *models = &merged.axis[KEY_MODEL], *decodes = &merged.axis[KEY_DECODE];
    int code = check_zeros(planner, &merged);
    if (!code)
        code = expand_places(planner, &merged);
    if (!code)
        code = find_kernels(planner, &merged);
    for (size_t m = 0; m < models->count || m == 0; m++)
        for (size_t d = 0; (d < decodes->count || d == 0) && !code; d++) {
            code = axes_variant(&merged, models->count ? &models->items[m] : NULL,
                                decodes->count ? &decodes->items[d] : NULL, &variant, planner->error);
            if (!code && count)
                *count += combinations(planner, &variant);
            else if (!code)
                code = expand(planner, &variant);
        }
    if (code == -EINVAL && planner->request->has_config && !strstr(planner->error->text, planner->request->config.path))
        error_prefix(planner->error, code, "%s", planner->request->config.sweeps[sweep].where);
    return code;
}

/* Sorts points by the first appearance of their problem, as sweeps may come back to one. Stable. */
static int group(struct planner *planner)
{
    struct plan *plan = planner->plan;
    size_t *next = calloc(planner->problems.count + 1, sizeof *next);
    struct point *sorted = malloc((plan->count + 1) * sizeof *sorted);
    if (!next || !sorted) {
        free(next);
        free(sorted);
        return no_memory(planner);
    }
    assert(planner->problem_numbers || plan->count == 0);
    for (size_t i = 0; i < plan->count; i++)
        next[planner->problem_numbers[i] + 1]++;
    for (size_t n = 1; n <= planner->problems.count; n++)
        next[n] += next[n - 1];
    for (size_t i = 0; i < plan->count; i++)
        sorted[next[planner->problem_numbers[i]]++] = plan->points[i];
    free(next);
    free(plan->points);
    plan->points = sorted;
    return 0;
}

static int make_plan(struct planner *planner)
{
    const struct request *request = planner->request;
    double count = 0;
    int code = 0;
    for (int rule = 0; rule <= ATTN_MATMUL; rule++)
        if (!(planner->kernels[rule].names = malloc((registry_count() + 1) * sizeof *planner->kernels[rule].names)))
            return no_memory(planner);
    code = request_check_keys(request, planner->error);
    for (size_t s = 0; s < request_sweeps(request) && !code; s++)
        code = plan_sweep(planner, s, &count);
    if (!code && count > SWEEP_MAX_POINTS)
        code = error_usage(planner->error, "%.15g points are more than the %d that one run may have", count,
                           SWEEP_MAX_POINTS);
    for (size_t s = 0; s < request_sweeps(request) && !code; s++)
        code = plan_sweep(planner, s, NULL);
    return code ? code : group(planner);
}

int request_plan(const struct request *request, const struct topology *topology, bool zero_ok, struct plan *plan,
                 struct error *error)
{
    struct planner planner = {
        .request = request, .topology = topology, .zero_ok = zero_ok, .plan = plan, .error = error};
    *plan = (struct plan){.effort = request_effort(request), .seed = request_seed(request)};
    if (request->config.name)
        plan->name = strdup(request->config.name);
    if (request->config.description)
        plan->description = strdup(request->config.description);
    int code = foreign_add_plugins(request_plugins(request), error);
    if (!code)
        code = make_plan(&planner);
    for (int rule = 0; rule <= ATTN_MATMUL; rule++)
        free(planner.kernels[rule].names);
    for (size_t i = 0; i < planner.resolved_count; i++)
        placement_release(&planner.resolved[i].placement);
    free(planner.resolved);
    free(planner.problem_numbers);
    value_list_release(&planner.places);
    digest_set_release(&planner.points);
    digest_set_release(&planner.problems);
    if (code)
        plan_release(plan);
    return code;
}

void plan_release(struct plan *plan)
{
    for (size_t i = 0; i < plan->count; i++)
        free(plan->points[i].cpus);
    free(plan->points);
    free(plan->warnings);
    free(plan->name);
    free(plan->description);
    *plan = (struct plan){0};
}
