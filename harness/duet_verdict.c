/* SPDX-License-Identifier: Apache-2.0
 *
 * From the log-ratios of processes to a verdict, and what noise has to say to it; see duet.h.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "duet.h"
#include "intern.h"
#include "json_util.h"
#include "statistics.h"

/* Medians over the processes beyond which a verdict is not given: the first two only of wall time. */
static const double noisy_wall_over_cpu = 1.3, noisy_switches_per_s = 60, noisy_steal = 0.02, noisy_drift = 0.01;

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
    {"wall_over_cpu", "wall_over_cpu"},
    {"switches_per_s", "switches_per_s"},
    {"steal_share", "steal_share"},
    {"clock_drift", "clock_drift"},
    {"migrations", "migrations"},
};

static void set_status(json_t *record, const char *status, const char *reason)
{
    json_object_set_new(record, "status", json_string(status));
    json_object_set_new(record, "reason", reason ? json_string(reason) : json_null());
}

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
    set_status(record, status, reason);
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

static double *numbers(const json_t *array, size_t *count)
{
    double *values = calloc(json_array_size(array) + 1, sizeof *values);
    *count = 0;
    for (size_t i = 0; values && i < json_array_size(array); i++)
        if (json_is_number(json_array_get(array, i)))
            values[(*count)++] = json_number_value(json_array_get(array, i));
    return values;
}

double *duet_log_ratios(const json_t *record, size_t *count)
{
    const bool cpu = strcmp(json_get_string(record, "judged_by", "wall"), "cpu") == 0;
    double *values = numbers(json_object_get(record, cpu ? "log_ratios_cpu" : "log_ratios_wall"), count);
    if (values && *count == 0) {
        free(values);
        return NULL;
    }
    return values;
}

/* Median of what the processes told; NaN where none did. */
static double typical(const json_t *record, const char *field)
{
    size_t count;
    double *values = numbers(json_object_get(record, field), &count);
    const double median = values && count ? statistics_median(values, count) : NAN;
    free(values);
    return median;
}

/* Whether the verdict would be another, were the interval wider by slack on both sides: samples alternate, so what
 * drifts meets both sides alike but for a part of it, and never counts for more than the whole. */
static bool is_shaken(const struct sequential_verdict *verdict, const struct duet_run *run, double slack)
{
    const double tau = log1p(run->rule.tau), margin = log1p(run->rule.tau / 4);
    const double low = verdict->low - slack, high = verdict->high + slack;
    if (verdict->decision == SEQUENTIAL_SLOWER)
        return low <= margin;
    if (verdict->decision == SEQUENTIAL_FASTER)
        return high >= -margin;
    return high >= tau || (!run->one_sided && low <= -tau);
}

/* NULL, or why what was seen does not carry the verdict. */
static const char *noise_reason(const struct duet_run *run, const json_t *record,
                                const struct sequential_verdict *verdict)
{
    const bool cpu = strcmp(json_get_string(record, "judged_by", "wall"), "cpu") == 0;
    const double wall_over_cpu = typical(record, "wall_over_cpu"), switches = typical(record, "switches_per_s");
    const double steal = typical(record, "steal_share"), drift = typical(record, "clock_drift");
    if (verdict->decision == SEQUENTIAL_GO_ON || verdict->decision == SEQUENTIAL_INCONCLUSIVE)
        return NULL;
    if (!cpu && wall_over_cpu > noisy_wall_over_cpu)
        return intern_format("noisy: wall time is %.2f times the CPU time", wall_over_cpu);
    if (!cpu && switches > noisy_switches_per_s)
        return intern_format("noisy: %.0f involuntary switches a second", switches);
    if (typical(record, "migrations") > 0)
        return "noisy: threads were met on other CPUs than theirs";
    if (steal > noisy_steal && is_shaken(verdict, run, steal))
        return intern_format("noisy: %.1f %% of the CPUs' time was stolen", 100 * steal);
    if (drift > noisy_drift && is_shaken(verdict, run, drift))
        return intern_format("noisy: the clock drifted by %.1f %% within a process", 100 * drift);
    return NULL;
}

static void set_figures(json_t *record, const struct sequential_verdict *verdict)
{
    static const double normal_99 = 2.5758293035489004; /* 99.5 % point of the normal distribution */
    json_object_set_new(record, "processes", json_integer((json_int_t)verdict->processes));
    json_object_set_new(record, "log_ratio", json_number_or_null(verdict->estimate));
    json_object_set_new(record, "se", json_number_or_null((verdict->high - verdict->low) / (2 * normal_99)));
    json_object_set_new(record, "ratio", json_number_or_null(exp(verdict->estimate)));
    json_object_set_new(record, "ratio_low", json_number_or_null(exp(verdict->low)));
    json_object_set_new(record, "ratio_high", json_number_or_null(exp(verdict->high)));
    json_object_set_new(record, "p_slower", json_number_or_null(verdict->p_slower));
    json_object_set_new(record, "p_faster", json_number_or_null(verdict->p_faster));
    json_object_set_new(record, "smallest_detectable", json_number_or_null(verdict->smallest_detectable));
}

/* One process: its result into the record. False: the duet is over, and the record says why. */
static bool add_process(struct duet_run *run, const struct duet_pair *pair, json_t *record)
{
    static const char *const wrong[] = {"wrong_a", "wrong_b"};
    struct error error;
    json_t *result = NULL;
    int rc = duet_process(run, pair, &result, &error);
    if (rc < 0) {
        set_status(record, rc == -EINTR ? "unreached" : "failed", error.text);
        return false;
    }
    gather(record, result);
    if (!json_is_number(json_object_get(result, "log_ratio_cpu")) ||
        !json_is_number(json_object_get(result, "log_ratio_wall")))
        set_status(record, "failed", "the ratios of its times are no numbers");
    for (int side = 0; side < DUET_SIDES; side++) {
        const char *reason = json_get_string(result, wrong[side], NULL);
        if (reason)
            set_status(record, "wrong", intern_format("%s: %s", pair->side[side].label, reason));
    }
    json_decref(result);
    const char *status = json_get_string(record, "status", "");
    return strcmp(status, "wrong") != 0 && strcmp(status, "failed") != 0;
}

/* What the processes so far allow to say: by the rule's looks, or, fixed, by all of them at once. False: memory, or a
 * ratio that is no number. */
static bool look(const struct duet_run *run, const json_t *record, bool fixed, struct sequential_verdict *verdict)
{
    size_t count;
    double *values = duet_log_ratios(record, &count);
    struct sequential_rule rule = run->rule;
    if (fixed) {
        rule.looks[0] = count;
        rule.look_count = 1;
    }
    int rc = -ENOMEM;
    if (values)
        rc = run->one_sided ? sequential_gate(values, count, &rule, verdict)
                            : sequential_duet(values, count, &rule, verdict);
    free(values);
    return rc == 0;
}

static void set_verdict(json_t *record, const struct sequential_verdict *verdict, const char *noise)
{
    const enum sequential_decision said = noise ? SEQUENTIAL_INCONCLUSIVE : verdict->decision;
    set_figures(record, verdict);
    set_status(record, "ok", noise);
    json_object_set_new(record, "verdict", json_string(sequential_decision_name(said)));
}

static bool is_look(const struct sequential_rule *rule, size_t processes)
{
    for (size_t l = 0; l < rule->look_count; l++)
        if (rule->looks[l] == processes)
            return true;
    return false;
}

json_t *duet_decide(struct duet_run *run, const struct duet_pair *pair)
{
    run->rule = sequential_rule_for(duet_tau(run, pair->point));
    json_t *record = start_record(run, pair);
    struct sequential_verdict verdict;
    const size_t most = run->exactly ? run->exactly : run->rule.looks[run->rule.look_count - 1];
    bool extended = run->exactly > 0;
    for (size_t processes = 0; processes < most;) {
        if (clock_ns() > run->deadline_ns) {
            set_status(record, "unreached", "--max-time was over");
            return record;
        }
        if (!add_process(run, pair, record))
            return record;
        processes++;
        if (run->exactly ? processes < most : !is_look(&run->rule, processes))
            continue;
        if (!look(run, record, extended, &verdict)) {
            set_status(record, "failed", "the ratios of its times are no numbers");
            return record;
        }
        const char *noise = noise_reason(run, record, &verdict);
        /* What is noisy is extended, is then judged by all that was measured, and only at the end given up. */
        extended |= noise != NULL;
        const bool open = verdict.decision == SEQUENTIAL_GO_ON || verdict.decision == SEQUENTIAL_INCONCLUSIVE;
        if (processes < most && (open || noise))
            continue;
        set_verdict(record, &verdict, noise);
        return record;
    }
    return record;
}

int duet_run_on(struct duet_run *run, const struct duet_pair *pair, json_t *record, size_t processes)
{
    struct sequential_verdict verdict;
    run->rule = sequential_rule_for(duet_tau(run, pair->point));
    for (size_t have = json_array_size(json_object_get(record, "log_ratios_wall")); have < processes; have++) {
        if (clock_ns() > run->deadline_ns)
            return -ETIME;
        if (!add_process(run, pair, record))
            return -EIO;
    }
    const bool looked = look(run, record, true, &verdict);
    if (looked)
        set_verdict(record, &verdict, noise_reason(run, record, &verdict));
    else
        set_status(record, "failed", "the ratios of its times are no numbers");
    return looked ? 0 : -EIO;
}
