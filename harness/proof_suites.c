/* SPDX-License-Identifier: Apache-2.0
 *
 * Gate runs over many points, replayed on recorded log-ratios; see proof.h. What decides is gate's own code.
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "bootstrap.h"
#include "gate.h"
#include "json_util.h"
#include "proof.h"
#include "signed_rank.h"

/* One suite under replay. */
struct suite {
    struct bootstrap_request request; /* recorded, n and effect are each point's */
    const struct proof_series *const *series;
    size_t count;
    bool by_cpu;
    double effect;
    size_t slowed;       /* the point that effect slows: of each series in turn */
    uint64_t first_draw; /* of this suite; each point has two: its own and its confirmation's */
};

static void draw_of(struct suite *suite, size_t point, bool confirming, double draws[GATE_MOST_PROCESSES])
{
    const struct proof_series *series = suite->series[point % suite->count];
    suite->request.recorded = suite->by_cpu ? series->cpu : series->wall;
    suite->request.n = series->count;
    suite->request.effect = point == suite->slowed ? suite->effect : 0;
    bootstrap_draw(&suite->request, suite->first_draw + 2 * point + confirming, GATE_MOST_PROCESSES, draws);
}

/* p-values of the first `processes` draws against the margins, as a duet's record has them. */
static int put_p(json_t *record, const double *draws, size_t processes, double tau)
{
    const double margin = log1p(tau / 4);
    struct signed_rank_p slower = {0}, faster = {0};
    struct signed_rank_interval interval = {0};
    int code = signed_rank_test(draws, processes, margin, &slower);
    if (code == 0)
        code = signed_rank_test(draws, processes, -margin, &faster);
    if (code == 0)
        code = signed_rank_estimate(draws, processes, 0.99, &interval);
    if (code < 0)
        return code;
    json_object_set_new(record, "status", json_string("ok"));
    json_object_set_new(record, "tau", json_real(tau));
    json_object_set_new(record, "processes", json_integer((json_int_t)processes));
    json_object_set_new(record, "log_ratio", json_number_or_null(interval.estimate));
    json_object_set_new(record, "ratio_high", json_number_or_null(exp(interval.high)));
    json_object_set_new(record, "p_slower", json_number_or_null(slower.greater));
    json_object_set_new(record, "p_faster", json_number_or_null(faster.less));
    return 0;
}

/* As gate_run.c's run_on, from draws. */
static int run_on(enum gate_stage_name stage, json_t *record, const double *draws, const char *suspicion, double enough,
                  double tau)
{
    int code = 0;
    size_t processes = gate_stage_next(stage, record, suspicion, enough);
    for (; processes > 0 && code == 0; processes = gate_stage_next(stage, record, suspicion, enough))
        code = put_p(record, draws, processes, tau);
    return code;
}

/* A point as gate leaves it before flagging: judged at its look, and run on where it looks changed. */
static int add_point(struct suite *suite, size_t point, double enough, double tau, json_t *records)
{
    double draws[GATE_MOST_PROCESSES];
    struct sequential_verdict verdict;
    draw_of(suite, point, false, draws);
    int code = sequential_gate(draws, GATE_MOST_PROCESSES, suite->request.rule, &verdict);
    if (code < 0)
        return code;
    json_t *record = json_object();
    json_array_append_new(records, record);
    json_object_set_new(record, "verdict", json_string(sequential_decision_name(verdict.decision)));
    code = put_p(record, draws, verdict.processes, tau);
    const char *suspicion = code == 0 ? gate_suspect(record) : NULL;
    return suspicion ? run_on(GATE_SUSPECTED, record, draws, suspicion, enough, tau) : code;
}

static int confirm(struct suite *suite, size_t point, const char *suspicion, double tau, json_t *record)
{
    double draws[GATE_MOST_PROCESSES];
    json_t *again = json_object();
    draw_of(suite, point, true, draws);
    int code = put_p(again, draws, gate_stage_first(GATE_CONFIRMING), tau);
    if (code == 0)
        code = run_on(GATE_CONFIRMING, again, draws, suspicion, GATE_CONFIRMING_P, tau);
    gate_note_confirmation(record, again);
    json_decref(again);
    return code;
}

static int play(struct suite *suite, double tau, size_t points, struct proof_suites *result)
{
    json_t *records = json_array(), *controls = json_array(), *record;
    struct gate_result concluded;
    size_t i;
    int code = 0;
    for (size_t p = 0; p < points && code == 0; p++)
        code = add_point(suite, p, GATE_FALSE_DISCOVERY_RATE / (double)points, tau, records);
    if (code == 0 && gate_flag(records) < 0)
        code = -ENOMEM;
    json_array_foreach(records, i, record)
    {
        const char *suspicion = json_get_string(record, "suspected", NULL);
        if (code == 0 && suspicion && gate_is_flagged(record, suspicion))
            code = confirm(suite, i, suspicion, tau, record);
    }
    if (code == 0) {
        bool alarmed = false;
        gate_conclude(records, controls, &concluded);
        json_array_foreach(records, i, record)
        {
            const enum gate_outcome outcome = gate_outcome(record);
            const bool slowed = i == suite->slowed && suite->effect > 0;
            result->detected += slowed && outcome == GATE_REGRESSION;
            alarmed |= !slowed && outcome == GATE_REGRESSION;
            result->inconclusive += !slowed && outcome == GATE_INCONCLUSIVE;
            result->points += !slowed;
        }
        result->alarmed += alarmed;
        result->suites++;
    }
    json_decref(records);
    json_decref(controls);
    return code;
}

int proof_suites(const struct proof_series *const *series, size_t count, bool by_cpu, double tau, double effect,
                 uint64_t suites, size_t points, struct proof_suites *result, struct error *error)
{
    const struct sequential_rule rule = sequential_rule_for(tau);
    struct suite suite = {.request = {.rule = &rule, .which = BOOTSTRAP_GATE, .seed = 2},
                          .series = series,
                          .count = count,
                          .by_cpu = by_cpu,
                          .effect = effect};
    int code = 0;
    *result = (struct proof_suites){0};
    for (uint64_t s = 0; s < suites && code == 0; s++) {
        suite.first_draw = 2 * points * s;
        suite.slowed = s % count;
        code = play(&suite, tau, points, result);
    }
    return code < 0 ? error_system(error, -code, "replaying suites of %zu points", points) : 0;
}
