/* SPDX-License-Identifier: Apache-2.0
 *
 * From many verdicts of duet to the one of a CI job. Each point stops by the one-sided rule of sequential.h. Those that
 * it calls changed are suspects: they run on to looks of their own, over which the level of one test is spent, since
 * the p-value of a stop that the data chose is not valid as it stands; Benjamini-Hochberg over all points says which of
 * them are flagged; and a change counts if fresh processes confirm it, unless both they and the first ones put it below
 * tau. Pairs of identical code, the controls, say whether the machine lets such a verdict stand at all.
 *
 * A record is duet_session_judge's. What is added to it: "class" compute | memory, of which it has a control with its
 * clock; "suspected" slower | faster; "p_spent", its p-value in that direction over the looks of a suspect;
 * "p_adjusted" and "flagged"; "confirmation" {processes, ratio, ratio_low, ratio_high, p, status, reason}; "outcome",
 * one of gate_outcome_name, and "note", why it is no other one, or what weakens it (null: nothing to say).
 *
 * In the journal a suspect has two lines, so that a run that is killed does not lose just those: "provisional" true, as
 * it stood when it became one, and, after everything else, the record. The first is for people: it was chosen for its
 * ratio, and a history leaves it out.
 */
#ifndef HARNESS_GATE_H
#define HARNESS_GATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "error.h"

enum gate_outcome {
    GATE_WRONG,
    GATE_FAILED,
    GATE_REGRESSION,
    GATE_INCONCLUSIVE,
    GATE_UNREACHED,
    GATE_IMPROVEMENT,
    GATE_SAME,
    GATE_SKIPPED,
    GATE_OUTCOMES
};
const char *gate_outcome_name(enum gate_outcome outcome);
/* As gate_conclude has put it down. */
enum gate_outcome gate_outcome(const json_t *record);

/* The share of false alarms among the flagged, and the p-value that fresh processes must stay below. */
#define GATE_FALSE_DISCOVERY_RATE 0.05
#define GATE_CONFIRMING_P 0.01

/* A suspect is seen at 24 processes in all, the last at which the rule could have stopped, then at 36 and 48; fresh
 * ones confirm it at 12, 24 or 36. Both end at the look that is clear enough. */
enum gate_stage_name { GATE_SUSPECTED, GATE_CONFIRMING };
enum { GATE_STAGE_LOOKS = 3, GATE_MOST_PROCESSES = 48 /* of any look */ };
size_t gate_stage_first(enum gate_stage_name name);
/* To a record of exactly the processes of a look "p_spent": the least of p / share over the looks so far, which is a
 * valid p-value whatever stops the stage (many_tests.h). Returns how many processes in all the next look takes; 0:
 * none, since p_spent < enough, or this was the last. With other numbers of processes nothing is put down. */
size_t gate_stage_next(enum gate_stage_name name, json_t *record, const char *suspicion, double enough);
/* The record's p-value as it stands; NAN: none. */
double gate_p_in_direction(const json_t *record, const char *suspicion);

/* "slower", "faster", or NULL: what a record says of itself; noted in it. */
const char *gate_suspect(json_t *record);
/* Puts "outcome" and "note" into a record before the others are known: for good, unless it is a suspect; into a suspect
 * what would hold if the gate ended here. */
void gate_conclude_so_far(json_t *record);
/* Flags suspects, slower and faster ones each among all points that were judged. Returns how many are flagged, or
 * -ENOMEM. */
long gate_flag(json_t *records);
bool gate_is_flagged(const json_t *record, const char *suspicion);

/* BASE does the point, and it is skipped because NEW does not. */
bool gate_is_lost(const json_t *record);

/* Puts down what fresh processes said: another record of the same pair. */
void gate_note_confirmation(json_t *record, const json_t *again);

/* A control: {"class", "judged_by", "kernel", "first": record, "again": record of a repetition or null}. */
bool gate_control_alarms(const json_t *control);
/* GATE_WRONG or GATE_FAILED: the base itself is broken; else GATE_SAME. */
enum gate_outcome gate_control_outcome(const json_t *control);

struct gate_result {
    size_t counts[GATE_OUTCOMES];
    bool tainted;           /* a control alarmed twice: no change of this run counts */
    size_t wrong_controls;  /* whose code was wrong */
    size_t failed_controls; /* or failed */
    enum exit_code exit_code;
};
/* Puts "outcome" and "note" into every record. controls: array. */
void gate_conclude(json_t *records, const json_t *controls, struct gate_result *result);

/* The records in the order in which a reader wants them: by outcome as enumerated, the greatest change first. A new
 * array that shares them. */
json_t *gate_worst_first(const json_t *records);

#endif
