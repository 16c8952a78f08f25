/* SPDX-License-Identifier: Apache-2.0
 *
 * Verdicts of points, flagged, confirmed, and the exit code; see gate.h. Nothing here measures.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gate.h"
#include "json_util.h"
#include "many_tests.h"

static const char *const outcome_names[GATE_OUTCOMES] = {"wrong",     "failed",      "regression", "inconclusive",
                                                         "unreached", "improvement", "same",       "skipped"};

const char *gate_outcome_name(enum gate_outcome outcome)
{
    return outcome_names[outcome];
}

enum gate_outcome gate_outcome(const json_t *record)
{
    const char *name = json_get_string(record, "outcome", "");
    int outcome = 0;
    while (outcome < GATE_SKIPPED && strcmp(name, outcome_names[outcome]) != 0)
        outcome++;
    return (enum gate_outcome)outcome;
}

static bool says(const json_t *record, const char *field, const char *text)
{
    return strcmp(json_get_string(record, field, ""), text) == 0;
}

const char *gate_suspect(json_t *record)
{
    const char *verdict = json_get_string(record, "verdict", "");
    if (!says(record, "status", "ok") || (strcmp(verdict, "slower") != 0 && strcmp(verdict, "faster") != 0))
        return NULL;
    json_object_set_new(record, "suspected", json_string(verdict));
    return json_get_string(record, "suspected", NULL);
}

/* Noise, told by a duet as the reason of a verdict that it does not give. */
static bool is_noisy(const json_t *record)
{
    return says(record, "verdict", "inconclusive") && json_get_string(record, "reason", NULL);
}

/* What is no suspect, or has not run on, has no say: p = 1. */
static double p_of(const json_t *record, const char *suspicion)
{
    const bool counts = says(record, "suspected", suspicion) && !is_noisy(record);
    return counts ? json_get_number(record, "p_spent", 1) : 1;
}

static long flag_direction(json_t *records, const char *suspicion)
{
    const size_t room = json_array_size(records) + 1;
    double *p = malloc(room * sizeof *p);
    json_t **judged = malloc(room * sizeof *judged), *record;
    size_t n = 0, i;
    long flagged = 0;
    int code = p && judged ? 0 : -ENOMEM;
    json_array_foreach(records, i, record)
    {
        if (code == 0 && says(record, "status", "ok")) {
            judged[n] = record;
            p[n++] = p_of(record, suspicion);
        }
    }
    if (code == 0)
        code = many_tests_adjust(p, n, p);
    for (i = 0; i < n && code == 0; i++) {
        if (!says(judged[i], "suspected", suspicion))
            continue;
        const bool is_flagged = p[i] <= GATE_FALSE_DISCOVERY_RATE;
        json_object_set_new(judged[i], "p_adjusted", json_number_or_null(p[i]));
        json_object_set_new(judged[i], "flagged", json_boolean(is_flagged));
        flagged += is_flagged;
    }
    free(p);
    free(judged);
    return code < 0 ? code : flagged;
}

long gate_flag(json_t *records)
{
    const long slower = flag_direction(records, "slower");
    const long faster = slower < 0 ? slower : flag_direction(records, "faster");
    return faster < 0 ? faster : slower + faster;
}

bool gate_is_flagged(const json_t *record, const char *suspicion)
{
    return says(record, "suspected", suspicion) && json_is_true(json_object_get(record, "flagged"));
}

void gate_note_confirmation(json_t *record, const json_t *again)
{
    static const char *const kept[] = {"processes", "ratio", "ratio_low", "ratio_high", "status", "reason", "verdict"};
    json_t *confirmation = json_object();
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        json_t *value = json_object_get(again, kept[i]);
        if (value)
            json_object_set(confirmation, kept[i], value);
    }
    json_object_set_new(confirmation, "p", json_number_or_null(json_get_number(again, "p_spent", NAN)));
    json_object_set_new(record, "confirmation", confirmation);
}

static bool is_change(const json_t *record)
{
    return says(record, "status", "ok") && (says(record, "verdict", "slower") || says(record, "verdict", "faster"));
}

bool gate_control_alarms(const json_t *control)
{
    return is_change(json_object_get(control, "first")) && is_change(json_object_get(control, "again"));
}

static void put(json_t *record, enum gate_outcome outcome, json_t *note)
{
    json_object_set_new(record, "outcome", json_string(outcome_names[outcome]));
    json_object_set_new(record, "note", note ? note : json_null());
}

/* Whether the interval excludes a slowdown that matters. */
static bool excludes_tau(const json_t *record, const json_t *interval)
{
    const double tau = json_get_number(record, "tau", NAN), high = json_get_number(interval, "ratio_high", NAN);
    return high < 1 + tau;
}

/* A suspicion that did not hold: same, as long as the interval excludes what matters; else nobody knows. */
static void put_unfounded(json_t *record, const json_t *interval, json_t *note)
{
    put(record, excludes_tau(record, interval) ? GATE_SAME : GATE_INCONCLUSIVE, note);
}

/* A change without doubt. One that both intervals, of the processes that led to it and of those that confirmed it, put
 * below tau is not what the gate is there for; either interval alone is wrong about tau too often. */
static void put_change(json_t *record, const json_t *confirmation, const char *suspicion)
{
    const double percent = 100 * (json_get_number(record, "ratio", NAN) - 1);
    if (strcmp(suspicion, "slower") != 0)
        put(record, GATE_IMPROVEMENT, NULL);
    else if (excludes_tau(record, record) && excludes_tau(record, confirmation))
        put(record, GATE_SAME, json_sprintf("slower by %.1f %%, less than what counts", percent));
    else
        put(record, GATE_REGRESSION, NULL);
}

static void conclude_confirmed(json_t *record, const json_t *confirmation, const char *suspicion, bool tainted)
{
    const double p = json_get_number(confirmation, "p", 1);
    const long long processes = (long long)json_get_int(confirmation, "processes", 0);
    const char *reason = json_get_string(confirmation, "reason", NULL);
    /* What can't be told of a speed-up fails nobody. */
    const enum gate_outcome open = strcmp(suspicion, "slower") == 0 ? GATE_INCONCLUSIVE : GATE_SAME;
    if (says(confirmation, "status", "wrong"))
        put(record, GATE_WRONG, json_sprintf("when it was to be confirmed: %s", reason));
    else if (says(confirmation, "status", "failed"))
        put(record, GATE_FAILED, json_sprintf("when it was to be confirmed: %s", reason));
    else if (!says(confirmation, "status", "ok") || is_noisy(confirmation))
        put(record, open, json_sprintf("%s, but not confirmed: %s", suspicion, reason));
    else if (!(p < GATE_CONFIRMING_P))
        put_unfounded(record, confirmation,
                      json_sprintf("%s at first, but %lld fresh processes did not confirm it (p = %.2g)", suspicion,
                                   processes, p));
    else if (tainted)
        put(record, open, json_sprintf("%s and confirmed, but on this machine identical code differs too", suspicion));
    else
        put_change(record, confirmation, suspicion);
}

static void conclude_suspect(json_t *record, const char *suspicion, bool tainted)
{
    const json_t *confirmation = json_object_get(record, "confirmation");
    const bool slower = strcmp(suspicion, "slower") == 0;
    if (is_noisy(record))
        put(record, GATE_INCONCLUSIVE, NULL); /* its reason says it */
    else if (confirmation)
        conclude_confirmed(record, confirmation, suspicion, tainted);
    else if (!json_is_number(json_object_get(record, "p_spent")) || gate_is_flagged(record, suspicion))
        put(record, slower ? GATE_INCONCLUSIVE : GATE_SAME,
            json_sprintf("%s by its own interval, but no time was left to confirm it", suspicion));
    else
        put_unfounded(record, record,
                      json_sprintf("%s by its own interval, but not among so many points (adjusted p = %.2g)",
                                   suspicion, json_get_number(record, "p_adjusted", NAN)));
}

/* What an open verdict could have told, if nothing else says why it is open. */
static json_t *least_note(const json_t *record)
{
    const double least = json_get_number(record, "smallest_detectable", NAN);
    if (json_get_string(record, "reason", NULL) || !isfinite(least))
        return NULL;
    return json_sprintf("only a slowdown of %.1f %% or more could have been told", 100 * least);
}

bool gate_is_lost(const json_t *record)
{
    return says(record, "status", "skipped") && json_is_true(json_object_get(record, "lost"));
}

/* What NEW no longer does is no reason to fail, but must not pass for a point that nobody could ever do. */
static json_t *lost_note(const json_t *record)
{
    return gate_is_lost(record) ? json_sprintf("lost: BASE does it; %s", json_get_string(record, "reason", "")) : NULL;
}

static void conclude(json_t *record, bool tainted)
{
    static const struct {
        const char *status;
        enum gate_outcome outcome;
    } plain[] = {
        {"wrong", GATE_WRONG}, {"failed", GATE_FAILED}, {"unreached", GATE_UNREACHED}, {"skipped", GATE_SKIPPED}};
    const char *suspicion = json_get_string(record, "suspected", NULL);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (says(record, "status", plain[i].status)) {
            put(record, plain[i].outcome, lost_note(record));
            return;
        }
    if (suspicion)
        conclude_suspect(record, suspicion, tainted);
    else if (says(record, "verdict", "same"))
        put(record, GATE_SAME, NULL);
    else
        put(record, GATE_INCONCLUSIVE, least_note(record));
}

void gate_conclude_so_far(json_t *record)
{
    conclude(record, false); /* a taint counts only against what fresh processes confirmed */
}

/* Whether the record's control, which has its class and its clock, was measured and yet came to no verdict. */
static bool is_unvouched(const json_t *record, const json_t *controls)
{
    size_t i;
    const json_t *control;
    bool silent = false;
    json_array_foreach((json_t *)controls, i, control)
    {
        const json_t *first = json_object_get(control, "first"), *again = json_object_get(control, "again");
        const json_t *last = json_is_object(again) ? again : first;
        const bool same = says(last, "status", "ok") && says(last, "verdict", "same");
        silent |= !same && says(record, "class", json_get_string(control, "class", "")) &&
                  says(record, "judged_by", json_get_string(control, "judged_by", ""));
    }
    return silent;
}

enum gate_outcome gate_control_outcome(const json_t *control)
{
    const json_t *first = json_object_get(control, "first"), *again = json_object_get(control, "again");
    if (says(first, "status", "wrong") || says(again, "status", "wrong"))
        return GATE_WRONG;
    return says(first, "status", "failed") || says(again, "status", "failed") ? GATE_FAILED : GATE_SAME;
}

void gate_conclude(json_t *records, const json_t *controls, struct gate_result *result)
{
    size_t i, judged = 0;
    json_t *record;
    const json_t *control;
    *result = (struct gate_result){.exit_code = EXIT_OK};
    json_array_foreach(controls, i, control)
    {
        result->tainted |= gate_control_alarms(control);
        result->wrong_controls += gate_control_outcome(control) == GATE_WRONG;
        result->failed_controls += gate_control_outcome(control) == GATE_FAILED;
    }
    json_array_foreach(records, i, record)
    {
        conclude(record, result->tainted);
        if (gate_outcome(record) == GATE_REGRESSION && is_unvouched(record, controls))
            json_object_set_new(record, "note",
                                json_string("its control has no verdict: identical code might differ here, too"));
        result->counts[gate_outcome(record)]++;
        judged += gate_outcome(record) != GATE_SKIPPED;
    }
    if (result->counts[GATE_WRONG] || result->counts[GATE_FAILED] || result->wrong_controls || result->failed_controls)
        result->exit_code = EXIT_WRONG;
    else if (result->counts[GATE_REGRESSION])
        result->exit_code = EXIT_REGRESSION;
    else if (result->counts[GATE_INCONCLUSIVE] || result->counts[GATE_UNREACHED])
        result->exit_code = EXIT_INCONCLUSIVE;
    else if (!judged)
        result->exit_code = EXIT_NOTHING_RAN;
}

static double change_of(const json_t *record)
{
    return fabs(json_get_number(record, "log_ratio", 0));
}

static int worse_first(const void *left, const void *right)
{
    const json_t *a = *(json_t *const *)left, *b = *(json_t *const *)right;
    if (gate_outcome(a) != gate_outcome(b))
        return gate_outcome(a) < gate_outcome(b) ? -1 : 1;
    return (change_of(a) < change_of(b)) - (change_of(a) > change_of(b));
}

json_t *gate_worst_first(const json_t *records)
{
    const size_t count = json_array_size(records);
    json_t **sorted = malloc((count + 1) * sizeof *sorted), *ordered = json_array();
    for (size_t i = 0; i < count && sorted; i++)
        sorted[i] = json_array_get(records, i);
    if (sorted)
        qsort(sorted, count, sizeof *sorted, worse_first);
    for (size_t i = 0; i < count; i++)
        json_array_append(ordered, sorted ? sorted[i] : json_array_get(records, i));
    free(sorted);
    return ordered;
}
