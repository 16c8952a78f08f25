/* SPDX-License-Identifier: Apache-2.0
 *
 * From what the processes of a duet told to its verdict, and what noise has to say to it. Nothing here measures: a
 * record of duet_decide (duet.h) holds all that is looked at.
 */
#ifndef HARNESS_DUET_LOOK_H
#define HARNESS_DUET_LOOK_H

#include <jansson.h>
#include <stdbool.h>

#include "duet.h"

/* "status" and "reason" (NULL: none) of a record. */
void duet_set_status(json_t *record, const char *status, const char *reason);

/* The record's processes told no ratio that is a number. */
void duet_set_failed(json_t *record);

/* Why what the record's processes saw does not carry the verdict, by the medians over them; NULL: it does, or there is
 * no verdict. Interned. one_sided: the rule of gate, which takes faster for the same. */
const char *duet_noise_reason(const json_t *record, const struct sequential_verdict *verdict,
                              const struct sequential_rule *rule, bool one_sided);

/*
 * After each process of a record, by run->rule, run->exactly and run->one_sided: whether it is the last. The record
 * then has status, reason, verdict and figures. *extended: false at first, and kept from look to look: what was noisy
 * once is judged by all that was measured, and only after the most processes given up as inconclusive.
 */
bool duet_look(const struct duet_run *run, json_t *record, bool *extended);

/* A single look at all processes of a record. 0; -EIO: there is nothing to see, and the status is "failed". */
int duet_look_at_all(const struct duet_run *run, json_t *record);

#endif
