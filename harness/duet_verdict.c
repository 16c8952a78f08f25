/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes gathered into a record until it has a verdict; see duet.h. What is told from them: duet_look.c.
 */
#include <errno.h>
#include <string.h>

#include "clock.h"
#include "duet_look.h"
#include "intern.h"
#include "json_util.h"

bool duet_judges_cpu(const struct point *point)
{
    return point->threads == 1;
}

double duet_tau(const struct duet_run *run, const struct point *point)
{
    return run->tau > 0 ? run->tau : point->tau > 0 ? point->tau : DUET_TAU;
}

/* Fields that every process tells, gathered into an array each; and the name of the array. */
static const struct {
    const char *told, *kept;
} gathered[] = {
    {"log_ratio_cpu", "log_ratios_cpu"},
    {"log_ratio_wall", "log_ratios_wall"},
    {"median_cpu_a_ns", "medians_cpu_a_ns"},
    {"median_cpu_b_ns", "medians_cpu_b_ns"},
    {"median_wall_a_ns", "medians_wall_a_ns"},
    {"median_wall_b_ns", "medians_wall_b_ns"},
    {"calls_a", "calls_a"},
    {"calls_b", "calls_b"},
    {"wall_over_cpu", "wall_over_cpu"},
    {"switches_per_s", "switches_per_s"},
    {"steal_share", "steal_share"},
    {"clock_drift", "clock_drift"},
    {"migrations", "migrations"},
};

json_t *duet_record(const struct duet_pair *pair, const char *status, const char *reason)
{
    const struct point *point = pair->point;
    json_t *record = json_pack("{s:s,s:s,s:s,s:s,s:s,s:s}", "schema", "attnbench.duet/1", "point_id", point_id(point),
                               "a", pair->side[DUET_A].label, "b", pair->side[DUET_B].label, "kernel", point->kernel,
                               "schedule", point->schedule_requested);
    json_t *spec = spec_to_json(&point->spec);
    json_object_update(record, spec);
    json_decref(spec);
    json_object_set_new(record, "threads", json_integer(point->threads));
    json_object_set_new(record, "placement", json_string(point->placement));
    json_object_set_new(record, "mem", json_string(point->mem ? point->mem : "local"));
    json_object_set_new(record, "cache", json_string(cache_name(point->cache)));
    duet_set_status(record, status, reason);
    return record;
}

static json_t *start_record(const struct duet_run *run, const struct duet_pair *pair)
{
    static const char *const digest[] = {"a_digest", "b_digest"};
    json_t *record = duet_record(pair, "unreached", NULL);
    for (int side = 0; side < DUET_SIDES; side++)
        json_object_set_new(record, digest[side],
                            pair->side[side].digest ? json_string(pair->side[side].digest) : json_null());
    json_object_set_new(record, "page_mode", json_null());
    json_object_set_new(record, "verdict", json_null());
    json_object_set_new(record, "tau", json_real(run->rule.tau));
    json_object_set_new(record, "confidence", json_real(run->rule.confidence));
    json_object_set_new(record, "judged_by", json_string(duet_judges_cpu(pair->point) ? "cpu" : "wall"));
    for (size_t g = 0; g < sizeof gathered / sizeof *gathered; g++)
        json_object_set_new(record, gathered[g].kept, json_array());
    return record;
}

/* A process whose pages were others makes it a mixture, as a block with both kinds is one. */
static void gather_pages(json_t *record, const json_t *result)
{
    const char *known = json_get_string(record, "page_mode", NULL), *pages = json_get_string(result, "page_mode", NULL);
    if (pages)
        json_object_set_new(record, "page_mode", json_string(known && strcmp(known, pages) != 0 ? "mixed" : pages));
}

static void gather(json_t *record, const json_t *result)
{
    static const char *const once[] = {"schedule_a", "schedule_b"}, *const worst[] = {"err_over_bound_a",
                                                                                      "err_over_bound_b"};
    for (size_t g = 0; g < sizeof gathered / sizeof *gathered; g++) {
        json_t *value = json_object_get(result, gathered[g].told);
        json_array_append(json_object_get(record, gathered[g].kept), value ? value : json_null());
    }
    for (size_t f = 0; f < 2; f++) {
        json_object_set(record, once[f], json_object_get(result, once[f]));
        if (json_get_number(result, worst[f], 0) >= json_get_number(record, worst[f], 0))
            json_object_set(record, worst[f], json_object_get(result, worst[f]));
    }
    gather_pages(record, result);
}

/* Why a side can't do the problem, which only its own code knew. False: both can. */
static bool is_refused(const struct duet_pair *pair, const json_t *result, json_t *record)
{
    const char *a = json_get_string(result, "refused_a", NULL), *b = json_get_string(result, "refused_b", NULL);
    if (!a && !b)
        return false;
    duet_set_status(record, "skipped", intern_format("%s: %s", pair->side[a ? DUET_A : DUET_B].label, a ? a : b));
    if (!a)
        json_object_set_new(record, "lost", json_true());
    return true;
}

/* What is gathered must be sound. */
static int check_process(const struct duet_pair *pair, const json_t *result, json_t *record)
{
    static const char *const wrong[] = {"wrong_a", "wrong_b"};
    int rc = 0;
    if (!json_is_number(json_object_get(result, "log_ratio_cpu")) ||
        !json_is_number(json_object_get(result, "log_ratio_wall"))) {
        duet_set_failed(record);
        rc = -EIO;
    }
    for (int side = 0; side < DUET_SIDES; side++) {
        const char *reason = json_get_string(result, wrong[side], NULL);
        if (reason) {
            duet_set_status(record, "wrong", intern_format("%s: %s", pair->side[side].label, reason));
            rc = -EIO;
        }
    }
    return rc;
}

static size_t processes_of(const json_t *record)
{
    return json_array_size(json_object_get(record, "log_ratios_wall"));
}

/* One process: its result into the record. 0; -ETIME: its time was over, and the record is as it was; -EIO: the duet is
 * over, and the record says why. */
static int add_process(struct duet_run *run, const struct duet_pair *pair, json_t *record)
{
    struct error error;
    json_t *result = NULL;
    int rc = clock_ns() > run->deadline_ns ? -ETIME : duet_process(run, pair, processes_of(record), &result, &error);
    if (rc == -ETIME)
        return rc;
    if (rc < 0) {
        duet_set_status(record, rc == -EINTR ? "unreached" : "failed", error.text);
        return -EIO;
    }
    if (is_refused(pair, result, record)) {
        rc = -EIO;
    } else {
        gather(record, result);
        rc = check_process(pair, result, record);
    }
    json_decref(result);
    return rc;
}

static void add_spent(json_t *record, double began_ns)
{
    const double spent_s = json_get_number(record, "spent_s", 0) + (clock_ns() - began_ns) / 1e9;
    json_object_set_new(record, "spent_s", json_real(spent_s));
}

json_t *duet_decide(struct duet_run *run, const struct duet_pair *pair)
{
    const double began_ns = clock_ns();
    run->rule = sequential_rule_for(duet_tau(run, pair->point));
    json_t *record = start_record(run, pair);
    bool extended = false;
    int rc;
    do
        rc = add_process(run, pair, record);
    while (rc == 0 && !duet_look(run, record, &extended));
    if (rc == -ETIME)
        duet_set_status(record, "unreached", "--max-time was over");
    add_spent(record, began_ns);
    return record;
}

int duet_run_on(struct duet_run *run, const struct duet_pair *pair, json_t *record, size_t processes)
{
    const double began_ns = clock_ns();
    int rc = 0;
    run->rule = sequential_rule_for(duet_tau(run, pair->point));
    while (rc == 0 && processes_of(record) < processes)
        rc = add_process(run, pair, record);
    add_spent(record, began_ns);
    return rc < 0 ? rc : duet_look_at_all(run, record);
}
