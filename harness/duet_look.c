/* SPDX-License-Identifier: Apache-2.0
 *
 * Looks at what the processes of a duet told; see duet_look.h.
 */
#include "duet_look.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "intern.h"
#include "json_util.h"
#include "statistics.h"

/* Medians over the processes beyond which a verdict is not given: the first two only of wall time. */
static const double noisy_wall_over_cpu = 1.3, noisy_switches_per_s = 60, noisy_steal = 0.02, noisy_drift = 0.01;

void duet_set_status(json_t *record, const char *status, const char *reason)
{
    json_object_set_new(record, "status", json_string(status));
    json_object_set_new(record, "reason", reason ? json_string(reason) : json_null());
}

void duet_set_failed(json_t *record)
{
    duet_set_status(record, "failed", "the ratios of its times are no numbers");
}

static bool is_open(const struct sequential_verdict *verdict)
{
    return verdict->decision == SEQUENTIAL_GO_ON || verdict->decision == SEQUENTIAL_INCONCLUSIVE;
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

/* How far a share of every process's time may have moved the mean of their log-ratios. Which side it meets is left to
 * chance, as the order of the samples is: a process's ratio moves by the share at most, either way, and the mean of n
 * by more than share sqrt(2 ln(2 / 0.01) / n) in no more than one case of a hundred (Hoeffding 1963). */
static double slack_of(double share, size_t processes)
{
    const double bound = sqrt(2 * log(2 / 0.01) / (double)(processes ? processes : 1));
    return share * fmin(bound, 1);
}

/* Whether the verdict would be another, were the interval wider by slack on both sides. */
static bool is_shaken(const struct sequential_verdict *verdict, const struct sequential_rule *rule, bool one_sided,
                      double slack)
{
    const double tau = log1p(rule->tau), margin = log1p(rule->tau / 4);
    const double low = verdict->told_low - slack, high = verdict->told_high + slack;
    if (verdict->decision == SEQUENTIAL_SLOWER)
        return low <= margin;
    if (verdict->decision == SEQUENTIAL_FASTER)
        return high >= -margin;
    return high >= tau || (!one_sided && low <= -tau);
}

const char *duet_noise_reason(const json_t *record, const struct sequential_verdict *verdict,
                              const struct sequential_rule *rule, bool one_sided)
{
    const bool cpu = strcmp(json_get_string(record, "judged_by", "wall"), "cpu") == 0;
    const double wall_over_cpu = typical(record, "wall_over_cpu"), switches = typical(record, "switches_per_s");
    const double steal = typical(record, "steal_share"), drift = typical(record, "clock_drift");
    if (is_open(verdict))
        return NULL;
    if (!cpu && wall_over_cpu > noisy_wall_over_cpu)
        return intern_format("noisy: wall time is %.2f times the CPU time", wall_over_cpu);
    if (!cpu && switches > noisy_switches_per_s)
        return intern_format("noisy: %.0f involuntary switches a second", switches);
    if (typical(record, "migrations") > 0)
        return "noisy: threads were met on other CPUs than theirs";
    if (steal > noisy_steal && is_shaken(verdict, rule, one_sided, slack_of(steal, verdict->processes)))
        return intern_format("noisy: %.1f %% of the CPUs' time was stolen", 100 * steal);
    if (drift > noisy_drift && is_shaken(verdict, rule, one_sided, slack_of(drift, verdict->processes)))
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

/* The first look that has no fewer processes, or the last: the one whose level a single look at so many may take. */
static size_t level_at(const struct sequential_rule *rule, size_t processes)
{
    size_t level = 0;
    while (level + 1 < rule->look_count && rule->looks[level] < processes)
        level++;
    return level;
}

/* What the processes so far allow to say: by the rule's looks, or, fixed, by all of them at once. False: memory, or a
 * ratio that is no number. */
static bool evaluate(const struct duet_run *run, const json_t *record, bool fixed, struct sequential_verdict *verdict)
{
    size_t count;
    double *values = duet_log_ratios(record, &count);
    struct sequential_rule rule = run->rule;
    if (fixed) {
        const size_t level = run->exactly ? 0 : level_at(&rule, count);
        rule.same_confidence[0] = rule.same_confidence[level];
        rule.change_confidence[0] = rule.change_confidence[level];
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
    duet_set_status(record, "ok", noise);
    json_object_set_new(record, "verdict", json_string(sequential_decision_name(said)));
}

static bool is_look(const struct sequential_rule *rule, size_t processes)
{
    for (size_t l = 0; l < rule->look_count; l++)
        if (rule->looks[l] == processes)
            return true;
    return false;
}

bool duet_look(const struct duet_run *run, json_t *record, bool *extended)
{
    const size_t processes = json_array_size(json_object_get(record, "log_ratios_wall"));
    const size_t most = run->exactly ? run->exactly : run->rule.looks[run->rule.look_count - 1];
    struct sequential_verdict verdict;
    if (run->exactly ? processes < most : !is_look(&run->rule, processes))
        return false;
    if (!evaluate(run, record, *extended || run->exactly > 0, &verdict)) {
        duet_set_failed(record);
        return true;
    }
    const char *noise = duet_noise_reason(record, &verdict, &run->rule, run->one_sided);
    *extended |= noise != NULL;
    if (processes < most && (is_open(&verdict) || noise))
        return false;
    set_verdict(record, &verdict, noise);
    return true;
}

int duet_look_at_all(const struct duet_run *run, json_t *record)
{
    struct sequential_verdict verdict;
    if (!evaluate(run, record, true, &verdict)) {
        duet_set_failed(record);
        return -EIO;
    }
    set_verdict(record, &verdict, duet_noise_reason(record, &verdict, &run->rule, run->one_sided));
    return 0;
}
