/* SPDX-License-Identifier: Apache-2.0
 *
 * The measuring of gate, in the order in which time may run out: controls, points, suspects on to the last look, then
 * the fresh processes that confirm them, slower ones first.
 */
#ifndef HARNESS_GATE_RUN_H
#define HARNESS_GATE_RUN_H

#include "duet_session.h"
#include "gate.h"

enum { GATE_CLASSES = 2 };

struct gate_run {
    json_t *controls; /* array, as gate_control_alarms takes them */
    double began_ns, spent_s;
    struct gate_result result;
};

/* Measures and concludes; the session's records then have their outcomes. Ends early when interrupted. Release with
 * gate_run_release whatever it returns. */
int gate_run_all(struct duet_session *session, struct gate_run *gate, struct error *error);
void gate_run_release(struct gate_run *gate);

/* One pair a kernel class, compute and memory, as far as the pairs have them: side A against a copy of itself at other
 * addresses. Appends to *controls. */
int gate_controls_run(struct duet_session *session, json_t *controls, struct error *error);

#endif
