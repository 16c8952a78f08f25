/* SPDX-License-Identifier: Apache-2.0
 *
 * The measuring of gate, in the order in which time may run out: controls, points, suspects on to the last look, then
 * the fresh processes that confirm them, slower ones first.
 */
#ifndef HARNESS_GATE_RUN_H
#define HARNESS_GATE_RUN_H

#include "duet_session.h"
#include "gate.h"

struct gate_run {
    json_t *controls; /* array, as gate_control_alarms takes them */
    double began_ns, spent_s;
    struct gate_result result;
    int unwritten; /* 0, or what kept the journal from being written to its end, which write_error tells */
    struct error write_error;
};

/* Measures and concludes; the session's records then have their outcomes. Ends early when interrupted, but not because
 * of a journal that can't be written: gate->unwritten. Release with gate_run_release whatever it returns. */
int gate_run_all(struct duet_session *session, struct gate_run *gate, struct error *error);
void gate_run_release(struct gate_run *gate);

/* "compute" or "memory": what bounds the pair's point. */
const char *gate_class(const struct duet_pair *pair);

/* One pair a class and clock (duet_judges_cpu) that the pairs have: side A against a copy of itself at other addresses.
 * Where the kernel's own code refuses the problem, the next pair of its kind. Appends to *controls. */
int gate_controls_run(struct duet_session *session, json_t *controls, struct error *error);

#endif
