/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading the records of a proof, and replaying the rule on them; see proof.h.
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bootstrap.h"
#include "intern.h"
#include "json_util.h"
#include "proof.h"

static struct proof_series *series_of(struct proof *proof, const char *workload, const char *load)
{
    for (size_t s = 0; s < proof->count; s++)
        if (strcmp(proof->series[s].workload, workload) == 0 && strcmp(proof->series[s].load, load) == 0)
            return &proof->series[s];
    if (proof->count == PROOF_MOST_SERIES)
        return NULL;
    struct proof_series *series = &proof->series[proof->count++];
    *series = (struct proof_series){.workload = intern(workload), .load = intern(load)};
    return series;
}

static int add_ratios(struct proof_series *series, const json_t *record, struct error *error)
{
    const json_t *cpu = json_object_get(record, "log_ratios_cpu"), *wall = json_object_get(record, "log_ratios_wall");
    const size_t more = json_array_size(cpu);
    if (json_array_size(wall) != more)
        return error_usage(error, "%zu log-ratios of CPU time, %zu of wall time", more, json_array_size(wall));
    if (series->count + more > series->room) {
        const size_t room = 2 * (series->count + more);
        double *grown = realloc(series->cpu, room * sizeof *grown);
        if (grown)
            series->cpu = grown;
        double *grown_wall = grown ? realloc(series->wall, room * sizeof *grown_wall) : NULL;
        if (!grown_wall)
            return error_system(error, ENOMEM, "%zu log-ratios", room);
        series->wall = grown_wall;
        series->room = room;
    }
    for (size_t i = 0; i < more; i++) {
        const double c = json_number_value(json_array_get(cpu, i)), w = json_number_value(json_array_get(wall, i));
        if (!json_is_number(json_array_get(cpu, i)) || !json_is_number(json_array_get(wall, i)))
            return error_usage(error, "a log-ratio that is no number");
        series->cpu[series->count] = c;
        series->wall[series->count++] = w;
    }
    return 0;
}

static int decision_of(const char *name)
{
    for (int d = 0; d < PROOF_VERDICTS; d++)
        if (strcmp(sequential_decision_name((enum sequential_decision)d), name) == 0)
            return d;
    return -1;
}

static int add_time(struct proof_counts *live, double spent_s, struct error *error)
{
    if (isnan(spent_s))
        return 0;
    double *grown = realloc(live->spent_s, (live->timed + 1) * sizeof *grown);
    if (!grown)
        return error_system(error, ENOMEM, "what a verdict took");
    live->spent_s = grown;
    live->spent_s[live->timed++] = spent_s;
    return 0;
}

static int add_live(struct proof_series *series, const json_t *record, double effect, struct error *error)
{
    const int decision = decision_of(json_get_string(record, "verdict", ""));
    size_t at = 0;
    if (decision < 0)
        return error_usage(error, "a verdict that there is not");
    while (at < series->live_count && series->live[at].effect != effect)
        at++;
    if (at == PROOF_MOST_EFFECTS)
        return error_usage(error, "more than %d planted effects", PROOF_MOST_EFFECTS);
    if (at == series->live_count)
        series->live[series->live_count++].effect = effect;
    series->live[at].by_verdict[decision]++;
    series->live[at].verdicts++;
    series->live[at].processes += (uint64_t)json_array_size(json_object_get(record, "log_ratios_cpu"));
    return add_time(&series->live[at], json_get_number(record, "spent_s", NAN), error);
}

static int add_size(struct proof_series *series, const json_t *record, double effect, struct error *error)
{
    if (series->size_count == PROOF_MOST_EFFECTS)
        return error_usage(error, "more than %d measured effects", PROOF_MOST_EFFECTS);
    series->sizes[series->size_count].effect = effect;
    series->sizes[series->size_count].ratio = json_get_number(record, "ratio", NAN);
    series->sizes[series->size_count].low = json_get_number(record, "ratio_low", NAN);
    series->sizes[series->size_count++].high = json_get_number(record, "ratio_high", NAN);
    return 0;
}

static int add_record(struct proof *proof, const json_t *record, struct error *error)
{
    char workload[32], load[32], kind[32];
    double effect = 0;
    const char *label = json_get_string(record, "label", "");
    const int fields = sscanf(label, "%31s %31s %31s %lf", workload, load, kind, &effect);
    const bool aa = fields == 3 && strcmp(kind, "aa") == 0;
    const bool live = fields == 4 && strcmp(kind, "live") == 0, size = fields == 4 && strcmp(kind, "size") == 0;
    if (!aa && !live && !size)
        return error_usage(error, "its label is '%s', not 'CLASS LOAD aa' or 'CLASS LOAD live|size EFFECT'", label);
    struct proof_series *series = series_of(proof, workload, load);
    if (!series)
        return error_usage(error, "more than %d classes and loads", PROOF_MOST_SERIES);
    if (strcmp(json_get_string(record, "status", ""), "ok") != 0) {
        series->failed += strcmp(json_get_string(record, "status", ""), "unreached") != 0;
        return 0;
    }
    return aa     ? add_ratios(series, record, error)
           : live ? add_live(series, record, effect, error)
                  : add_size(series, record, effect, error);
}

static void add_context(struct proof *proof, const json_t *context)
{
    const char *machine = intern_format("%s, %s", json_get_string(context, "cpu_model", "unknown CPU"),
                                        json_get_string(context, "machine_key", "unknown machine"));
    proof->mixed |= proof->machine && proof->machine != machine;
    if (!proof->machine)
        proof->machine = machine;
}

int proof_read(const char *path, struct proof *proof, struct error *error)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    int rc = file ? 0 : error_system(error, errno, "%s", path);
    if (rc < 0) {
        error->exit_code = EXIT_USAGE;
        return rc;
    }
    for (int64_t number = 1; rc == 0 && (length = getline(&line, &room, file)) > 0; number++) {
        json_error_t why;
        if (line[length - 1] != '\n') /* torn: the recorder was killed */
            break;
        json_t *record = json_loads(line, 0, &why);
        const char *schema = json_get_string(record, "schema", "");
        if (strcmp(schema, "attnbench.context/1") == 0)
            add_context(proof, record);
        else if (strcmp(schema, "attnbench.duet/1") == 0)
            rc = add_record(proof, record, error);
        else
            rc = error_usage(error, "neither a context nor a record of a duet");
        json_decref(record);
        if (rc < 0)
            error_prefix(error, rc, "%s:%lld", path, (long long)number);
    }
    free(line);
    fclose(file);
    return rc;
}

void proof_release(struct proof *proof)
{
    for (size_t s = 0; s < proof->count; s++) {
        free(proof->series[s].cpu);
        free(proof->series[s].wall);
        for (size_t e = 0; e < proof->series[s].live_count; e++)
            free(proof->series[s].live[e].spent_s);
    }
    *proof = (struct proof){0};
}

int proof_replay(const struct proof_series *series, bool by_cpu, double tau, double effect, uint64_t verdicts,
                 struct proof_rates *rates, struct error *error)
{
    const struct sequential_rule rule = sequential_rule_for(tau);
    const struct bootstrap_request request = {
        .recorded = by_cpu ? series->cpu : series->wall,
        .n = series->count,
        .effect = effect,
        .rule = &rule,
        .which = BOOTSTRAP_GATE,
        .verdicts = verdicts,
        .seed = 1,
    };
    struct bootstrap_counts counts;
    int rc = bootstrap_replay(&request, &counts);
    if (rc < 0)
        return error_system(error, -rc, "replaying %s, %s", series->workload, series->load);
    *rates = (struct proof_rates){
        .tau = tau,
        .effect = effect,
        .verdicts = counts.verdicts,
        .slower = counts.slower,
        .same = counts.same + counts.faster,
        .inconclusive = counts.inconclusive,
        .mean_processes = counts.mean_processes,
    };
    return 0;
}
